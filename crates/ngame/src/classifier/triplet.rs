//! The paper's objective for classifiers: in batches of points that lie close together, a point's
//! hardest positives should score higher than its hardest negatives, by a margin.
//!
//! Scores are cosines of the point's vector, some of its numbers dropped, and the classifier's; a
//! point's candidates are the labels of all points of its batch. Only a few of them make its loss, so
//! only these few have a gradient: the way back is a sum of a few vectors a point and no product.
//!
//! ```text
//! points (B, D), classifiers of the batch's labels (M, D) ──> cosines, a few points at a time
//!   ──> a few positives and negatives a point ──> d_classifiers (M, D) ──> Adam on M rows
//! ```

use ngame_nn::{AdamStep, Matrix, MomentType, RowTable, add_scaled, dot, multiply};
use rayon::prelude::*;

use super::batch_labels::BatchLabels;
use super::classifiers::Classifiers;
use super::task::{Drop, StepAt, Task, Training};
use crate::batching::{Batches, Clusters, Curriculum, KMeansOptions, cluster};
use crate::encoder::VectorMatrix;

/// Points that are scored at once: their scores are read again before they leave the cache.
const POINTS: usize = 256;

/// Rows that a thread works on in one go.
const ROWS: usize = 16;

/// How classifiers are trained by triplets.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassifierTriplet {
    /// How often every point is seen.
    pub epochs: usize,
    /// The points of a step.
    pub batch_size: usize,
    /// How large the clusters are that batches are made of.
    pub curriculum: Curriculum,
    /// How much higher positives should score.
    pub margin: f32,
    /// How many positives of a point count, those with the lowest scores.
    pub n_positives: usize,
    /// How many negatives of a point count, those with the highest scores.
    pub n_negatives: usize,
    /// The highest learning rate.
    pub learning_rate: f32,
    /// The share of a point's numbers that training drops.
    pub dropout: f32,
    /// The share of the run in which rates rise.
    pub warmup: f64,
    /// How precisely moments are kept.
    pub moments: MomentType,
    /// Where random choices come from.
    pub seed: u64,
}

impl Default for ClassifierTriplet {
    fn default() -> Self {
        Self {
            epochs: 30,
            batch_size: 2_048,
            curriculum: Curriculum { start: 32, doublings: vec![], most: 32 },
            margin: 0.2,
            n_positives: 3,
            n_negatives: 5,
            learning_rate: 1e-3,
            dropout: 0.5,
            warmup: 0.05,
            moments: MomentType::Full,
            seed: 0,
        }
    }
}

/// A run under way.
#[derive(Debug)]
pub(super) struct TripletTraining {
    options: ClassifierTriplet,
    n_points: usize,
    dim: usize,
    clusters: Option<(usize, Clusters)>, // Of this size.
    trained: Vec<bool>,                  // (labels): those that have points
    vectors: RowTable,                   // Of any length; only directions count.
    labels: BatchLabels,
    batch: Vec<f32>, // (points, dim)
    room: Room,
}

/// The buffers of a step.
#[derive(Debug, Default)]
struct Room {
    directions: Vec<f32>,        // (labels of the batch, dim)
    lengths: Vec<f32>,           // (labels of the batch)
    scores: Vec<f32>,            // (some points, labels of the batch)
    pulls: Vec<(u32, u32, f32)>, // Column, row, and the loss's gradient by their score.
    d_vectors: Vec<f32>,         // (labels of the batch, dim)
}

impl TripletTraining {
    pub(super) fn new(task: &Task<'_>, labels: &VectorMatrix, options: &ClassifierTriplet) -> Self {
        let counts = task.truth.column_counts();
        Self {
            options: options.clone(),
            n_points: task.points.n_rows(),
            dim: labels.dim(),
            clusters: None,
            trained: counts.iter().map(|&count| count > 0).collect(),
            vectors: RowTable::new(labels.all().to_vec(), labels.dim(), options.moments),
            labels: BatchLabels::new(labels.n_rows()),
            batch: Vec::new(),
            room: Room::default(),
        }
    }

    fn cluster_size(&self, epoch: usize) -> usize {
        self.options.curriculum.cluster_size(epoch, self.options.epochs)
    }

