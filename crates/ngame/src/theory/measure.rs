//! From counts to shares, intervals and bounds.

use rand::seq::index;
use serde::Serialize;

use super::constants::{DataConstants, mean_and_deviation};
use super::counting::{Counting, Counts};
use crate::batching::Clusters;
use crate::data::Csr;
use crate::encoder::VectorMatrix;
use crate::progress::Observer;
use crate::random::generator;
use crate::{Error, Result};

/// How many standard errors an interval of 95 % reaches to each side.
const SIDE: f64 = 1.96;

/// What a sample is drawn for.
const SAMPLE: u64 = 31;

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub struct TheoryTask<'a> {
    /// The points' vectors: (points, dim).
    pub points: &'a VectorMatrix,
    /// The labels' vectors: (labels, dim).
    pub labels: &'a VectorMatrix,
    /// Which labels each point has.
    pub truth: &'a Csr,
    /// Pairs that are neither true nor negative, such as a point and the label that is itself.
    pub not_negative: Option<&'a Csr>,
    /// The clusters of the points.
    pub clusters: &'a Clusters,
}

/// How it is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct TheoryOptions {
    /// The radii r, each above 0.
    pub radii: Vec<f32>,
    /// How many points to look at; all of them unless fewer are asked for.
    pub sample: Option<usize>,
    /// Where the sample comes from.
    pub seed: u64,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Theory {
    /// What the data says.
    #[serde(flatten)]
    pub constants: DataConstants,
    /// Clusters.
    pub n_clusters: usize,
    /// Points that were looked at.
    pub n_looked_at: usize,
    /// Whether these are all.
    pub exact: bool,
    /// What was found at every radius, in the order they were given.
    pub radii: Vec<AtRadius>,
}

/// What was found at one radius.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AtRadius {
    /// r.
    pub radius: f32,
    /// ε₁: the share of true pairs that are more than r apart. Always exact.
    pub epsilon_1: f64,
    /// ε₂: the share of pairs of points at most 2r apart and in different clusters.
    pub epsilon_2: Estimate,
    /// c₁ ε₁ + c₂ ε₂.
    pub bound: Estimate,
    /// The same bound before the proof puts means, deviations and q_min in the place of its sums: every
    /// true pair that is far apart counts (N − q)/q of its label, and every pair of close points in
    /// different clusters the sum of 1/q over the labels of one of them.
    pub sharp: Estimate,
    /// The share of all pairs of a point and a label that are hard negatives: not true, and at most r
    /// apart.
    pub hard: Estimate,
    /// The share of all pairs that are hard negatives which the point's cluster does not show it.
    pub missed: Estimate,
    /// The share of hard negatives that are missed; 0 if there are none.
    pub missed_of_hard: f64,
    /// Whether both bounds hold: no more is missed than they allow, wherever in their intervals they
    /// may be.
    pub holds: bool,
}

/// A share, and where it lies with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The share that was found.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Measures what the theorem is about at every radius.
///
/// # Panics
/// If the parts of the task do not fit together.
pub fn measure(
    task: &TheoryTask<'_>,
    options: &TheoryOptions,
    observer: &dyn Observer,
) -> Result<Theory> {
    let TheoryTask { points, labels, truth, clusters, .. } = *task;
    assert_eq!((truth.n_rows(), truth.n_columns() as usize), (points.n_rows(), labels.n_rows()));
    assert_eq!(clusters.n_points(), points.n_rows(), "every point has a cluster");
    if let Some(radius) = options.radii.iter().find(|radius| !(**radius > 0.0 && **radius <= 2.0)) {
        return Err(Error::Option {
            option: "radius",
            expected: "a distance of unit vectors: above 0, at most 2".to_owned(),
            found: radius.to_string(),
        });
    }
    let constants = DataConstants::of(truth).ok_or_else(|| Error::Option {
        option: "data",
        expected: "points that have labels".to_owned(),
        found: "none".to_owned(),
    })?;
    let n_points = points.n_rows();
    let looked_at = sample(n_points, options);
    let counting = Counting::new(task, &options.radii);
    let counts = counting.count(&looked_at, observer)?;
    let far = counting.far_true_pairs();
    let n_pairs = truth.n_pairs() as f64;
    let at_radius = |at: usize| {
        let estimate = |count: fn(&Counts) -> f64, of: usize| {
            let shares: Vec<f64> = counts.iter().map(|row| count(&row[at]) / of as f64).collect();
            Estimate::of(&shares, n_points)
        };
        let (n_far, far_weight) = far[at];
        let epsilon_1 = n_far as f64 / n_pairs;
        let epsilon_2 = estimate(|counts| counts.apart as f64, n_points);
        let bound = epsilon_2.map(|value| constants.c_1 * epsilon_1 + constants.c_2 * value);
        let of_pairs = n_points as f64 * constants.n_labels as f64;
        let apart = estimate(|counts| counts.apart_weight, constants.n_labels);
        let sharp = apart.map(|value| far_weight / of_pairs + value);
        let hard = estimate(|counts| counts.hard as f64, constants.n_labels);
        let missed = estimate(|counts| counts.missed as f64, constants.n_labels);
        AtRadius {
            radius: options.radii[at],
            epsilon_1,
            epsilon_2,
            bound,
            sharp,
            hard,
            missed,
            missed_of_hard: if hard.value > 0.0 { missed.value / hard.value } else { 0.0 },
            holds: missed.high <= bound.low && missed.high <= sharp.low,
        }
    };
    Ok(Theory {
        constants,
        n_clusters: clusters.n_clusters(),
        n_looked_at: looked_at.len(),
        exact: looked_at.len() == n_points,
        radii: (0..options.radii.len()).map(at_radius).collect(),
    })
}

/// The points to look at, ascending.
fn sample(n_points: usize, options: &TheoryOptions) -> Vec<u32> {
    match options.sample {
        Some(n) if n < n_points => {
            let mut random = generator(options.seed, &[SAMPLE]);
            let drawn = index::sample(&mut random, n_points, n.max(1));
            let mut drawn: Vec<u32> = drawn.iter().map(|point| point as u32).collect();
            drawn.sort_unstable();
            drawn
        }
        _ => (0..n_points as u32).collect(),
    }
}

impl Estimate {
    /// The mean of shares that were found for some of `n_all` points.
    fn of(shares: &[f64], n_all: usize) -> Self {
        let (value, deviation) = mean_and_deviation(shares);
        let n = shares.len() as f64;
        // What is left to chance is the part that was not looked at.
        let unseen = (1.0 - n / n_all.max(1) as f64).max(0.0);
        if value == 0.0 && unseen > 0.0 {
            // What no point of a sample has, up to three in its size may have (the rule of three).
            return Self { value, low: 0.0, high: (3.0 / n).min(1.0) };
        }
        let side = SIDE * deviation * (unseen / (n - 1.0).max(1.0)).sqrt();
        Self { value, low: (value - side).max(0.0), high: value + side }
    }

    fn map(self, of: impl Fn(f64) -> f64) -> Self {
        Self { value: of(self.value), low: of(self.low), high: of(self.high) }
    }
}
