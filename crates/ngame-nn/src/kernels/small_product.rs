//! Products of matrices too small to be worth packing: those of one attention head.

use super::Arithmetic;

/// The columns of a result are padded to a multiple of this.
pub(crate) const COLUMN_BLOCK: usize = 16;

/// `n` rounded up to whole column blocks.
pub(crate) fn padded(n: usize) -> usize {
    n.next_multiple_of(COLUMN_BLOCK)
}

/// A matrix whose single values are read: any strides, so a transposed matrix is one too.
#[derive(Clone, Copy)]
pub(crate) struct Scattered<'a> {
    pub(crate) values: &'a [f32],
    pub(crate) row_stride: usize,
    pub(crate) column_stride: usize,
}

/// `out = scale * a b`, `a`: (rows, depth), `b`: (depth, columns) with rows `b_stride` apart, `out`:
/// (rows, columns) with rows `out_stride` apart. `columns` is a multiple of [`COLUMN_BLOCK`].
///
/// Six rows and sixteen columns stay in registers over the whole depth: as many sums as 16 registers of
/// 256 bits hold beside what is multiplied, and enough that no multiplication waits for the one before.
#[inline(always)]
pub(crate) fn small_product<A: Arithmetic>(
    (rows, columns, depth): (usize, usize, usize),
    scale: f32,
    a: Scattered<'_>,
    (b, b_stride): (&[f32], usize),
    (out, out_stride): (&mut [f32], usize),
) {
    assert!(columns.is_multiple_of(COLUMN_BLOCK) && rows > 0 && depth > 0);
    assert!((depth - 1) * b_stride + columns <= b.len());
    assert!((rows - 1) * out_stride + columns <= out.len());
    assert!((rows - 1) * a.row_stride + (depth - 1) * a.column_stride < a.values.len());
    let mut column = 0;
    while column < columns {
        let mut row = 0;
        while row + 6 <= rows {
            block::<A, 6>((row, column, depth), scale, a, (b, b_stride), (out, out_stride));
            row += 6;
        }
        match rows - row {
            1 => block::<A, 1>((row, column, depth), scale, a, (b, b_stride), (out, out_stride)),
            2 => block::<A, 2>((row, column, depth), scale, a, (b, b_stride), (out, out_stride)),
            3 => block::<A, 3>((row, column, depth), scale, a, (b, b_stride), (out, out_stride)),
            4 => block::<A, 4>((row, column, depth), scale, a, (b, b_stride), (out, out_stride)),
            5 => block::<A, 5>((row, column, depth), scale, a, (b, b_stride), (out, out_stride)),
            _ => {}
        }
        column += COLUMN_BLOCK;
    }
}

#[inline(always)]
fn block<A: Arithmetic, const ROWS: usize>(
    (row, column, depth): (usize, usize, usize),
    scale: f32,
    a: Scattered<'_>,
    (b, b_stride): (&[f32], usize),
    (out, out_stride): (&mut [f32], usize),
) {
    let mut sums = [[0.0f32; COLUMN_BLOCK]; ROWS];
    for k in 0..depth {
        // SAFETY: `small_product` checked that the last row and column of `b` lie inside.
        let b_row =
            unsafe { &*b.as_ptr().add(k * b_stride + column).cast::<[f32; COLUMN_BLOCK]>() };
        for (r, sums) in sums.iter_mut().enumerate() {
            let place = (row + r) * a.row_stride + k * a.column_stride;
            // SAFETY: the same holds for `a`.
            let value = unsafe { *a.values.get_unchecked(place) };
            for (sum, b) in sums.iter_mut().zip(b_row) {
                *sum = A::mul_add(value, *b, *sum);
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        let start = (row + r) * out_stride + column;
        for (out, sum) in out[start..start + COLUMN_BLOCK].iter_mut().zip(sums) {
            *out = scale * sum;
        }
    }
}
