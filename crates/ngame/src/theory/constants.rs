//! What the theorem needs to know of the data: numbers of labels of points and of points of labels.

use serde::Serialize;

use crate::data::Csr;

/// The theorem's constants. Only labels that some point has take part.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DataConstants {
    /// N: points.
    pub n_points: usize,
    /// L: labels that some point has.
    pub n_labels: usize,
    /// Labels that no point has, which are left out.
    pub n_left_out: usize,
    /// p̄: the mean number of labels of a point.
    pub p_mean: f64,
    /// q̄: the mean number of points of a label.
    pub q_mean: f64,
    /// q_min: the fewest points of a label.
    pub q_min: u32,
    /// μ₁: the mean over labels of (N − q) / q.
    pub mu_1: f64,
    /// σ₁: the standard deviation of the same.
    pub sigma_1: f64,
    /// σ₂: the standard deviation of the number of labels of a point.
    pub sigma_2: f64,
    /// c₁ = q̄ (μ₁ + σ₁ √L) / N.
    pub c_1: f64,
    /// c₂ = (p̄ + σ₂ √N) N / (q_min L).
    pub c_2: f64,
}

impl DataConstants {
    /// The constants of points and the labels they have; `None` if no point has any.
    pub fn of(truth: &Csr) -> Option<Self> {
        let counts = truth.column_counts();
        let q: Vec<f64> = counts.iter().filter(|&&q| q > 0).map(|&q| f64::from(q)).collect();
        let q_min = counts.iter().copied().filter(|&q| q > 0).min()?;
        let (n_points, n_labels) = (truth.n_rows(), q.len());
        let (n, l) = (n_points as f64, n_labels as f64);
        let p: Vec<f64> = truth.rows().map(|row| row.len() as f64).collect();
        let ratios: Vec<f64> = q.iter().map(|q| (n - q) / q).collect();
        let (p_mean, sigma_2) = mean_and_deviation(&p);
        let (q_mean, _) = mean_and_deviation(&q);
        let (mu_1, sigma_1) = mean_and_deviation(&ratios);
        Some(Self {
            n_points,
            n_labels,
            n_left_out: counts.len() - n_labels,
            p_mean,
            q_mean,
            q_min,
            mu_1,
            sigma_1,
            sigma_2,
            c_1: q_mean * (mu_1 + sigma_1 * l.sqrt()) / n,
            c_2: (p_mean + sigma_2 * n.sqrt()) * n / (f64::from(q_min) * l),
        })
    }
}

/// The mean of numbers and their standard deviation, over all of them.
pub(super) fn mean_and_deviation(numbers: &[f64]) -> (f64, f64) {
    let n = numbers.len().max(1) as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    let variance = numbers.iter().map(|number| (number - mean) * (number - mean)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_match_values_computed_by_hand() {
        // Four points, three labels and one that nobody has: p = 1, 2, 1, 0 and q = 2, 1, 1.
        let truth = Csr::from_pairs(4, 4, vec![(0, 0), (1, 0), (1, 1), (2, 3)]);
        let found = DataConstants::of(&truth).unwrap();
        assert_eq!((found.n_points, found.n_labels, found.n_left_out), (4, 3, 1));
        assert_eq!((found.p_mean, found.q_mean, found.q_min), (1.0, 4.0 / 3.0, 1));
        // (N − q) / q = 1, 3, 3.
        assert!((found.mu_1 - 7.0 / 3.0).abs() < 1e-12);
        assert!((found.sigma_1 - (8.0f64 / 9.0).sqrt()).abs() < 1e-12);
        assert!((found.sigma_2 - 0.5f64.sqrt()).abs() < 1e-12);
        let c_1 = 4.0 / 3.0 * (7.0 / 3.0 + (8.0f64 / 9.0).sqrt() * 3.0f64.sqrt()) / 4.0;
        let c_2 = (1.0 + 0.5f64.sqrt() * 2.0) * 4.0 / 3.0;
        assert!((found.c_1 - c_1).abs() < 1e-12 && (found.c_2 - c_2).abs() < 1e-12);
        assert_eq!(DataConstants::of(&Csr::empty(3, 2)), None);
    }
}
