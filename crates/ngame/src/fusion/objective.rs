//! What boosted trees are to be good at, as derivatives by the scores of pairs.
//!
//! Log-loss asks of every pair for itself how likely it is, so its scores can be read as odds.
//! Ranking compares only the labels of one point with one another, and minds the first ranks most
//! (LambdaMART: Burges, "From RankNet to LambdaRank to LambdaMART", 2010).

use rayon::prelude::*;

use super::binned::n_rows;
use super::histogram::Member;
use crate::logistic::{sigmoid, softplus};

/// Pairs or queries handled by one thread at a time. Fixed, as sums depend on how they are cut.
const CHUNK: usize = 8_192;

/// How near a share of true pairs may come to 0 and 1 before its odds are too long.
const LEAST_SHARE: f64 = 1e-12;

/// Pairs of a point and a label whose truth is known.
#[derive(Clone, Copy, Debug)]
pub struct Pairs<'a> {
    /// The scores that describe each pair, row by row; not a number where there is none.
    pub features: &'a [f32], // (pairs, features)
    /// How many features a pair has.
    pub n_features: usize,
    /// Whether the label is right.
    pub is_true: &'a [bool], // (pairs)
    /// How much each pair counts; 1 if not given. In a ranking, the weight of a true pair is what it
    /// gains, and those of the others do not matter.
    pub weights: Option<&'a [f32]>, // (pairs)
    /// Where the pairs of each point begin, and where the last one's end. Only ranking needs it.
    pub offsets: Option<&'a [usize]>, // (points + 1)
}

impl Pairs<'_> {
    /// How many pairs there are.
    pub fn n_pairs(&self) -> usize {
        self.is_true.len()
    }

    /// # Panics
    /// If the parts do not fit together or the objective misses one.
    pub(super) fn assert_usable(&self, objective: Objective) {
        let n_pairs = n_rows(self.features, self.n_features);
        assert_eq!(self.is_true.len(), n_pairs, "every pair is true or not");
        if let Some(weights) = self.weights {
            assert_eq!(weights.len(), n_pairs, "every pair has a weight");
            let is_weight = |weight: &f32| *weight >= 0.0 && weight.is_finite();
            assert!(weights.iter().all(is_weight), "weights are finite and not negative");
        }
        if let Some(offsets) = self.offsets {
            assert!(
                offsets.first() == Some(&0) && offsets.is_sorted(),
                "offsets begin at 0, ascend"
            );
            assert_eq!(offsets.last(), Some(&n_pairs), "the last offset is the number of pairs");
        }
        let needs_offsets = matches!(objective, Objective::PairwiseRanking { .. });
        assert!(
            !needs_offsets || self.offsets.is_some(),
            "ranking needs to know which pairs compete"
        );
    }

    pub(super) fn weight(&self, pair: usize) -> f64 {
        self.weights.map_or(1.0, |weights| f64::from(weights[pair]))
    }
}

/// What trees are boosted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// The mean log-loss of pairs: a score is the logarithm of the odds that the pair is true.
    Logistic,
    /// True labels above false labels of the same point: the logistic loss of every difference of
    /// scores, weighted by how much nDCG@k would change if the two changed places. Only differences
    /// of scores mean something. Before the first tree, pairs rank in the order they are given in.
    PairwiseRanking {
        /// How many ranks matter.
        k: usize,
    },
}

impl Objective {
    /// The score of all pairs before the first tree.
    pub(super) fn base(self, pairs: &Pairs<'_>) -> f32 {
        if self != Self::Logistic {
            return 0.0;
        }
        let (mut right, mut all) = (0.0, 0.0);
        for (pair, &is_true) in pairs.is_true.iter().enumerate() {
            let weight = pairs.weight(pair);
            all += weight;
            right += if is_true { weight } else { 0.0 };
        }
        let share = if all > 0.0 { right / all } else { 0.5 };
        let share = share.clamp(LEAST_SHARE, 1.0 - LEAST_SHARE);
        (share / (1.0 - share)).ln() as f32
    }

    /// Writes the derivatives at the present scores, for all pairs in their order.
    pub(super) fn derive(self, pairs: &Pairs<'_>, scores: &[f64], members: &mut [Member]) {
        match self {
            Self::Logistic => {
                members.par_iter_mut().enumerate().with_min_len(CHUNK).for_each(
                    |(pair, member)| {
                        let (probability, weight) = (sigmoid(scores[pair]), pairs.weight(pair));
                        let target = f64::from(u8::from(pairs.is_true[pair]));
                        *member = Member {
                            row: pair as u32,
                            gradient: (weight * (probability - target)) as f32,
                            hessian: (weight * probability * (1.0 - probability)) as f32,
                        };
                    },
                );
            }
            Self::PairwiseRanking { k } => {
                let discounts = discounts(k);
                let mut of_points = Vec::new();
                let mut rest = members;
                for range in points(pairs) {
                    let (of_point, behind) = rest.split_at_mut(range.len());
                    of_points.push((range.start, of_point));
                    rest = behind;
                }
                of_points.into_par_iter().with_min_len(16).for_each(|(begin, members)| {
                    rank_gradients(pairs, begin, scores, &discounts, members);
                });
            }
        }
    }