    /// The gradient of the mean loss of the points by the classifiers of the batch's labels, in the
    /// room. Returns the loss.
    fn gradient(&mut self, task: &Task<'_>, points: &[u32]) -> f64 {
        let (dim, n_labels) = (self.dim, self.labels.labels().len());
        let room = &mut self.room;
        room.directions.resize(n_labels * dim, 0.0);
        room.lengths.resize(n_labels, 0.0);
        self.vectors.gather(self.labels.labels(), &mut room.directions);
        normalise(dim, &mut room.directions, Some(&mut room.lengths));
        room.pulls.clear();
        let share = 1.0 / points.len() as f32;
        let choice = Choice { options: &self.options, labels: &self.labels, task, share };
        let directions = Matrix::new(&room.directions, n_labels, dim);
        let mut loss = 0.0;
        for (at, (points, vectors)) in
            points.chunks(POINTS).zip(self.batch.chunks(POINTS * dim)).enumerate()
        {
            room.scores.resize(points.len() * n_labels, 0.0);
            let vectors = Matrix::new(vectors, points.len(), dim);
            multiply(vectors, directions.transposed(), &mut room.scores);
            let rows: Vec<_> = points
                .par_chunks(ROWS)
                .zip(room.scores.par_chunks_mut(ROWS * n_labels))
                .enumerate()
                .map(|(block, (points, scores))| {
                    let mut pulls = Vec::new();
                    let first_row = at * POINTS + block * ROWS;
                    let mut loss = 0.0;
                    let rows = points.iter().zip(scores.chunks_exact_mut(n_labels));
                    for (row, (&point, scores)) in rows.enumerate() {
                        let row = (first_row + row) as u32;
                        loss += choice.row(point, scores, |column, pull| {
                            pulls.push((column, row, pull));
                        });
                    }
                    (loss, pulls)
                })
                .collect();
            for (part, pulls) in rows {
                loss += part;
                room.pulls.extend(pulls);
            }
        }
        room.pulls.par_sort_unstable_by_key(|&(column, row, _)| (column, row));
        room.pull(&self.batch, dim);
        loss
    }
}

impl Room {
    /// The gradient by the classifiers of the gradient by scores.
    fn pull(&mut self, points: &[f32], dim: usize) {
        self.d_vectors.resize(self.directions.len(), 0.0);
        self.d_vectors.par_chunks_mut(ROWS * dim).enumerate().for_each(|(block, d_vectors)| {
            d_vectors.fill(0.0);
            let first = (block * ROWS) as u32;
            let begin = self.pulls.partition_point(|&(column, ..)| column < first);
            let n_columns = (d_vectors.len() / dim) as u32;
            for &(column, row, pull) in
                self.pulls[begin..].iter().take_while(|&&(column, ..)| column < first + n_columns)
            {
                let start = (column - first) as usize * dim;
                let point = &points[row as usize * dim..(row as usize + 1) * dim];
                add_scaled(pull, point, &mut d_vectors[start..start + dim]);
            }
            for (column, d_vector) in d_vectors.chunks_exact_mut(dim).enumerate() {
                let column = block * ROWS + column;
                // Making a vector longer does not change its direction: that part falls away.
                let direction = &self.directions[column * dim..(column + 1) * dim];
                add_scaled(-dot(d_vector, direction), direction, d_vector);
                let inverse = 1.0 / self.lengths[column];
                d_vector.iter_mut().for_each(|value| *value *= inverse);
            }
        });
    }
}

/// Which scores of a point make its loss.
struct Choice<'a> {
    options: &'a ClassifierTriplet,
    labels: &'a BatchLabels,
    task: &'a Task<'a>,
    share: f32,
}

impl Choice<'_> {
    /// Hands out the gradient of a point's loss by its scores, and returns the loss: the mean over pairs
    /// of a hard positive and a hard negative of what the positive lacks of the margin. Scores of
    /// labels that are no negatives are lost.
    fn row(&self, point: u32, scores: &mut [f32], mut pull: impl FnMut(u32, f32)) -> f64 {
        let column = |&label: &u32| self.labels.column(label);
        let positives = self.task.truth.row(point as usize).iter().filter_map(column);
        let mut hardest: Vec<(f32, u32)> =
            positives.map(|column| (scores[column as usize], column)).collect();
        hardest.iter().for_each(|&(_, column)| scores[column as usize] = f32::NEG_INFINITY);
        for column in self.task.ignored(point).iter().filter_map(column) {
            scores[column as usize] = f32::NEG_INFINITY;
        }
        hardest.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        hardest.truncate(self.options.n_positives);
        let negatives = highest(scores, self.options.n_negatives);
        let share = self.share / (hardest.len() * negatives.len()).max(1) as f32;
        let lacks = |positive: f32, negative: f32| negative - positive + self.options.margin;
        let mut loss = 0.0;
        for &(positive, column) in &hardest {
            let active = negatives.iter().filter(|&&(score, _)| lacks(positive, score) > 0.0);
            let n_active = active.clone().count();
            loss += active.map(|&(score, _)| f64::from(lacks(positive, score))).sum::<f64>();
            if n_active > 0 {
                pull(column, -share * n_active as f32);
            }
        }
        for &(score, column) in &negatives {
            let n_active = hardest.iter().filter(|&&(p, _)| lacks(p, score) > 0.0).count();
            if n_active > 0 {
                pull(column, share * n_active as f32);
            }
        }
        loss * f64::from(share)
    }
}

