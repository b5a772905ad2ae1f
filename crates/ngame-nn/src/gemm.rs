//! Large matrix products: the `gemm` crate behind one door.
//!
//! Matrices are dense and row-major; a transposed one is the same buffer read the other way round.
//! Work is spread over the current `rayon` pool: every thread makes some rows of the result by a
//! product of its own. That was measured to be some percent faster than the crate's own threads,
//! which wait for each other between packing and multiplying.

use gemm::Parallelism;
use rayon::prelude::*;

/// The fewest rows of a part: below that, packing the other matrix again for every part would show.
const LEAST_ROWS: usize = 64;

/// A matrix to read, (rows, columns).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<'a> {
    values: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: isize,
    column_stride: isize,
}

impl<'a> Matrix<'a> {
    /// A row-major buffer as a matrix.
    pub(crate) fn new(values: &'a [f32], rows: usize, columns: usize) -> Self {
        assert_eq!(values.len(), rows * columns, "a matrix of {rows} rows, {columns} columns");
        Self { values, rows, columns, row_stride: columns as isize, column_stride: 1 }
    }

    /// Its transpose, without a copy.
    pub(crate) fn transposed(self) -> Self {
        Self {
            values: self.values,
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
        }
    }
}

/// `out = a b`, `out`: (rows of a, columns of b), row-major.
pub(crate) fn multiply(a: Matrix<'_>, b: Matrix<'_>, out: &mut [f32]) {
    product(a, b, out, false);
}

/// `out += a b`.
pub(crate) fn multiply_add(a: Matrix<'_>, b: Matrix<'_>, out: &mut [f32]) {
    product(a, b, out, true);
}

fn product(a: Matrix<'_>, b: Matrix<'_>, out: &mut [f32], add: bool) {
    assert_eq!(a.columns, b.rows, "inner sizes of a product");
    assert_eq!(out.len(), a.rows * b.columns, "size of a product");
    if out.is_empty() {
        return;
    }
    let part = a.rows.div_ceil(rayon::current_num_threads()).next_multiple_of(16).max(LEAST_ROWS);
    if part >= a.rows {
        return rows_of_product(a, b, 0, out, add);
    }
    let parts = out.par_chunks_mut(part * b.columns).enumerate();
    parts.for_each(|(n, out)| rows_of_product(a, b, n * part, out, add));
}

/// The rows of a product from `first_row` on that `out` has room for.
fn rows_of_product(a: Matrix<'_>, b: Matrix<'_>, first_row: usize, out: &mut [f32], add: bool) {
    let rows = out.len() / b.columns;
    assert!(first_row + rows <= a.rows);
    // SAFETY: the three buffers hold the elements that rows, columns and strides describe: `new`
    // checked those of `a` and `b`, of which the rows used lie inside, and `out` has room for just
    // these rows; `out` is borrowed mutably, so it overlaps neither.
    unsafe {
        gemm::gemm(
            rows,
            b.columns,
            a.columns,
            out.as_mut_ptr(),
            1,
            b.columns as isize,
            add,
            a.values.as_ptr().offset(first_row as isize * a.row_stride),
            a.column_stride,
            a.row_stride,
            b.values.as_ptr(),
            b.column_stride,
            b.row_stride,
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_transposes() {
        let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]; // (2, 3)
        let b = [1.0, 0.0, 2.0, 1.0, 0.0, 3.0]; // (2, 3)
        let mut out = [0.0; 4];
        multiply(Matrix::new(&a, 2, 3), Matrix::new(&b, 2, 3).transposed(), &mut out);
        assert_eq!(out, [7.0, 10.0, 16.0, 22.0]);
        multiply_add(Matrix::new(&a, 2, 3), Matrix::new(&b, 2, 3).transposed(), &mut out);
        assert_eq!(out, [14.0, 20.0, 32.0, 44.0]);
        let mut out = [0.0; 9];
        multiply(Matrix::new(&a, 2, 3).transposed(), Matrix::new(&b, 2, 3), &mut out);
        assert_eq!(out, [5.0, 0.0, 14.0, 7.0, 0.0, 19.0, 9.0, 0.0, 24.0]);
    }
}