    /// How wrong scores are: the mean log-loss, or what the mean nDCG@k of points with a true pair
    /// lacks to 1.
    pub(super) fn loss(self, pairs: &Pairs<'_>, scores: &[f64]) -> f64 {
        match self {
            Self::Logistic => weighted_mean((0..pairs.n_pairs()).into_par_iter(), |pair| {
                let against = if pairs.is_true[pair] { -scores[pair] } else { scores[pair] };
                (pairs.weight(pair) * softplus(against), pairs.weight(pair))
            }),
            Self::PairwiseRanking { k } => {
                let discounts = discounts(k);
                let points: Vec<_> = points(pairs).collect();
                weighted_mean(points.into_par_iter(), |range| {
                    let ideal = ideal_gain(pairs, range.clone(), &discounts);
                    let ranked = ranking(scores, range);
                    let gains = ranked.iter().zip(&discounts).map(|(&pair, discount)| {
                        if pairs.is_true[pair] { pairs.weight(pair) * discount } else { 0.0 }
                    });
                    if ideal > 0.0 { (1.0 - gains.sum::<f64>() / ideal, 1.0) } else { (0.0, 0.0) }
                })
            }
        }
    }
}

/// The ranges of pairs that belong together.
fn points<'a>(pairs: &Pairs<'a>) -> impl Iterator<Item = std::ops::Range<usize>> + use<'a> {
    let offsets = pairs.offsets.unwrap_or_default();
    offsets.windows(2).map(|ends| ends[0]..ends[1])
}

/// The pairs of a point, the highest score first, of equal scores the first.
fn ranking(scores: &[f64], range: std::ops::Range<usize>) -> Vec<usize> {
    let mut ranked: Vec<usize> = range.collect();
    ranked.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    ranked
}

/// What a true pair is worth at each of the first `k` ranks: 1/log₂(rank + 1).
fn discounts(k: usize) -> Vec<f64> {
    // No point has as many candidates as this, and a settings file may say anything.
    (1..=k.min(1 << 16)).map(|rank| 1.0 / ((rank + 1) as f64).log2()).collect()
}

/// The discounted gain of the best order of a point's pairs; 0 if none is true.
fn ideal_gain(pairs: &Pairs<'_>, range: std::ops::Range<usize>, discounts: &[f64]) -> f64 {
    let is_true = |pair: &usize| pairs.is_true[*pair];
    let mut gains: Vec<f64> = range.filter(is_true).map(|pair| pairs.weight(pair)).collect();
    gains.sort_by(|a, b| b.total_cmp(a));
    gains.iter().zip(discounts).map(|(gain, discount)| gain * discount).sum()
}

/// Writes the derivatives of one point's pairs, which begin at `begin`.
fn rank_gradients(
    pairs: &Pairs<'_>,
    begin: usize,
    scores: &[f64],
    discounts: &[f64],
    members: &mut [Member],
) {
    let range = begin..begin + members.len();
    let mut derivatives = vec![(0.0, 0.0); members.len()];
    let ideal = ideal_gain(pairs, range.clone(), discounts);
    if ideal > 0.0 {
        let ranked = ranking(scores, range);
        let discount = |rank: usize| discounts.get(rank).copied().unwrap_or(0.0);
        for (rank, &good) in ranked.iter().enumerate().filter(|&(_, &pair)| pairs.is_true[pair]) {
            // Where the true pair's rank does not count, the other's has to.
            let n_others = if rank < discounts.len() { ranked.len() } else { discounts.len() };
            for (other_rank, &bad) in ranked.iter().enumerate().take(n_others) {
                if pairs.is_true[bad] {
                    continue;
                }
                let change = (discount(rank) - discount(other_rank)).abs() / ideal;
                let weight = pairs.weight(good) * change;
                let wrong = sigmoid(scores[bad] - scores[good]);
                let (push, bend) = (weight * wrong, weight * wrong * (1.0 - wrong));
                derivatives[good - begin].0 -= push;
                derivatives[good - begin].1 += bend;
                derivatives[bad - begin].0 += push;
                derivatives[bad - begin].1 += bend;
            }
        }
    }
    for (pair, (member, (gradient, hessian))) in members.iter_mut().zip(derivatives).enumerate() {
        let row = (begin + pair) as u32;
        *member = Member { row, gradient: gradient as f32, hessian: hessian as f32 };
    }
}

