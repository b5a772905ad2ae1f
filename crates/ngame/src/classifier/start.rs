//! Where classifiers start: how the cosine of a point and a label becomes the logit of their being a
//! pair, before anything is trained.
//!
//! Encoders differ in what a cosine means: unrelated texts are at 0 for one and at 0.3 for another. Were
//! logits taken the same way of all, those of the second would start far too high; what training has
//! not pushed down by its end, above all labels that have no points, would stand before all others.
//! So two numbers are fitted first, by the logistic regression
//!
//! ```text
//! logit(point, label) = scale · cosine + offset + ln(share of points that have the label)
//! ```
//!
//! on pairs that are true and on others drawn at random, weighted to stand for all others.

use rand::RngExt;

use super::task::Task;
use crate::data::Csr;
use crate::encoder::VectorMatrix;
use crate::logistic::{Curve, lowest, sigmoid};
use crate::random::generator;

/// What pairs are drawn for.
const START: u64 = 14;

/// The most points that are looked at, and the labels drawn for each.
const MOST_POINTS: usize = 4_096;
const DRAWN: usize = 32;

/// How steep logits may be: below, a cosine says nothing; above, training would begin at certainty.
const SCALES: std::ops::RangeInclusive<f64> = 5.0..=40.0;

/// What turns cosines into logits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogitStart {
    /// What inner products are multiplied by: they are cosines at first.
    pub scale: f32,
    /// What every label's bias has beside the logarithm of its share.
    pub offset: f32,
}

impl Default for LogitStart {
    fn default() -> Self {
        Self { scale: 20.0, offset: -5.0 }
    }
}

/// A pair as the regression sees it.
#[derive(Clone, Copy, Debug)]
struct Pair {
    cosine: f64,
    prior: f64,
    is_true: bool,
    weight: f64,
}

impl Pair {
    fn odds(&self, scale: f64, offset: f64) -> f64 {
        scale * self.cosine + offset + self.prior
    }
}

impl LogitStart {
    /// What fits these points and labels best; the default where there is too little to fit.
    ///
    /// # Panics
    /// If numbers of points or labels or lengths of vectors do not agree.
    pub fn fit(
        points: &VectorMatrix,
        truth: &Csr,
        not_negative: Option<&Csr>,
        labels: &VectorMatrix,
        seed: u64,
    ) -> Self {
        let task = Task { points, truth, not_negative };
        let pairs = draw(&task, labels, seed);
        let n_true = pairs.iter().filter(|pair| pair.is_true).count();
        if n_true < 10 || n_true == pairs.len() {
            return Self::default();
        }
        regress(&pairs)
    }

    /// The bias of a label with so many of the points.
    pub(super) fn bias(&self, count: u32, n_points: usize) -> f32 {
        prior(count, n_points) as f32 + self.offset
    }

    /// The biases of all labels.
    pub(super) fn biases(&self, counts: &[u32], n_points: usize) -> Vec<f32> {
        counts.iter().map(|&count| self.bias(count, n_points)).collect()
    }
}

/// The logarithm of the share of points that have a label, a little more than none for any.
fn prior(count: u32, n_points: usize) -> f64 {
    ((f64::from(count) + 0.1) / (n_points as f64 + 1.0)).ln()
}

fn draw(task: &Task<'_>, labels: &VectorMatrix, seed: u64) -> Vec<Pair> {
    let counts = task.truth.column_counts();
    let pool: Vec<u32> =
        (0..counts.len() as u32).filter(|&label| counts[label as usize] > 0).collect();
    let n_points = task.points.n_rows();
    let n_drawn = n_points.min(MOST_POINTS);
    let mut pairs = Vec::new();
    if pool.is_empty() {
        return pairs;
    }
    let mut random = generator(seed, &[START]);
    for at in 0..n_drawn {
        let point = at * n_points / n_drawn;
        let vector = task.points.row(point).to_vec();
        let own = task.truth.row(point);
        let pair = |label: u32, is_true: bool, weight: f64| Pair {
            cosine: f64::from(ngame_nn::dot(&vector, &labels.row(label as usize).to_vec())),
            prior: prior(counts[label as usize], n_points),
            is_true,
            weight,
        };
        pairs.extend(own.iter().map(|&label| pair(label, true, 1.0)));
        let weight = (pool.len() - own.len()) as f64 / DRAWN as f64;
        for _ in 0..DRAWN {
            let label = pool[random.random_range(0..pool.len())];
            if !own.contains(&label) && !task.ignored(point as u32).contains(&label) {
                pairs.push(pair(label, false, weight));
            }
        }
    }
    pairs
}

