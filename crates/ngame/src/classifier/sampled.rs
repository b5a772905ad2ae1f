//! One-vs-all by samples: the points of a batch against the labels of all of them, and against some
//! labels drawn at random that stand for the rest.
//!
//! Of the L labels that have points, let the points of a batch have U, and let S of the L - U others be
//! drawn, all alike likely. With w = (L - U) / S,
//!
//! - the cross-entropy of a point is the sum over all L labels of what each yes-or-no question costs. A
//!   sum over the U, plus w times the sum over the S, has that expectation, and so has its gradient;
//! - the softmax of a point's positive p is `-log(e^p / (e^p + Z))` with Z the sum of the powers `e^n` of
//!   all negatives, other positives left out. The sum over the U plus w times that over the S is an
//!   unbiased Z: `ln w` is added to the logits of what was drawn.
//!
//! A step costs what its U + S labels cost, and touches nothing of the others: L only decides how much
//! memory there must be.

use ngame_nn::{AdamStep, Matrix, MomentType, RowTable, logits, multiply, powers, sigmoids};
use rayon::prelude::*;

use super::batch_labels::BatchLabels;
use super::classifiers::Classifiers;
use super::start::LogitStart;
use super::task::{Drop, StepAt, Task, Training};
use crate::batching::{Batches, Clusters};
use crate::encoder::VectorMatrix;
use crate::random::generator;

/// What labels are drawn for.
const SAMPLE: u64 = 13;

/// Points that a thread works on in one go.
const ROWS: usize = 16;

/// What the questions of a sampled run are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampledLoss {
    /// A yes-or-no question a label.
    #[default]
    CrossEntropy,
    /// Which label it is: every positive against all negatives, as a mean over positives.
    Softmax,
}

/// How classifiers are trained on samples of the labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// What is asked.
    pub loss: SampledLoss,
    /// How often every point is seen.
    pub epochs: usize,
    /// The points of a step.
    pub batch_size: usize,
    /// The labels drawn at random for a step.
    pub n_sampled: usize,
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
    /// How precisely moments are kept.
    pub moments: MomentType,
    /// Where random choices come from.
    pub seed: u64,
}

impl Default for Sampled {
    fn default() -> Self {
        Self {
            loss: SampledLoss::CrossEntropy,
            epochs: 10,
            batch_size: 512,
            n_sampled: 2_048,
            learning_rate: 2e-3,
            bias_rate: 2e-2,
            start: LogitStart::default(),
            dropout: 0.2,
            warmup: 0.05,
            moments: MomentType::Full,
            seed: 0,
        }
    }
}

/// A sampled run under way.
#[derive(Debug)]
pub(super) struct SampledTraining {
    options: Sampled,
    n_points: usize,
    dim: usize,
    pool: Vec<u32>, // Labels that have points.
    vectors: RowTable,
    biases: RowTable,
    labels: BatchLabels,
    batch: Vec<f32>, // (points, dim)
    room: Room,
}

/// The buffers of a step.
#[derive(Debug, Default)]
struct Room {
    vectors: Vec<f32>,   // (labels of the batch, dim)
    biases: Vec<f32>,    // (labels of the batch)
    scores: Vec<f32>,    // (points, labels of the batch)
    d_vectors: Vec<f32>, // (labels of the batch, dim)
    d_biases: Vec<f32>,  // (labels of the batch)
}

impl SampledTraining {
    pub(super) fn new(task: &Task<'_>, labels: &VectorMatrix, options: &Sampled) -> Self {
        let counts = task.truth.column_counts();
        let biases = options.start.biases(&counts, task.points.n_rows());
        let has_points = |&label: &u32| counts[label as usize] > 0;
        Self {
            options: options.clone(),
            n_points: task.points.n_rows(),
            dim: labels.dim(),
            pool: (0..counts.len() as u32).filter(has_points).collect(),
            vectors: RowTable::new(labels.all().to_vec(), labels.dim(), options.moments),
            biases: RowTable::new(biases, 1, MomentType::Full),
            labels: BatchLabels::new(counts.len()),
            batch: Vec::new(),
            room: Room::default(),
        }
    }

