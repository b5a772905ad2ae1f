//! Recall at k: how much of what is right was shown among the first k.

/// What a row contributes to recall at 1, 2, … k: the share of its true labels found by then.
///
/// With `gains[r]` = 1 where the label of rank `r` is true and 0 elsewhere, and |y| true labels,
///
/// ```text
/// R@k = 1/N Σ_rows 1/|y| Σ_{r ≤ k} gain(r)
/// ```
///
/// over all N rows; a row without true labels contributes 0.
///
/// Propensity-scored recall is a ratio of two such sums: the gains weighted by inverse propensity
/// over the best gains possible, both divided by the number |y| of true labels, not by their
/// weight. That is how the community's reference defines it; unlike plain recall it reaches 1 as
/// soon as the best k labels are found.
pub(super) fn share_found(gains: &[f64], n_true: usize, contributions: &mut [f64]) {
    let n_true = n_true.max(1) as f64;
    let mut total = 0.0;
    for (gain, contribution) in gains.iter().zip(contributions) {
        total += gain;
        *contribution = total / n_true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_grows_with_every_label_found() {
        let mut contributions = [9.0; 3];
        share_found(&[1.0, 0.0, 1.0], 4, &mut contributions);
        assert_eq!(contributions, [0.25, 0.25, 0.5]);
    }

    #[test]
    fn a_row_without_true_labels_contributes_nothing() {
        let mut contributions = [9.0; 2];
        share_found(&[0.0, 0.0], 0, &mut contributions);
        assert_eq!(contributions, [0.0, 0.0]);
    }
}