/// The two numbers with which the pairs are likeliest, the scale within its bounds.
fn regress(pairs: &[Pair]) -> LogitStart {
    let curve_at = |at: &[f64]| {
        let mut curve = Curve::flat(2);
        for pair in pairs {
            let odds = pair.odds(at[0], at[1]);
            curve.add_case(odds, &[pair.cosine, 1.0], pair.is_true, pair.weight);
        }
        curve
    };
    let LogitStart { scale, offset } = LogitStart::default();
    let at = lowest(vec![f64::from(scale), f64::from(offset)], curve_at);
    let scale = at[0].clamp(*SCALES.start(), *SCALES.end());
    let offset = if scale == at[0] { at[1] } else { offset_at(pairs, scale) };
    LogitStart { scale: scale as f32, offset: offset as f32 }
}

/// The offset with which as many pairs are expected to be true as are, at a given scale.
fn offset_at(pairs: &[Pair], scale: f64) -> f64 {
    let too_many = |offset: f64| {
        let excess = |pair: &Pair| {
            let chance = sigmoid(pair.odds(scale, offset));
            pair.weight * (chance - f64::from(u8::from(pair.is_true)))
        };
        pairs.iter().map(excess).sum::<f64>() > 0.0
    };
    let (mut low, mut high) = (-100.0, 100.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if too_many(middle) { high = middle } else { low = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier::toy::circle;

    /// Pairs of which exactly the share is true that these numbers say, at cosines from -1 to 1.
    fn pairs_of(scale: f64, offset: f64) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for at in 0..=200 {
            let cosine = f64::from(at - 100) / 100.0;
            let prior = -2.0 - f64::from(at % 3);
            let chance = 1.0 / (1.0 + (-(scale * cosine + offset + prior)).exp());
            pairs.push(Pair { cosine, prior, is_true: true, weight: chance });
            pairs.push(Pair { cosine, prior, is_true: false, weight: 1.0 - chance });
        }
        pairs
    }

    #[test]
    fn the_numbers_that_pairs_were_made_with_are_found() {
        for (scale, offset) in [(8.0, 1.0), (20.0, -5.0), (35.0, -12.0)] {
            let found = regress(&pairs_of(scale, offset));
            assert!((f64::from(found.scale) - scale).abs() < 1e-3, "{found:?}");
            assert!((f64::from(found.offset) - offset).abs() < 1e-3, "{found:?}");
        }
    }

    #[test]
    fn where_the_scale_is_held_back_the_expected_number_of_true_pairs_stays_right() {
        for scale in [1.0, 90.0] {
            let pairs = pairs_of(scale, -3.0);
            let found = regress(&pairs);
            assert!(SCALES.contains(&f64::from(found.scale)));
            let chance = |pair: &Pair| {
                let logit = f64::from(found.scale) * pair.cosine + f64::from(found.offset);
                pair.weight / (1.0 + (-(logit + pair.prior)).exp())
            };
            let expected: f64 = pairs.iter().map(chance).sum();
            let real: f64 = pairs.iter().filter(|pair| pair.is_true).map(|pair| pair.weight).sum();
            assert!((expected - real).abs() < 1e-3 * real, "{expected} and {real}");
        }
    }

    #[test]
    fn cosines_that_are_all_higher_start_at_the_same_logits() {
        // The same points, but every vector has a part in common with every other.
        let toy = circle(300, 12);
        let lifted = |matrix: &VectorMatrix| {
            let numbers = (0..matrix.n_rows()).flat_map(|row| {
                let row = matrix.row(row).to_vec();
                [0.8 * row[0], 0.8 * row[1], 0.6]
            });
            VectorMatrix::from_f32(numbers.collect(), 3)
        };
        let fit = |points: &VectorMatrix, labels: &VectorMatrix| {
            LogitStart::fit(points, &toy.truth, None, labels, 1)
        };
        let plain = fit(&toy.points, &toy.labels);
        let high = fit(&lifted(&toy.points), &lifted(&toy.labels));
        // cosine' = 0.64 cosine + 0.36
        assert!((high.scale - plain.scale / 0.64).abs() < 0.05 * high.scale, "{plain:?} {high:?}");
        let middle = high.offset + 0.36 * high.scale;
        assert!((middle - plain.offset).abs() < 0.3, "{plain:?} {high:?}");
    }

    #[test]
    fn with_too_little_to_fit_it_is_the_default() {
        let toy = circle(300, 12);
        let few = Csr::from_pairs(300, 12, vec![(0, 1), (5, 2)]);
        let start = LogitStart::fit(&toy.points, &few, None, &toy.labels, 1);
        assert_eq!(start, LogitStart::default());
        let none = Csr::empty(300, 12);
        let start = LogitStart::fit(&toy.points, &none, None, &toy.labels, 1);
        assert_eq!(start, LogitStart::default());
    }
}
