//! Counting what the theorem is about: some points against all points and all labels.

use ngame_nn::{Matrix, multiply};
use rayon::prelude::*;

use super::measure::TheoryTask;
use crate::encoder::VectorMatrix;
use crate::progress::{Event, Observer};
use crate::{Error, Result};

/// Points that are looked at together.
const POINTS: usize = 128;

/// Vectors that they are compared with at once.
const VECTORS: usize = 2_048;

/// What one point adds at one radius.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counts {
    /// Points within 2r in other clusters.
    pub(super) apart: u64,
    /// The sum over these of 1/q of their labels.
    pub(super) apart_weight: f64,
    /// Labels within r that it does not have.
    pub(super) hard: u64,
    /// Those of them that no point of its cluster has.
    pub(super) missed: u64,
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

/// All that is needed to count.
pub(super) struct Counting<'a> {
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
    pub(super) fn new(task: &'a TheoryTask<'a>, radii: &[f32]) -> Self {
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
    pub(super) fn count(
        &self,
        looked_at: &[u32],
        observer: &dyn Observer,
    ) -> Result<Vec<Vec<Counts>>> {
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
    pub(super) fn far_true_pairs(&self) -> Vec<(u64, f64)> {
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
