//! How rows are shared out to threads, and how sums over all rows stay the same on any number of
//! them: rows are cut into blocks of a fixed size, every block sums for itself, and the blocks' sums
//! are added in order.

use rayon::prelude::*;

use crate::kernels::{Level, kernel};

/// The rows of a block: work enough for a task, few enough to stay in the cache of a core.
pub(crate) const ROWS: usize = 32;

/// The floats that sums of `width` columns over `rows` rows need.
pub(crate) fn partial_len(rows: usize, width: usize) -> usize {
    rows.div_ceil(ROWS) * width
}

/// Adds to `total` the sums of all blocks, in order.
pub(crate) fn add_partials(
    partials: &[f32], // (blocks, stride), of which the columns from `first` on are meant
    stride: usize,
    first: usize,
    total: &mut [f32], // (width)
) {
    for partial in partials.chunks_exact(stride) {
        for (total, value) in total.iter_mut().zip(&partial[first..]) {
            *total += value;
        }
    }
}

/// Adds the sum of all rows to `total`: the gradient of a bias.
pub(crate) fn add_column_sums(
    level: Level,
    matrix: &[f32],       // (rows, width)
    total: &mut [f32],    // (width)
    partials: &mut [f32], // at least partial_len(rows, width)
) {
    let width = total.len();
    let partials = &mut partials[..partial_len(matrix.len() / width, width)];
    matrix.par_chunks(ROWS * width).zip(partials.par_chunks_mut(width)).for_each(
        |(rows, partial)| {
            column_sums(level, rows, partial);
        },
    );
    add_partials(partials, width, 0, total);
}

kernel! {
    /// `total` = the sum of all rows.
    fn column_sums<A>(
        rows: &[f32],      // (rows, width)
        total: &mut [f32], // (width)
    ) {
        total.fill(0.0);
        for row in rows.chunks_exact(total.len()) {
            for (total, value) in total.iter_mut().zip(row) {
                *total += value;
            }
        }
    }
}
