//! Calibration: how often is a score as high as this one right?
//!
//! Isotonic regression assumes nothing but that higher scores are right more often. Pairs are sorted
//! by score; wherever a lower score was right more often than a higher one, the two are pooled, until
//! no such neighbours are left (pool adjacent violators). Between pools the probability is a straight
//! line, as in scikit-learn's `IsotonicRegression(out_of_bounds="clip")`.
//!
//! It needs pairs that the scores were not learnt from: on others, scores look better than they are.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// The most pools kept. Each has a knot at both of its ends, or one if those are the same.
const MOST_POOLS: usize = 500;

/// A rising function from scores to probabilities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Isotonic {
    /// The scores at knots, ascending.
    scores: Vec<f32>, // (knots)
    /// The probabilities at knots, not descending.
    probabilities: Vec<f32>, // (knots)
}

/// Neighbouring scores that have one probability.
#[derive(Clone, Copy, Debug)]
struct Pool {
    lowest: f32,
    highest: f32,
    n_true: u64,
    n_pairs: u64,
}

impl Isotonic {
    /// The function that fits best to pairs of which it is known whether they are true, by squared
    /// error.
    ///
    /// Scores that are not a number are left out, and infinite ones count as the largest finite ones.
    /// Without any pairs the probability is 0. If there are more than 500 pools, which takes very many
    /// pairs, neighbours are pooled further that hardly differ for the number of their pairs, so that
    /// at most 1,000 knots are kept.
    ///
    /// # Panics
    /// If it is not known of exactly each score whether it is right.
    pub fn fit(scores: &[f32], is_true: &[bool]) -> Self {
        assert_eq!(scores.len(), is_true.len(), "every pair is true or not");
        let mut pairs: Vec<(f32, bool)> = scores
            .iter()
            .zip(is_true)
            .filter(|(score, _)| !score.is_nan())
            // Adding zero turns -0.0 into 0.0: they are equal.
            .map(|(&score, &is_true)| (score.clamp(f32::MIN, f32::MAX) + 0.0, is_true))
            .collect();
        pairs.par_sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let pools = thin(pool_violators(&pairs), MOST_POOLS);
        let mut fitted = Self { scores: Vec::new(), probabilities: Vec::new() };
        for pool in &pools {
            fitted.push(pool.lowest, pool.share());
            if pool.highest > pool.lowest {
                fitted.push(pool.highest, pool.share());
            }
        }
        if pools.is_empty() {
            fitted.push(0.0, 0.0);
        }
        fitted
    }

    fn push(&mut self, score: f32, probability: f64) {
        self.scores.push(score);
        self.probabilities.push(probability as f32);
    }

    /// The probability that a pair of this score is true: that of the nearest knot outside of the
    /// scores that were fitted, and of the lowest if the score is not a number.
    ///
    /// # Panics
    /// Never, if a function from a file has passed [`Isotonic::check`].
    pub fn probability(&self, score: f32) -> f32 {
        let knot = self.scores.partition_point(|&knot| knot <= score);
        if knot == 0 {
            return self.probabilities[0];
        }
        if knot == self.scores.len() {
            return self.probabilities[knot - 1];
        }
        let between = [self.scores[knot - 1], self.scores[knot], score].map(f64::from);
        let share = (between[2] - between[0]) / (between[1] - between[0]);
        let (low, high) = (self.probabilities[knot - 1], self.probabilities[knot]);
        let probability = f64::from(low) + share * (f64::from(high) - f64::from(low));
        // Rounding must not lead beyond the knot: the function would fall there.
        (probability as f32).clamp(low, high)
    }

    /// The scores and probabilities between which the function is straight.
    pub fn knots(&self) -> (&[f32], &[f32]) {
        (&self.scores, &self.probabilities)
    }

