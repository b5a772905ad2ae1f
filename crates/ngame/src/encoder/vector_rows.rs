//! Matrices made of the rows of others.

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::vectors::{Vector, VectorMatrix};

impl VectorMatrix {
    /// A copy of some rows in memory, in the order given, stored as here.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn select(&self, rows: &[u32]) -> Self {
        let dim = self.dim();
        match self.all() {
            Vector::F32(all) => Self::from_f32(select(all, dim, rows), dim),
            Vector::F16(all) => Self::from_f16(select(all, dim, rows), dim),
        }
    }

    /// A copy of all rows in memory with those of another matrix behind them, stored as here.
    ///
    /// # Panics
    /// If the rows of the other are not as long.
    pub fn extended(&self, more: &Self) -> Self {
        assert_eq!(self.dim(), more.dim(), "rows of one length");
        match self.all() {
            Vector::F32(all) => {
                Self::from_f32([all, &more.all().to_vec()[..]].concat(), self.dim())
            }
            Vector::F16(all) => {
                let mut numbers = all.to_vec();
                match more.all() {
                    Vector::F16(more) => numbers.extend(more),
                    Vector::F32(more) => {
                        let begin = numbers.len();
                        numbers.resize(begin + more.len(), f16::ZERO);
                        numbers[begin..].convert_from_f32_slice(more);
                    }
                }
                Self::from_f16(numbers, self.dim())
            }
        }
    }
}

fn select<T: Copy>(all: &[T], dim: usize, rows: &[u32]) -> Vec<T> {
    let mut numbers = Vec::with_capacity(rows.len() * dim);
    for &row in rows {
        numbers.extend_from_slice(&all[row as usize * dim..(row as usize + 1) * dim]);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_taken_and_put_behind_whatever_their_type() {
        let wide = VectorMatrix::from_f32(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2);
        let narrow = wide.to_f16();
        for matrix in [&wide, &narrow] {
            let some = matrix.select(&[2, 0, 2]);
            assert_eq!(some.vector_type(), matrix.vector_type());
            assert_eq!(some.all().to_vec(), [5.0, 6.0, 1.0, 2.0, 5.0, 6.0]);
            for more in [&wide, &narrow] {
                let longer = matrix.extended(&more.select(&[1]));
                assert_eq!(longer.vector_type(), matrix.vector_type());
                assert_eq!(longer.all().to_vec(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 3.0, 4.0]);
            }
        }
        assert_eq!(wide.select(&[]).n_rows(), 0);
    }
}
