//! Counting what the theorem is about.

use ngame_nn::{Matrix, multiply};
use rand::seq::index;
use rayon::prelude::*;
use serde::Serialize;

use super::constants::{DataConstants, mean_and_deviation};
use crate::batching::Clusters;
use crate::data::Csr;
use crate::encoder::VectorMatrix;
use crate::progress::{Event, Observer};
use crate::random::generator;
use crate::{Error, Result};

/// Points that are looked at together.
const POINTS: usize = 128;

/// Vectors that they are compared with at once.
const VECTORS: usize = 2_048;

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

/// What one point adds at one radius.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    /// Points within 2r in other clusters.
    apart: u64,
    /// The sum over these of 1/q of their labels.
    apart_weight: f64,
    /// Labels within r that it does not have.
    hard: u64,
    /// Those of them that no point of its cluster has.
    missed: u64,
}

/// What a label is to a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A negative that no point of the cluster has.
    Hidden,
    /// A negative that the cluster shows.
    Shown,
    /// True, not to be counted, or a label that no point has.
    NoNegative,
}

struct Counting<'a> {
    task: &'a TheoryTask<'a>,
    /// Squared radii.
    squares: Vec<f64>,
    cluster_of: Vec<u32>,   // (points)
    point_norms: Vec<f64>,  // (points): squared
    label_norms: Vec<f64>,  // (labels): squared
    label_counts: Vec<u32>, // (labels): q
    /// By point, the sum of 1/q over its labels.
    point_weights: Vec<f64>, // (points)
}

impl<'a> Counting<'a> {
    fn new(task: &'a TheoryTask<'a>, radii: &[f32]) -> Self {
        let mut cluster_of = vec![0; task.points.n_rows()];
        for (cluster, points) in task.clusters.iter().enumerate() {
            points.iter().for_each(|&point| cluster_of[point as usize] = cluster as u32);
        }
        let label_counts = task.truth.column_counts();
        let weight = |row: &[u32]| -> f64 {
            row.iter().map(|&label| 1.0 / f64::from(label_counts[label as usize])).sum()
        };
        Self {
            task,
            squares: radii.iter().map(|&radius| f64::from(radius) * f64::from(radius)).collect(),
            cluster_of,
            point_norms: squared_norms(task.points),
            label_norms: squared_norms(task.labels),
            point_weights: task.truth.rows().map(weight).collect(),
            label_counts,
        }
    }

    /// The counts of every point that is looked at, at every radius.
    fn count(&self, looked_at: &[u32], observer: &dyn Observer) -> Result<Vec<Vec<Counts>>> {
        let total = Some(looked_at.len() as u64);
        observer.event(Event::Started { task: "measuring distances", total, unit: "points" });
        let mut all = Vec::with_capacity(looked_at.len());
        for some in looked_at.chunks(POINTS) {
            if observer.cancelled() {
                return Err(Error::Cancelled);
            }
            let rows = self.task.points.select(some).all().to_vec();
            let mut counts = vec![vec![Counts::default(); self.squares.len()]; some.len()];
            self.compare(&rows, self.task.points, |at, first, products| {
                self.count_points(some[at], first, products, &mut counts[at]);
            });
            let roles: Vec<Vec<Role>> =
                some.par_iter().map(|&point| self.roles(point as usize)).collect();
            self.compare(&rows, self.task.labels, |at, first, products| {
                self.count_labels(some[at], first, products, &roles[at], &mut counts[at]);
            });
            all.extend(counts);
            observer.event(Event::Advanced(some.len() as u64));
        }
        observer.event(Event::Finished);
        Ok(all)
    }

    /// Calls `each` with every row's number, the first of some vectors, and the products with them.
    fn compare(
        &self,
        rows: &[f32],
        vectors: &VectorMatrix,
        mut each: impl FnMut(usize, usize, &[f32]),
    ) {
        let dim = vectors.dim();
        let n_rows = rows.len() / dim;
        let mut products = Vec::new();
        for first in (0..vectors.n_rows()).step_by(VECTORS) {
            let n = VECTORS.min(vectors.n_rows() - first);
            let block = vectors.rows(first..first + n).to_vec();
            products.resize(n_rows * n, 0.0);
            let block = Matrix::new(&block, n, dim).transposed();
            multiply(Matrix::new(rows, n_rows, dim), block, &mut products);
            products.chunks_exact(n).enumerate().for_each(|(at, row)| each(at, first, row));
        }
    }

