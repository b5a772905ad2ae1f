//! Weights in files: the `.safetensors` of the Hugging Face hub, in and out.
//!
//! An encoder's [`Layout`](crate::Layout) names its tensors as BERT's are named. Files spell them in
//! several ways; [`read_weights`] knows these and [`write_weights`] writes the one of a [`Family`].

mod error;
mod header;
mod names;
mod read;
mod write;

pub use error::{WeightsError, WeightsProblem};
pub use names::Family;
pub use read::{Extra, Weights, read_weights};
pub use write::write_weights;