    /// The gradient of the mean over points of the estimated loss by the vectors and biases of the
    /// batch's labels, in the room.
    fn gradient(&mut self, task: &Task<'_>, points: &[u32]) {
        let (n_points, n_labels) = (points.len(), self.labels.labels().len());
        let n_own = self.labels.n_own();
        let Room { vectors, biases, scores, d_vectors, d_biases } = &mut self.room;
        vectors.resize(n_labels * self.dim, 0.0);
        d_vectors.resize(n_labels * self.dim, 0.0);
        biases.resize(n_labels, 0.0);
        scores.resize(n_points * n_labels, 0.0);
        self.vectors.gather(self.labels.labels(), vectors);
        self.biases.gather(self.labels.labels(), biases);
        let rows = Rows {
            task,
            labels: &self.labels,
            n_own,
            weight: (self.pool.len() - n_own) as f32 / (n_labels - n_own).max(1) as f32,
            scale: self.options.start.scale,
            mean: 1.0 / n_points as f32,
        };
        if self.options.loss == SampledLoss::Softmax {
            biases[n_own..].iter_mut().for_each(|bias| *bias += rows.weight.ln());
        }
        let batch = Matrix::new(&self.batch, n_points, self.dim);
        multiply(batch, Matrix::new(vectors, n_labels, self.dim).transposed(), scores);
        // Sums of blocks are added in order, so that they are the same on any number of threads.
        let sums: Vec<Vec<f32>> = scores
            .par_chunks_mut((ROWS * n_labels).max(1))
            .zip(points.par_chunks(ROWS))
            .map(|(scores, points)| {
                let mut sums = vec![0.0; n_labels];
                match self.options.loss {
                    SampledLoss::CrossEntropy => {
                        rows.cross_entropy(points, biases, scores, &mut sums);
                    }
                    SampledLoss::Softmax => rows.softmax(points, biases, scores, &mut sums),
                }
                sums
            })
            .collect();
        d_biases.clear();
        d_biases.resize(n_labels, 0.0);
        for sums in &sums {
            d_biases.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
        d_biases.iter_mut().for_each(|value| *value /= self.options.start.scale);
        multiply(Matrix::new(scores, n_points, n_labels).transposed(), batch, d_vectors);
    }
}

/// What turns scores of a batch into the gradient by them.
struct Rows<'a> {
    task: &'a Task<'a>,
    labels: &'a BatchLabels,
    n_own: usize,
    weight: f32,
    scale: f32,
    mean: f32,
}

impl Rows<'_> {
    /// Columns of labels that are in the batch.
    fn columns<'a>(&'a self, labels: &'a [u32]) -> impl Iterator<Item = usize> + 'a {
        labels.iter().filter_map(|&label| self.labels.column(label)).map(|column| column as usize)
    }

    /// Columns of a point that are no negatives, and not true.
    fn ignored(&self, point: u32) -> impl Iterator<Item = usize> + '_ {
        let spared = move |label: &&u32| !self.task.truth.contains(point as usize, **label);
        let labels = self.task.ignored(point).iter().filter(spared);
        labels.filter_map(|&label| self.labels.column(label)).map(|column| column as usize)
    }

    /// Scores of some points to gradients by them, and the sum of every column.
    fn cross_entropy(&self, points: &[u32], biases: &[f32], scores: &mut [f32], sums: &mut [f32]) {
        let mean = self.scale * self.mean;
        let (own, drawn) = biases.split_at(self.n_own);
        let (own_sums, drawn_sums) = sums.split_at_mut(self.n_own);
        for row in scores.chunks_exact_mut(biases.len()) {
            let (row, drawn_row) = row.split_at_mut(self.n_own);
            sigmoids(self.scale, mean, own, row, own_sums);
            sigmoids(self.scale, mean * self.weight, drawn, drawn_row, drawn_sums);
        }
        for (&point, row) in points.iter().zip(scores.chunks_exact_mut(biases.len())) {
            for column in self.columns(self.task.truth.row(point as usize)) {
                row[column] -= mean;
                sums[column] -= mean;
            }
            for column in self.ignored(point) {
                sums[column] -= row[column];
                row[column] = 0.0;
            }
        }
    }

    /// The same for the softmax; the biases of what was drawn have `ln w` in them.
    fn softmax(&self, points: &[u32], biases: &[f32], scores: &mut [f32], sums: &mut [f32]) {
        let mut positives = Vec::new();
        for (&point, row) in points.iter().zip(scores.chunks_exact_mut(biases.len())) {
            let highest = logits(self.scale, biases, row);
            positives.clear();
            for column in self.columns(self.task.truth.row(point as usize)) {
                positives.push((column, row[column]));
                row[column] = f32::NEG_INFINITY;
            }
            self.ignored(point).for_each(|column| row[column] = f32::NEG_INFINITY);
            let total = powers(highest, row);
            let share = self.scale * self.mean / positives.len().max(1) as f32;
            // -log(e^p / (e^p + Z)) = log(1 + e^(log Z - p))
            let together = highest + total.ln();
            let missing = |logit: f32| 1.0 / (1.0 + (logit - together).exp());
            let pressure: f32 = positives.iter().map(|&(_, logit)| share * missing(logit)).sum();
            row.iter_mut().for_each(|value| *value *= pressure / total);
            self.ignored(point).for_each(|column| row[column] = 0.0);
            for &(column, logit) in &positives {
                row[column] = -share * missing(logit);
            }
            sums.iter_mut().zip(&*row).for_each(|(sum, value)| *sum += value);
        }
    }
}

