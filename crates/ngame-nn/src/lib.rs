//! Text encoders on the CPU, as explicit forward and backward passes over packed tokens.

mod batch;
mod encoder;
mod kernels;
mod layers;
mod panels;
mod parameters;
mod transformer;

pub use batch::Batch;
pub use encoder::{Dropout, Encoder, Frozen, Precision};
pub use layers::pooling::Pooling;
pub use parameters::{Gradients, Layout, Parameters, Tensor};
pub use transformer::{Transformer, TransformerConfig};
