//! LayerNorm: every row is shifted and scaled to mean 0 and variance 1, then scaled and shifted by
//! learned vectors. y = x̂ * scale + shift, x̂ = (x - mean(x)) / sqrt(var(x) + ε).
//!
//! In a transformer it always follows a sum: the residual plus a branch's output, its bias added and
//! some of it dropped. One pass does all of that while the row is in the cache. What is kept for the
//! backward pass is x̂ and 1 / sqrt(var + ε), from which
//!
//! d_x̂ = d_y * scale,  d_x = (d_x̂ - mean(d_x̂) - x̂ * mean(d_x̂ * x̂)) / sqrt(var + ε).

use rayon::prelude::*;

use super::blocks::{ROWS, add_partials, partial_len};
use super::dropout::Mask;
use crate::kernels::math::{dot, sum};
use crate::kernels::{Arithmetic, Level, kernel};

/// A LayerNorm's learned vectors.
#[derive(Clone, Copy)]
pub(crate) struct Norm<'a> {
    pub(crate) scale: &'a [f32], // (dim)
    pub(crate) shift: &'a [f32], // (dim)
    pub(crate) epsilon: f32,
}

/// What a LayerNorm adds up before it normalises: `residual + dropped(branch + bias)`.
#[derive(Clone, Copy)]
pub(crate) struct Sum<'a> {
    pub(crate) bias: &'a [f32],     // (dim)
    pub(crate) residual: &'a [f32], // (rows, dim)
    pub(crate) mask: Option<Mask>,
    pub(crate) first_row: usize, // The row of the whole batch that row 0 is.
}

/// Normalises the sum of a residual and a branch.
pub(crate) fn forward_sum(
    level: Level,
    norm: Norm<'_>,
    sum: Sum<'_>,
    branch: &mut [f32], // (rows, dim): the branch's output, replaced by x̂
    inverse_deviation: &mut [f32], // (rows)
    y: &mut [f32],      // (rows, dim)
) {
    let dim = norm.scale.len();
    let block = ROWS * dim;
    (branch.par_chunks_mut(block), y.par_chunks_mut(block), inverse_deviation.par_chunks_mut(ROWS))
        .into_par_iter()
        .enumerate()
        .for_each(|(n, (branch, y, inverse_deviation))| {
            let residual = &sum.residual[n * block..n * block + branch.len()];
            let sum = Sum { residual, first_row: sum.first_row + n * ROWS, ..sum };
            sum_and_normalise(level, norm, sum, branch, inverse_deviation, y);
        });
}

/// Normalises rows as they are.
pub(crate) fn forward(
    level: Level,
    norm: Norm<'_>,
    x: &mut [f32],                 // (rows, dim), replaced by x̂
    inverse_deviation: &mut [f32], // (rows)
    y: &mut [f32],                 // (rows, dim)
) {
    let block = ROWS * norm.scale.len();
    (x.par_chunks_mut(block), y.par_chunks_mut(block), inverse_deviation.par_chunks_mut(ROWS))
        .into_par_iter()
        .for_each(|(x, y, inverse_deviation)| normalise(level, norm, x, inverse_deviation, y));
}

/// Replaces rows by their LayerNorm, on this thread, with nothing kept.
pub(crate) fn apply(
    level: Level,
    norm: Norm<'_>,
    rows: &mut [f32], // (rows, dim)
) {
    normalise_in_place(level, norm, rows);
}

/// The gradients of a LayerNorm's vectors and of the bias of the branch before it.
pub(crate) struct Gradient<'a> {
    pub(crate) d_scale: &'a mut [f32],        // (dim)
    pub(crate) d_shift: &'a mut [f32],        // (dim)
    pub(crate) d_bias: Option<&'a mut [f32]>, // (dim)
}

/// The way back: `d_y` becomes the gradient by the sum, which is that by the residual; the branch's
/// is the same where nothing was dropped, else it goes to `d_branch`.
pub(crate) fn backward(
    level: Level,
    scale: &[f32], // (dim)
    (mask, first_row): (Option<Mask>, usize),
    x_hat: &[f32],             // (rows, dim)
    inverse_deviation: &[f32], // (rows)
    d_y: &mut [f32],           // (rows, dim), replaced by the gradient by the sum
    d_branch: &mut [f32],      // (rows, dim), used where there is a mask
    gradient: Gradient<'_>,
    partials: &mut [f32], // at least partial_len(rows, 3 dim)
) {
    let dim = scale.len();
    let block = ROWS * dim;
    let partials = &mut partials[..partial_len(inverse_deviation.len(), 3 * dim)];
    let d_branch = &mut d_branch[..if mask.is_some() { d_y.len() } else { 0 }];
    if mask.is_some() {
        (
            d_y.par_chunks_mut(block),
            d_branch.par_chunks_mut(block),
            partials.par_chunks_mut(3 * dim),
        )
            .into_par_iter()
            .enumerate()
            .for_each(|(n, (d_y, d_branch, partial))| {
                let rows = n * ROWS..n * ROWS + d_y.len() / dim;
                let x_hat = &x_hat[rows.start * dim..rows.end * dim];
                let mask = (mask, first_row + rows.start);
                let inverse_deviation = &inverse_deviation[rows];
                normalise_backward(
                    level,
                    scale,
                    mask,
                    x_hat,
                    inverse_deviation,
                    d_y,
                    d_branch,
                    partial,
                );
            });
    } else {
        (d_y.par_chunks_mut(block), partials.par_chunks_mut(3 * dim))
            .into_par_iter()
            .enumerate()
            .for_each(|(n, (d_y, partial))| {
                let rows = n * ROWS..n * ROWS + d_y.len() / dim;
                let x_hat = &x_hat[rows.start * dim..rows.end * dim];
                let inverse_deviation = &inverse_deviation[rows];
                let none = (None, 0);
                normalise_backward(
                    level,
                    scale,
                    none,
                    x_hat,
                    inverse_deviation,
                    d_y,
                    &mut [],
                    partial,
                );
            });
    }
    add_partials(partials, 3 * dim, 0, gradient.d_scale);
    add_partials(partials, 3 * dim, dim, gradient.d_shift);
    if let Some(d_bias) = gradient.d_bias {
        add_partials(partials, 3 * dim, 2 * dim, d_bias);
    }
}