impl Training for SampledTraining {
    fn n_batches(&self, _: usize) -> usize {
        Batches::count(self.n_points, 1, self.options.batch_size)
    }

    fn batches(&mut self, _: &Task<'_>, epoch: usize) -> Batches {
        let points = Clusters::singletons(self.n_points);
        Batches::draw(&points, 1, self.options.batch_size, self.options.seed, epoch)
    }

    fn step(&mut self, task: &Task<'_>, points: &[u32], at: StepAt) {
        let Sampled { dropout, seed, n_sampled, learning_rate, bias_rate, .. } = self.options;
        task.gather(points, Drop { rate: dropout, seed, step: at.step }, &mut self.batch);
        self.labels.fill(task.truth, points);
        self.labels.sample(&self.pool, n_sampled, &mut generator(seed, &[SAMPLE, at.step]));
        if self.labels.labels().is_empty() {
            return;
        }
        self.gradient(task, points);
        let vector_step = AdamStep::new(at.share * learning_rate, at.step + 1);
        let bias_step = AdamStep::new(at.share * bias_rate, at.step + 1);
        // Labels are in order within both parts.
        let (own, drawn) = self.labels.labels().split_at(self.labels.n_own());
        let (d_own, d_drawn) = self.room.d_vectors.split_at(own.len() * self.dim);
        self.vectors.step(&vector_step, own, d_own);
        self.vectors.step(&vector_step, drawn, d_drawn);
        let (d_own, d_drawn) = self.room.d_biases.split_at(own.len());
        self.biases.step(&bias_step, own, d_own);
        self.biases.step(&bias_step, drawn, d_drawn);
    }

    fn arrays(&self) -> Vec<(&'static str, &[u8])> {
        let [vectors, first, second] = self.vectors.buffers();
        let [biases, bias_first, bias_second] = self.biases.buffers();
        vec![
            ("vectors", vectors),
            ("vector_first", first),
            ("vector_second", second),
            ("biases", biases),
            ("bias_first", bias_first),
            ("bias_second", bias_second),
        ]
    }

    fn arrays_mut(&mut self) -> Vec<(&'static str, &mut [u8])> {
        let [vectors, first, second] = self.vectors.buffers_mut();
        let [biases, bias_first, bias_second] = self.biases.buffers_mut();
        vec![
            ("vectors", vectors),
            ("vector_first", first),
            ("vector_second", second),
            ("biases", biases),
            ("bias_first", bias_first),
            ("bias_second", bias_second),
        ]
    }

