//! One-vs-all: for every label and every point a yes-or-no question, by binary cross-entropy with a
//! bias, over all labels.
//!
//! Points are frozen, so labels do not meet: a block of labels is scored, compared with the truth and
//! moved while its vectors lie in the cache, and blocks run side by side.
//!
//! ```text
//! points (B, D) ──> scores (B, block) ──> sigmoid - truth (B, block) ──> d_vectors (block, D) ──> Adam
//! ```

use ngame_nn::{Decay, Matrix, Schedule, multiply};
use rand::RngExt;
use rand::seq::SliceRandom;
use rayon::prelude::*;

use super::classifiers::{Classifiers, blocks};
use crate::data::Csr;
use crate::encoder::VectorMatrix;
use crate::progress::{Event, Observer};
use crate::random::generator;
use crate::{Error, Result};

/// Labels of a block: its vectors and moments stay in the cache.
const BLOCK: usize = 256;

/// What the order of points is drawn for, and what numbers are dropped for.
const ORDER: u64 = 11;
const DROPOUT: u64 = 12;

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
    /// What inner products are multiplied by: they are cosines at first.
    pub scale: f32,
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
            batch_size: 256,
            learning_rate: 2e-3,
            bias_rate: 2e-2,
            scale: 20.0,
            dropout: 0.2,
            warmup: 0.05,
            seed: 0,
        }
    }
}

/// A block of labels under training.
struct Block {
    first_label: usize,
    vectors: Vec<f32>, // (labels, dim)
    biases: Vec<f32>,
    moments: [Vec<f32>; 2],      // (labels, dim)
    bias_moments: [Vec<f32>; 2], // (labels)
    scores: Vec<f32>,            // (points, labels)
    d_vectors: Vec<f32>,         // (labels, dim)
}

/// Trains a vector and a bias for every label, on frozen vectors of points.
///
/// # Panics
/// If points and truth, or labels and truth, differ in number.
pub fn train_one_vs_all(
    points: &VectorMatrix,
    truth: &Csr,
    labels: &VectorMatrix,
    options: &OneVsAll,
    observer: &dyn Observer,
) -> Result<Classifiers> {
    let (n_points, n_labels, dim) = (points.n_rows(), labels.n_rows(), points.dim());
    assert_eq!(truth.n_rows(), n_points, "a row of labels for every point");
    assert_eq!(truth.n_columns() as usize, n_labels, "a column for every label");
    let counts = truth.column_counts();
    let mut all: Vec<Block> = blocks(n_labels, BLOCK)
        .map(|range| Block::new(labels, &counts, n_points, range, options))
        .collect();
    let n_batches = n_points.div_ceil(options.batch_size);
    let n_steps = (options.epochs * n_batches) as u64;
    let n_warmup_steps = (n_steps as f64 * options.warmup).round() as u64;
    let schedule = Schedule { peak: 1.0, n_warmup_steps, n_steps, decay: Decay::Linear };
    let mut order: Vec<u32> = (0..n_points as u32).collect();
    let mut batch = Vec::new();
    let total = Some((options.epochs * n_points) as u64);
    observer.event(Event::Started { task: "training classifiers", total, unit: "points" });
    let mut step = 0;
    for epoch in 0..options.epochs {
        order.shuffle(&mut generator(options.seed, &[ORDER, epoch as u64]));
        for chosen in order.chunks(options.batch_size) {
            if observer.cancelled() {
                return Err(Error::Cancelled);
            }
            batch.resize(chosen.len() * dim, 0.0);
            points.as_rows().gather(chosen, &mut batch);
            drop_some(&mut batch, options.dropout, options.seed, step);
            let positives = positives_by_block(truth, chosen);
            let share = schedule.rate(step);
            step += 1;
            all.par_iter_mut().enumerate().for_each(|(at, block)| {
                let from = positives.partition_point(|&(block, ..)| block < at as u32);
                let to = positives.partition_point(|&(block, ..)| block <= at as u32);
                block.step(&batch, dim, &positives[from..to], share, step, options);
            });
            observer.event(Event::Advanced(chosen.len() as u64));
        }
    }
    observer.event(Event::Finished);
    let (mut vectors, mut biases) = (Vec::with_capacity(n_labels * dim), Vec::new());
    for block in all {
        vectors.extend(block.vectors);
        biases.extend(block.biases);
    }
    Ok(Classifiers::new(vectors, biases, options.scale))
}

