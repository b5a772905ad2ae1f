//! Points on a circle, for the tests of all objectives.

use super::classifiers::Classifiers;
use super::{ClassifierTriplet, MomentType, Objective, OneVsAll, Sampled, SampledLoss};
use crate::batching::Curriculum;
use crate::data::Csr;
use crate::encoder::{VectorMatrix, VectorType};

pub(super) struct Toy {
    pub(super) points: VectorMatrix,
    pub(super) truth: Csr,
    pub(super) labels: VectorMatrix,
}

/// Points on a circle; label l has those within its arc, but its embedding is half an arc off.
pub(super) fn circle(n_points: usize, n_labels: usize) -> Toy {
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
        labels.set(label, &angle(std::f32::consts::TAU * label as f32 / n_labels as f32));
    }
    Toy { points, truth: Csr::from_pairs(n_points, n_labels as u32, pairs), labels }
}

impl Toy {
    /// The share of points whose best label is right.
    pub(super) fn accuracy(&self, classifiers: &Classifiers) -> f64 {
        let right = (0..self.points.n_rows()).filter(|&point| {
            let vector = self.points.row(point).to_vec();
            let best = (0..classifiers.n_labels()).max_by(|&a, &b| {
                classifiers.score(a, &vector).total_cmp(&classifiers.score(b, &vector))
            });
            truth_has(&self.truth, point, best)
        });
        right.count() as f64 / self.points.n_rows() as f64
    }

    /// The same points, without the pairs of some labels.
    pub(super) fn without_points_of(self, labels: &[u32]) -> Self {
        let pairs = (0..self.truth.n_rows() as u32)
            .flat_map(|point| self.truth.row(point as usize).iter().map(move |&l| (point, l)))
            .filter(|(_, label)| !labels.contains(label))
            .collect();
        let truth = Csr::from_pairs(self.truth.n_rows(), self.truth.n_columns(), pairs);
        Self { truth, ..self }
    }
}

fn truth_has(truth: &Csr, point: usize, label: Option<usize>) -> bool {
    label.is_some_and(|label| truth.contains(point, label as u32))
}

/// All objectives, with settings for the circle.
pub(super) fn objectives(epochs: usize) -> Vec<Objective> {
    let one_vs_all = OneVsAll {
        epochs,
        batch_size: 60,
        learning_rate: 0.02,
        bias_rate: 0.02,
        dropout: 0.0,
        ..Default::default()
    };
    let sampled = Sampled {
        epochs,
        batch_size: 60,
        n_sampled: 4,
        learning_rate: 0.02,
        bias_rate: 0.02,
        dropout: 0.0,
        ..Default::default()
    };
    let softmax =
        Sampled { loss: SampledLoss::Softmax, moments: MomentType::Half, ..sampled.clone() };
    let triplet = ClassifierTriplet {
        epochs,
        batch_size: 60,
        curriculum: Curriculum { start: 2, doublings: vec![0.5], most: 4 },
        learning_rate: 0.01,
        dropout: 0.0,
        ..Default::default()
    };
    let cross_entropy = Sampled { loss: SampledLoss::CrossEntropy, ..sampled };
    vec![
        Objective::OneVsAll(one_vs_all),
        Objective::Sampled(cross_entropy),
        Objective::Sampled(softmax),
        Objective::Triplet(triplet),
    ]
}
