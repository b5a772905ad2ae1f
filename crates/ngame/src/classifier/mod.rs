//! One vector a label: started at the label's embedding, trained on frozen embeddings of points.
//!
//! Three [`Objective`]s, one a file. [`OneVsAll`] asks every label about every point: the best there is
//! as long as labels are few enough. [`Sampled`] estimates the same from the labels of a batch and some
//! drawn at random. [`ClassifierTriplet`] is the paper's: hard positives against hard negatives, in
//! batches of points that lie close together.
//!
//! A [`ClassifierRun`] trains by any of them, epoch by epoch, and can be put away after each.
//!
//! ```text
//! points (N, D), frozen ──> batches ──> an objective's step ──> vectors (L, D), biases (L)
//! labels' embeddings (L, D) ─── start ──────^
//! ```

mod batch_labels;
mod classifiers;
mod one_vs_all;
mod parts;
mod run;
mod sampled;
mod start;
mod task;
#[cfg(test)]
mod toy;
mod triplet;

pub use classifiers::{BIAS_UNIT, Classifiers};
pub use ngame_nn::MomentType;
pub use one_vs_all::OneVsAll;
pub use parts::train_part;
pub use run::{ClassifierRun, Objective};
pub use sampled::{Sampled, SampledLoss};
pub use start::LogitStart;
pub use triplet::ClassifierTriplet;
