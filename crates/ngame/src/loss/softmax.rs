//! The softmax contrastive loss: the positive's share of all the probability should be 1.
//!
//! Other positives of a point stand neither above nor below the line of the fraction (decoupled, as in
//! DEXML): they do not compete with one another.

use super::hard_negatives::HardNegatives;
use super::{Candidate, Loss, RowReport, RowTargets, sigmoid, softplus};

/// `-log(e^p / (e^p + Σ e^n))` with scores over a temperature, for the positive that was drawn or as a
/// mean over all positives in the batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Softmax {
    /// Scores are divided by this.
    pub temperature: f32,
    /// Which negatives count.
    pub negatives: HardNegatives,
    /// Whether every positive in the batch is pulled, and not only the one that was drawn.
    pub every_positive: bool,
}

impl Loss for Softmax {
    fn row(
        &self,
        scores: &mut [f32],
        targets: RowTargets<'_>,
        room: &mut Vec<Candidate>,
    ) -> RowReport {
        self.negatives.choose(scores, targets, room);
        let positives = match self.every_positive {
            true => targets.all_positives(scores),
            false => vec![(scores[targets.positive], targets.positive as u32)],
        };
        scores.fill(0.0);
        let mut report = RowReport { n_negatives: room.len(), ..Default::default() };
        // The logarithm of the sum of the negatives' powers: the score of all of them together.
        let inverse = 1.0 / self.temperature;
        let highest = room.iter().fold(f32::NEG_INFINITY, |most, &(score, _)| most.max(score));
        let power = |score: f32| ((score - highest) * inverse).exp();
        let powers: f32 = room.iter().map(|&(score, _)| power(score)).sum();
        if powers == 0.0 {
            return report; // No negatives: the fraction is 1.
        }
        let together = highest * inverse + powers.ln();
        let share = inverse / positives.len() as f32;
        let (mut pressure, mut easiest) = (0.0, f32::INFINITY);
        for &(score, column) in &positives {
            // -log(e^p / (e^p + e^t)) = log(1 + e^(t - p))
            let gap = together - score * inverse;
            report.loss += softplus(gap) / positives.len() as f32;
            scores[column as usize] = -share * sigmoid(gap);
            pressure += share * sigmoid(gap) / powers;
            easiest = easiest.min(score);
        }
        for &(score, column) in &*room {
            scores[column as usize] = pressure * power(score);
            report.negative_scores += score;
            report.n_active += usize::from(score > easiest);
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::gradcheck::check_rows;

    #[test]
    fn gradients_are_those_of_the_loss() {
        for negatives in [HardNegatives::All, HardNegatives::Top(4), HardNegatives::Radius(1.2)] {
            for every_positive in [false, true] {
                check_rows(&Softmax { temperature: 0.2, negatives, every_positive });
            }
        }
    }

    #[test]
    fn the_loss_is_that_of_the_fraction() {
        let softmax =
            Softmax { temperature: 0.5, negatives: HardNegatives::All, every_positive: false };
        let mut scores = [0.5f32, 0.9, 0.4, 0.1];
        let targets = RowTargets { positive: 0, other_positives: &[1], ignored: &[] };
        let fraction = 1f64.exp() / (1f64.exp() + 0.8f64.exp() + 0.2f64.exp());
        let report = softmax.row(&mut scores, targets, &mut Vec::new());
        assert!((f64::from(report.loss) + fraction.ln()).abs() < 1e-6, "{report:?}");
        assert_eq!(scores[1], 0.0, "other positives are left alone");
        assert!(scores.iter().sum::<f32>().abs() < 1e-6, "the gradient only shifts");
    }

    #[test]
    fn scores_far_apart_do_not_overflow() {
        let softmax =
            Softmax { temperature: 1e-3, negatives: HardNegatives::All, every_positive: true };
        for mut scores in [[1.0, -1.0, -1.0], [-1.0, 1.0, 1.0]] {
            let targets = RowTargets { positive: 0, other_positives: &[1], ignored: &[] };
            let report = softmax.row(&mut scores, targets, &mut Vec::new());
            assert!(report.loss.is_finite() && scores.iter().all(|score| score.is_finite()));
        }
    }
}
