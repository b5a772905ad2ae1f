//! One-vs-all: for every label and every point a yes-or-no question, by binary cross-entropy with a
//! bias, over all labels.
//!
//! Points are frozen, so labels do not meet: a block of labels is scored, compared with the truth and
//! moved while its vectors lie in the cache, and blocks run side by side.
//!
//! ```text
//! points (B, D) ──> scores (B, block) ──> sigmoid - truth (B, block) ──> d_vectors (block, D) ──> Adam
//! ```

use std::ops::Range;

use ngame_nn::{AdamStep, Matrix, multiply_here, sigmoids};
use rayon::prelude::*;

use super::classifiers::Classifiers;
use super::start::LogitStart;
use super::task::{Drop, StepAt, Task, Training};
use crate::batching::{Batches, Clusters};
use crate::encoder::VectorMatrix;

/// Labels of a block: its vectors and moments stay in the cache.
const BLOCK: usize = 256;

/// The labels of the last block are filled up to a multiple of this: products with a single row are
/// summed in another order, and a label's result should not depend on how many others there are.
const MULTIPLE: usize = 16;

/// How one-vs-all classifiers are trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OneVsAll {
    /// How often every point is seen.
    pub epochs: usize,
    /// The points of a step.
    pub batch_size: usize,
    /// The highest learning rate of vectors.
    pub learning_rate: f32,
    /// The highest learning rate of biases.
    pub bias_rate: f32,
    /// What cosines are to start with.
    pub start: LogitStart,
    /// The share of a point's numbers that training drops.
    pub dropout: f32,
    /// The share of the run in which rates rise.
    pub warmup: f64,
    /// Where random choices come from.
    pub seed: u64,
}

impl Default for OneVsAll {
    fn default() -> Self {
        Self {
            epochs: 10,
            batch_size: 512,
            learning_rate: 2e-3,
            bias_rate: 2e-2,
            start: LogitStart::default(),
            dropout: 0.2,
            warmup: 0.05,
            seed: 0,
        }
    }
}

/// All labels that have points, under training. The others stay as they are.
#[derive(Debug)]
pub(super) struct OneVsAllTraining {
    options: OneVsAll,
    n_points: usize,
    dim: usize,
    start: Vec<f32>,             // (labels, dim): what labels without points end as
    start_biases: Vec<f32>,      // (labels)
    trained: Vec<u32>,           // Labels that have points.
    place: Vec<Option<u32>>,     // (labels): where a label is among the trained
    vectors: Vec<f32>,           // (trained and filling, dim)
    moments: [Vec<f32>; 2],      // (trained and filling, dim)
    biases: Vec<f32>,            // (trained and filling)
    bias_moments: [Vec<f32>; 2], // (trained and filling)
    batch: Vec<f32>,             // (points, dim)
}

impl OneVsAllTraining {
    pub(super) fn new(task: &Task<'_>, labels: &VectorMatrix, options: &OneVsAll) -> Self {
        let (n_points, dim) = (task.points.n_rows(), labels.dim());
        let counts = task.truth.column_counts();
        let start = labels.all().to_vec();
        let start_biases = options.start.biases(&counts, n_points);
        let has_points = |&label: &u32| counts[label as usize] > 0;
        let trained: Vec<u32> = (0..counts.len() as u32).filter(has_points).collect();
        let mut place = vec![None; counts.len()];
        let n_rows = trained.len().next_multiple_of(MULTIPLE);
        let (mut vectors, mut biases) = (vec![0.0; n_rows * dim], vec![0.0; n_rows]);
        for (at, &label) in trained.iter().enumerate() {
            let label = label as usize;
            place[label] = Some(at as u32);
            biases[at] = start_biases[label];
            vectors[at * dim..(at + 1) * dim]
                .copy_from_slice(&start[label * dim..(label + 1) * dim]);
        }
        let zeros = |n: usize| [vec![0.0; n], vec![0.0; n]];
        Self {
            options: *options,
            n_points,
            dim,
            start,
            start_biases,
            trained,
            place,
            moments: zeros(vectors.len()),
            bias_moments: zeros(biases.len()),
            vectors,
            biases,
            batch: Vec::new(),
        }
    }

    /// Pairs of a batch as (trained label, point in the batch), in order.
    fn pairs<'a>(&self, points: &[u32], labels_of: impl Fn(u32) -> &'a [u32]) -> Vec<(u32, u32)> {
        let mut pairs = Vec::new();
        for (row, &point) in points.iter().enumerate() {
            for &label in labels_of(point) {
                pairs.extend(self.place[label as usize].map(|place| (place, row as u32)));
            }
        }
        pairs.sort_unstable();
        pairs
    }
}