/// The positives of a batch as (block, label in it, point in the batch), in order.
fn positives_by_block(truth: &Csr, points: &[u32]) -> Vec<(u32, u32, u32)> {
    let mut positives = Vec::new();
    for (row, &point) in points.iter().enumerate() {
        for &label in truth.row(point as usize) {
            positives.push((label / BLOCK as u32, label % BLOCK as u32, row as u32));
        }
    }
    positives.sort_unstable();
    positives
}

/// Drops numbers at random and scales the others up.
fn drop_some(values: &mut [f32], rate: f32, seed: u64, step: u64) {
    if rate > 0.0 {
        let mut random = generator(seed, &[DROPOUT, step]);
        let scale = 1.0 / (1.0 - rate);
        for value in values {
            *value *= if random.random::<f32>() < rate { 0.0 } else { scale };
        }
    }
}

impl Block {
    fn new(
        labels: &VectorMatrix,
        counts: &[u32],
        n_points: usize,
        range: std::ops::Range<usize>,
        options: &OneVsAll,
    ) -> Self {
        let vectors = labels.rows(range.clone()).to_vec();
        // A label's share of points as a logit, less what a positive's cosine will bring.
        let bias = |label: usize| {
            let share = (f64::from(counts[label]) + 0.1) / (n_points as f64 + 1.0);
            share.ln() as f32 - 0.25 * options.scale
        };
        let biases: Vec<f32> = range.clone().map(bias).collect();
        let zeros = |n: usize| [vec![0.0; n], vec![0.0; n]];
        Self {
            first_label: range.start,
            moments: zeros(vectors.len()),
            bias_moments: zeros(biases.len()),
            d_vectors: vec![0.0; vectors.len()],
            scores: Vec::new(),
            vectors,
            biases,
        }
    }

