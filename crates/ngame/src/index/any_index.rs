//! An index of either kind, as a model has it: chosen by size, saved and opened again.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::many::{Asked, Searched};
use super::{
    DEFAULT_RECALL, ExactIndex, Hnsw, HnswOptions, Index, IndexKind, Recall, recall, search_exact,
    tune,
};
use crate::Result;
use crate::data::ScoredCsr;
use crate::encoder::VectorMatrix;
use crate::progress::{Observer, StopOnly};

/// Either index, over vectors that are kept elsewhere.
#[derive(Debug)]
pub enum AnyIndex {
    /// Every vector is compared.
    Exact(ExactIndex),
    /// A graph, and what it was tuned to reach.
    Hnsw(Hnsw, IndexFacts),
}

/// What is told of an index.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexFacts {
    /// Whether every vector is compared.
    pub exact: bool,
    /// The share of the best vectors that it found of queries it was tuned on.
    pub recall: f64,
    /// The candidates that a search keeps.
    pub search_width: usize,
}

impl IndexFacts {
    const EXACT: Self = Self { exact: true, recall: 1.0, search_width: 0 };
}

impl fmt::Display for IndexFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.exact {
            return f.write_str("exact search");
        }
        write!(f, "HNSW, recall {:.1} %, width {}", 100.0 * self.recall, self.search_width)
    }
}

impl AnyIndex {
    /// Builds an index. A graph is tuned to find the share `target` of the `k` best for `queries`, which
    /// should be like those to come.
    pub fn build(
        kind: IndexKind,
        vectors: &Arc<VectorMatrix>,
        queries: &VectorMatrix,
        k: usize,
        target: f64,
        observer: &dyn Observer,
    ) -> Result<Self> {
        if kind == IndexKind::Exact || vectors.n_rows() == 0 {
            return Ok(Self::Exact(ExactIndex::new(Arc::clone(vectors))));
        }
        let mut hnsw = Hnsw::build(Arc::clone(vectors), &HnswOptions::default(), observer)?;
        let quiet = StopOnly(observer);
        let k = k.min(vectors.n_rows());
        let exact = search_exact(queries, vectors, k, None, &quiet)?;
        let Recall { reached, search_width } = tune(&mut hnsw, queries, &exact, k, target)?;
        Ok(Self::Hnsw(hnsw, IndexFacts { exact: false, recall: reached, search_width }))
    }

    /// Writes what cannot be had from the vectors in a moment: the graph, if there is one.
    pub fn save(&self, path: &Path) -> Result<()> {
        match self {
            Self::Exact(_) => Ok(()),
            Self::Hnsw(hnsw, _) => hnsw.save(path),
        }
    }

    /// Opens the index of the first `n_vectors` of these vectors that has these facts.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn open(
        path: &Path,
        vectors: Arc<VectorMatrix>,
        n_vectors: usize,
        facts: IndexFacts,
    ) -> Result<Self> {
        assert!(n_vectors <= vectors.n_rows(), "vectors of the matrix");
        Ok(match facts.exact {
            true => Self::Exact(ExactIndex::of_rows(vectors, 0..n_vectors)),
            false => Self::Hnsw(Hnsw::open_first(path, vectors, n_vectors)?, facts),
        })
    }

    /// The same index, of a matrix that begins with the vectors it has and goes on with others, which
    /// it does not find.
    ///
    /// # Panics
    /// If the matrix has fewer vectors, or such of another length.
    pub fn with_longer(self, vectors: Arc<VectorMatrix>) -> Self {
        assert!(
            self.n_vectors() <= vectors.n_rows() && self.dim() == vectors.dim(),
            "more vectors"
        );
        match self {
            Self::Exact(index) => Self::Exact(ExactIndex::of_rows(vectors, 0..index.n_vectors())),
            Self::Hnsw(index, facts) => Self::Hnsw(index.with_vectors(vectors), facts),
        }
    }

    /// An index of the same kind of the first `n_vectors` of other vectors, tuned for the same recall.
    pub fn rebuilt(
        &self,
        vectors: &Arc<VectorMatrix>,
        n_vectors: usize,
        queries: &VectorMatrix,
        k: usize,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let Self::Hnsw(_, facts) = self else {
            return Ok(Self::Exact(ExactIndex::of_rows(Arc::clone(vectors), 0..n_vectors)));
        };
        let first = vectors.select(&(0..n_vectors as u32).collect::<Vec<u32>>());
        let target = facts.recall.min(DEFAULT_RECALL);
        let built = Self::build(IndexKind::Hnsw, &Arc::new(first), queries, k, target, observer)?;
        Ok(built.with_longer(Arc::clone(vectors)))
    }

    /// Makes what single queries need, so that the first does not wait for it.
    pub fn prepare(&self) {
        if let Self::Exact(index) = self {
            index.prepare();
        }
    }

    /// What is told of it.
    pub fn facts(&self) -> IndexFacts {
        match self {
            Self::Exact(_) => IndexFacts::EXACT,
            Self::Hnsw(_, facts) => *facts,
        }
    }

    /// The share of exact search's `k` best that it finds for these queries, among the vectors that it
    /// is of.
    pub fn recall(
        &self,
        queries: &VectorMatrix,
        vectors: &VectorMatrix,
        k: usize,
        observer: &dyn Observer,
    ) -> Result<f64> {
        let n_vectors = self.n_vectors();
        let k = k.min(n_vectors);
        let searched = Searched { vectors, rows: 0..n_vectors, codes: None };
        let exact = searched.search(&Asked { queries, k, excluded: None }, observer)?;
        Ok(recall(&self.search_many(queries, k, observer)?, &exact))
    }

    fn inner(&self) -> &dyn Index {
        match self {
            Self::Exact(index) => index,
            Self::Hnsw(index, _) => index,
        }
    }
}

impl Index for AnyIndex {
    fn n_vectors(&self) -> usize {
        self.inner().n_vectors()
    }

    fn dim(&self) -> usize {
        self.inner().dim()
    }

    fn search(&self, query: &[f32], k: usize) -> Result<Vec<(u32, f32)>> {
        self.inner().search(query, k)
    }

    fn search_many(
        &self,
        queries: &VectorMatrix,
        k: usize,
        observer: &dyn Observer,
    ) -> Result<ScoredCsr> {
        self.inner().search_many(queries, k, observer)
    }
}
