//! How much of the exact answer an approximate search finds, and how wide it must search for enough.

use std::ops::Deref;

use super::Index;
use super::hnsw::Hnsw;
use crate::Result;
use crate::data::ScoredCsr;
use crate::encoder::VectorMatrix;
use crate::progress::Silent;

/// The recall that is aimed at where nothing else is asked for, at 100 vectors a query: what is missed
/// below is hardly ever among the first ranks.
pub const DEFAULT_RECALL: f64 = 0.98;

/// No search keeps more candidates than this: an exact one would be faster.
const WIDEST: usize = 1 << 14;

/// What a search width reaches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recall {
    /// The share of the exact answer that is found.
    pub reached: f64,
    /// The candidates kept during a search.
    pub search_width: usize,
}

/// The share of the vectors in `exact` that are in `found` too, query by query; 1 if there are none.
///
/// # Panics
/// If they have different numbers of rows.
pub fn recall(found: &ScoredCsr, exact: &ScoredCsr) -> f64 {
    assert_eq!(found.n_rows(), exact.n_rows(), "a row a query");
    let (mut hits, mut wanted) = (0, 0);
    for row in 0..exact.n_rows() {
        let (found, exact) = (found.row(row).0, exact.row(row).0);
        hits += exact.iter().filter(|id| found.binary_search(id).is_ok()).count();
        wanted += exact.len();
    }
    if wanted == 0 { 1.0 } else { hits as f64 / wanted as f64 }
}

/// Sets the narrowest search width, within a twentieth, that reaches the recall `target` on these queries,
/// whose `k` best are `exact`. If none does, the one that reaches most stays.
pub fn tune<V: Deref<Target = VectorMatrix> + Send + Sync>(
    hnsw: &mut Hnsw<V>,
    queries: &VectorMatrix,
    exact: &ScoredCsr,
    k: usize,
    target: f64,
) -> Result<Recall> {
    let mut reached = |search_width: usize| -> Result<Recall> {
        hnsw.set_search_width(search_width);
        let found = hnsw.search_many(queries, k, &Silent)?;
        Ok(Recall { reached: recall(&found, exact), search_width })
    };
    let widest = hnsw_limit(exact.n_columns() as usize, k);
    let mut too_narrow = k.max(1) - 1;
    let mut best = reached(k.max(1))?;
    while best.reached < target && best.search_width < widest {
        too_narrow = best.search_width;
        best = reached((2 * best.search_width).min(widest))?;
    }
    // Recall grows with the width but for rare ties, so halving the gap finds the narrowest.
    while best.reached >= target && best.search_width - too_narrow > 1 + best.search_width / 20 {
        let between = reached(too_narrow.midpoint(best.search_width))?;
        if between.reached >= target {
            best = between;
        } else {
            too_narrow = between.search_width;
        }
    }
    hnsw.set_search_width(best.search_width);
    Ok(best)
}

/// The widest search that is tried: all vectors, or as many as are ever worth it.
fn hnsw_limit(n_vectors: usize, k: usize) -> usize {
    n_vectors.min(WIDEST).max(k).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recall_is_the_share_of_the_exact_answer() {
        let rows = |rows: &[&[u32]]| {
            let mut matrix = ScoredCsr::new(9);
            for row in rows {
                matrix.push_row(&mut row.iter().map(|&id| (id, 1.0)).collect());
            }
            matrix
        };
        let exact = rows(&[&[0, 1, 2, 3], &[4, 5], &[]]);
        assert_eq!(recall(&exact, &exact), 1.0);
        assert_eq!(recall(&rows(&[&[3, 8], &[4, 5], &[7]]), &exact), 0.5);
        assert_eq!(recall(&rows(&[]), &rows(&[])), 1.0);
    }
}