    fn finish(self: Box<Self>) -> Classifiers {
        let (vectors, biases) = (self.vectors.into_values(), self.biases.into_values());
        Classifiers::new(vectors, biases, self.options.start.scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier::toy::circle;
    use crate::data::Csr;

    /// The loss as the file's head says it, in f64.
    fn expected_loss(training: &SampledTraining, task: &Task<'_>, points: &[u32]) -> f64 {
        let labels = training.labels.labels();
        let n_own = training.labels.n_own();
        let weight = (training.pool.len() - n_own) as f64 / (labels.len() - n_own) as f64;
        let mut total = 0.0;
        for &point in points {
            let vector = task.points.row(point as usize).to_vec();
            let logit = |label: u32| {
                let row = &training.vectors.values()[label as usize * 3..][..3];
                let product: f64 =
                    row.iter().zip(&vector).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                let bias = training.biases.values()[label as usize];
                f64::from(training.options.start.scale) * product + f64::from(bias)
            };
            let is_true = |label: u32| task.truth.contains(point as usize, label);
            let weigh = |column: usize| if column < n_own { 1.0 } else { weight };
            let negatives = labels
                .iter()
                .enumerate()
                .filter(|&(_, &label)| !is_true(label) && !task.ignored(point).contains(&label));
            let positives = task.truth.row(point as usize);
            match training.options.loss {
                SampledLoss::CrossEntropy => {
                    total += positives.iter().map(|&l| (1.0 + (-logit(l)).exp()).ln()).sum::<f64>();
                    total += negatives
                        .map(|(column, &l)| weigh(column) * (1.0 + logit(l).exp()).ln())
                        .sum::<f64>();
                }
                SampledLoss::Softmax => {
                    let z: f64 = negatives.map(|(c, &l)| weigh(c) * logit(l).exp()).sum();
                    let cost = |p: f64| -(p.exp() / (p.exp() + z)).ln();
                    let share = 1.0 / positives.len() as f64;
                    total += share * positives.iter().map(|&l| cost(logit(l))).sum::<f64>();
                }
            }
        }
        total / points.len() as f64
    }

    #[test]
    fn gradients_are_those_of_the_estimated_loss() {
        let toy = circle(60, 20);
        let mut pairs: Vec<(u32, u32)> = (0..60).map(|point| (point, point / 3)).collect();
        pairs.extend([(4, 9), (31, 2)]);
        let truth = Csr::from_pairs(60, 20, pairs);
        let filter = Csr::from_pairs(60, 20, vec![(4, 9), (4, 10), (31, 3), (5, 17)]);
        let task = Task { points: &toy.points, truth: &truth, not_negative: Some(&filter) };
        let points = [4, 31, 5, 50];
        for loss in [SampledLoss::CrossEntropy, SampledLoss::Softmax] {
            let options = Sampled {
                loss,
                start: LogitStart { scale: 3.0, offset: -0.75 },
                n_sampled: 6,
                ..Default::default()
            };
            let mut training = SampledTraining::new(&task, &toy.labels, &options);
            task.gather(&points, Drop { rate: 0.0, seed: 0, step: 0 }, &mut training.batch);
            training.labels.fill(&truth, &points);
            training.labels.sample(&training.pool, 6, &mut generator(1, &[1]));
            training.gradient(&task, &points);
            let labels = training.labels.labels().to_vec();
            let room = std::mem::take(&mut training.room);
            let mut biases = training.biases.values().to_vec();
            let mut vectors = training.vectors.values().to_vec();
            for (column, &label) in labels.iter().enumerate() {
                for at in 0..4 {
                    let mut moved = |by: f32| {
                        match at {
                            3 => biases[label as usize] += by,
                            _ => vectors[label as usize * 3 + at] += by,
                        }
                        training.biases = RowTable::new(biases.clone(), 1, MomentType::Full);
                        training.vectors = RowTable::new(vectors.clone(), 3, MomentType::Full);
                        expected_loss(&training, &task, &points)
                    };
                    let (up, down) = (moved(1e-2), moved(-2e-2));
                    moved(1e-2);
                    let difference = (up - down) / 2e-2;
                    let found = match at {
                        3 => room.d_biases[column],
                        _ => room.d_vectors[column * 3 + at],
                    };
                    let error = (difference - f64::from(found)).abs();
                    assert!(error < 1e-3, "{loss:?} {label} {at}: {found} and {difference}");
                }
            }
        }
    }

    #[test]
    fn with_all_labels_drawn_the_cross_entropy_is_that_of_all() {
        let toy = circle(60, 20);
        let task = Task { points: &toy.points, truth: &toy.truth, not_negative: None };
        let options = Sampled { n_sampled: 1000, ..Default::default() };
        let mut training = SampledTraining::new(&task, &toy.labels, &options);
        training.labels.fill(&toy.truth, &[1, 2]);
        training.labels.sample(&training.pool, 1000, &mut generator(1, &[1]));
        assert_eq!(training.labels.labels().len(), 20);
    }
}