impl Training for OneVsAllTraining {
    fn n_batches(&self, _: usize) -> usize {
        Batches::count(self.n_points, 1, self.options.batch_size)
    }

    fn batches(&mut self, _: &Task<'_>, epoch: usize) -> Batches {
        let points = Clusters::singletons(self.n_points);
        Batches::draw(&points, 1, self.options.batch_size, self.options.seed, epoch)
    }

    fn step(&mut self, task: &Task<'_>, points: &[u32], at: StepAt) {
        let options = self.options;
        let drop = Drop { rate: options.dropout, seed: options.seed, step: at.step };
        let mut batch = std::mem::take(&mut self.batch);
        task.gather(points, drop, &mut batch);
        let positives = self.pairs(points, |point| task.truth.row(point as usize));
        let ignored = self.pairs(points, |point| task.ignored(point));
        let step = BlockStep {
            points: Matrix::new(&batch, points.len(), self.dim),
            n_points: points.len(),
            scale: options.start.scale,
            vectors: AdamStep::new(at.share * options.learning_rate, at.step + 1),
            biases: AdamStep::new(at.share * options.bias_rate, at.step + 1),
        };
        let [first, second] = &mut self.moments;
        let [bias_first, bias_second] = &mut self.bias_moments;
        let (numbers, dim) = (BLOCK * self.dim, self.dim);
        (
            self.vectors.par_chunks_mut(numbers),
            first.par_chunks_mut(numbers),
            second.par_chunks_mut(numbers),
            self.biases.par_chunks_mut(BLOCK),
            bias_first.par_chunks_mut(BLOCK),
            bias_second.par_chunks_mut(BLOCK),
        )
            .into_par_iter()
            .enumerate()
            .for_each_init(Room::default, |room, (at, block)| {
                let (vectors, first, second, biases, bias_first, bias_second) = block;
                let labels = at * BLOCK..at * BLOCK + biases.len();
                let pairs = [&positives, &ignored].map(|pairs| within(pairs, &labels));
                step.gradient(vectors, biases, dim, labels.start as u32, pairs, room);
                step.vectors.apply(vectors, &room.d_vectors, first, second);
                step.biases.apply(biases, &room.d_biases, bias_first, bias_second);
            });
        self.batch = batch;
    }

    fn arrays(&self) -> Vec<(&'static str, &[u8])> {
        let [first, second] = &self.moments;
        let [bias_first, bias_second] = &self.bias_moments;
        vec![
            ("vectors", bytemuck::cast_slice(&self.vectors)),
            ("vector_first", bytemuck::cast_slice(first)),
            ("vector_second", bytemuck::cast_slice(second)),
            ("biases", bytemuck::cast_slice(&self.biases)),
            ("bias_first", bytemuck::cast_slice(bias_first)),
            ("bias_second", bytemuck::cast_slice(bias_second)),
        ]
    }

    fn arrays_mut(&mut self) -> Vec<(&'static str, &mut [u8])> {
        let [first, second] = &mut self.moments;
        let [bias_first, bias_second] = &mut self.bias_moments;
        vec![
            ("vectors", bytemuck::cast_slice_mut(&mut self.vectors)),
            ("vector_first", bytemuck::cast_slice_mut(first)),
            ("vector_second", bytemuck::cast_slice_mut(second)),
            ("biases", bytemuck::cast_slice_mut(&mut self.biases)),
            ("bias_first", bytemuck::cast_slice_mut(bias_first)),
            ("bias_second", bytemuck::cast_slice_mut(bias_second)),
        ]
    }

    fn finish(self: Box<Self>) -> Classifiers {
        let (mut vectors, mut biases, dim) = (self.start, self.start_biases, self.dim);
        for (at, &label) in self.trained.iter().enumerate() {
            let label = label as usize;
            biases[label] = self.biases[at];
            vectors[label * dim..(label + 1) * dim]
                .copy_from_slice(&self.vectors[at * dim..(at + 1) * dim]);
        }
        Classifiers::new(vectors, biases, self.options.start.scale)
    }
}

/// The pairs of a range of labels.
fn within<'a>(pairs: &'a [(u32, u32)], labels: &Range<usize>) -> &'a [(u32, u32)] {
    let from = pairs.partition_point(|&(label, _)| (label as usize) < labels.start);
    let to = pairs.partition_point(|&(label, _)| (label as usize) < labels.end);
    &pairs[from..to]
}

