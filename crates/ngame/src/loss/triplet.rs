//! The triplet loss: the positive should score higher than every hard negative, by a margin.

use super::hard_negatives::HardNegatives;
use super::{Candidate, Loss, RowReport, RowTargets, sigmoid, softplus};

/// The mean, plain or weighted, of what every hard negative costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Triplet {
    /// How much higher the positive should score (γ).
    pub margin: f32,
    /// Which negatives count.
    pub negatives: HardNegatives,
    /// What a negative costs that comes too close.
    pub shape: TripletShape,
    /// How much each of them counts.
    pub weighting: Weighting,
}

/// What a triplet costs, where `gap` is the negative's score less the positive's plus the margin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TripletShape {
    /// `max(gap, 0)`, as in the paper.
    Hinge,
    /// `max(gap, 0)²`.
    Squared,
    /// `log(1 + exp(scale gap)) / scale`, which never lets go wholly.
    Logistic {
        /// How sharply it bends; the larger, the closer to the hinge.
        scale: f32,
    },
}

/// How much a negative counts among those of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Weighting {
    /// All negatives alike, those that cost nothing included.
    Mean,
    /// By the softmax of their scores, over those that cost something: the hardest count most, as in
    /// the authors' code.
    Softmax {
        /// Scores are divided by this.
        temperature: f32,
    },
}

impl TripletShape {
    /// The cost of a gap, and how fast it grows.
    fn cost(self, gap: f32) -> (f32, f32) {
        match self {
            Self::Hinge if gap > 0.0 => (gap, 1.0),
            Self::Squared if gap > 0.0 => (gap * gap, 2.0 * gap),
            Self::Hinge | Self::Squared => (0.0, 0.0),
            Self::Logistic { scale } => (softplus(scale * gap) / scale, sigmoid(scale * gap)),
        }
    }
}

impl Loss for Triplet {
    fn row(
        &self,
        scores: &mut [f32],
        targets: RowTargets<'_>,
        room: &mut Vec<Candidate>,
    ) -> RowReport {
        self.negatives.choose(scores, targets, room);
        let positive = scores[targets.positive];
        scores.fill(0.0);
        let mut report = RowReport { n_negatives: room.len(), ..Default::default() };
        let cost = |score: f32| self.shape.cost(score - positive + self.margin);
        for &(score, _) in &*room {
            report.negative_scores += score;
            report.n_active += usize::from(score - positive + self.margin > 0.0);
        }
        let mut d_positive = 0.0;
        match self.weighting {
            Weighting::Mean => {
                let share = 1.0 / room.len().max(1) as f32;
                for &(score, column) in &*room {
                    let (cost, slope) = cost(score);
                    report.loss += share * cost;
                    scores[column as usize] = share * slope;
                    d_positive -= share * slope;
                }
            }
            Weighting::Softmax { temperature } => {
                room.retain(|&(score, _)| cost(score).0 > 0.0);
                let highest =
                    room.iter().fold(f32::NEG_INFINITY, |most, &(score, _)| most.max(score));
                let weight = |score: f32| ((score - highest) / temperature).exp();
                let total: f32 = room.iter().map(|&(score, _)| weight(score)).sum();
                for &(score, _) in &*room {
                    report.loss += weight(score) / total * cost(score).0;
                }
                for &(score, column) in &*room {
                    let (cost, slope) = cost(score);
                    let share = weight(score) / total;
                    // A negative's score moves its own cost, and the weights of all.
                    let by_weight = share * (cost - report.loss) / temperature;
                    scores[column as usize] = share * slope + by_weight;
                    d_positive -= share * slope;
                }
            }
        }
        scores[targets.positive] = d_positive;
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::gradcheck::check_rows;

    const HARD: [HardNegatives; 3] =
        [HardNegatives::All, HardNegatives::Top(4), HardNegatives::Radius(1.2)];

    #[test]
    fn gradients_are_those_of_the_loss() {
        let shapes =
            [TripletShape::Hinge, TripletShape::Squared, TripletShape::Logistic { scale: 5.0 }];
        for negatives in HARD {
            for shape in shapes {
                for weighting in [Weighting::Mean, Weighting::Softmax { temperature: 0.1 }] {
                    check_rows(&Triplet { margin: 0.3, negatives, shape, weighting });
                }
            }
        }
    }

    #[test]
    fn a_triplet_costs_what_it_lacks_of_the_margin() {
        let triplet = Triplet {
            margin: 0.3,
            negatives: HardNegatives::Top(2),
            shape: TripletShape::Hinge,
            weighting: Weighting::Mean,
        };
        let mut scores = [0.5, 0.9, 0.4, 0.1, 0.6];
        let targets = RowTargets { positive: 0, other_positives: &[1], ignored: &[4] };
        let report = triplet.row(&mut scores, targets, &mut Vec::new());
        // Of the negatives 0.4 and 0.1 the first lacks 0.2, the second nothing.
        assert!((report.loss - 0.1).abs() < 1e-6, "{report:?}");
        assert_eq!((report.n_negatives, report.n_active), (2, 1));
        assert_eq!(scores, [-0.5, 0.0, 0.5, 0.0, 0.0]);
    }

    #[test]
    fn a_point_without_negatives_costs_nothing() {
        let softmax = Weighting::Softmax { temperature: 0.1 };
        for weighting in [Weighting::Mean, softmax] {
            let negatives = HardNegatives::All;
            let triplet = Triplet { margin: 0.3, negatives, shape: TripletShape::Hinge, weighting };
            let mut scores = [0.5];
            let targets = RowTargets { positive: 0, other_positives: &[], ignored: &[] };
            let report = triplet.row(&mut scores, targets, &mut Vec::new());
            assert_eq!((report, scores), (RowReport::default(), [0.0]));
        }
    }
}
