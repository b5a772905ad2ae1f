//! The loss of a whole batch and its gradient by the vectors.

use ngame_nn::{Matrix, multiply};
use rayon::prelude::*;

use super::{Candidate, Loss, RowReport, RowTargets};

/// Points that a thread works on in one go.
const BLOCK: usize = 16;

/// What the labels of a batch are to its points. Columns are counted within the batch.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// The positive drawn for every point.
    pub positives: Vec<u32>,
    /// Other positives of every point, back to back, and where each point's end.
    pub others: Vec<u32>,
    /// Where each point's other positives end.
    pub other_ends: Vec<usize>,
    /// Columns that are neither positive nor negative, likewise.
    pub ignored: Vec<u32>,
    /// Where each point's ignored columns end.
    pub ignored_ends: Vec<usize>,
    /// What is added to the scores of each column; nothing where it is empty.
    pub offsets: Vec<f32>,
}

impl Targets {
    /// Forgets all points.
    pub fn clear(&mut self) {
        self.positives.clear();
        self.others.clear();
        self.other_ends.clear();
        self.ignored.clear();
        self.ignored_ends.clear();
        self.offsets.clear();
    }

    /// Adds a point.
    pub fn push(
        &mut self,
        positive: u32,
        others: impl IntoIterator<Item = u32>,
        ignored: impl IntoIterator<Item = u32>,
    ) {
        self.positives.push(positive);
        self.others.extend(others);
        self.other_ends.push(self.others.len());
        self.ignored.extend(ignored);
        self.ignored_ends.push(self.ignored.len());
    }

    /// What the labels are to one point.
    pub fn row(&self, point: usize) -> RowTargets<'_> {
        let range =
            |ends: &[usize]| point.checked_sub(1).map_or(0, |before| ends[before])..ends[point];
        RowTargets {
            positive: self.positives[point] as usize,
            other_positives: &self.others[range(&self.other_ends)],
            ignored: &self.ignored[range(&self.ignored_ends)],
        }
    }
}

/// What the loss of a batch looked like. Sums are over the points that count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BatchReport {
    /// The mean loss of the points that count.
    pub loss: f64,
    /// Points that count: all of them, or those with the largest losses.
    pub n_points: usize,
    /// Negatives compared with a positive.
    pub n_negatives: usize,
    /// Those that still push.
    pub n_active: usize,
    /// The sum of the negatives' scores.
    pub negative_scores: f64,
}

/// Buffers for the loss of a batch, reused from step to step.
#[derive(Debug, Default)]
pub struct BatchLoss {
    scores: Vec<f32>, // (points, labels)
    reports: Vec<RowReport>,
}

impl BatchLoss {
    /// Writes the gradient of the mean loss of a batch by the vectors of its points and labels.
    ///
    /// With `hardest`, only so many points count, those with the largest losses (ordered SGD).
    pub fn run(
        &mut self,
        loss: &dyn Loss,
        dim: usize,
        points: &[f32], // (points, dim)
        labels: &[f32], // (labels, dim)
        targets: &Targets,
        hardest: Option<usize>,
        d_points: &mut [f32], // (points, dim)
        d_labels: &mut [f32], // (labels, dim)
    ) -> BatchReport {
        let (n_points, n_labels) = (points.len() / dim, labels.len() / dim);
        assert_eq!(targets.positives.len(), n_points, "every point has a positive");
        let offsets = &targets.offsets;
        assert!(offsets.is_empty() || offsets.len() == n_labels, "an offset for every label");
        self.scores.resize(n_points * n_labels, 0.0);
        let points_matrix = Matrix::new(points, n_points, dim);
        let labels_matrix = Matrix::new(labels, n_labels, dim);
        multiply(points_matrix, labels_matrix.transposed(), &mut self.scores);
        self.reports.clear();
        self.reports.resize(n_points, RowReport::default());
        let rows = self.scores.par_chunks_mut(BLOCK * n_labels.max(1));
        let reports = self.reports.par_chunks_mut(BLOCK);
        rows.zip(reports).enumerate().for_each(|(block, (rows, reports))| {
            let mut room: Vec<Candidate> = Vec::new();
            for (at, (row, report)) in rows.chunks_mut(n_labels).zip(reports).enumerate() {
                row.iter_mut().zip(offsets).for_each(|(score, offset)| *score += offset);
                *report = loss.row(row, targets.row(block * BLOCK + at), &mut room);
            }
        });
        let report = self.weigh(n_labels, hardest);
        let scores = Matrix::new(&self.scores, n_points, n_labels);
        multiply(scores, labels_matrix, d_points);
        multiply(scores.transposed(), points_matrix, d_labels);
        report
    }

