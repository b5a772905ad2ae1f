//! Maximum inner product search: the vectors that score highest with a query's.
//!
//! [`search_exact`] compares every query with every vector, by matrix products; [`Hnsw`] finds almost
//! the same in a graph, in a time that hardly grows with the number of vectors.

mod exact;
mod hnsw;

pub use exact::search_exact;
pub use hnsw::{Hnsw, HnswOptions};
