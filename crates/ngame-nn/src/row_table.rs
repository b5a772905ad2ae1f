//! A table of which a step moves few rows: what it costs depends on those rows and not on the table.
//!
//! [`VectorTable`](crate::VectorTable) keeps a gradient as large as the table; here the gradient has
//! one row for every row moved, and moments may have 16 bits. With them, a row takes twice the memory
//! of its numbers, and four times less than three tables more.

use rayon::prelude::*;

use crate::adam_step::AdamStep;
use crate::memory;

/// The numbers of a task.
const BLOCK: usize = 16_384;

/// How precisely the moments of Adam are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MomentType {
    /// 32 bits: a table takes three times the memory of its numbers.
    #[default]
    Full,
    /// 16 bits, rounded at random: twice the memory of its numbers.
    Half,
}

/// Rows of numbers with the moments of Adam.
#[derive(Clone, Debug)]
pub struct RowTable {
    values: Vec<f32>, // (rows, dim)
    moments: Moments,
    dim: usize,
}

#[derive(Clone, Debug)]
enum Moments {
    Full([Vec<f32>; 2]), // (rows, dim)
    Half([Vec<u16>; 2]), // (rows, dim)
}

impl RowTable {
    /// A table of these numbers.
    ///
    /// # Panics
    /// If they do not make whole rows.
    pub fn new(values: Vec<f32>, dim: usize, moments: MomentType) -> Self {
        assert!(dim > 0 && values.len().is_multiple_of(dim), "whole rows");
        let n = values.len();
        let moments = match moments {
            MomentType::Full => Moments::Full([memory::zeros(n), memory::zeros(n)]),
            MomentType::Half => Moments::Half([vec![0; n], vec![0; n]]),
        };
        Self { values, moments, dim }
    }

    /// All rows, back to back.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// All rows, back to back, without the moments.
    pub fn into_values(self) -> Vec<f32> {
        self.values
    }

    /// Copies some rows.
    pub fn gather(&self, rows: &[u32], out: &mut [f32]) {
        let dim = self.dim;
        let many = (BLOCK / dim).max(1);
        rows.par_chunks(many).zip(out.par_chunks_mut(many * dim)).for_each(|(rows, out)| {
            for (&row, out) in rows.iter().zip(out.chunks_exact_mut(dim)) {
                let start = row as usize * dim;
                out.copy_from_slice(&self.values[start..start + dim]);
            }
        });
    }

    /// One step of some rows, in ascending order and each at most once, against their gradients.
    /// Other rows stay as they are, with their moments.
    ///
    /// # Panics
    /// If rows are out of order, or there is not one gradient for each.
    pub fn step(&mut self, step: &AdamStep, rows: &[u32], d_rows: &[f32]) {
        assert_eq!(rows.len() * self.dim, d_rows.len(), "a gradient for every row");
        assert!(rows.is_sorted_by(|a, b| a < b), "rows in order");
        let values = &mut self.values[..];
        match &mut self.moments {
            Moments::Full([first, second]) => {
                Part { values, first: &mut first[..], second, first_row: 0 }
                    .update(step, self.dim, rows, d_rows);
            }
            Moments::Half([first, second]) => {
                Part { values, first: &mut first[..], second, first_row: 0 }
                    .update(step, self.dim, rows, d_rows);
            }
        }
    }

    /// The numbers and both moments as bytes, to be kept between runs.
    pub fn buffers(&self) -> [&[u8]; 3] {
        let values = bytemuck::cast_slice(&self.values);
        match &self.moments {
            Moments::Full([m, v]) => [values, bytemuck::cast_slice(m), bytemuck::cast_slice(v)],
            Moments::Half([m, v]) => [values, bytemuck::cast_slice(m), bytemuck::cast_slice(v)],
        }
    }

    /// The same to be written.
    pub fn buffers_mut(&mut self) -> [&mut [u8]; 3] {
        let values = bytemuck::cast_slice_mut(&mut self.values);
        match &mut self.moments {
            Moments::Full([m, v]) => {
                [values, bytemuck::cast_slice_mut(m), bytemuck::cast_slice_mut(v)]
            }
            Moments::Half([m, v]) => {
                [values, bytemuck::cast_slice_mut(m), bytemuck::cast_slice_mut(v)]
            }
        }
    }
}

/// The rows of a table from `first_row` on.
struct Part<'a, M> {
    values: &'a mut [f32],
    first: &'a mut [M],
    second: &'a mut [M],
    first_row: u32,
}

