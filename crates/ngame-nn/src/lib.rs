//! Text encoders on the CPU, as explicit forward and backward passes over packed tokens.

mod adamw;
mod bag;
mod batch;
mod encoder;
mod gemm;
#[cfg(test)]
mod gradcheck;
mod kernels;
mod layers;
mod parameters;
mod random;
mod schedule;
mod training_pass;
mod transformer;
mod weights;

pub use adamw::{AdamW, AdamWConfig};
pub use bag::{Bag, BagConfig};
pub use batch::Batch;
pub use encoder::{Dropout, Encoder, Frozen, Precision};
pub use layers::pooling::Pooling;
pub use parameters::{Gradients, Layout, Parameters, Tensor};
pub use schedule::{Decay, Schedule};
pub use training_pass::TrainingPass;
pub use transformer::{Transformer, TransformerConfig};
pub use weights::{
    Extra, Family, Weights, WeightsError, WeightsProblem, read_weights, write_weights,
};
