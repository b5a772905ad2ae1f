//! Exact search: all scores, a block at a time, and of each query the best.
//!
//! Many queries share the vectors that are read for them, and matrix products are fastest; one query
//! takes as long as it takes to read all vectors once, so all that is done is not to keep memory waiting.

use std::ops::Range;
use std::sync::Arc;

use ngame_nn::{Matrix, multiply};
use rayon::prelude::*;

use super::Index;
use crate::data::{Csr, ScoredCsr};
use crate::encoder::{Vector, VectorMatrix};
use crate::metrics::TopK;
use crate::progress::Observer;
use crate::{Error, Result};

/// Queries of a block: its scores stay in the cache until they are ranked.
const QUERIES: usize = 256;

/// Vectors of a block.
const VECTORS: usize = 2_048;

/// Vectors that one query is compared with before their scores are ranked.
const SCANNED: usize = 256;

/// The bytes that are worth waking another thread for: a tenth of a millisecond's reading.
const SHARE: usize = 1 << 20;

/// Vectors to be compared with every query: all of a matrix, or some of its rows.
#[derive(Clone, Debug)]
pub struct ExactIndex {
    vectors: Arc<VectorMatrix>,
    rows: Range<usize>,
}

impl ExactIndex {
    /// An index of these vectors, which it shares.
    ///
    /// # Panics
    /// If there are more vectors than `u32` counts.
    pub fn new(vectors: Arc<VectorMatrix>) -> Self {
        let rows = 0..vectors.n_rows();
        Self::of_rows(vectors, rows)
    }

    /// An index of some rows of these vectors; what it finds is called by its row in the matrix.
    ///
    /// # Panics
    /// If there are no such rows, or more vectors than `u32` counts.
    pub fn of_rows(vectors: Arc<VectorMatrix>, rows: Range<usize>) -> Self {
        assert!(u32::try_from(vectors.n_rows()).is_ok(), "vectors are counted in u32");
        assert!(rows.start <= rows.end && rows.end <= vectors.n_rows(), "rows of the matrix");
        Self { vectors, rows }
    }

    /// The vectors of the index.
    pub fn vectors(&self) -> &VectorMatrix {
        &self.vectors
    }

    /// The best of some of the vectors.
    fn scan(&self, query: &[f32], k: usize, vectors: Range<usize>) -> TopK {
        let rows = self.vectors.as_rows();
        let mut best = TopK::new(k);
        let (mut ids, mut scores) = ([0; SCANNED], [0.0; SCANNED]);
        for begin in vectors.clone().step_by(SCANNED) {
            let n = SCANNED.min(vectors.end - begin);
            for (id, vector) in ids[..n].iter_mut().zip(begin as u32..) {
                *id = vector;
            }
            rows.dots(&ids[..n], query, &mut scores[..n]);
            for (&id, &score) in ids[..n].iter().zip(&scores) {
                best.offer(id, score);
            }
        }
        best
    }
}

impl Index for ExactIndex {
    fn n_vectors(&self) -> usize {
        self.rows.len()
    }

    fn dim(&self) -> usize {
        self.vectors.dim()
    }

    fn search(&self, query: &[f32], k: usize) -> Result<Vec<(u32, f32)>> {
        assert_eq!(query.len(), self.dim(), "a query is as long as vectors");
        let n = self.n_vectors();
        let bytes = n * self.dim() * self.vectors.vector_type().width();
        let n_parts = rayon::current_num_threads().min(bytes / SHARE).max(1);
        if n_parts == 1 {
            return Ok(self.scan(query, k, self.rows.clone()).finish());
        }
        let begin = |part: usize| self.rows.start + part * n / n_parts;
        let part = |part: usize| self.scan(query, k, begin(part)..begin(part + 1)).finish();
        let parts: Vec<Vec<(u32, f32)>> = (0..n_parts).into_par_iter().map(part).collect();
        let mut best = TopK::new(k);
        parts.into_iter().flatten().for_each(|(id, score)| best.offer(id, score));
        Ok(best.finish())
    }

    fn search_many(
        &self,
        queries: &VectorMatrix,
        k: usize,
        observer: &dyn Observer,
    ) -> Result<ScoredCsr> {
        search_rows(queries, &self.vectors, self.rows.clone(), k, None, observer)
    }
}

/// The `k` vectors with the highest inner products for every query, without the ones that `excluded`
/// lists for it.
///
/// # Panics
/// If queries and vectors have different lengths, or there are more vectors than `u32` counts.
pub fn search_exact(
    queries: &VectorMatrix,
    vectors: &VectorMatrix,
    k: usize,
    excluded: Option<&Csr>,
    observer: &dyn Observer,
) -> Result<ScoredCsr> {
    search_rows(queries, vectors, 0..vectors.n_rows(), k, excluded, observer)
}

