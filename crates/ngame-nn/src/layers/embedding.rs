//! Embedding: a token becomes the sum of the vectors of its word, its position and its type.
//!
//! The way back adds a token's gradient to the rows it came from. Words are scattered: tokens are
//! sorted by id, so that threads can own disjoint ranges of the table and every row adds up its
//! tokens in the order of the batch, on any number of threads.

use rayon::prelude::*;

use crate::batch::Batch;

/// The tokens below which work is not split between threads any further.
const GRAIN: usize = 256;

/// The tables to look up.
#[derive(Clone, Copy)]
pub(crate) struct Tables<'a> {
    pub(crate) words: &'a [f32],      // (vocabulary, dim)
    pub(crate) positions: &'a [f32],  // (max positions, dim)
    pub(crate) first_type: &'a [f32], // (dim), or empty where there are no types
}

/// Writes the sum of a token's vectors.
pub(crate) fn forward(
    tables: Tables<'_>,
    dim: usize,
    batch: Batch<'_>,
    out: &mut [f32], // (tokens, dim)
) {
    if let Some((left, right)) = batch.halves(GRAIN) {
        let (out_left, out_right) = out.split_at_mut(left.n_tokens() * dim);
        rayon::join(
            || forward(tables, dim, left, out_left),
            || forward(tables, dim, right, out_right),
        );
        return;
    }
    look_up(tables, dim, batch, out);
}

/// Writes the sum of a token's vectors, on this thread.
pub(crate) fn look_up(
    tables: Tables<'_>,
    dim: usize,
    batch: Batch<'_>,
    out: &mut [f32], // (tokens, dim)
) {
    let ids = batch.ids();
    for text in 0..batch.n_texts() {
        for (position, row) in batch.rows(text).enumerate() {
            let word = ids[row] as usize * dim;
            let place = position * dim;
            let out = &mut out[row * dim..(row + 1) * dim];
            let sources = tables.words[word..word + dim].iter().zip(&tables.positions[place..]);
            for (out, (word, position)) in out.iter_mut().zip(sources) {
                *out = word + position;
            }
            for (out, of_type) in out.iter_mut().zip(tables.first_type) {
                *out += of_type;
            }
        }
    }
}

/// Adds the tokens' gradients to the rows of their positions.
pub(crate) fn backward_positions(
    dim: usize,
    batch: Batch<'_>,
    d_out: &[f32],           // (tokens, dim)
    d_positions: &mut [f32], // (max positions, dim)
) {
    d_positions[..batch.longest() * dim].par_chunks_mut(dim).enumerate().for_each(
        |(position, d_position)| {
            for text in 0..batch.n_texts() {
                let rows = batch.rows(text);
                if position < rows.len() {
                    let row = (rows.start + position) * dim;
                    for (total, d) in d_position.iter_mut().zip(&d_out[row..row + dim]) {
                        *total += d;
                    }
                }
            }
        },
    );
}

/// Adds `d_out[row]` to `d_table[id]` for all `(id, row)` of `sorted`, which is in order.
pub(crate) fn scatter_add(
    dim: usize,
    sorted: &[(u32, u32)],
    d_out: &[f32],       // (rows, dim)
    d_table: &mut [f32], // (ids from `first_id` on, dim)
    first_id: u32,
) {
    if sorted.len() > GRAIN {
        // Threads part between two ids, so that a row of the table has one owner.
        let middle_id = sorted[sorted.len() / 2].0;
        let middle = sorted.partition_point(|&(id, _)| id < middle_id);
        if middle > 0 {
            let (left, right) = sorted.split_at(middle);
            let (d_left, d_right) = d_table.split_at_mut((middle_id - first_id) as usize * dim);
            rayon::join(
                || scatter_add(dim, left, d_out, d_left, first_id),
                || scatter_add(dim, right, d_out, d_right, middle_id),
            );
            return;
        }
    }
    for &(id, row) in sorted {
        let start = (id - first_id) as usize * dim;
        let row = row as usize * dim;
        for (total, d) in d_table[start..start + dim].iter_mut().zip(&d_out[row..row + dim]) {
            *total += d;
        }
    }
}
