//! Binary cross-entropy: every label of the batch is a yes-or-no question of its own.

use super::hard_negatives::HardNegatives;
use super::{Candidate, Loss, RowReport, RowTargets, sigmoid, softplus};

/// The probability of a label is `sigmoid(scale · score + bias)`; all positives in the batch should
/// have 1, the negatives 0. The mean over positives and the mean over negatives count alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrossEntropy {
    /// What scores, which are cosines, are multiplied by.
    pub scale: f32,
    /// What is added then.
    pub bias: f32,
    /// Which negatives count.
    pub negatives: HardNegatives,
}

impl Loss for CrossEntropy {
    fn row(
        &self,
        scores: &mut [f32],
        targets: RowTargets<'_>,
        room: &mut Vec<Candidate>,
    ) -> RowReport {
        self.negatives.choose(scores, targets, room);
        let positives = targets.all_positives(scores);
        scores.fill(0.0);
        let mut report = RowReport { n_negatives: room.len(), ..Default::default() };
        let share = 1.0 / positives.len() as f32;
        for &(score, column) in &positives {
            let logit = self.scale * score + self.bias;
            report.loss += share * softplus(-logit);
            scores[column as usize] = -share * self.scale * sigmoid(-logit);
        }
        let share = 1.0 / room.len().max(1) as f32;
        for &(score, column) in &*room {
            let logit = self.scale * score + self.bias;
            report.loss += share * softplus(logit);
            report.negative_scores += score;
            report.n_active += usize::from(logit > 0.0);
            scores[column as usize] = share * self.scale * sigmoid(logit);
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
            check_rows(&CrossEntropy { scale: 4.0, bias: -1.0, negatives });
        }
    }

    #[test]
    fn the_loss_is_that_of_the_probabilities() {
        let loss = CrossEntropy { scale: 2.0, bias: -1.0, negatives: HardNegatives::All };
        let mut scores = [1.0f32, 0.5];
        let targets = RowTargets { positive: 0, other_positives: &[], ignored: &[] };
        let report = loss.row(&mut scores, targets, &mut Vec::new());
        let expected = (1.0 + (-1f64).exp()).ln() + 2f64.ln();
        assert!((f64::from(report.loss) - expected).abs() < 1e-6, "{report:?}");
    }
}
