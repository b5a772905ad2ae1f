//! Exact search for many queries at once.
//!
//! Where the processor multiplies codes of 8 bits fast, these say first which vectors may be among the best
//! of a query, and only those are read themselves. Elsewhere all scores are made, by matrix products, and
//! only the vectors with the highest are read again.

use std::ops::Range;

use ngame_nn::{Bounds, CodedQueries, Codes, Matrix, multiply};
use rayon::prelude::*;

use super::maybe_best::MaybeBest;
use crate::data::{Csr, ScoredCsr};
use crate::encoder::{Vector, VectorMatrix};
use crate::metrics::TopK;
use crate::progress::Observer;
use crate::{Error, Result};

/// Queries of a block of products: its scores stay in the cache until they are ranked.
const QUERIES: usize = 256;

/// Vectors of a block of products.
const VECTORS: usize = 2_048;

/// Vectors beyond those wanted whose products are nearly as high: one of them may be among the best.
const SPARE: usize = 16;

/// Queries that are asked together by codes.
const CODED_QUERIES: usize = 2_048;

/// Vectors that a query may have left before products of all are faster than a look at each of them.
const MOST_LEFT: usize = 4_096;

/// Vectors that all queries asked together may have left: 100 MB of them with their bounds.
const MOST_LEFT_TOGETHER: usize = 1 << 23;

/// Vectors whose codes are made at once, and that are searched between two looks at the observer.
const CODED_VECTORS: usize = 16_384;

/// Queries and vectors of a block of bounds: both codes and bounds stay in the cache.
const BLOCK: [usize; 2] = [64, 256];

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
    let asked = Asked { queries, k, excluded };
    Searched { vectors, rows: 0..vectors.n_rows(), codes: None }.search(&asked, observer)
}

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) queries: &'a VectorMatrix,
    /// Vectors wanted for every query.
    pub(super) k: usize,
    /// For every query those it may not have.
    pub(super) excluded: Option<&'a Csr>,
}

impl<'a> Asked<'a> {
    /// The vectors that a query may not have.
    fn excluded(&self, query: usize) -> &'a [u32] {
        self.excluded.map_or(&[], |pairs| pairs.row(query))
    }
}

/// Some rows of vectors, and their codes if they are kept.
#[derive(Clone, Debug)]
pub(super) struct Searched<'a> {
    pub(super) vectors: &'a VectorMatrix,
    pub(super) rows: Range<usize>,
    pub(super) codes: Option<&'a Codes>,
}

