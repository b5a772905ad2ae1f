//! Many vectors of one length, one a row, and what clustering asks of them: inner products with one
//! direction, and sums. Rows are named by their numbers, so that nobody has to copy them together.

use half::f16;
use half::slice::HalfFloatSliceExt;

use crate::kernels::row_dots::{row_dots, total};
use crate::kernels::{Level, kernel};

/// The lanes of a sum, as everywhere in the kernels.
const LANES: usize = 16;

/// Rows of 16 bits that are widened in one go.
const WIDENED: usize = 16;

/// Rows of f32 or f16 numbers, back to back.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    numbers: Numbers<'a>, // (rows, dim)
    dim: usize,
    level: Level,
}

#[derive(Clone, Copy, Debug)]
enum Numbers<'a> {
    F32(&'a [f32]),
    F16(&'a [f16]),
}

impl<'a> Rows<'a> {
    /// Rows of `dim` numbers of 32 bits.
    pub fn f32(numbers: &'a [f32], dim: usize) -> Self {
        assert!(dim > 0 && numbers.len().is_multiple_of(dim), "whole rows");
        Self { numbers: Numbers::F32(numbers), dim, level: Level::best() }
    }

    /// Rows of `dim` numbers of 16 bits.
    pub fn f16(numbers: &'a [f16], dim: usize) -> Self {
        assert!(dim > 0 && numbers.len().is_multiple_of(dim), "whole rows");
        Self { numbers: Numbers::F16(numbers), dim, level: Level::best() }
    }

    /// The length of a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Copies the rows `ids`, in that order.
    pub fn gather(&self, ids: &[u32], out: &mut [f32]) {
        for (&id, out) in ids.iter().zip(out.chunks_exact_mut(self.dim)) {
            let range = id as usize * self.dim..(id as usize + 1) * self.dim;
            match self.numbers {
                Numbers::F32(numbers) => out.copy_from_slice(&numbers[range]),
                Numbers::F16(numbers) => numbers[range].convert_to_f32_slice(out),
            }
        }
    }

    /// Writes the inner products of the rows `ids` with a direction.
    pub fn dots(&self, ids: &[u32], direction: &[f32], out: &mut [f32]) {
        assert_eq!((direction.len(), out.len()), (self.dim, ids.len()), "one number a row");
        match self.numbers {
            Numbers::F32(numbers) => row_dots(self.level, numbers, ids, direction, out),
            Numbers::F16(numbers) => row_dots(self.level, numbers, ids, direction, out),
        }
    }

    /// Adds the rows `ids` to `sum`.
    pub fn add_to(&self, ids: &[u32], sum: &mut [f32]) {
        assert_eq!(sum.len(), self.dim, "a sum is as long as a row");
        self.widened(ids, |ids, numbers| add_rows(self.level, numbers, ids, sum));
    }

    /// Calls `run` with rows as f32: all at once where they are that already, a few at a time
    /// otherwise.
    fn widened(&self, ids: &[u32], mut run: impl FnMut(&[u32], &[f32])) {
        match self.numbers {
            Numbers::F32(numbers) => run(ids, numbers),
            Numbers::F16(_) => {
                let mut wide = vec![0.0; WIDENED * self.dim];
                let places: [u32; WIDENED] = std::array::from_fn(|place| place as u32);
                for ids in ids.chunks(WIDENED) {
                    self.gather(ids, &mut wide);
                    run(&places[..ids.len()], &wide);
                }
            }
        }
    }
}

/// The inner product of two vectors.
///
/// # Panics
/// If they have different lengths.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    dot_of_two(Level::best(), a, b)
}

kernel! {
    /// The inner product of two vectors, in lanes enough to hide how long a product takes.
    fn dot_of_two<A>(a: &[f32], b: &[f32]) -> f32 {
        const WIDE: usize = 2 * LANES;
        let mut wide = [0.0f32; WIDE];
        let (groups, rest) = a.as_chunks::<WIDE>();
        let (others, other_rest) = b.as_chunks::<WIDE>();
        for (a, b) in groups.iter().zip(others) {
            for lane in 0..WIDE {
                wide[lane] = A::mul_add(a[lane], b[lane], wide[lane]);
            }
        }
        for (lane, (&a, &b)) in rest.iter().zip(other_rest).enumerate() {
            wide[lane] = A::mul_add(a, b, wide[lane]);
        }
        total(std::array::from_fn(|lane| wide[lane] + wide[lane + LANES]))
    }
}

kernel! {
    /// Adds rows to a sum, in order.
    fn add_rows<A>(numbers: &[f32], ids: &[u32], sum: &mut [f32]) {
        let dim = sum.len();
        for &id in ids {
            let row = &numbers[id as usize * dim..(id as usize + 1) * dim];
            for (sum, value) in sum.iter_mut().zip(row) {
                *sum += value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradcheck::noise;

    #[test]
    fn the_product_of_two_takes_every_number_once() {
        for n in [0usize, 1, 15, 16, 17, 31, 32, 33, 100, 384] {
            let (a, b): (Vec<f32>, Vec<f32>) = (0..n).map(|i| (i as f32, 2.0)).unzip();
            for &level in Level::available() {
                assert_eq!(dot_of_two(level, &a, &b), (n * n.saturating_sub(1)) as f32);
            }
        }
    }

    #[test]
    fn products_and_sums_are_those_of_plain_loops_in_both_widths_at_every_level() {
        for dim in [1, 7, 16, 33, 384] {
            let numbers: Vec<f32> =
                noise(5, 40 * dim).iter().map(|&x| f16::from_f32(x).to_f32()).collect();
            let halves: Vec<f16> = numbers.iter().map(|&x| f16::from_f32(x)).collect();
            let direction = noise(6, dim);
            let ids: Vec<u32> = (0..37).map(|i| (i * 17) % 40).collect();
            let row = |id: u32| &numbers[id as usize * dim..(id as usize + 1) * dim];
            for &level in Level::available() {
                let wide = Rows { level, ..Rows::f32(&numbers, dim) };
                let narrow = Rows { level, ..Rows::f16(&halves, dim) };
                for rows in [wide, narrow] {
                    let mut found = vec![0.0; ids.len()];
                    rows.dots(&ids, &direction, &mut found);
                    for (&id, &found) in ids.iter().zip(&found) {
                        let exact: f64 = row(id)
                            .iter()
                            .zip(&direction)
                            .map(|(&a, &b)| f64::from(a) * f64::from(b))
                            .sum();
                        assert!((f64::from(found) - exact).abs() < 1e-4, "{found} for {exact}");
                    }
                    let mut sum = vec![1.0; dim];
                    rows.add_to(&ids, &mut sum);
                    for (i, &found) in sum.iter().enumerate() {
                        let exact = 1.0 + ids.iter().map(|&id| f64::from(row(id)[i])).sum::<f64>();
                        assert!((f64::from(found) - exact).abs() < 1e-4, "{found} for {exact}");
                    }
                    let mut copies = vec![0.0; 2 * dim];
                    rows.gather(&[3, 3], &mut copies);
                    assert_eq!((&copies[..dim], &copies[dim..]), (row(3), row(3)));
                }
            }
        }
    }
}
