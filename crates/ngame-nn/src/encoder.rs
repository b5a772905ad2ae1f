//! What all encoders have in common: packed token ids in, one unit vector a text out.
//!
//! An [`Encoder`] is an architecture: it knows shapes and formulas and holds no weights. Training
//! passes take weights, activations and gradients as flat buffers, so that whoever drives them
//! decides about memory. Answering is a thing of its own: [`Encoder::freeze`] packs the weights once
//! for [`Frozen::embed`], which needs no activations and runs on the thread that calls it.

use std::sync::Arc;

use crate::batch::Batch;
use crate::kernels::Level;
use crate::parameters::{Gradients, Layout, Parameters};

/// A differentiable function from packed tokens to unit vectors.
pub trait Encoder: Send + Sync {
    /// The length of a vector.
    fn dim(&self) -> usize;

    /// The longest text it can take, in tokens.
    fn max_tokens(&self) -> usize;

    /// The number of token ids it knows; all ids of a batch lie below.
    fn vocabulary_size(&self) -> usize;

    /// Names, shapes and places of its weights.
    fn layout(&self) -> &Arc<Layout>;

    /// The floats that a forward pass keeps for the backward pass.
    fn activation_len(&self, n_texts: usize, n_tokens: usize) -> usize;

    /// The floats of passing use, gone after a forward or backward pass.
    fn scratch_len(&self, n_texts: usize, n_tokens: usize) -> usize;

    /// Writes the unit vectors of a batch and keeps in `activations` what [`Encoder::backward`]
    /// needs. Work is spread over the current `rayon` pool.
    ///
    /// `activations` and `scratch` are at least as long as the two methods above say; what they
    /// held before does not matter.
    fn forward(
        &self,
        weights: &[f32],
        batch: Batch<'_>,
        dropout: Dropout,
        activations: &mut [f32],
        scratch: &mut [f32],
        vectors: &mut [f32], // (texts, dim)
    );

    /// Adds to `gradients` the gradient of a loss, given its gradient by the vectors. `weights`,
    /// `batch`, `dropout` and `activations` are those of the forward pass.
    fn backward(
        &self,
        weights: &[f32],
        batch: Batch<'_>,
        dropout: Dropout,
        activations: &mut [f32],
        scratch: &mut [f32],
        d_vectors: &[f32], // (texts, dim)
        gradients: &mut Gradients,
    );

    /// The encoder with these weights, packed for answering.
    fn freeze(&self, parameters: &Parameters, precision: Precision) -> Box<dyn Frozen>;
}

/// An encoder with its weights packed for answering, shared by any number of threads.
pub trait Frozen: Send + Sync {
    /// The length of a vector.
    fn dim(&self) -> usize;

    /// Writes the unit vectors of a batch, on this thread alone. `workspace` grows as needed and is
    /// best kept by the caller from call to call.
    fn embed(
        &self,
        batch: Batch<'_>,
        workspace: &mut Vec<f32>,
        vectors: &mut [f32], // (texts, dim)
    );
}

/// How a frozen encoder stores its matrices, and what it multiplies them with. Sums are in f32 in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Exact.
    #[default]
    F32,
    /// Half the memory to read, which is what limits short queries; vectors keep a cosine of 0.9999
    /// and better to the exact ones.
    F16,
    /// As much, and rows are rounded to 16 bits as well, which some processors multiply twice as fast;
    /// vectors keep a cosine of 0.999 and better.
    Bf16,
}

impl Precision {
    /// The one that answers soonest on this processor.
    pub fn fastest() -> Self {
        match Level::best() {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512Bf16 => Self::Bf16,
            _ => Self::F16,
        }
    }
}

/// Whether a pass drops activations at random, and which ones: the seed decides, together with the
/// place of a number in the batch. The rates belong to the encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropout {
    /// Nothing is dropped.
    Off,
    /// Drops by this seed; give every step its own.
    Seed(u64),
}