kernel! {
    /// One block of [`forward_sum`].
    fn sum_and_normalise<A>(
        norm: Norm<'_>,
        sum: Sum<'_>,
        branch: &mut [f32],
        inverse_deviation: &mut [f32],
        y: &mut [f32],
    ) {
        let dim = norm.scale.len();
        let rows = branch.chunks_exact_mut(dim).zip(y.chunks_exact_mut(dim));
        let rows = rows.zip(sum.residual.chunks_exact(dim)).zip(inverse_deviation).enumerate();
        for (row, (((x, y), residual), inverse_deviation)) in rows {
            for (x, bias) in x.iter_mut().zip(sum.bias) {
                *x += bias;
            }
            if let Some(mask) = sum.mask {
                mask.apply(sum.first_row + row, x);
            }
            for (x, residual) in x.iter_mut().zip(residual) {
                *x += residual;
            }
            *inverse_deviation = normalise_row::<A>(norm, x, y);
        }
    }
}

kernel! {
    /// One block of [`forward`].
    fn normalise<A>(
        norm: Norm<'_>,
        x: &mut [f32],
        inverse_deviation: &mut [f32],
        y: &mut [f32],
    ) {
        let dim = norm.scale.len();
        let rows = x.chunks_exact_mut(dim).zip(y.chunks_exact_mut(dim));
        for ((x, y), inverse_deviation) in rows.zip(inverse_deviation) {
            *inverse_deviation = normalise_row::<A>(norm, x, y);
        }
    }
}

kernel! {
    /// All of [`apply`].
    fn normalise_in_place<A>(norm: Norm<'_>, rows: &mut [f32]) {
        for row in rows.chunks_exact_mut(norm.scale.len()) {
            let (mean, inverse_deviation) = statistics(row, norm.epsilon);
            for ((x, scale), shift) in row.iter_mut().zip(norm.scale).zip(norm.shift) {
                *x = A::mul_add((*x - mean) * inverse_deviation, *scale, *shift);
            }
        }
    }
}

/// The mean of a row and the inverse of its deviation.
#[inline(always)]
fn statistics(x: &[f32], epsilon: f32) -> (f32, f32) {
    let dim = x.len();
    let mean = sum(dim, |i| x[i]) / dim as f32;
    let variance = sum(dim, |i| (x[i] - mean) * (x[i] - mean)) / dim as f32;
    (mean, 1.0 / (variance + epsilon).sqrt())
}

/// Replaces a row by x̂, writes y, and returns the inverse deviation.
#[inline(always)]
fn normalise_row<A: Arithmetic>(norm: Norm<'_>, x: &mut [f32], y: &mut [f32]) -> f32 {
    let (mean, inverse_deviation) = statistics(x, norm.epsilon);
    for (((x, y), scale), shift) in x.iter_mut().zip(y).zip(norm.scale).zip(norm.shift) {
        *x = (*x - mean) * inverse_deviation;
        *y = A::mul_add(*x, *scale, *shift);
    }
    inverse_deviation
}

kernel! {
    /// One block of [`backward`]; `partial` gets the block's d_scale, d_shift and d_bias.
    fn normalise_backward<A>(
        scale: &[f32],
        masked_from: (Option<Mask>, usize),
        x_hat: &[f32],
        inverse_deviation: &[f32],
        d_y: &mut [f32],
        d_branch: &mut [f32],
        partial: &mut [f32], // (3, dim)
    ) {
        let dim = scale.len();
        let (mask, first_row) = masked_from;
        partial.fill(0.0);
        let (d_scale, rest) = partial.split_at_mut(dim);
        let (d_shift, d_bias) = rest.split_at_mut(dim);
        let rows = d_y.chunks_exact_mut(dim).zip(x_hat.chunks_exact(dim)).zip(inverse_deviation);
        for (row, ((d_y, x_hat), inverse_deviation)) in rows.enumerate() {
            for (((d, x_hat), d_scale), d_shift) in
                d_y.iter_mut().zip(x_hat).zip(&mut *d_scale).zip(&mut *d_shift)
            {
                *d_scale = A::mul_add(*d, *x_hat, *d_scale);
                *d_shift += *d;
            }
            for (d, scale) in d_y.iter_mut().zip(scale) {
                *d *= scale;
            }
            let mean = sum(dim, |i| d_y[i]) / dim as f32;
            let slope = dot(d_y, x_hat) / dim as f32;
            for (d, x_hat) in d_y.iter_mut().zip(x_hat) {
                *d = (*d - mean - x_hat * slope) * inverse_deviation;
            }
            let d_branch = match mask {
                Some(mask) => {
                    let d_branch = &mut d_branch[row * dim..(row + 1) * dim];
                    d_branch.copy_from_slice(d_y);
                    mask.apply(first_row + row, d_branch);
                    d_branch
                }
                None => d_y,
            };
            for (d_bias, d) in d_bias.iter_mut().zip(&*d_branch) {
                *d_bias += *d;
            }
        }
    }
}