    fn count_points(&self, point: u32, first: usize, products: &[f32], counts: &mut [Counts]) {
        let own = self.point_norms[point as usize];
        let cluster = self.cluster_of[point as usize];
        for (other, &product) in (first..).zip(products) {
            if self.cluster_of[other] != cluster {
                let square = own + self.point_norms[other] - 2.0 * f64::from(product);
                for (counts, radius) in counts.iter_mut().zip(&self.squares) {
                    // Within twice the radius: four times its square.
                    if square <= 4.0 * radius {
                        counts.apart += 1;
                        counts.apart_weight += self.point_weights[other];
                    }
                }
            }
        }
    }

    fn count_labels(
        &self,
        point: u32,
        first: usize,
        products: &[f32],
        roles: &[Role],
        counts: &mut [Counts],
    ) {
        let own = self.point_norms[point as usize];
        for (label, &product) in (first..).zip(products) {
            if roles[label] != Role::NoNegative {
                let square = own + self.label_norms[label] - 2.0 * f64::from(product);
                let is_hidden = roles[label] == Role::Hidden;
                for (counts, &radius) in counts.iter_mut().zip(&self.squares) {
                    counts.hard += u64::from(square <= radius);
                    counts.missed += u64::from(square <= radius && is_hidden);
                }
            }
        }
    }

    /// What every label is to a point.
    fn roles(&self, point: usize) -> Vec<Role> {
        let mut roles: Vec<Role> = self
            .label_counts
            .iter()
            .map(|&count| if count == 0 { Role::NoNegative } else { Role::Hidden })
            .collect();
        let TheoryTask { truth, clusters, not_negative, .. } = self.task;
        for &other in clusters.get(self.cluster_of[point] as usize) {
            for &label in truth.row(other as usize) {
                roles[label as usize] = Role::Shown;
            }
        }
        let passed_over = not_negative.map_or(&[][..], |pairs| pairs.row(point));
        for &label in truth.row(point).iter().chain(passed_over) {
            roles[label as usize] = Role::NoNegative;
        }
        roles
    }

    /// At every radius, the true pairs that are further apart, and the sum of (N − q)/q over them.
    fn far_true_pairs(&self) -> Vec<(u64, f64)> {
        let TheoryTask { points, labels, truth, .. } = self.task;
        let by_label = truth.transpose();
        let count = |label: usize| {
            let own = by_label.row(label);
            let mut products = vec![0.0; own.len()];
            points.as_rows().dots(own, &labels.row(label).to_vec(), &mut products);
            let mut far = vec![0u64; self.squares.len()];
            for (&point, &product) in own.iter().zip(&products) {
                let norms = self.point_norms[point as usize] + self.label_norms[label];
                let square = norms - 2.0 * f64::from(product);
                for (far, &radius) in far.iter_mut().zip(&self.squares) {
                    *far += u64::from(square > radius);
                }
            }
            far
        };
        let far: Vec<Vec<u64>> = (0..labels.n_rows()).into_par_iter().map(count).collect();
        let n_points = points.n_rows() as f64;
        // Added up in the order of the labels, whatever the number of threads.
        let sum = |at: usize| {
            let mut sums = (0, 0.0);
            for (far, &q) in far.iter().zip(&self.label_counts).filter(|(_, q)| **q > 0) {
                sums.0 += far[at];
                sums.1 += far[at] as f64 * (n_points - f64::from(q)) / f64::from(q);
            }
            sums
        };
        (0..self.squares.len()).map(sum).collect()
    }
}

fn squared_norms(vectors: &VectorMatrix) -> Vec<f64> {
    let square = |row: usize| {
        let row = vectors.row(row).to_vec();
        row.iter().map(|&number| f64::from(number) * f64::from(number)).sum()
    };
    (0..vectors.n_rows()).into_par_iter().map(square).collect()
}