    /// Whether a function that was loaded can be used: as many scores as probabilities, the first
    /// ascending and finite, the second rising within 0 and 1. Else says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        let (n_scores, n_probabilities) = (self.scores.len(), self.probabilities.len());
        if n_scores == 0 || n_scores != n_probabilities {
            return Err(format!("{n_scores} scores and {n_probabilities} probabilities of knots"));
        }
        if !self.scores.iter().all(|score| score.is_finite()) {
            return Err("the scores of knots are not all finite".to_owned());
        }
        if !self.scores.is_sorted_by(|a, b| a < b) {
            return Err("the scores of knots do not ascend".to_owned());
        }
        if !self.probabilities.iter().all(|probability| (0.0..=1.0).contains(probability)) {
            return Err("the probabilities of knots are not all within 0 and 1".to_owned());
        }
        if !self.probabilities.is_sorted() {
            return Err("the probabilities of knots fall".to_owned());
        }
        Ok(())
    }
}

impl Pool {
    fn share(&self) -> f64 {
        self.n_true as f64 / self.n_pairs as f64
    }

    /// Whether this share is at least the other's, without rounding.
    fn is_right_as_often_as(&self, other: &Self) -> bool {
        u128::from(self.n_true) * u128::from(other.n_pairs)
            >= u128::from(other.n_true) * u128::from(self.n_pairs)
    }

    /// This pool and the next as one.
    fn joined(self, next: Self) -> Self {
        Self {
            lowest: self.lowest,
            highest: next.highest,
            n_true: self.n_true + next.n_true,
            n_pairs: self.n_pairs + next.n_pairs,
        }
    }

    /// How much the squared error grows if this pool and the next become one.
    fn cost_of_joining(&self, next: &Self) -> f64 {
        let (these, those) = (self.n_pairs as f64, next.n_pairs as f64);
        these * those / (these + those) * (self.share() - next.share()).powi(2)
    }
}

/// The pools of sorted pairs: equal scores together, then neighbours that violate the order.
fn pool_violators(pairs: &[(f32, bool)]) -> Vec<Pool> {
    let mut pools: Vec<Pool> = Vec::new();
    for ties in pairs.chunk_by(|a, b| a.0 == b.0) {
        let n_true = ties.iter().filter(|(_, is_true)| *is_true).count() as u64;
        let (lowest, highest) = (ties[0].0, ties[0].0);
        let mut pool = Pool { lowest, highest, n_true, n_pairs: ties.len() as u64 };
        while let Some(before) = pools.pop_if(|before| before.is_right_as_often_as(&pool)) {
            pool = before.joined(pool);
        }
        pools.push(pool);
    }
    pools
}

