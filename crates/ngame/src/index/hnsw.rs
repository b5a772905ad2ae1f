//! Approximate search in a graph of the vectors.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use super::graph::{Graph, MOST_NODES, Target, Walk};
use super::{Index, graph_build};
use crate::encoder::VectorMatrix;
use crate::progress::Observer;
use crate::{Error, Result};

/// How a graph is built and searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HnswOptions {
    /// The neighbours of a vector in the graph (M); in its lowest layer, twice as many.
    pub connectivity: usize,
    /// The candidates kept while a vector is added; more make a better graph.
    pub build_width: usize,
    /// The candidates kept during a search; more find more. [`tune`](super::tune) chooses it.
    pub search_width: usize,
    /// Compares vectors as if each had one more number that makes all equally long. Makes no difference
    /// to unit vectors, and none to the scores of a search. Off, because it was measured to do harm: of
    /// 18,000 label vectors scaled to uneven lengths (made so, not trained), a recall of 0.98 took a width
    /// of 600 without it, and with it 0.88 was all that any width reached.
    pub equal_lengths: bool,
}

impl Default for HnswOptions {
    fn default() -> Self {
        Self { connectivity: 16, build_width: 128, search_width: 128, equal_lengths: false }
    }
}

/// Vectors and a graph of them.
///
/// The vectors are shared, not copied: by an `Arc` in an index that is kept, by a reference in one that
/// is not. They are compared as they are stored; in 16 bits, a search reads half as much memory.
pub struct Hnsw<V = Arc<VectorMatrix>> {
    vectors: V,
    pub(super) graph: Graph,
    search_width: usize,
    /// What searches before this one have left; there are as many as ever ran at once.
    walks: Mutex<Vec<Walk>>,
}

impl<V> fmt::Debug for Hnsw<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hnsw")
            .field("n_vectors", &self.graph.n_nodes())
            .field("search_width", &self.search_width)
            .finish_non_exhaustive()
    }
}

impl<V: Deref<Target = VectorMatrix>> Hnsw<V> {
    /// Builds a graph of all vectors, on all threads of the pool. It depends on nothing but the vectors
    /// and the options.
    pub fn build(vectors: V, options: &HnswOptions, observer: &dyn Observer) -> Result<Self> {
        if !(2..=MOST_LINKS).contains(&options.connectivity) {
            return Err(Error::Option {
                option: "connectivity of the index",
                expected: format!("a number of neighbours from 2 to {MOST_LINKS}"),
                found: options.connectivity.to_string(),
            });
        }
        if vectors.n_rows() > MOST_NODES {
            return Err(Error::Option {
                option: "index",
                expected: format!("at most {MOST_NODES} vectors"),
                found: vectors.n_rows().to_string(),
            });
        }
        let graph = graph_build::build(vectors.as_rows(), vectors.n_rows(), options, observer)?;
        Ok(Self::new(vectors, graph, options.search_width))
    }

    pub(super) fn new(vectors: V, graph: Graph, search_width: usize) -> Self {
        Self { vectors, graph, search_width, walks: Mutex::default() }
    }

    /// The same graph over a matrix that begins with the same vectors.
    pub(super) fn with_vectors(self, vectors: V) -> Self {
        Self { vectors, ..self }
    }

    /// The vectors of the graph.
    pub fn vectors(&self) -> &VectorMatrix {
        &self.vectors
    }

    /// The candidates kept during a search.
    pub fn search_width(&self) -> usize {
        self.search_width
    }

    /// Keeps more or fewer candidates during searches from now on.
    pub fn set_search_width(&mut self, search_width: usize) {
        self.search_width = search_width;
    }

    /// About the `k` vectors with the highest inner products, best first. Any number of threads may
    /// search at once.
    ///
    /// # Panics
    /// If the query is not as long as the vectors.
    pub fn search(&self, query: &[f32], k: usize) -> Result<Vec<(u32, f32)>> {
        assert_eq!(query.len(), self.vectors.dim(), "a query is as long as vectors");
        // A walk is only memory, whatever happened to the thread that had it.
        let lock = || self.walks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut walk = lock().pop().unwrap_or_default();
        let target = Target { rows: self.vectors.as_rows(), vector: query, lift: (&[], 0.0) };
        self.graph.search(&target, 0, self.search_width.max(k).max(1), &mut walk);
        let found = walk.found.iter().take(k).map(|found| (found.node(), found.score())).collect();
        lock().push(walk);
        Ok(found)
    }
}

/// The most neighbours of a vector: more help nobody, and a file that asks for more is damaged.
pub(super) const MOST_LINKS: usize = 1_024;

impl<V: Deref<Target = VectorMatrix> + Send + Sync> Index for Hnsw<V> {
    fn n_vectors(&self) -> usize {
        self.graph.n_nodes()
    }

    fn dim(&self) -> usize {
        self.vectors.dim()
    }

    fn search(&self, query: &[f32], k: usize) -> Result<Vec<(u32, f32)>> {
        self.search(query, k)
    }
}
