//! Maximum inner product search: the vectors that score highest with a query's.
//!
//! An [`Index`] answers one query or many. [`ExactIndex`] compares a query with every vector, as fast as
//! memory delivers them; [`Hnsw`] finds almost the same in a graph, in a time that hardly grows with the
//! number of vectors. [`choose`] says from which size on the graph is worth building, and [`tune`] makes
//! it search as widely as a wanted recall needs. [`search_exact`] answers many queries at once.

mod any_index;
mod choice;
mod exact;
mod graph;
mod graph_build;
mod graph_file;
mod hnsw;
mod many;
mod maybe_best;
mod recall;
#[cfg(test)]
mod tests;

pub use any_index::{AnyIndex, IndexFacts};
pub use choice::{IndexKind, choose, is_worth_its_width};
pub use exact::ExactIndex;
pub use hnsw::{Hnsw, HnswOptions};
pub use many::search_exact;
pub use recall::{DEFAULT_RECALL, Recall, recall, tune};

use rayon::prelude::*;

use crate::data::ScoredCsr;
use crate::encoder::VectorMatrix;
use crate::progress::Observer;
use crate::{Error, Result};

/// Queries that are searched between two looks at the observer.
const QUERIES: usize = 1_024;

/// Vectors that can be searched, from any number of threads at once.
pub trait Index: Send + Sync {
    /// How many vectors there are.
    fn n_vectors(&self) -> usize;

    /// The length of a vector.
    fn dim(&self) -> usize;

    /// The `k` vectors with the highest inner products, or about those, and the products: best first.
    ///
    /// # Panics
    /// If the query is not as long as the vectors.
    fn search(&self, query: &[f32], k: usize) -> Result<Vec<(u32, f32)>>;

    /// The same for many queries, on all threads of the pool.
    ///
    /// # Panics
    /// If the queries are not as long as the vectors.
    fn search_many(
        &self,
        queries: &VectorMatrix,
        k: usize,
        observer: &dyn Observer,
    ) -> Result<ScoredCsr> {
        let mut found = ScoredCsr::new(self.n_vectors() as u32);
        for begin in (0..queries.n_rows()).step_by(QUERIES) {
            if observer.cancelled() {
                return Err(Error::Cancelled);
            }
            let search = |query: usize| self.search(&queries.row(query).to_vec(), k);
            let end = queries.n_rows().min(begin + QUERIES);
            let rows: Result<Vec<_>> = (begin..end).into_par_iter().map(search).collect();
            for mut row in rows? {
                found.push_row(&mut row);
            }
        }
        Ok(found)
    }
}