/// The highest scores with their columns, of equal ones the first; minus infinity is no score.
fn highest(scores: &[f32], n: usize) -> Vec<(f32, u32)> {
    const LANES: usize = 32;
    let mut best: Vec<(f32, u32)> = Vec::with_capacity(n + 1);
    let mut least = f32::NEG_INFINITY;
    if n == 0 {
        return best;
    }
    for (group, values) in scores.chunks(LANES).enumerate() {
        // Most groups hold nothing new, and to see that takes no branch a score.
        if !values.iter().fold(false, |any, &score| any | (score > least)) {
            continue;
        }
        for (at, &score) in values.iter().enumerate() {
            if score > least {
                let place = best.partition_point(|&(other, _)| other >= score);
                best.insert(place, (score, (group * LANES + at) as u32));
                best.truncate(n);
                if best.len() == n {
                    least = best[n - 1].0;
                }
            }
        }
    }
    best
}

/// Makes rows as long as 1, and says how long they were.
fn normalise(dim: usize, rows: &mut [f32], lengths: Option<&mut [f32]>) {
    let normalise = |row: &mut [f32]| {
        let length = dot(row, row).sqrt().max(1e-12);
        let inverse = 1.0 / length;
        row.iter_mut().for_each(|value| *value *= inverse);
        length
    };
    let rows = rows.par_chunks_exact_mut(dim).with_min_len(ROWS);
    match lengths {
        Some(lengths) => {
            rows.zip(lengths).for_each(|(row, length)| *length = normalise(row));
        }
        None => rows.for_each(|row| {
            normalise(row);
        }),
    }
}

impl Training for TripletTraining {
    fn n_batches(&self, epoch: usize) -> usize {
        Batches::count(self.n_points, self.cluster_size(epoch), self.options.batch_size)
    }

    fn batches(&mut self, task: &Task<'_>, epoch: usize) -> Batches {
        let size = self.cluster_size(epoch);
        // Points are frozen, so clusters change with their size alone.
        let clusters = match self.clusters.take() {
            Some((made, clusters)) if made == size => clusters,
            _ => {
                let options = KMeansOptions { seed: self.options.seed, ..Default::default() };
                cluster(task.points, size, &options)
            }
        };
        let batches =
            Batches::draw(&clusters, size, self.options.batch_size, self.options.seed, epoch);
        self.clusters = Some((size, clusters));
        batches
    }

    fn step(&mut self, task: &Task<'_>, points: &[u32], at: StepAt) {
        let ClassifierTriplet { dropout, seed, learning_rate, .. } = self.options;
        self.labels.fill(task.truth, points);
        if self.labels.labels().is_empty() {
            return;
        }
        task.gather(points, Drop { rate: dropout, seed, step: at.step }, &mut self.batch);
        normalise(self.dim, &mut self.batch, None);
        self.gradient(task, points);
        let step = AdamStep::new(at.share * learning_rate, at.step + 1);
        self.vectors.step(&step, self.labels.labels(), &self.room.d_vectors);
    }

    fn arrays(&self) -> Vec<(&'static str, &[u8])> {
        let [vectors, first, second] = self.vectors.buffers();
        vec![("vectors", vectors), ("vector_first", first), ("vector_second", second)]
    }

    fn arrays_mut(&mut self) -> Vec<(&'static str, &mut [u8])> {
        let [vectors, first, second] = self.vectors.buffers_mut();
        vec![("vectors", vectors), ("vector_first", first), ("vector_second", second)]
    }

