//! Large matrix products: the `gemm` crate behind one door.
//!
//! Matrices are dense and row-major; a transposed one is the same buffer read the other way round.
//! Work is spread over the current `rayon` pool: the result is cut along its longer side, and every
//! thread makes parts of it by products of its own, so that none waits for another between packing and
//! multiplying. Cutting the longer side, and not always rows, took 6 to 10 % off a training step.

use std::ops::Range;

use gemm::Parallelism;
use rayon::prelude::*;

/// The fewest rows or columns of a part: below that, packing the other matrix again for every part
/// would show.
const LEAST_PART: usize = 64;

/// A rest of fewer rows or columns is no part of its own.
const SHORT_REST: usize = 16;

/// A matrix to read, (rows, columns).
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    values: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: isize,
    column_stride: isize,
}

impl<'a> Matrix<'a> {
    /// A row-major buffer as a matrix.
    ///
    /// # Panics
    /// If the buffer has another length.
    pub fn new(values: &'a [f32], rows: usize, columns: usize) -> Self {
        assert_eq!(values.len(), rows * columns, "a matrix of {rows} rows, {columns} columns");
        Self { values, rows, columns, row_stride: columns as isize, column_stride: 1 }
    }

    /// Its transpose, without a copy.
    pub fn transposed(self) -> Self {
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
pub fn multiply(a: Matrix<'_>, b: Matrix<'_>, out: &mut [f32]) {
    product(a, b, out, false);
}

/// `out = a b` on this thread alone: for those who have cut their work themselves, and want what they
/// multiply to stay in this thread's cache.
pub fn multiply_here(a: Matrix<'_>, b: Matrix<'_>, out: &mut [f32]) {
    assert_eq!(a.columns, b.rows, "inner sizes of a product");
    assert_eq!(out.len(), a.rows * b.columns, "size of a product");
    Target(out.as_mut_ptr()).fill(a, b, 0..a.rows, 0..b.columns, false);
}

/// `out += a b`.
pub fn multiply_add(a: Matrix<'_>, b: Matrix<'_>, out: &mut [f32]) {
    product(a, b, out, true);
}

fn product(a: Matrix<'_>, b: Matrix<'_>, out: &mut [f32], add: bool) {
    assert_eq!(a.columns, b.rows, "inner sizes of a product");
    assert_eq!(out.len(), a.rows * b.columns, "size of a product");
    // Every part packs all of the matrix whose side is not cut, so the longer side is. Two parts a
    // thread even out threads that are not equally fast; one thread has no other to wait for.
    let by_rows = a.rows >= b.columns;
    let long = a.rows.max(b.columns);
    let n_threads = rayon::current_num_threads();
    let parts = if n_threads == 1 { 1 } else { 2 * n_threads };
    let part = long.div_ceil(parts).next_multiple_of(16).max(LEAST_PART);
    // The last part takes a short rest along: a single row alone would be summed in another order, and
    // the result would depend on the number of threads.
    let n_parts = (long.saturating_sub(SHORT_REST) / part + 1).max(1);
    let target = Target(out.as_mut_ptr());
    let make = |at: usize| {
        let range = at * part..if at + 1 == n_parts { long } else { (at + 1) * part };
        match by_rows {
            true => target.fill(a, b, range, 0..b.columns, add),
            false => target.fill(a, b, 0..a.rows, range, add),
        }
    };
    match n_parts {
        1 => make(0),
        _ => (0..n_parts).into_par_iter().for_each(make),
    }
}

/// Where a product goes: a row-major matrix whose parts are filled by several threads.
struct Target(*mut f32);

// SAFETY: threads fill parts of the matrix that do not overlap, see `product`.
unsafe impl Sync for Target {}

impl Target {
    /// Fills some rows and columns of the product of `a` and `b`.
    fn fill(
        &self,
        a: Matrix<'_>,
        b: Matrix<'_>,
        rows: Range<usize>,
        columns: Range<usize>,
        add: bool,
    ) {
        if rows.is_empty() || columns.is_empty() {
            return;
        }
        assert!(rows.end <= a.rows && columns.end <= b.columns);
        let (first_row, first_column) = (rows.start as isize, columns.start as isize);
        // SAFETY: the buffers hold the elements that rows, columns and strides describe: `new`
        // checked those of `a` and `b`, `product` that of the result; the rows and columns used lie
        // inside. The result is borrowed mutably by `product`, so it overlaps neither.
        unsafe {
            gemm::gemm(
                rows.len(),
                columns.len(),
                a.columns,
                self.0.offset(first_row * b.columns as isize + first_column),
                1,
                b.columns as isize,
                add,
                a.values.as_ptr().offset(first_row * a.row_stride),
                a.column_stride,
                a.row_stride,
                b.values.as_ptr().offset(first_column * b.column_stride),
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
