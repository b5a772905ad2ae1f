//! Precision at k: how much of what was shown first is right.

/// What a row contributes to precision at 1, 2, … k: the gain of the first ranks together.
///
/// With `gains[r]` = 1 where the label of rank `r` is true and 0 elsewhere,
///
/// ```text
/// P@k = 1/N Σ_rows 1/k Σ_{r ≤ k} gain(r)
/// ```
///
/// over all N rows, those without any true label included. The division by k and N is left to the
/// end: sums of whole numbers are exact, whatever the order they are added in.
///
/// With the inverse propensities of the true labels as gains, the same sum is the numerator of
/// propensity-scored precision, and with the best gains possible its denominator
/// (see [`super::propensity`]).
pub(super) fn cumulative_gains(gains: &[f64], contributions: &mut [f64]) {
    let mut total = 0.0;
    for (gain, contribution) in gains.iter().zip(contributions) {
        total += gain;
        *contribution = total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_add_up_from_rank_to_rank() {
        let mut contributions = [9.0; 4];
        cumulative_gains(&[1.0, 0.0, 1.0, 1.0], &mut contributions);
        assert_eq!(contributions, [1.0, 1.0, 2.0, 3.0]);
    }
}
