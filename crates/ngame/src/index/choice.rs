//! Whether vectors are worth a graph.

use crate::encoder::VectorType;

/// The bytes a query may read before a graph is faster by enough to be worth building.
///
/// `bench/index.py` measures both on one thread. The scan reads 7 to 10 GB a second, and a search of the
/// graph takes about a quarter of a millisecond, hardly more for more vectors: they cost the same at
/// 2 to 3 MB. At ten times that, a scan takes 3 to 4 milliseconds and is still exact, needs no second
/// file and no build.
const MOST_SCANNED: usize = 32 << 20;

/// The two kinds of [`Index`](super::Index).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// [`ExactIndex`](super::ExactIndex).
    Exact,
    /// [`Hnsw`](super::Hnsw).
    Hnsw,
}

/// Which index suits so many vectors of this length, searched one query at a time.
pub fn choose(n_vectors: usize, dim: usize, vector_type: VectorType) -> IndexKind {
    let scanned = n_vectors.saturating_mul(dim).saturating_mul(vector_type.width());
    if scanned <= MOST_SCANNED { IndexKind::Exact } else { IndexKind::Hnsw }
}

/// How many vectors a scan goes through in the time that a graph takes for one unit of its search width:
/// about ten are compared for each, from all over memory, at eight times the price of a code.
const SCANNED_A_WIDTH: usize = 80;

/// Whether a graph of so many vectors that has to be searched this wide is still faster than a scan.
/// Vectors of very different lengths can make it search most of what there is.
pub fn is_worth_its_width(n_vectors: usize, search_width: usize) -> bool {
    search_width.saturating_mul(SCANNED_A_WIDTH) < n_vectors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_that_searches_everything_is_worth_nothing() {
        assert!(is_worth_its_width(56_417, 400));
        assert!(!is_worth_its_width(56_417, 4_600));
        assert!(!is_worth_its_width(usize::MAX, usize::MAX));
    }

    #[test]
    fn few_vectors_are_scanned_and_many_are_not() {
        assert_eq!(choose(0, 384, VectorType::F32), IndexKind::Exact);
        assert_eq!(choose(13_000, 384, VectorType::F32), IndexKind::Exact);
        assert_eq!(choose(30_000, 384, VectorType::F32), IndexKind::Hnsw);
        assert_eq!(choose(30_000, 384, VectorType::F16), IndexKind::Exact);
        assert_eq!(choose(usize::MAX, 384, VectorType::F16), IndexKind::Hnsw);
    }
}