/// What a thread keeps from block to block.
#[derive(Default)]
struct Room {
    scores: Vec<f32>,    // (points, labels)
    d_vectors: Vec<f32>, // (labels, dim)
    d_biases: Vec<f32>,  // (labels)
}

/// What a step does to every block of labels.
struct BlockStep<'a> {
    points: Matrix<'a>, // (points, dim)
    n_points: usize,
    scale: f32,
    vectors: AdamStep,
    biases: AdamStep,
}

impl BlockStep<'_> {
    /// The gradient of the mean over points of the sum over labels of the cross-entropy.
    fn gradient(
        &self,
        vectors: &[f32], // (labels, dim)
        biases: &[f32],  // (labels)
        dim: usize,
        first_label: u32,
        [positives, ignored]: [&[(u32, u32)]; 2],
        room: &mut Room,
    ) {
        let (n_points, n_labels) = (self.n_points, biases.len());
        let Room { scores, d_vectors, d_biases } = room;
        scores.resize(n_points * n_labels, 0.0);
        d_vectors.resize(n_labels * dim, 0.0);
        d_biases.clear();
        d_biases.resize(n_labels, 0.0);
        multiply_here(self.points, Matrix::new(vectors, n_labels, dim).transposed(), scores);
        // The gradient by vectors, which is `scale` times that by logits.
        let mean = self.scale / n_points as f32;
        sigmoids(self.scale, mean, biases, scores, d_biases);
        for &(label, point) in positives {
            let label = (label - first_label) as usize;
            scores[point as usize * n_labels + label] -= mean;
            d_biases[label] -= mean;
        }
        for &pair in ignored.iter().filter(|pair| positives.binary_search(pair).is_err()) {
            let label = (pair.0 - first_label) as usize;
            let score = &mut scores[pair.1 as usize * n_labels + label];
            d_biases[label] -= *score;
            *score = 0.0;
        }
        d_biases.iter_mut().for_each(|value| *value /= self.scale);
        let scores = Matrix::new(scores, n_points, n_labels);
        multiply_here(scores.transposed(), self.points, d_vectors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier::toy::circle;

    #[test]
    fn the_gradient_is_that_of_the_cross_entropy() {
        let (toy, n_points, n_labels, scale) = (circle(12, 5), 12, 5, 4.0f64);
        let points = toy.points.all().to_vec();
        let vectors = toy.labels.all().to_vec();
        let biases = [0.1f32, -0.3, 0.0, 0.5, -1.0];
        let positives: Vec<(u32, u32)> = vec![(0, 0), (0, 1), (1, 3), (2, 7), (3, 8), (4, 11)];
        let ignored = [(1, 1), (1, 3), (4, 0)]; // One of them is true, which comes first.
        let loss = |vectors: &[f32], biases: &[f32]| -> f64 {
            let mut total = 0.0;
            for point in 0..n_points as u32 {
                for label in 0..n_labels as u32 {
                    let product: f64 = (0..3)
                        .map(|at| {
                            f64::from(points[point as usize * 3 + at])
                                * f64::from(vectors[label as usize * 3 + at])
                        })
                        .sum();
                    let logit = scale * product + f64::from(biases[label as usize]);
                    let pair = (label, point);
                    if positives.contains(&pair) {
                        total += (1.0 + (-logit).exp()).ln();
                    } else if !ignored.contains(&pair) {
                        total += (1.0 + logit.exp()).ln();
                    }
                }
            }
            total / n_points as f64
        };
        let step = BlockStep {
            points: Matrix::new(&points, n_points, 3),
            n_points,
            scale: scale as f32,
            vectors: AdamStep::new(0.1, 1),
            biases: AdamStep::new(0.1, 1),
        };
        let mut room = Room::default();
        step.gradient(&vectors, &biases, 3, 0, [&positives, &ignored], &mut room);
        for at in 0..vectors.len() + n_labels {
            let moved = |by: f32| {
                let (mut vectors, mut biases) = (vectors.clone(), biases);
                match at.checked_sub(vectors.len()) {
                    None => vectors[at] += by,
                    Some(at) => biases[at] += by,
                }
                loss(&vectors, &biases)
            };
            let difference = (moved(1e-2) - moved(-1e-2)) / 2e-2;
            let found = room.d_vectors.iter().chain(&room.d_biases).nth(at).unwrap();
            assert!((difference - f64::from(*found)).abs() < 1e-3, "{at}: {found}, {difference}");
        }
    }
}
