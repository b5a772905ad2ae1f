//! From token ids to the sum of a text's vectors, and the way back.

use rayon::prelude::*;

use crate::batch::Batch;
use crate::kernels::math::{dot, exp};
use crate::kernels::{Level, kernel};
use crate::layers::blocks::ROWS;
use crate::layers::dropout::Mask;
use crate::layers::pooling::normalise;

/// The tokens below which a batch is not split between threads any further.
const GRAIN: usize = 256;

/// The tables to look up.
#[derive(Clone, Copy)]
pub(super) struct Words<'a> {
    pub(super) vectors: &'a [f32],     // (vocabulary, dim)
    pub(super) log_weights: &'a [f32], // (vocabulary)
    pub(super) dim: usize,
}

/// What comes of the first half.
pub(super) struct Sums<'a> {
    pub(super) units: &'a mut [f32],  // (texts, dim)
    pub(super) norms: &'a mut [f32],  // (texts)
    pub(super) counts: &'a mut [f32], // (tokens)
}

/// Sums the weighted vectors of every text and scales the sum to length sqrt(dim).
pub(super) fn sum_texts(level: Level, words: Words<'_>, batch: Batch<'_>, sums: Sums<'_>) {
    let Sums { units, norms, counts } = sums;
    if let Some((left, right)) = batch.halves(GRAIN) {
        let (units_left, units_right) = units.split_at_mut(left.n_texts() * words.dim);
        let (norms_left, norms_right) = norms.split_at_mut(left.n_texts());
        let (counts_left, counts_right) = counts.split_at_mut(left.n_tokens());
        let sums_left = Sums { units: units_left, norms: norms_left, counts: counts_left };
        let sums_right = Sums { units: units_right, norms: norms_right, counts: counts_right };
        rayon::join(
            || sum_texts(level, words, left, sums_left),
            || sum_texts(level, words, right, sums_right),
        );
        return;
    }
    let ids = batch.ids();
    for (text, (unit, norm)) in units.chunks_exact_mut(words.dim).zip(norms).enumerate() {
        let rows = batch.rows(text);
        *norm = sum_text(level, words, &ids[rows.clone()], &mut counts[rows], unit);
    }
}

/// Gives every token its part of the gradient by its text's sum.
pub(super) fn share_out(
    level: Level,
    words: Words<'_>,
    batch: Batch<'_>,
    counts: &[f32],            // (tokens)
    d_sums: &[f32],            // (texts, dim)
    d_rows: &mut [f32],        // (tokens, dim)
    d_log_weights: &mut [f32], // (tokens)
) {
    let dim = words.dim;
    if let Some((left, right)) = batch.halves(GRAIN) {
        let (counts_left, counts_right) = counts.split_at(left.n_tokens());
        let (d_sums_left, d_sums_right) = d_sums.split_at(left.n_texts() * dim);
        let (rows_left, rows_right) = d_rows.split_at_mut(left.n_tokens() * dim);
        let (logs_left, logs_right) = d_log_weights.split_at_mut(left.n_tokens());
        rayon::join(
            || share_out(level, words, left, counts_left, d_sums_left, rows_left, logs_left),
            || share_out(level, words, right, counts_right, d_sums_right, rows_right, logs_right),
        );
        return;
    }
    let ids = batch.ids();
    for (text, d_sum) in d_sums.chunks_exact(dim).enumerate() {
        let rows = batch.rows(text);
        let d_rows = &mut d_rows[rows.start * dim..rows.end * dim];
        let d_logs = &mut d_log_weights[rows.clone()];
        share_text(level, words, &ids[rows.clone()], &counts[rows], d_sum, d_rows, d_logs);
    }
}

/// Drops numbers of vectors of texts; a text is known by where it begins in the whole batch.
pub(super) fn drop_texts(
    level: Level,
    mask: Mask,
    batch: Batch<'_>,
    dim: usize,
    matrix: &mut [f32], // (texts, dim)
) {
    let blocks = matrix.par_chunks_mut(ROWS * dim).zip(batch.starts().par_chunks(ROWS));
    blocks.for_each(|(rows, starts)| drop_block(level, mask, starts, dim, rows));
}

kernel! {
    /// One block of [`drop_texts`].
    fn drop_block<A>(mask: Mask, starts: &[usize], dim: usize, rows: &mut [f32]) {
        for (start, row) in starts.iter().zip(rows.chunks_exact_mut(dim)) {
            mask.apply(*start, row);
        }
    }
}

kernel! {
    /// The sum of one text, of length sqrt(dim); returns the length it had, in that unit.
    pub(super) fn sum_text<A>(words: Words<'_>, ids: &[u32], counts: &mut [f32], unit: &mut [f32]) -> f32 {
        unit.fill(0.0);
        for (&id, count) in ids.iter().zip(counts) {
            *count = exp::<A>(words.log_weights[id as usize]);
            let start = id as usize * words.dim;
            for (total, value) in unit.iter_mut().zip(&words.vectors[start..start + words.dim]) {
                *total = A::mul_add(*count, *value, *total);
            }
        }
        let norm = normalise(unit);
        let length = (words.dim as f32).sqrt();
        for value in unit.iter_mut() {
            *value *= length;
        }
        norm
    }
}

kernel! {
    /// The gradients of the tokens of one text.
    fn share_text<A>(
        words: Words<'_>,
        ids: &[u32],
        counts: &[f32],
        d_sum: &[f32],
        d_rows: &mut [f32],
        d_log_weights: &mut [f32],
    ) {
        let tokens = ids.iter().zip(counts).zip(d_rows.chunks_exact_mut(words.dim));
        for (((&id, count), d_row), d_log_weight) in tokens.zip(d_log_weights) {
            let start = id as usize * words.dim;
            *d_log_weight = count * dot(&words.vectors[start..start + words.dim], d_sum);
            for (d, value) in d_row.iter_mut().zip(d_sum) {
                *d = count * value;
            }
        }
    }
}