/// Joins neighbours that differ the least until there are at most `most`. A mean lies between what it
/// is the mean of, so the shares still ascend.
fn thin(mut pools: Vec<Pool>, most: usize) -> Vec<Pool> {
    let costs = pools.windows(2).map(|next| next[0].cost_of_joining(&next[1]));
    let mut bearable = costs.fold(f64::INFINITY, f64::min);
    while pools.len() > most {
        let mut thinner: Vec<Pool> = Vec::with_capacity(pools.len());
        for pool in pools {
            match thinner.pop_if(|before| before.cost_of_joining(&pool) <= bearable) {
                Some(before) => thinner.push(before.joined(pool)),
                None => thinner.push(pool),
            }
        }
        pools = thinner;
        bearable *= 1.25;
    }
    pools
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn neighbours_out_of_order_are_pooled() {
        let scores = [0.0, 1.0, 2.0, 3.0, 4.0, 4.0, f32::NAN, f32::INFINITY];
        let is_true = [false, true, false, true, true, false, true, true];
        let fitted = Isotonic::fit(&scores, &is_true);
        // The pools: 0 never, 1 and 2 half, 3 and both 4 two thirds, infinity always.
        let third = 2.0 / 3.0;
        let expected = [0.0, 0.5, 0.5, third, third, 1.0];
        assert_eq!(fitted.knots(), (&[0.0, 1.0, 2.0, 3.0, 4.0, f32::MAX][..], &expected[..]));
        let probabilities = [-9.0, 0.5, 1.5, 2.0, 2.5, f32::INFINITY, f32::NAN];
        let expected = [0.0, 0.25, 0.5, 0.5, (0.5 + third) / 2.0, 1.0, 0.0];
        assert_eq!(probabilities.map(|score| fitted.probability(score)), expected);
        assert_eq!(fitted.check(), Ok(()));
    }

    #[test]
    fn without_pairs_nothing_is_probable() {
        let fitted = Isotonic::fit(&[f32::NAN], &[true]);
        assert_eq!((fitted.probability(5.0), fitted.check()), (0.0, Ok(())));
    }

    #[test]
    fn too_many_pools_become_fewer_that_say_the_same() {
        // Of score n, n in 2,000 are true: every score is a pool of its own.
        let pools: Vec<Pool> = (0..2_000)
            .map(|n| Pool { lowest: n as f32, highest: n as f32, n_true: n, n_pairs: 2_000 })
            .collect();
        let thinned = thin(pools, MOST_POOLS);
        assert!((100..=MOST_POOLS).contains(&thinned.len()), "{} pools", thinned.len());
        assert!(thinned.is_sorted_by(|a, b| a.share() < b.share() && a.highest < b.lowest));
        assert_eq!(thinned.iter().map(|pool| pool.n_pairs).sum::<u64>(), 4_000_000);
        for pool in thinned {
            let middle = f64::from(pool.lowest + pool.highest) / 2.0;
            assert!((pool.share() - middle / 2_000.0).abs() < 1e-9);
            assert!(pool.highest - pool.lowest < 20.0, "{pool:?}");
        }
    }

    #[test]
    fn damaged_functions_are_refused() {
        let function = |scores: &[f32], probabilities: &[f32]| Isotonic {
            scores: scores.to_vec(),
            probabilities: probabilities.to_vec(),
        };
        assert_eq!(function(&[0.0, 1.0], &[0.0, 1.0]).check(), Ok(()));
        let cases = [
            (function(&[], &[]), "0 scores and 0"),
            (function(&[0.0, 1.0], &[0.5]), "2 scores and 1"),
            (function(&[0.0, f32::NAN], &[0.0, 1.0]), "not all finite"),
            (function(&[1.0, 1.0], &[0.0, 1.0]), "do not ascend"),
            (function(&[0.0, 1.0], &[0.0, 1.1]), "within 0 and 1"),
            (function(&[0.0, 1.0], &[0.0, f32::NAN]), "within 0 and 1"),
            (function(&[0.0, 1.0], &[0.5, 0.4]), "fall"),
        ];
        for (function, expected) in cases {
            let problem = function.check().unwrap_err();
            assert!(problem.contains(expected), "{problem:?} should say {expected:?}");
        }
    }

    /// Scores from a few values, so that ties are common, and any other.
    fn scores() -> impl Strategy<Value = f32> {
        prop_oneof![(-20i8..20).prop_map(|n| f32::from(n) / 8.0), any::<f32>()]
    }

    proptest! {
        #[test]
        fn higher_scores_are_never_less_probable(
            pairs in prop::collection::vec((scores(), any::<bool>()), 0..200),
            mut asked in prop::collection::vec(scores(), 2..50),
        ) {
            let (scores, is_true): (Vec<f32>, Vec<bool>) = pairs.into_iter().unzip();
            let fitted = Isotonic::fit(&scores, &is_true);
            prop_assert_eq!(fitted.check(), Ok(()));
            asked.extend(&scores);
            asked.retain(|score| !score.is_nan());
            asked.sort_unstable_by(f32::total_cmp);
            let found: Vec<f32> = asked.iter().map(|&score| fitted.probability(score)).collect();
            prop_assert!(found.is_sorted() && found.iter().all(|p| (0.0..=1.0).contains(p)));
            // The fitted probabilities of all pairs add up to the true ones.
            let known = scores.iter().zip(&is_true).filter(|(score, _)| !score.is_nan());
            let (sum, n_true) = known.fold((0.0, 0.0), |(sum, n_true), (&score, &is_true)| {
                (sum + f64::from(fitted.probability(score)), n_true + f64::from(u8::from(is_true)))
            });
            prop_assert!((sum - n_true).abs() < 1e-3, "{sum} is not {n_true}");
        }
    }
}