    /// Makes the gradients of the points' losses that of their mean, or of the mean of the largest.
    fn weigh(&mut self, n_labels: usize, hardest: Option<usize>) -> BatchReport {
        let n_points = self.reports.len();
        let counts = hardest.map_or(n_points, |most| most.clamp(1, n_points.max(1)));
        let least = match counts < n_points {
            true => {
                let mut losses: Vec<f32> = self.reports.iter().map(|report| report.loss).collect();
                *losses.select_nth_unstable_by(counts - 1, |a, b| b.total_cmp(a)).1
            }
            false => f32::NEG_INFINITY,
        };
        let share = 1.0 / counts.max(1) as f32;
        let mut total = BatchReport { n_points: counts, ..Default::default() };
        // Of those that cost as much as the last that counts, the first do.
        let above = self.reports.iter().filter(|report| report.loss > least).count();
        let mut ties = counts - above.min(counts);
        for (row, report) in self.scores.chunks_mut(n_labels.max(1)).zip(&self.reports) {
            let tied = report.loss == least && ties > 0;
            // A loss that is not a number must reach whoever watches, and not be left out.
            if report.loss > least || tied || report.loss.is_nan() {
                ties -= usize::from(tied);
                row.iter_mut().for_each(|value| *value *= share);
                total.loss += f64::from(share * report.loss);
                total.n_negatives += report.n_negatives;
                total.n_active += report.n_active;
                total.negative_scores += f64::from(report.negative_scores);
            } else {
                row.fill(0.0);
            }
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::loss::{CrossEntropy, HardNegatives};

    fn noise(seed: u64, len: usize) -> Vec<f32> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        (0..len).map(|_| random.random::<f32>() - 0.5).collect()
    }

    fn targets() -> Targets {
        let mut targets = Targets::default();
        for point in 0..6u32 {
            targets.push(point % 4, (point == 2).then_some(0), (point == 3).then_some(1));
        }
        targets
    }

    const LOSS: CrossEntropy =
        CrossEntropy { scale: 3.0, bias: 0.0, negatives: HardNegatives::All };

    fn run(points: &[f32], labels: &[f32], hardest: Option<usize>) -> (f64, Vec<f32>, Vec<f32>) {
        run_on(&targets(), points, labels, hardest)
    }

    fn run_on(
        targets: &Targets,
        points: &[f32],
        labels: &[f32],
        hardest: Option<usize>,
    ) -> (f64, Vec<f32>, Vec<f32>) {
        let mut d_points = vec![0.0; points.len()];
        let mut d_labels = vec![0.0; labels.len()];
        let report = BatchLoss::default().run(
            &LOSS,
            5,
            points,
            labels,
            targets,
            hardest,
            &mut d_points,
            &mut d_labels,
        );
        (report.loss, d_points, d_labels)
    }

    #[test]
    fn gradients_by_vectors_are_those_of_the_mean_loss() {
        let (points, labels) = (noise(1, 6 * 5), noise(2, 4 * 5));
        for hardest in [None, Some(2)] {
            let (_, d_points, d_labels) = run(&points, &labels, hardest);
            for at in 0..points.len() + labels.len() {
                let moved = |by: f32| {
                    let (mut points, mut labels) = (points.clone(), labels.clone());
                    match at.checked_sub(points.len()) {
                        None => points[at] += by,
                        Some(at) => labels[at] += by,
                    }
                    run(&points, &labels, hardest).0
                };
                let difference = (moved(1e-2) - moved(-1e-2)) / 2e-2;
                let found = d_points.iter().chain(&d_labels).nth(at).copied().unwrap();
                assert!(
                    (difference - f64::from(found)).abs() < 2e-3,
                    "{at}: {found}, {difference}"
                );
            }
        }
    }

    #[test]
    fn offsets_are_part_of_the_scores() {
        let (points, mut labels) = (noise(1, 6 * 5), noise(2, 4 * 5));
        // The last number of a point is 1, so the last number of a label is its offset.
        let points: Vec<f32> =
            points.chunks(5).flat_map(|row| [&row[..4], &[1.0]].concat()).collect();
        let (loss, d_points, _) = run(&points, &labels, None);
        let offsets = labels.chunks_mut(5).map(|row| std::mem::take(&mut row[4])).collect();
        let relieved = run_on(&Targets { offsets, ..targets() }, &points, &labels, None);
        assert!((relieved.0 - loss).abs() < 1e-6);
        for (row, expected) in relieved.1.chunks(5).zip(d_points.chunks(5)) {
            assert!(row[..4].iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6));
        }
    }

    #[test]
    fn ordered_sgd_takes_the_largest_losses() {
        let (points, labels) = (noise(1, 6 * 5), noise(2, 4 * 5));
        let all = run(&points, &labels, None);
        assert_eq!(run(&points, &labels, Some(6)), all);
        assert_eq!(run(&points, &labels, Some(60)), all);
        let (loss, d_points, _) = run(&points, &labels, Some(2));
        assert!(loss > all.0);
        let moved = d_points.chunks(5).filter(|row| row.iter().any(|&value| value != 0.0)).count();
        assert_eq!(moved, 2);
    }

    #[test]
    fn targets_come_back_as_they_went_in() {
        let targets = targets();
        assert_eq!(targets.row(2).other_positives, [0]);
        assert_eq!((targets.row(3).other_positives, targets.row(3).ignored), (&[][..], &[1][..]));
        assert_eq!(targets.row(5).positive, 1);
    }
}