impl Searched<'_> {
    /// The best of these rows for every query.
    pub(super) fn search(&self, asked: &Asked<'_>, observer: &dyn Observer) -> Result<ScoredCsr> {
        assert_eq!(asked.queries.dim(), self.vectors.dim(), "queries are as long as vectors");
        assert!(u32::try_from(self.vectors.n_rows()).is_ok(), "vectors are counted in u32");
        // Codes that are not kept have to be worth making; and every thread wants queries of its own.
        let n_threads = rayon::current_num_threads();
        let enough = match self.codes {
            Some(_) => BLOCK[0].min(CodedQueries::TILE * n_threads),
            None => BLOCK[0] * n_threads,
        };
        if Codes::suit_many() && asked.queries.n_rows() >= enough {
            self.by_codes(asked, observer)
        } else {
            self.by_products(asked, observer)
        }
    }

    fn by_codes(&self, asked: &Asked<'_>, observer: &dyn Observer) -> Result<ScoredCsr> {
        let Asked { queries, k, excluded } = *asked;
        let dim = queries.dim();
        let most = MOST_LEFT.max(k.saturating_mul(16));
        let together = (MOST_LEFT_TOGETHER / most).clamp(BLOCK[0], CODED_QUERIES);
        let mut found = ScoredCsr::new(self.vectors.n_rows() as u32);
        let mut room = Vec::new();
        for begin in (0..queries.n_rows()).step_by(together) {
            let range = begin..queries.n_rows().min(begin + together);
            let numbers = widen(queries.rows(range.clone()), &mut room);
            let mut maybe = vec![MaybeBest::new(k, most); range.len()];
            self.look_for(numbers, |query| asked.excluded(begin + query), &mut maybe, observer)?;

            let ids = (begin as u32..).zip(&maybe);
            let lost: Vec<u32> = ids.filter(|(_, one)| one.is_lost()).map(|(id, _)| id).collect();
            let (others, pairs) = (queries.select(&lost), excluded.map(|all| all.select(&lost)));
            let others = Asked { queries: &others, k, excluded: pairs.as_ref() };
            let again = self.by_products(&others, observer)?;
            let mut again = (0..lost.len()).map(|query| again.row(query));

            let rank = |(maybe, query): (MaybeBest, &[f32])| {
                (!maybe.is_lost()).then(|| self.rank(&maybe.finish(), query, k).finish())
            };
            let numbers = numbers.par_chunks_exact(dim);
            let ranked: Vec<_> = maybe.into_par_iter().zip(numbers).map(rank).collect();
            for best in ranked {
                let from_products = || {
                    let (ids, scores) = again.next().expect("as many as are lost");
                    ids.iter().copied().zip(scores.iter().copied()).collect()
                };
                found.push_row(&mut best.unwrap_or_else(from_products));
            }
        }
        Ok(found)
    }

    /// Offers all rows to some queries, by their codes.
    fn look_for<'a>(
        &self,
        queries: &[f32], // (queries, dim)
        excluded: impl Fn(usize) -> &'a [u32] + Sync,
        maybe: &mut [MaybeBest], // (queries)
        observer: &dyn Observer,
    ) -> Result<()> {
        let kept = self.codes.map(|codes| (codes, codes.queries(queries)));
        for first in self.rows.clone().step_by(CODED_VECTORS) {
            if observer.cancelled() {
                return Err(Error::Cancelled);
            }
            let rows = first..self.rows.end.min(first + CODED_VECTORS);
            match &kept {
                Some((codes, queries)) => {
                    let origin = self.rows.start;
                    let coded = rows.start - origin..rows.end - origin;
                    offer(codes, queries, coded, first, &excluded, maybe);
                }
                None => {
                    let codes = Codes::new(self.vectors.as_rows(), rows.clone());
                    let queries = codes.queries(queries);
                    offer(&codes, &queries, 0..rows.len(), first, &excluded, maybe);
                }
            }
        }
        Ok(())
    }

    /// The best of some rows for one query.
    pub(super) fn rank(&self, ids: &[u32], query: &[f32], k: usize) -> TopK {
        let mut scores = vec![0.0; ids.len()];
        self.vectors.as_rows().dots(ids, query, &mut scores);
        let mut best = TopK::new(k);
        ids.iter().zip(scores).for_each(|(&id, score)| best.offer(id, score));
        best
    }

    fn by_products(&self, asked: &Asked<'_>, observer: &dyn Observer) -> Result<ScoredCsr> {
        let (queries, dim) = (asked.queries, asked.queries.dim());
        let mut found = ScoredCsr::new(self.vectors.n_rows() as u32);
        let (mut scores, mut rows, mut block) = (Vec::new(), Vec::new(), Vec::new());
        for begin in (0..queries.n_rows()).step_by(QUERIES) {
            if observer.cancelled() {
                return Err(Error::Cancelled);
            }
            let n_queries = QUERIES.min(queries.n_rows() - begin);
            let rows = widen(queries.rows(begin..begin + n_queries), &mut rows);
            let mut best = vec![TopK::new(asked.k.saturating_add(SPARE)); n_queries];
            for first in self.rows.clone().step_by(VECTORS) {
                let n_block = VECTORS.min(self.rows.end - first);
                let block = widen(self.vectors.rows(first..first + n_block), &mut block);
                scores.resize(n_queries * n_block, 0.0);
                multiply(
                    Matrix::new(rows, n_queries, dim),
                    Matrix::new(block, n_block, dim).transposed(),
                    &mut scores,
                );
                best.par_iter_mut().zip(scores.par_chunks(n_block)).enumerate().for_each(
                    |(query, (best, scores))| {
                        let excluded = asked.excluded(begin + query);
                        for (&score, vector) in scores.iter().zip(first as u32..) {
                            if excluded.is_empty() || excluded.binary_search(&vector).is_err() {
                                best.offer(vector, score);
                            }
                        }
                    },
                );
            }
            // Products add up in another order than a look at one vector does. That look decides, so
            // that a query has the same answer to the last bit, alone and among others.
            let ranked: Vec<_> = best
                .into_par_iter()
                .zip(rows.par_chunks_exact(dim))
                .map(|(best, query)| {
                    let ids: Vec<u32> = best.finish().into_iter().map(|(id, _)| id).collect();
                    self.rank(&ids, query, asked.k).finish()
                })
                .collect();
            for mut best in ranked {
                found.push_row(&mut best);
            }
        }
        Ok(found)
    }
}

