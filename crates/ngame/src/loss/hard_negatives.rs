//! Which labels of a batch count as negatives of a point: the hard ones.

use super::{Candidate, RowTargets};

/// How negatives are chosen among the labels of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HardNegatives {
    /// All there are.
    All,
    /// The k with the highest scores.
    Top(usize),
    /// Those whose vectors lie within this distance of the point's, as the paper says.
    Radius(f32),
}

impl HardNegatives {
    /// Writes the negatives of a point, in no order.
    pub(super) fn choose(
        self,
        scores: &[f32],
        targets: RowTargets<'_>,
        chosen: &mut Vec<Candidate>,
    ) {
        chosen.clear();
        // Unit vectors at distance r have an inner product of 1 - r²/2.
        let least = match self {
            Self::Radius(radius) => 1.0 - 0.5 * radius * radius,
            _ => f32::NEG_INFINITY,
        };
        let spared = |column: u32| {
            column as usize == targets.positive
                || targets.other_positives.contains(&column)
                || targets.ignored.contains(&column)
        };
        match self {
            Self::Top(0) => {}
            Self::Top(most) => {
                // A buffer of twice the size wanted is halved when it is full; from then on only
                // what beats the worst kept may enter.
                let mut worst = f32::NEG_INFINITY;
                for (&score, column) in scores.iter().zip(0u32..) {
                    if score >= worst && !spared(column) {
                        chosen.push((score, column));
                        if chosen.len() == 2 * most {
                            worst = keep_best(chosen, most);
                        }
                    }
                }
                if chosen.len() > most {
                    keep_best(chosen, most);
                }
            }
            _ => chosen.extend(
                scores
                    .iter()
                    .zip(0u32..)
                    .filter(|&(&score, column)| score >= least && !spared(column))
                    .map(|(&score, column)| (score, column)),
            ),
        }
    }
}

/// Drops all but the `most` with the highest scores, of equal ones the first, and returns the lowest
/// score kept.
fn keep_best(chosen: &mut Vec<Candidate>, most: usize) -> f32 {
    let harder = |a: &Candidate, b: &Candidate| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    let worst = chosen.select_nth_unstable_by(most - 1, harder).1.0;
    chosen.truncate(most);
    worst
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn choose(how: HardNegatives, scores: &[f32], targets: RowTargets<'_>) -> Vec<u32> {
        let mut chosen = Vec::new();
        how.choose(scores, targets, &mut chosen);
        let mut columns: Vec<u32> = chosen.iter().map(|&(_, column)| column).collect();
        columns.sort_unstable();
        columns
    }

    proptest! {
        #[test]
        fn positives_are_never_negatives_and_the_hardest_are_chosen(
            scores in prop::collection::vec(-1.0f32..1.0, 1..60),
            k in 0..20usize, positive in 0..60usize,
            others in prop::collection::vec(0..60u32, 0..5),
            ignored in prop::collection::vec(0..60u32, 0..5),
        ) {
            let positive = positive % scores.len();
            let targets = RowTargets { positive, other_positives: &others, ignored: &ignored };
            let spared = |column: &u32| {
                *column as usize == positive || others.contains(column) || ignored.contains(column)
            };
            let mut negatives: Vec<u32> =
                (0..scores.len() as u32).filter(|column| !spared(column)).collect();
            prop_assert_eq!(&choose(HardNegatives::All, &scores, targets), &negatives);
            let near: Vec<u32> = negatives
                .iter()
                .copied()
                .filter(|&column| 2.0 - 2.0 * scores[column as usize] <= 0.9f32.powi(2))
                .collect();
            prop_assert_eq!(choose(HardNegatives::Radius(0.9), &scores, targets), near);
            negatives.sort_by(|&a, &b| scores[b as usize].total_cmp(&scores[a as usize]));
            negatives.truncate(k);
            negatives.sort_unstable();
            prop_assert_eq!(choose(HardNegatives::Top(k), &scores, targets), negatives);
        }
    }
}
