//! Normalised discounted cumulative gain: right labels count the more the earlier they are shown.

/// What a label is worth by its rank, for ranks up to k, computed once for all rows.
#[derive(Clone, Debug)]
pub(super) struct Discounts {
    /// The worth of each rank, the first rank first: 1/log₂(rank + 1).
    by_rank: Vec<f64>,
    /// The worth of the first rank, of the first two together, and so on.
    ideal: Vec<f64>,
}

impl Discounts {
    /// The discounts of the ranks 1 to `k`.
    pub(super) fn new(k: usize) -> Self {
        let by_rank: Vec<f64> = (1..=k).map(|rank| 1.0 / ((rank + 1) as f64).log2()).collect();
        let mut total = 0.0;
        let ideal = by_rank
            .iter()
            .map(|discount| {
                total += discount;
                total
            })
            .collect();
        Self { by_rank, ideal }
    }

    /// What a row contributes to nDCG at 1, 2, … k.
    ///
    /// With `gains[r]` = 1 where the label of rank `r` is true and 0 elsewhere, and |y| true
    /// labels,
    ///
    /// ```text
    /// nDCG@k = 1/N Σ_rows DCG@k / I(min(k, |y|))
    /// DCG@k  = Σ_{r ≤ k} gain(r) / log₂(r + 1)
    /// I(n)   = Σ_{r ≤ n} 1 / log₂(r + 1)
    /// ```
    ///
    /// over all N rows; a row without true labels contributes 0.
    ///
    /// Propensity-scored nDCG is a ratio of two such sums: the gains weighted by inverse
    /// propensity over the best gains possible. Both are divided by the unweighted ideal `I`, as
    /// in the community's reference.
    pub(super) fn normalised_gains(&self, gains: &[f64], n_true: usize, contributions: &mut [f64]) {
        if n_true == 0 {
            contributions.fill(0.0);
            return;
        }
        let mut total = 0.0;
        for (rank, contribution) in contributions.iter_mut().enumerate() {
            total += gains[rank] * self.by_rank[rank];
            *contribution = total / self.ideal[rank.min(n_true - 1)];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contributions(gains: &[f64], n_true: usize) -> Vec<f64> {
        let mut contributions = vec![9.0; gains.len()];
        Discounts::new(gains.len()).normalised_gains(gains, n_true, &mut contributions);
        contributions
    }

    #[test]
    fn the_ideal_ends_with_the_true_labels() {
        // Two true labels, found at ranks 2 and 3, are worth 1/log2(3) = 0.63093 and 0.5.
        let row = contributions(&[0.0, 1.0, 1.0, 0.0], 2);
        let expected = [0.0, 0.630_93 / 1.630_93, 1.130_93 / 1.630_93, 1.130_93 / 1.630_93];
        for (value, expected) in row.iter().zip(expected) {
            assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
        }
    }

    #[test]
    fn a_perfect_ranking_has_one_at_every_k() {
        assert_eq!(contributions(&[1.0, 1.0, 0.0, 0.0], 2), [1.0; 4]);
        assert_eq!(contributions(&[1.0, 1.0, 1.0], 7), [1.0; 3]);
    }

    #[test]
    fn a_row_without_true_labels_contributes_nothing() {
        assert_eq!(contributions(&[0.0, 0.0], 0), [0.0, 0.0]);
    }
}
