//! GELU: y = x Φ(x), with Φ the normal distribution (the exact form, not the tanh one).
//!
//! The forward pass adds the bias of the linear layer before it and keeps x. The backward pass needs
//! Φ(x) anyway, so it makes y again instead of having it kept: dy/dx = Φ(x) + x φ(x).

use rayon::prelude::*;

use super::blocks::{ROWS, add_partials, partial_len};
use crate::kernels::math::normal;
use crate::kernels::{Level, kernel};

/// `y = gelu(x + bias)`.
pub(crate) fn forward(
    level: Level,
    bias: &[f32],  // (dim)
    x: &mut [f32], // (rows, dim), the bias is added to it
    y: &mut [f32], // (rows, dim)
) {
    let block = ROWS * bias.len();
    (x.par_chunks_mut(block), y.par_chunks_mut(block))
        .into_par_iter()
        .for_each(|(x, y)| add_bias_and_gelu(level, bias, x, y));
}

/// The way back: `d_y` becomes the gradient by x, `y` is made again, `d_bias` grows.
pub(crate) fn backward(
    level: Level,
    x: &[f32],            // (rows, dim), bias included
    d_y: &mut [f32],      // (rows, dim), replaced by d_x
    y: &mut [f32],        // (rows, dim)
    d_bias: &mut [f32],   // (dim)
    partials: &mut [f32], // at least partial_len(rows, dim)
) {
    let dim = d_bias.len();
    let block = ROWS * dim;
    let partials = &mut partials[..partial_len(x.len() / dim, dim)];
    (
        x.par_chunks(block),
        d_y.par_chunks_mut(block),
        y.par_chunks_mut(block),
        partials.par_chunks_mut(dim),
    )
        .into_par_iter()
        .for_each(|(x, d_y, y, partial)| gelu_backward(level, x, d_y, y, partial));
    add_partials(partials, dim, 0, d_bias);
}

kernel! {
    /// One block of [`forward`].
    fn add_bias_and_gelu<A>(bias: &[f32], x: &mut [f32], y: &mut [f32]) {
        let dim = bias.len();
        for (x, y) in x.chunks_exact_mut(dim).zip(y.chunks_exact_mut(dim)) {
            for ((x, y), bias) in x.iter_mut().zip(y).zip(bias) {
                *x += bias;
                *y = *x * normal::<A>(*x).0;
            }
        }
    }
}

kernel! {
    /// One block of [`backward`]; `partial` gets the block's d_bias.
    fn gelu_backward<A>(x: &[f32], d_y: &mut [f32], y: &mut [f32], partial: &mut [f32]) {
        let dim = partial.len();
        partial.fill(0.0);
        let rows = x.chunks_exact(dim).zip(d_y.chunks_exact_mut(dim)).zip(y.chunks_exact_mut(dim));
        for ((x, d_y), y) in rows {
            for (((x, d), y), d_bias) in x.iter().zip(d_y).zip(y).zip(&mut *partial) {
                let (cumulative, density) = normal::<A>(*x);
                *y = x * cumulative;
                *d *= A::mul_add(*x, density, cumulative);
                *d_bias += *d;
            }
        }
    }
}
