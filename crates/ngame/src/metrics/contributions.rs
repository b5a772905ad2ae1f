//! A row of predictions judged: what it adds to the sums that all metrics are ratios of.
//!
//! The columns of a row are: one that counts rows, then for each kind of gain k columns of
//! precision, k of nDCG and k of recall. Kinds of gain are the hits themselves and, where there
//! are propensities, the hits weighted by them and the best weighted hits possible.

use std::ops::Range;

use super::columns::{Contributions, Ratio};
use super::evaluate::{PerMetric, Task};
use super::ndcg::Discounts;
use super::precision::cumulative_gains;
use super::propensity::best_gains;
use super::recall::share_found;
use crate::data::ScoredCsr;

/// The column that counts rows.
const ROWS: usize = 0;

// The kinds of gain.
const HITS: usize = 0;
const WEIGHTED_HITS: usize = 1;
const BEST_HITS: usize = 2;

// The metrics computed of each.
const PRECISION: usize = 0;
const NDCG: usize = 1;
const RECALL: usize = 2;
const N_METRICS: usize = 3;

/// Predictions beside what they are judged against.
pub(super) struct JudgedRows<'a> {
    predictions: &'a ScoredCsr,
    task: &'a Task<'a>,
    k: usize,
    discounts: Discounts,
}

impl<'a> JudgedRows<'a> {
    /// Predictions to be judged at 1 to `k`.
    ///
    /// # Panics
    /// If the parts do not fit each other.
    pub(super) fn new(predictions: &'a ScoredCsr, task: &'a Task<'a>, k: usize) -> Self {
        task.assert_fits(predictions);
        Self { predictions, task, k, discounts: Discounts::new(k) }
    }

    /// Every metric at 1 to k, computed by `value` from the ratio of columns it is.
    pub(super) fn metrics<T>(&self, value: impl Fn(Ratio) -> T) -> PerMetric<T> {
        let at_every_k =
            |ratio: &dyn Fn(usize) -> Ratio| (0..self.k).map(|rank| value(ratio(rank))).collect();
        let mean = |metric| at_every_k(&|rank| Ratio::new(self.column(HITS, metric, rank), ROWS));
        let over_best = |metric| {
            let above = |rank| self.column(WEIGHTED_HITS, metric, rank);
            let below = |rank| self.column(BEST_HITS, metric, rank);
            let ratio = |rank| Ratio::new(above(rank), below(rank));
            self.task.inverse_propensities.map(|_| at_every_k(&ratio))
        };
        PerMetric {
            precision: at_every_k(&|rank| Ratio {
                multiplier: (rank + 1) as f64,
                ..Ratio::new(self.column(HITS, PRECISION, rank), ROWS)
            }),
            ndcg: mean(NDCG),
            psprecision: over_best(PRECISION),
            psndcg: over_best(NDCG),
            recall: mean(RECALL),
            psrecall: over_best(RECALL),
        }
    }

    /// Where a kind of gain's metric at this rank (counted from 0) stands in a row.
    fn column(&self, gain: usize, metric: usize, rank: usize) -> usize {
        1 + (gain * N_METRICS + metric) * self.k + rank
    }

    /// Writes the columns of one kind of gain.
    fn write(&self, gain: usize, gains: &[f64], n_true: usize, columns: &mut [f64]) {
        let begin = self.column(gain, PRECISION, 0);
        let columns = &mut columns[begin..begin + N_METRICS * self.k];
        let (precision, columns) = columns.split_at_mut(self.k);
        let (ndcg, recall) = columns.split_at_mut(self.k);
        cumulative_gains(gains, precision);
        self.discounts.normalised_gains(gains, n_true, ndcg);
        share_found(gains, n_true, recall);
    }
}

impl Contributions for JudgedRows<'_> {
    fn n_rows(&self) -> usize {
        self.predictions.n_rows()
    }

    fn n_columns(&self) -> usize {
        let n_gains = if self.task.inverse_propensities.is_some() { 3 } else { 1 };
        1 + n_gains * N_METRICS * self.k
    }

    fn visit_rows(&self, rows: Range<usize>, visit: &mut dyn FnMut(&[f64])) {
        let mut columns = vec![0.0; self.n_columns()];
        columns[ROWS] = 1.0;
        let mut gains = vec![0.0; self.k];
        let (mut ranked, mut weights) = (Vec::new(), Vec::new());
        for row in rows {
            let true_labels = self.task.truth.row(row);
            let n_true = true_labels.len();
            self.task.rank(self.predictions, row, self.k, &mut ranked);

            gains.fill(0.0);
            for (gain, (label, _)) in gains.iter_mut().zip(&ranked) {
                *gain = f64::from(true_labels.binary_search(label).is_ok());
            }
            self.write(HITS, &gains, n_true, &mut columns);

            if let Some(inverse_propensities) = self.task.inverse_propensities {
                for (gain, (label, _)) in gains.iter_mut().zip(&ranked) {
                    if *gain > 0.0 {
                        *gain = inverse_propensities[*label as usize];
                    }
                }
                self.write(WEIGHTED_HITS, &gains, n_true, &mut columns);
                best_gains(true_labels, inverse_propensities, &mut weights, &mut gains);
                self.write(BEST_HITS, &gains, n_true, &mut columns);
            }
            visit(&columns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Csr;

    #[test]
    fn a_row_is_laid_out_kind_by_kind() {
        // Ranked 2, 0, 1, of which 0 is filtered; 1 and 3 are true and weigh 2 and 4.
        let mut predictions = ScoredCsr::new(4);
        predictions.push_row(&mut vec![(0, 0.8), (1, 0.5), (2, 0.9)]);
        let truth = Csr::from_pairs(1, 4, vec![(0, 1), (0, 3)]);
        let filter = Csr::from_pairs(1, 4, vec![(0, 0)]);
        let task = Task {
            truth: &truth,
            filter: Some(&filter),
            inverse_propensities: Some(&[1.0, 2.0, 3.0, 4.0]),
        };
        let rows = JudgedRows::new(&predictions, &task, 2);
        let mut visited = Vec::new();
        rows.visit_rows(0..1, &mut |row| visited.extend_from_slice(row));

        let second = 1.0 / 3.0f64.log2();
        let ideal = 1.0 + second;
        #[rustfmt::skip]
        let expected = [
            1.0,
            0.0, 1.0,   0.0, second / ideal,                  0.0, 0.5,
            0.0, 2.0,   0.0, 2.0 * second / ideal,            0.0, 1.0,
            4.0, 6.0,   4.0, (4.0 + 2.0 * second) / ideal,    2.0, 3.0,
        ];
        assert_eq!(visited, expected);
        assert_eq!(rows.n_columns(), expected.len());
    }
}
