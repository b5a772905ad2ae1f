//! Finite differences of a loss by the scores of a point.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::{Loss, RowTargets};

/// Compares the gradient of a loss with differences of the loss, on rows of several kinds.
pub(super) fn check_rows(loss: &dyn Loss) {
    const STEP: f32 = 1e-3;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let run = |scores: &mut [f32], targets| loss.row(scores, targets, &mut Vec::new()).loss;
    for (n_labels, other_positives, ignored) in
        [(12, &[][..], &[][..]), (12, &[3, 7][..], &[5][..]), (2, &[][..], &[][..])]
    {
        for _ in 0..5 {
            // Scores keep a distance from one another, so that no step changes which are hardest,
            // and from the margin, where the hinge has a kink.
            let mut scores: Vec<f32> = (0..n_labels).map(|at| at as f32 * 0.07 - 0.411).collect();
            for at in (1..n_labels).rev() {
                scores.swap(at, random.random_range(0..=at));
            }
            let targets = RowTargets { positive: 1, other_positives, ignored };
            let mut gradient = scores.clone();
            run(&mut gradient, targets);
            let largest = gradient.iter().fold(1e-3f32, |most, value| most.max(value.abs()));
            for at in 0..n_labels {
                let moved = |by: f32| {
                    let mut moved = scores.clone();
                    moved[at] += by;
                    f64::from(run(&mut moved, targets))
                };
                let difference = (moved(STEP) - moved(-STEP)) / f64::from(2.0 * STEP);
                let error = (difference - f64::from(gradient[at])).abs();
                assert!(
                    error < 1e-2 * f64::from(largest),
                    "{loss:?}: d/d score {at} is {} and not {difference}, scores {scores:?}",
                    gradient[at]
                );
            }
        }
    }
}
