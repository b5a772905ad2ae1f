//! Pooling and normalisation: the tokens of a text become one unit vector.
//!
//! v = p / |p|, with p the mean of the tokens or the first of them. The way back:
//! d_p = (d_v - v (v · d_v)) / |p|, and every token gets its share of d_p.

use crate::batch::Batch;
use crate::kernels::math::dot;
use crate::kernels::{Level, kernel};

/// How the tokens of a text become one vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pooling {
    /// The mean of all its tokens.
    #[default]
    Mean,
    /// Its first token, `[CLS]`.
    Cls,
}

/// A vector shorter than this counts as this long: no text ever divides by zero.
const LEAST_NORM: f32 = 1e-12;

/// The tokens below which a batch is not split between threads any further.
const GRAIN: usize = 512;

/// Writes the unit vector and the norm of every text.
pub(crate) fn forward(
    level: Level,
    pooling: Pooling,
    batch: Batch<'_>,
    hidden: &[f32],      // (tokens, dim)
    vectors: &mut [f32], // (texts, dim)
    norms: &mut [f32],   // (texts)
) {
    if norms.is_empty() {
        return;
    }
    let dim = vectors.len() / norms.len();
    if let Some((left, right)) = batch.halves(GRAIN) {
        let (hidden_left, hidden_right) = hidden.split_at(left.n_tokens() * dim);
        let (vectors_left, vectors_right) = vectors.split_at_mut(left.n_texts() * dim);
        let (norms_left, norms_right) = norms.split_at_mut(left.n_texts());
        rayon::join(
            || forward(level, pooling, left, hidden_left, vectors_left, norms_left),
            || forward(level, pooling, right, hidden_right, vectors_right, norms_right),
        );
        return;
    }
    for (text, (vector, norm)) in vectors.chunks_exact_mut(dim).zip(norms).enumerate() {
        let rows = batch.rows(text);
        *norm = pool(level, pooling, &hidden[rows.start * dim..rows.end * dim], vector);
    }
}

/// Writes the unit vector of every text, on this thread.
pub(crate) fn pool_texts(
    level: Level,
    pooling: Pooling,
    batch: Batch<'_>,
    hidden: &[f32],      // (tokens, dim)
    vectors: &mut [f32], // (texts, dim)
) {
    if batch.n_texts() == 0 {
        return;
    }
    let dim = vectors.len() / batch.n_texts();
    for (text, vector) in vectors.chunks_exact_mut(dim).enumerate() {
        let rows = batch.rows(text);
        pool(level, pooling, &hidden[rows.start * dim..rows.end * dim], vector);
    }
}

/// Writes the gradient by every token.
pub(crate) fn backward(
    level: Level,
    pooling: Pooling,
    batch: Batch<'_>,
    vectors: &[f32],      // (texts, dim)
    norms: &[f32],        // (texts)
    d_vectors: &[f32],    // (texts, dim)
    d_hidden: &mut [f32], // (tokens, dim)
) {
    if norms.is_empty() {
        return;
    }
    let dim = vectors.len() / norms.len();
    if let Some((left, right)) = batch.halves(GRAIN) {
        let texts = left.n_texts();
        let (d_hidden_left, d_hidden_right) = d_hidden.split_at_mut(left.n_tokens() * dim);
        let (vectors_left, vectors_right) = vectors.split_at(texts * dim);
        let (d_left, d_right) = d_vectors.split_at(texts * dim);
        let (norms_left, norms_right) = norms.split_at(texts);
        rayon::join(
            || backward(level, pooling, left, vectors_left, norms_left, d_left, d_hidden_left),
            || backward(level, pooling, right, vectors_right, norms_right, d_right, d_hidden_right),
        );
        return;
    }
    let texts = vectors.chunks_exact(dim).zip(d_vectors.chunks_exact(dim)).zip(norms);
    for (text, ((vector, d_vector), norm)) in texts.enumerate() {
        let rows = batch.rows(text);
        let d_hidden = &mut d_hidden[rows.start * dim..rows.end * dim];
        pool_backward(level, pooling, *norm, vector, d_vector, d_hidden);
    }
}

kernel! {
    /// The unit vector of one text; returns the norm it had.
    fn pool<A>(
        pooling: Pooling,
        hidden: &[f32],     // (tokens, dim)
        vector: &mut [f32], // (dim)
    ) -> f32 {
        let dim = vector.len();
        vector.copy_from_slice(&hidden[..dim]);
        if pooling == Pooling::Mean {
            for row in hidden[dim..].chunks_exact(dim) {
                for (total, value) in vector.iter_mut().zip(row) {
                    *total += value;
                }
            }
            let share = 1.0 / (hidden.len() / dim) as f32;
            for value in vector.iter_mut() {
                *value *= share;
            }
        }
        normalise(vector)
    }
}

kernel! {
    /// The gradient by the tokens of one text.
    fn pool_backward<A>(
        pooling: Pooling,
        norm: f32,
        vector: &[f32],       // (dim)
        d_vector: &[f32],     // (dim)
        d_hidden: &mut [f32], // (tokens, dim)
    ) {
        let dim = vector.len();
        let tokens = d_hidden.len() / dim;
        let (first, others) = d_hidden.split_at_mut(dim);
        normalise_backward(norm, vector, d_vector, first);
        match pooling {
            Pooling::Cls => others.fill(0.0),
            Pooling::Mean => {
                for value in first.iter_mut() {
                    *value /= tokens as f32;
                }
                for row in others.chunks_exact_mut(dim) {
                    row.copy_from_slice(first);
                }
            }
        }
    }
}

/// Makes a vector one of length 1; returns the length it had.
#[inline(always)]
pub(crate) fn normalise(vector: &mut [f32]) -> f32 {
    let norm = dot(vector, vector).sqrt().max(LEAST_NORM);
    for value in vector.iter_mut() {
        *value /= norm;
    }
    norm
}

/// The gradient by a vector, given that by the unit vector it became.
#[inline(always)]
pub(crate) fn normalise_backward(norm: f32, unit: &[f32], d_unit: &[f32], d_vector: &mut [f32]) {
    let along = dot(unit, d_unit);
    for ((d, unit), d_unit) in d_vector.iter_mut().zip(unit).zip(d_unit) {
        *d = (d_unit - unit * along) / norm;
    }
}
