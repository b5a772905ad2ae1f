//! Vectors to mini-batches: which points meet in a batch decides which negatives they see.
//!
//! A batch is made of whole [`Clusters`] of points that lie close together, so that the labels of one
//! are hard negatives of the others. [`cluster`] makes the clusters, [`Batches::draw`] the batches of
//! an epoch, and a [`Sampler`] says when to do so and of what: the paper's own way ([`Ngame`]) and
//! those it is compared with, one a file.
//!
//! ```text
//! vectors of points ──> Sampler::mine ──> Mined { clusters, negatives } ──> Batches::draw ──> batches
//!        ^                (every τ epochs)                                   (every epoch)        │
//!        └────────────────────────── a training pass ─────────────────────────────────────────────┘
//! ```

mod ann;
mod batches;
mod clusters;
mod curriculum;
mod kmeans;
mod ngame;
mod random;
mod sampler;
mod static_clusters;

pub use ann::Ann;
pub use batches::Batches;
pub use clusters::Clusters;
pub use curriculum::Curriculum;
pub use kmeans::{KMeansOptions, cluster};
pub use ngame::Ngame;
pub use random::Random;
pub use sampler::{Mined, NegativeLists, Sampler, Views, Wants};
pub use static_clusters::StaticClusters;