    /// One step on a batch of points.
    fn step(
        &mut self,
        points: &[f32], // (points, dim)
        dim: usize,
        positives: &[(u32, u32, u32)],
        share: f32,
        step: u64,
        options: &OneVsAll,
    ) {
        let (n_points, n_labels) = (points.len() / dim, self.biases.len());
        self.scores.resize(n_points * n_labels, 0.0);
        let points = Matrix::new(points, n_points, dim);
        let vectors = Matrix::new(&self.vectors, n_labels, dim);
        multiply(points, vectors.transposed(), &mut self.scores);
        let mean = 1.0 / n_points as f32;
        for row in self.scores.chunks_exact_mut(n_labels) {
            for (score, bias) in row.iter_mut().zip(&self.biases) {
                *score = mean / (1.0 + (-(options.scale * *score + bias)).exp());
            }
        }
        for &(_, label, point) in positives {
            self.scores[point as usize * n_labels + label as usize] -= mean;
        }
        let mut d_biases = vec![0.0; n_labels];
        for row in self.scores.chunks_exact(n_labels) {
            d_biases.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        let scores = Matrix::new(&self.scores, n_points, n_labels);
        multiply(scores.transposed(), points, &mut self.d_vectors);
        let rate = share * options.learning_rate;
        adam(rate, step, &mut self.vectors, &self.d_vectors, &mut self.moments);
        let rate = share * options.bias_rate;
        adam(rate, step, &mut self.biases, &d_biases, &mut self.bias_moments);
        debug_assert!(self.first_label.is_multiple_of(BLOCK));
    }
}

/// Adam, without decay.
fn adam(rate: f32, step: u64, values: &mut [f32], gradient: &[f32], moments: &mut [Vec<f32>; 2]) {
    const BETAS: [f32; 2] = [0.9, 0.999];
    let correction = |beta: f32| 1.0 - f64::from(beta).powi(step.min(1 << 30) as i32);
    let rate = (f64::from(rate) / correction(BETAS[0])) as f32;
    let inverse = (1.0 / correction(BETAS[1]).sqrt()) as f32;
    let [first, second] = moments;
    for (((value, &d), m), v) in values.iter_mut().zip(gradient).zip(first).zip(second) {
        *m = BETAS[0] * *m + (1.0 - BETAS[0]) * d;
        *v = BETAS[1] * *v + (1.0 - BETAS[1]) * d * d;
        *value -= rate * *m / (v.sqrt() * inverse + 1e-8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::VectorType;
    use crate::progress::Silent;

    /// Points on a circle; label l has those within its arc.
    fn circle(n_points: usize, n_labels: usize) -> (VectorMatrix, Csr, VectorMatrix) {
        let angle = |at: f32| [at.cos(), at.sin(), 0.0];
        let mut points = VectorMatrix::zeros(n_points, 3, VectorType::F32);
        let mut labels = VectorMatrix::zeros(n_labels, 3, VectorType::F32);
        let mut pairs = Vec::new();
        for point in 0..n_points {
            let at = std::f32::consts::TAU * point as f32 / n_points as f32;
            points.set(point, &angle(at));
            pairs.push((point as u32, (point * n_labels / n_points) as u32));
        }
        for label in 0..n_labels {
            // Half an arc off: there is something to learn.
            labels.set(label, &angle(std::f32::consts::TAU * label as f32 / n_labels as f32));
        }
        (points, Csr::from_pairs(n_points, n_labels as u32, pairs), labels)
    }

    fn accuracy(classifiers: &Classifiers, points: &VectorMatrix, truth: &Csr) -> f64 {
        let right = (0..points.n_rows()).filter(|&point| {
            let vector = points.row(point).to_vec();
            let best = (0..classifiers.n_labels()).max_by(|&a, &b| {
                classifiers.score(a, &vector).total_cmp(&classifiers.score(b, &vector))
            });
            truth.contains(point, best.unwrap() as u32)
        });
        right.count() as f64 / points.n_rows() as f64
    }

    #[test]
    fn classifiers_learn_what_embeddings_miss() {
        let (points, truth, labels) = circle(600, 12);
        let options = OneVsAll {
            epochs: 60,
            batch_size: 60,
            learning_rate: 0.02,
            dropout: 0.0,
            ..Default::default()
        };
        let start = Classifiers::new(labels.all().to_vec(), vec![0.0; 12], 20.0);
        let trained = train_one_vs_all(&points, &truth, &labels, &options, &Silent).unwrap();
        let (before, after) =
            (accuracy(&start, &points, &truth), accuracy(&trained, &points, &truth));
        assert!(before < 0.6 && after > 0.95, "{before} to {after}");
        assert_eq!(train_one_vs_all(&points, &truth, &labels, &options, &Silent).unwrap(), trained);
    }

    #[test]
    fn labels_trained_apart_are_the_same_as_together() {
        let n_labels = 2 * BLOCK + 40;
        let (points, truth, labels) = circle(900, n_labels);
        let options = OneVsAll { epochs: 2, batch_size: 100, ..Default::default() };
        let together = train_one_vs_all(&points, &truth, &labels, &options, &Silent).unwrap();
        let by_label = truth.transpose();
        let parts = [0..BLOCK, BLOCK..n_labels].map(|range| {
            let ids: Vec<u32> = range.clone().map(|label| label as u32).collect();
            let part = by_label.select(&ids).transpose();
            let labels = VectorMatrix::from_f32(labels.rows(range).to_vec(), 3);
            train_one_vs_all(&points, &part, &labels, &options, &Silent).unwrap()
        });
        assert_eq!(Classifiers::join(parts.into()), together);
    }

    #[test]
    fn scores_are_inner_products_with_the_bias_behind() {
        let classifiers = Classifiers::new(vec![1.0, 2.0, 3.0, 4.0], vec![0.5, -0.5], 10.0);
        let indexed = classifiers.with_biases();
        for label in 0..2 {
            let row = indexed.row(label).to_vec();
            let product: f32 = row.iter().zip([0.3, 0.7, 1.0]).map(|(a, b)| a * b).sum();
            assert!((product - classifiers.score(label, &[0.3, 0.7])).abs() < 1e-5);
        }
    }
}