/// The sum of the first numbers over the sum of the second, the same on any number of threads.
fn weighted_mean<T: Send>(
    items: impl IndexedParallelIterator<Item = T>,
    parts: impl Fn(T) -> (f64, f64) + Sync,
) -> f64 {
    let add = |(a, b): (f64, f64), (c, d): (f64, f64)| (a + c, b + d);
    let chunks: Vec<(f64, f64)> = items
        .chunks(CHUNK)
        .map(|chunk| chunk.into_iter().map(&parts).fold((0.0, 0.0), add))
        .collect();
    let (sum, weight) = chunks.into_iter().fold((0.0, 0.0), add);
    if weight > 0.0 { sum / weight } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUTH: [bool; 7] = [false, true, false, true, false, true, true];
    const SCORES: [f64; 7] = [0.3, -0.2, 0.9, 0.1, 0.4, 1.5, -3.0];
    const WEIGHTS: [f32; 7] = [1.0, 2.0, 0.5, 1.0, 3.0, 0.25, 1.0];

    fn pairs<'a>(weights: Option<&'a [f32]>, offsets: &'a [usize]) -> Pairs<'a> {
        Pairs {
            features: &[0.0; 7],
            n_features: 1,
            is_true: &TRUTH,
            weights,
            offsets: Some(offsets),
        }
    }

    fn derive(objective: Objective, pairs: &Pairs<'_>, scores: &[f64]) -> Vec<Member> {
        let mut members = vec![Member { row: 9, gradient: 9.0, hessian: 9.0 }; scores.len()];
        objective.derive(pairs, scores, &mut members);
        assert!(members.iter().map(|member| member.row as usize).eq(0..scores.len()));
        members
    }

    #[test]
    fn log_loss_has_the_derivatives_of_finite_differences() {
        let pairs = pairs(Some(&WEIGHTS), &[0, 7]);
        let total: f64 = WEIGHTS.iter().map(|&weight| f64::from(weight)).sum();
        let loss = |scores: &[f64]| Objective::Logistic.loss(&pairs, scores) * total;
        let members = derive(Objective::Logistic, &pairs, &SCORES);
        for (pair, member) in members.iter().enumerate() {
            let moved = |by: f64| {
                let mut scores = SCORES;
                scores[pair] += by;
                loss(&scores)
            };
            let (up, here, down) = (moved(1e-4), moved(0.0), moved(-1e-4));
            assert!(((up - down) / 2e-4 - f64::from(member.gradient)).abs() < 1e-6);
            assert!(((up - 2.0 * here + down) / 1e-8 - f64::from(member.hessian)).abs() < 1e-5);
        }
    }

    #[test]
    fn ranking_has_the_derivatives_of_its_weighted_couples() {
        // Points: pairs 0 to 4, none, 5 and 6. The last has no false pair, so nothing to learn.
        let (offsets, k) = ([0, 5, 5, 7], 2);
        let pairs = pairs(Some(&WEIGHTS), &offsets);
        let members = derive(Objective::PairwiseRanking { k }, &pairs, &SCORES);
        // By score: 2, 4, 0, 3, 1. Only ranks 1 and 2 count: 1 and 1/log2(3). Best: weights 2, 1.
        let second = 1.0 / 3f64.log2();
        let worth = [0.0, 0.0, 1.0, 0.0, second];
        let ideal = 2.0 + second;
        let loss = |scores: &[f64]| -> f64 {
            let mut loss = 0.0;
            for good in [1, 3] {
                for bad in [0, 2, 4] {
                    let change = (worth[good] - worth[bad]) / ideal;
                    let weight = f64::from(WEIGHTS[good]) * change.abs();
                    loss += weight * softplus(scores[bad] - scores[good]);
                }
            }
            loss
        };
        for pair in 0..5 {
            let moved = |by: f64| {
                let mut scores = SCORES;
                scores[pair] += by;
                loss(&scores)
            };
            let (up, here, down) = (moved(1e-4), moved(0.0), moved(-1e-4));
            let (gradient, hessian) = (members[pair].gradient, members[pair].hessian);
            assert!(((up - down) / 2e-4 - f64::from(gradient)).abs() < 1e-6, "pair {pair}");
            assert!(((up - 2.0 * here + down) / 1e-8 - f64::from(hessian)).abs() < 1e-5);
        }
        assert!(members[5..].iter().all(|member| (member.gradient, member.hessian) == (0.0, 0.0)));
    }

    #[test]
    fn a_ranking_that_counts_lacks_nothing() {
        let objective = Objective::PairwiseRanking { k: 3 };
        let pairs = pairs(None, &[0, 5, 5, 7]);
        let best = [0.0, 2.0, 0.0, 1.0, -1.0, 0.0, 0.0];
        assert!(objective.loss(&pairs, &best).abs() < 1e-12);
        // The true labels of the first point at ranks 2 and 3; the second point is right anyway.
        let (second, third) = (1.0 / 3f64.log2(), 0.5);
        let lacks = 1.0 - (second + third) / (1.0 + second);
        let worse = [0.0, 2.0, 3.0, 1.0, -1.0, 0.0, 0.0];
        assert!((objective.loss(&pairs, &worse) - lacks / 2.0).abs() < 1e-12);
    }

    #[test]
    fn the_base_is_the_odds_of_all_pairs() {
        let weighted = pairs(Some(&WEIGHTS), &[0, 7]); // True: 4.25, false: 4.5.
        assert!((Objective::Logistic.base(&weighted) - (4.25f32 / 4.5).ln()).abs() < 1e-6);
        assert_eq!(Objective::PairwiseRanking { k: 5 }.base(&weighted), 0.0);
        let all_true = Pairs { is_true: &[true; 7], ..weighted };
        assert!(Objective::Logistic.base(&all_true).is_finite());
    }
}
