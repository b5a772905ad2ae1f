//! Exact search: every vector is compared.
//!
//! One query takes as long as it takes to read the vectors once: so codes of 8 bits are read first, which
//! say between which bounds a score lies, and only vectors that may be among the best are read themselves.
//! What is found is the same as without codes, to the last bit. Many queries share the vectors that are
//! read for them.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use ngame_nn::{Bounds, CodedQuery, Codes};
use rayon::prelude::*;

use super::Index;
use super::many::{Asked, Searched};
use super::maybe_best::MaybeBest;
use crate::Result;
use crate::data::ScoredCsr;
use crate::encoder::VectorMatrix;
use crate::metrics::TopK;
use crate::progress::Observer;

/// Queries from which on it is faster to look at vectors for all of them together.
const MANY: usize = 12;

/// Vectors that one query is compared with before their scores are ranked.
const SCANNED: usize = 256;

/// The bytes that are worth waking another thread for: a tenth of a millisecond's reading.
const SHARE: usize = 1 << 20;

/// Vectors to be compared with every query: all of a matrix, or some of its rows.
#[derive(Clone, Debug)]
pub struct ExactIndex {
    vectors: Arc<VectorMatrix>,
    rows: Range<usize>,
    /// Of the rows; made for the first query that is asked alone.
    codes: OnceLock<Arc<Codes>>,
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
        Self { vectors, rows, codes: OnceLock::new() }
    }

    /// The vectors of the index.
    pub fn vectors(&self) -> &VectorMatrix {
        &self.vectors
    }

    /// Makes what single queries need, so that the first does not wait for it. Few vectors are read as
    /// they are.
    pub fn prepare(&self) -> Option<&Codes> {
        let bytes = self.n_vectors() * self.dim();
        (bytes >= SHARE).then(|| {
            let code = || Arc::new(Codes::new(self.vectors.as_rows(), self.rows.clone()));
            self.codes.get_or_init(code).as_ref()
        })
    }

    /// The best of some of the vectors, by their codes first; `vectors` are counted from the first row.
    fn scan_codes(
        &self,
        (codes, coded): (&Codes, &CodedQuery),
        query: &[f32],
        k: usize,
        vectors: Range<usize>,
    ) -> TopK {
        let first = self.rows.start;
        let mut maybe = MaybeBest::new(k, usize::MAX);
        let mut bounds = Bounds::default();
        for begin in vectors.clone().step_by(SCANNED) {
            codes.bounds(coded, begin..vectors.end.min(begin + SCANNED), &mut bounds);
            maybe.offer((first + begin) as u32, &bounds.low, &bounds.high, &[]);
        }
        self.searched(None).rank(&maybe.finish(), query, k)
    }

    fn searched<'a>(&'a self, codes: Option<&'a Codes>) -> Searched<'a> {
        Searched { vectors: &self.vectors, rows: self.rows.clone(), codes }
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
        let coded = self.prepare().map(|codes| (codes, codes.query(query)));
        let width = if coded.is_some() { 1 } else { self.vectors.vector_type().width() };
        let n_parts = rayon::current_num_threads().min(n * self.dim() * width / SHARE).max(1);
        let begin = |part: usize| part * n / n_parts;
        let part = |part: usize| {
            let some = begin(part)..begin(part + 1);
            let best = match &coded {
                Some((codes, coded)) => self.scan_codes((codes, coded), query, k, some),
                None => {
                    let first = self.rows.start;
                    self.scan(query, k, first + some.start..first + some.end)
                }
            };
            best.finish()
        };
        if n_parts == 1 {
            return Ok(part(0));
        }
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
        if queries.n_rows() >= MANY {
            let codes = if Codes::suit_many() { self.prepare() } else { None };
            return self.searched(codes).search(&Asked { queries, k, excluded: None }, observer);
        }
        let mut found = ScoredCsr::new(self.vectors.n_rows() as u32);
        for query in 0..queries.n_rows() {
            found.push_row(&mut self.search(&queries.row(query).to_vec(), k)?);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Csr;
    use crate::encoder::VectorType;
    use crate::index::search_exact;
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
    fn codes_find_what_a_scan_finds_to_the_last_bit() {
        let noise = |i: usize| (((i * 7919 + i / 13) % 4093) as f32 / 2046.5 - 1.0).powi(3);
        let dim = 65;
        for with_bias in [false, true] {
            let mut numbers: Vec<f32> = (0..20_000 * dim).map(noise).collect();
            if with_bias {
                numbers.chunks_mut(dim).for_each(|row| row[dim - 1] = 30.0 * row[0] - 20.0);
            }
            // Vectors that are the same twice, and many that are nothing.
            numbers.copy_within(0..500 * dim, 9_000 * dim);
            numbers[700 * dim..1_900 * dim].fill(0.0);
            let vectors = Arc::new(VectorMatrix::from_f32(numbers, dim).to_f16());
            for rows in [0..20_000, 1_000..19_777] {
                let index = ExactIndex::of_rows(Arc::clone(&vectors), rows.clone());
                assert!(index.prepare().is_some());
                for (query, k) in [(1, 0), (2, 1), (3, 10), (4, 300), (5, 30_000)] {
                    let query: Vec<f32> = (0..dim).map(|i| noise(i * 37 + query)).collect();
                    let expected = index.scan(&query, k, rows.clone()).finish();
                    assert_eq!(index.search(&query, k).unwrap(), expected, "{rows:?} {k}");
                    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
                    assert_eq!(one.install(|| index.search(&query, k)).unwrap(), expected);
                }
            }
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
