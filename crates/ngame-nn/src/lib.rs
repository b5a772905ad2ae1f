//! Text encoders on the CPU: from packed token ids to unit vectors, and back to gradients.
//!
//! There is no graph and no tape. An encoder is a readable sequence of layers, each a `forward` and a
//! `backward` over plain buffers whose shapes stand beside them; products are the `gemm` crate's, and
//! the rest is a few loops compiled for the processor at hand. Three habits make it fast:
//!
//! - **No padding.** The texts of a [`Batch`] lie one after the other, one row a token. Only attention
//!   and pooling know where a text ends.
//! - **No allocation.** Passes write into buffers of the caller; [`TrainingPass`] keeps them from step
//!   to step, and cuts batches that do not fit its budget.
//! - **Nothing twice.** Statistics of LayerNorms are kept, cheap things (GELU, attention scores) are
//!   made again rather than stored, biases and residuals are added by whoever reads the row next.
//!
//! ```text
//! Batch (ids, offsets) ──> Encoder::forward ──> vectors (texts, dim) ──> a loss ──┐
//!                              activations                                        │
//! AdamW <── Gradients <──── Encoder::backward <──── d_vectors (texts, dim) <──────┘
//! ```
//!
//! Two encoders: [`Transformer`] (the BERT family) and [`Bag`] (a weighted sum of token vectors).
//! For answering, [`Encoder::freeze`] packs the weights once; a [`Frozen`] encoder embeds on the
//! thread that calls it.
//!
//! Whoever compares vectors finds [products of matrices](multiply) and [sums over rows](Rows).
//!
//! The crate knows no text, no label and no file but [weights](read_weights).
//!
//! ```
//! use ngame_nn::{
//!     AdamW, AdamWConfig, Bag, BagConfig, Batch, Dropout, Encoder, Gradients, TrainingPass,
//! };
//!
//! // Two texts, of three tokens and of one, to be brought together.
//! let (ids, offsets) = ([5, 2, 7, 3], [0, 3, 4]);
//! let batch = Batch::new(&ids, &offsets);
//!
//! let bag = Bag::new(BagConfig { vocabulary_size: 10, dim: 16, dropout: 0.0 });
//! let mut weights = bag.initial_weights(1, &[1.0; 10]);
//! let mut gradients = Gradients::zeros(bag.layout());
//! let mut optimiser = AdamW::new(AdamWConfig::default(), bag.layout());
//! let mut pass = TrainingPass::new(1 << 20);
//!
//! let mut vectors = [0.0; 2 * 16];
//! let mut cosines = Vec::new();
//! for _ in 0..20 {
//!     pass.forward(&bag, weights.values(), batch, Dropout::Off, &mut vectors);
//!     let (one, other) = vectors.split_at(16);
//!     cosines.push(one.iter().zip(other).map(|(a, b)| a * b).sum::<f32>());
//!     // The loss is the negative cosine: its gradient by one vector is minus the other.
//!     let d_vectors: Vec<f32> = other.iter().chain(one).map(|value| -value).collect();
//!     pass.backward(&bag, weights.values(), batch, Dropout::Off, &d_vectors, &mut gradients);
//!     optimiser.step(0.01, &mut weights, &mut gradients);
//! }
//! assert!(cosines[19] > 0.9 && cosines[19] > cosines[0]);
//! ```

mod adam_step;
mod adamw;
mod bag;
mod batch;
mod codes;
mod encoder;
mod gemm;
#[cfg(test)]
mod gradcheck;
mod kernels;
mod layers;
mod memory;
mod panels;
mod parameters;
mod probabilities;
mod random;
mod row_table;
mod rows;
mod schedule;
mod training_pass;
mod transformer;
mod vector_table;
mod weights;

pub use adam_step::AdamStep;
pub use adamw::{AdamW, AdamWConfig};
pub use bag::{Bag, BagConfig};
pub use batch::Batch;
pub use codes::{Bounds, CodedQueries, CodedQuery, Codes};
pub use encoder::{Dropout, Encoder, Frozen, Precision};
pub use gemm::{Matrix, multiply, multiply_add, multiply_here};
pub use kernels::prefetch::prefetch;
pub use layers::dropout::drop_numbers;
pub use layers::pooling::Pooling;
pub use memory::keep_freed_memory;
pub use parameters::{Gradients, Layout, Parameters, Tensor};
pub use probabilities::{add_scaled, logits, powers, sigmoids};
pub use row_table::{MomentType, RowTable};
pub use rows::{Rows, dot};
pub use schedule::{Decay, Schedule};
pub use training_pass::TrainingPass;
pub use transformer::{LowerLayers, TokenStates, Transformer, TransformerConfig};
pub use vector_table::VectorTable;
pub use weights::{
    Extra, Family, Weights, WeightsError, WeightsProblem, read_weights, write_weights,
};