/// The same among some rows of the vectors.
pub(super) fn search_rows(
    queries: &VectorMatrix,
    vectors: &VectorMatrix,
    searched: Range<usize>,
    k: usize,
    excluded: Option<&Csr>,
    observer: &dyn Observer,
) -> Result<ScoredCsr> {
    let dim = vectors.dim();
    assert_eq!(queries.dim(), dim, "queries are as long as vectors");
    let n_vectors = u32::try_from(vectors.n_rows()).expect("vectors are counted in u32");
    let mut found = ScoredCsr::new(n_vectors);
    let (mut scores, mut rows, mut block) = (Vec::new(), Vec::new(), Vec::new());
    for begin in (0..queries.n_rows()).step_by(QUERIES) {
        if observer.cancelled() {
            return Err(Error::Cancelled);
        }
        let n_queries = QUERIES.min(queries.n_rows() - begin);
        let rows = widen(queries.rows(begin..begin + n_queries), &mut rows);
        let mut best = vec![TopK::new(k); n_queries];
        for first in searched.clone().step_by(VECTORS) {
            let n_block = VECTORS.min(searched.end - first);
            let block = widen(vectors.rows(first..first + n_block), &mut block);
            scores.resize(n_queries * n_block, 0.0);
            multiply(
                Matrix::new(rows, n_queries, dim),
                Matrix::new(block, n_block, dim).transposed(),
                &mut scores,
            );
            best.par_iter_mut().zip(scores.par_chunks(n_block)).enumerate().for_each(
                |(query, (best, scores))| {
                    let excluded = excluded.map_or(&[][..], |pairs| pairs.row(begin + query));
                    for (&score, vector) in scores.iter().zip(first as u32..) {
                        if excluded.is_empty() || excluded.binary_search(&vector).is_err() {
                            best.offer(vector, score);
                        }
                    }
                },
            );
        }
        for best in best {
            found.push_row(&mut best.finish());
        }
    }
    Ok(found)
}

/// Rows as f32, copied only where they are not.
fn widen<'a>(rows: Vector<'a>, room: &'a mut Vec<f32>) -> &'a [f32] {
    match rows {
        Vector::F32(rows) => rows,
        Vector::F16(half) => {
            room.resize(half.len(), 0.0);
            rows.copy_to(room);
            room
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::VectorType;
    use crate::metrics::top_k;
    use crate::progress::Silent;

    #[test]
    fn exact_search_is_a_sort_of_all_scores() {
        let number = |i: usize| ((i * 7919) % 1000) as f32 / 500.0 - 1.0;
        let dim = 6;
        let queries = VectorMatrix::from_f32((0..300 * dim).map(number).collect(), dim);
        let mut vectors = VectorMatrix::zeros(2_500, dim, VectorType::F16);
        for row in 0..2_500 {
            let numbers: Vec<f32> = (0..dim).map(|i| number(row * 31 + i * 7 + 3)).collect();
            vectors.set(row, &numbers);
        }
        let excluded = Csr::from_pairs(300, 2_500, vec![(0, 5), (299, 2_400)]);
        let found = search_exact(&queries, &vectors, 10, Some(&excluded), &Silent).unwrap();
        assert_eq!(found.n_rows(), 300);
        for query in [0, 1, 255, 256, 299] {
            let q = queries.row(query).to_vec();
            let labels: Vec<u32> = (0..2_500).collect();
            let score = |&label: &u32| -> f32 {
                q.iter().zip(vectors.row(label as usize).to_vec()).map(|(a, b)| a * b).sum()
            };
            let scores: Vec<f32> = labels.iter().map(score).collect();
            let mut best = Vec::new();
            top_k(&labels, &scores, excluded.row(query), 10, &mut best);
            let (_, found_scores) = found.row(query);
            let mut found_scores = found_scores.to_vec();
            found_scores.sort_unstable_by(|a, b| b.total_cmp(a));
            for (found, (_, expected)) in found_scores.iter().zip(&best) {
                assert!((found - expected).abs() < 1e-4, "query {query}");
            }
            assert_eq!(found_scores.len(), 10);
        }
    }

    #[test]
    fn some_rows_are_searched_as_if_there_were_no_others() {
        let number = |i: usize| ((i * 7919) % 1000) as f32 / 500.0 - 1.0;
        let vectors = Arc::new(VectorMatrix::from_f32((0..900 * 4).map(number).collect(), 4));
        let queries = VectorMatrix::from_f32((0..20 * 4).map(|i| number(i * 3 + 1)).collect(), 4);
        let first = VectorMatrix::from_f32(vectors.rows(0..600).to_vec(), 4);
        let alone = ExactIndex::new(Arc::new(first));
        let among = ExactIndex::of_rows(Arc::clone(&vectors), 0..600);
        let rest = ExactIndex::of_rows(Arc::clone(&vectors), 600..900);
        assert_eq!((among.n_vectors(), rest.n_vectors()), (600, 300));
        let expected = alone.search_many(&queries, 9, &Silent).unwrap();
        let found = among.search_many(&queries, 9, &Silent).unwrap();
        let others = rest.search_many(&queries, 9, &Silent).unwrap();
        for query in 0..20 {
            assert_eq!(found.row(query), expected.row(query));
            let vector = queries.row(query).to_vec();
            assert_eq!(among.search(&vector, 9).unwrap(), alone.search(&vector, 9).unwrap());
            let one = rest.search(&vector, 9).unwrap();
            assert!(one.iter().all(|&(id, _)| (600..900).contains(&id)) && one.len() == 9);
            assert!(others.row(query).0.iter().all(|id| one.iter().any(|(other, _)| other == id)));
        }
    }

    #[test]
    fn no_vectors_and_no_queries_are_fine() {
        let none = VectorMatrix::zeros(0, 4, VectorType::F32);
        let some = VectorMatrix::zeros(3, 4, VectorType::F32);
        assert_eq!(search_exact(&none, &some, 5, None, &Silent).unwrap().n_rows(), 0);
        let found = search_exact(&some, &none, 5, None, &Silent).unwrap();
        assert_eq!((found.n_rows(), found.row(2).0.len()), (3, 0));
    }
}