/// Offers the vectors of some codes, the first of which is number `first`, to all queries.
fn offer<'a>(
    codes: &Codes,
    queries: &CodedQueries,
    coded: Range<usize>,
    first: usize,
    excluded: impl Fn(usize) -> &'a [u32] + Sync,
    maybe: &mut [MaybeBest], // (queries)
) {
    let [most, n_vectors] = BLOCK;
    let a_thread = maybe.len().div_ceil(rayon::current_num_threads());
    let n_queries = a_thread.next_multiple_of(CodedQueries::TILE).min(most);
    maybe.par_chunks_mut(n_queries).enumerate().for_each_init(
        Bounds::default,
        |bounds, (block, maybe)| {
            let begin = block * n_queries;
            for start in coded.clone().step_by(n_vectors) {
                let rows = start..coded.end.min(start + n_vectors);
                let id = (first + start - coded.start) as u32;
                let asked = begin..begin + maybe.len();
                codes.bounds_of_many(queries, asked, rows, bounds, |query, low, high| {
                    maybe[query - begin].offer(id, low, high, excluded(query));
                });
            }
        },
    );
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
    use crate::progress::{Event, Silent};

    fn noise(i: usize) -> f32 {
        (((i * 7919 + i / 13) % 4093) as f32 / 2046.5 - 1.0).powi(3)
    }

    /// Rows of noise, the last number of each like a bias if that is asked for.
    fn vectors(n_rows: usize, dim: usize, seed: usize, with_bias: bool) -> VectorMatrix {
        let mut numbers: Vec<f32> = (0..n_rows * dim).map(|i| noise(i + seed)).collect();
        if with_bias {
            numbers.chunks_mut(dim).for_each(|row| row[dim - 1] = 30.0 * row[0] - 20.0);
        }
        VectorMatrix::from_f32(numbers, dim)
    }

    /// Codes, kept and not, find what products find; to the last bit what single looks find.
    fn check(
        queries: &VectorMatrix,
        all: &VectorMatrix,
        rows: Range<usize>,
        k: usize,
        excluded: Option<&Csr>,
    ) {
        let codes = Codes::new(all.as_rows(), rows.clone());
        let of = |codes| Searched { vectors: all, rows: rows.clone(), codes };
        let asked = Asked { queries, k, excluded };
        let products = of(None).by_products(&asked, &Silent).unwrap();
        let kept = of(Some(&codes)).by_codes(&asked, &Silent).unwrap();
        let made = of(None).by_codes(&asked, &Silent).unwrap();
        let ids: Vec<u32> = rows.clone().map(|row| row as u32).collect();
        assert_eq!((kept.n_rows(), made.n_rows()), (queries.n_rows(), queries.n_rows()));
        for query in 0..queries.n_rows() {
            assert_eq!(kept.row(query), made.row(query));
            let (found, scores) = products.row(query);
            let (coded, coded_scores) = kept.row(query);
            assert_eq!(coded.len(), found.len());
            let sorted = |scores: &[f32]| {
                let mut scores = scores.to_vec();
                scores.sort_unstable_by(f32::total_cmp);
                scores
            };
            for (a, b) in sorted(scores).into_iter().zip(sorted(coded_scores)) {
                assert!((a - b).abs() <= 1e-4 * (1.0 + a.abs()), "query {query}: {a} {b}");
            }
            if query % 37 == 0 {
                let spared = excluded.map_or(&[][..], |pairs| pairs.row(query));
                let others: Vec<u32> =
                    ids.iter().copied().filter(|id| !spared.contains(id)).collect();
                let mut one = ScoredCsr::new(all.n_rows() as u32);
                one.push_row(&mut of(None).rank(&others, &queries.row(query).to_vec(), k).finish());
                assert_eq!(kept.row(query), one.row(0), "query {query}");
            }
        }
    }

    #[test]
    fn codes_find_what_products_find() {
        let dim = 65;
        for with_bias in [false, true] {
            let all = vectors(20_000, dim, 0, with_bias);
            let queries = vectors(150, dim, 5, false);
            let excluded = Csr::from_pairs(150, 20_000, vec![(0, 5), (37, 700), (149, 19_999)]);
            check(&queries, &all.to_f16(), 0..20_000, 10, Some(&excluded));
            check(&queries, &all, 1_000..18_777, 100, None);
        }
    }

    #[test]
    fn many_windows_of_queries_and_more_wanted_than_there_are() {
        let all = vectors(40, 8, 0, false);
        check(&vectors(2_100, 8, 3, false), &all, 0..40, 3, None);
        check(&vectors(130, 8, 3, false), &all, 0..40, 10_000, None);
        check(&vectors(130, 8, 3, false), &all, 7..7, 5, None);
        check(&vectors(130, 8, 3, false), &all, 0..40, 0, None);
    }

    #[test]
    fn vectors_that_are_nearly_the_same_are_ranked_all_the_same() {
        // As an encoder makes them that has collapsed: codes cannot tell them apart.
        let dim = 16;
        let mut numbers = vec![0.25; 30_000 * dim];
        for (row, numbers) in numbers.chunks_mut(dim).enumerate() {
            numbers[row % dim] += 1e-5 * noise(row);
        }
        let all = VectorMatrix::from_f32(numbers, dim);
        let queries = vectors(130, dim, 1, false);
        let codes = Codes::new(all.as_rows(), 0..30_000);
        let searched = Searched { vectors: &all, rows: 0..30_000, codes: Some(&codes) };
        let asked = Asked { queries: &queries, k: 5, excluded: None };
        let found = searched.by_codes(&asked, &Silent).unwrap();
        assert_eq!(found, searched.by_products(&asked, &Silent).unwrap());
        assert_eq!(found.row(129).0.len(), 5);
    }

    #[test]
    fn a_search_can_be_cancelled() {
        struct Stop;
        impl Observer for Stop {
            fn event(&self, _: Event<'_>) {}

            fn cancelled(&self) -> bool {
                true
            }
        }
        let (queries, all) =
            (vectors(200, 4, 0, false), VectorMatrix::zeros(9, 4, VectorType::F16));
        let searched = Searched { vectors: &all, rows: 0..9, codes: None };
        let asked = Asked { queries: &queries, k: 1, excluded: None };
        assert!(matches!(searched.by_codes(&asked, &Stop), Err(Error::Cancelled)));
        assert!(matches!(searched.by_products(&asked, &Stop), Err(Error::Cancelled)));
    }

    #[test]
    fn products_find_what_a_look_at_each_vector_finds_to_the_last_bit() {
        let vectors = vectors(5_000, 67, 0, false).to_f16();
        let queries = self::vectors(300, 67, 1, false);
        let excluded = Csr::from_pairs(300, 5_000, vec![(0, 5), (299, 4_400)]);
        let searched = Searched { vectors: &vectors, rows: 100..4_900, codes: None };
        let asked = Asked { queries: &queries, k: 20, excluded: Some(&excluded) };
        let found = searched.by_products(&asked, &Silent).unwrap();
        for query in 0..300 {
            let is_asked = |id: &u32| !excluded.row(query).contains(id);
            let ids: Vec<u32> = (100..4_900).filter(is_asked).collect();
            let mut row = searched.rank(&ids, &queries.row(query).to_vec(), 20).finish();
            let mut expected = ScoredCsr::new(5_000);
            expected.push_row(&mut row);
            assert_eq!(found.row(query), expected.row(0), "query {query}");
        }
    }
}