impl<M: Moment> Part<'_, M> {
    /// Halves the rows until they are few enough for a thread.
    fn update(self, step: &AdamStep, dim: usize, rows: &[u32], d_rows: &[f32]) {
        let Self { values, first, second, first_row } = self;
        if rows.len() * dim > BLOCK && rows.len() > 1 {
            let (left, right) = rows.split_at(rows.len() / 2);
            let (d_left, d_right) = d_rows.split_at(left.len() * dim);
            let middle = (right[0] - first_row) as usize * dim;
            let (values, values_right) = values.split_at_mut(middle);
            let (first, first_right) = first.split_at_mut(middle);
            let (second, second_right) = second.split_at_mut(middle);
            let above = Part {
                values: values_right,
                first: first_right,
                second: second_right,
                first_row: right[0],
            };
            let below = Part { values, first, second, first_row };
            rayon::join(
                || below.update(step, dim, left, d_left),
                || above.update(step, dim, right, d_right),
            );
            return;
        }
        for (&row, d_row) in rows.iter().zip(d_rows.chunks_exact(dim)) {
            let start = (row - first_row) as usize * dim;
            let range = start..start + dim;
            let (first, second) = (&mut first[range.clone()], &mut second[range.clone()]);
            M::apply(step, row, &mut values[range], d_row, first, second);
        }
    }
}

/// A number that a moment is kept as.
trait Moment: Sized + Send {
    fn apply(
        step: &AdamStep,
        row: u32,
        values: &mut [f32],
        gradient: &[f32],
        first: &mut [Self],
        second: &mut [Self],
    );
}

impl Moment for f32 {
    fn apply(
        step: &AdamStep,
        _: u32,
        values: &mut [f32],
        gradient: &[f32],
        first: &mut [Self],
        second: &mut [Self],
    ) {
        step.apply(values, gradient, first, second);
    }
}

impl Moment for u16 {
    fn apply(
        step: &AdamStep,
        row: u32,
        values: &mut [f32],
        gradient: &[f32],
        first: &mut [Self],
        second: &mut [Self],
    ) {
        step.apply_half(row, values, gradient, first, second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradcheck::noise;

    #[test]
    fn rows_move_as_by_themselves_and_others_stay() {
        let (n, dim) = (500, 100);
        let start = noise(1, n * dim);
        let rows: Vec<u32> = (0..n as u32).filter(|row| row % 3 == 1).collect();
        let d_rows = noise(2, rows.len() * dim);
        for moments in [MomentType::Full, MomentType::Half] {
            let mut table = RowTable::new(start.clone(), dim, moments);
            for step in 1..=3 {
                table.step(&AdamStep::new(0.01, step), &rows, &d_rows);
            }
            let mut gathered = vec![0.0; rows.len() * dim];
            table.gather(&rows, &mut gathered);
            for (row, before) in start.chunks(dim).enumerate() {
                let after = &table.values()[row * dim..(row + 1) * dim];
                match rows.binary_search(&(row as u32)) {
                    Err(_) => assert_eq!(after, before),
                    Ok(at) => {
                        let mut alone = before.to_vec();
                        let (mut m, mut v) = (vec![0.0; dim], vec![0.0; dim]);
                        let gradient = &d_rows[at * dim..(at + 1) * dim];
                        for step in 1..=3 {
                            let step = AdamStep::new(0.01, step);
                            step.apply(&mut alone, gradient, &mut m, &mut v);
                        }
                        for (a, b) in after.iter().zip(&alone) {
                            assert!((a - b).abs() < 2e-3, "{a} and {b}");
                        }
                        assert_eq!(&gathered[at * dim..(at + 1) * dim], after);
                    }
                }
            }
        }
    }

    #[test]
    fn a_table_goes_on_from_its_buffers() {
        for moments in [MomentType::Full, MomentType::Half] {
            let mut table = RowTable::new(noise(1, 20), 4, moments);
            table.step(&AdamStep::new(0.1, 1), &[0, 3], &noise(2, 8));
            let mut fresh = RowTable::new(vec![0.0; 20], 4, moments);
            for (to, from) in fresh.buffers_mut().into_iter().zip(table.buffers()) {
                to.copy_from_slice(from);
            }
            for table in [&mut table, &mut fresh] {
                table.step(&AdamStep::new(0.1, 2), &[1, 3], &noise(3, 8));
            }
            assert_eq!(table.buffers(), fresh.buffers());
        }
    }
}