    fn finish(self: Box<Self>) -> Classifiers {
        let (dim, trained) = (self.dim, self.trained);
        let mut vectors = self.vectors.into_values();
        for (row, _) in vectors.chunks_exact_mut(dim).zip(&trained).filter(|(_, trained)| **trained)
        {
            normalise(dim, row, None);
        }
        Classifiers::new(vectors, vec![0.0; trained.len()], 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier::toy::circle;
    use crate::data::Csr;

    /// The loss in f64, from all cosines of a point.
    fn expected_loss(training: &TripletTraining, task: &Task<'_>, points: &[u32]) -> f64 {
        let labels = training.labels.labels();
        let ClassifierTriplet { margin, n_positives, n_negatives, .. } = training.options;
        let mut total = 0.0;
        for &point in points {
            let vector = task.points.row(point as usize).to_vec();
            let cosine = |label: u32| {
                let row = &training.vectors.values()[label as usize * 3..][..3];
                let of = |a: &[f32], b: &[f32]| -> f64 {
                    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
                };
                of(row, &vector) / (of(row, row) * of(&vector, &vector)).sqrt()
            };
            let is_true = |label: &u32| task.truth.contains(point as usize, *label);
            let mut positives: Vec<f64> =
                task.truth.row(point as usize).iter().map(|&label| cosine(label)).collect();
            let mut negatives: Vec<f64> = labels
                .iter()
                .filter(|label| !is_true(label) && !task.ignored(point).contains(label))
                .map(|&label| cosine(label))
                .collect();
            positives.sort_by(f64::total_cmp);
            positives.truncate(n_positives);
            negatives.sort_by(|a, b| b.total_cmp(a));
            negatives.truncate(n_negatives);
            let share = 1.0 / (positives.len() * negatives.len()).max(1) as f64;
            for positive in &positives {
                for negative in &negatives {
                    total += share * (negative - positive + f64::from(margin)).max(0.0);
                }
            }
        }
        total / points.len() as f64
    }

    #[test]
    fn the_gradient_is_that_of_the_hardest_triplets() {
        let toy = circle(60, 20);
        let mut pairs: Vec<(u32, u32)> = (0..60).map(|point| (point, point / 3)).collect();
        pairs.extend([(4, 9), (4, 12), (31, 2), (31, 19)]);
        let truth = Csr::from_pairs(60, 20, pairs);
        let filter = Csr::from_pairs(60, 20, vec![(4, 9), (4, 10), (31, 3), (5, 17)]);
        let task = Task { points: &toy.points, truth: &truth, not_negative: Some(&filter) };
        let points = [4, 31, 5, 50, 22, 23];
        let options = ClassifierTriplet {
            n_positives: 2,
            n_negatives: 3,
            margin: 0.31,
            ..Default::default()
        };
        let mut training = TripletTraining::new(&task, &toy.labels, &options);
        // Vectors of several lengths.
        let mut vectors: Vec<f32> = toy.labels.all().to_vec();
        for (at, value) in vectors.iter_mut().enumerate() {
            *value = *value * (1.0 + (at / 3) as f32 * 0.1) + 0.03 * (at as f32).sin();
        }
        training.vectors = RowTable::new(vectors.clone(), 3, MomentType::Full);
        task.gather(&points, Drop { rate: 0.0, seed: 0, step: 0 }, &mut training.batch);
        training.labels.fill(&truth, &points);
        let loss = training.gradient(&task, &points);
        assert!((loss - expected_loss(&training, &task, &points)).abs() < 1e-5);
        let labels = training.labels.labels().to_vec();
        for (column, &label) in labels.iter().enumerate() {
            for at in 0..3 {
                let mut moved = |by: f32| {
                    vectors[label as usize * 3 + at] += by;
                    training.vectors = RowTable::new(vectors.clone(), 3, MomentType::Full);
                    expected_loss(&training, &task, &points)
                };
                let (up, down) = (moved(2e-3), moved(-4e-3));
                moved(2e-3);
                let difference = (up - down) / 4e-3;
                let found = training.room.d_vectors[column * 3 + at];
                let error = (difference - f64::from(found)).abs();
                assert!(error < 2e-3, "{label} {at}: {found} and {difference}");
            }
        }
    }

    #[test]
    fn the_highest_are_those_of_a_sort() {
        let scores: Vec<f32> = (0..500u32).map(|at| f32::from((at * 7919 % 263) as u16)).collect();
        for n in [0, 1, 5, 40, 600] {
            let mut expected: Vec<(f32, u32)> = scores.iter().copied().zip(0..).collect();
            expected.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            expected.truncate(n);
            assert_eq!(highest(&scores, n), expected);
        }
        assert_eq!(highest(&[f32::NEG_INFINITY; 40], 3), []);
    }
}
