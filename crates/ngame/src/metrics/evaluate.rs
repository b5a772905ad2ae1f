//! Predictions and truth to metrics, with or without confidence intervals.

use serde::{Deserialize, Serialize};

use super::bootstrap::{Bootstrap, Interval, resample};
use super::columns::column_sums;
use super::contributions::JudgedRows;
use super::ranking::top_k;
use crate::data::{Csr, ScoredCsr};

/// What predictions are judged against. Its matrices have a row for each row of the predictions.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The true labels of each point.
    pub truth: &'a Csr,
    /// Pairs that do not count: they are removed from the predictions before these are ranked,
    /// and the labels after them move up. The truth is left as it is.
    pub filter: Option<&'a Csr>,
    /// The weight of each label, from [`PropensityModel::inverse_propensities`]; without it there
    /// are no propensity-scored metrics.
    ///
    /// [`PropensityModel::inverse_propensities`]: super::PropensityModel::inverse_propensities
    pub inverse_propensities: Option<&'a [f64]>,
}

impl Task<'_> {
    /// Ranks a point's predictions without the filtered ones: the best `k`, best first.
    pub(super) fn rank(
        &self,
        predictions: &ScoredCsr,
        row: usize,
        k: usize,
        ranked: &mut Vec<(u32, f32)>,
    ) {
        let (columns, scores) = predictions.row(row);
        let excluded = self.filter.map_or(&[][..], |filter| filter.row(row));
        top_k(columns, scores, excluded, k, ranked);
    }

    /// Panics unless all parts are about the same points and labels. Whoever read them from a
    /// user's files has to check and complain in the user's terms.
    pub(super) fn assert_fits(&self, predictions: &ScoredCsr) {
        let n_rows = self.truth.n_rows();
        assert_eq!(predictions.n_rows(), n_rows, "predictions and truth have the same rows");
        if let Some(filter) = self.filter {
            assert_eq!(filter.n_rows(), n_rows, "filter and truth have the same rows");
        }
        if let Some(weights) = self.inverse_propensities {
            let n_labels = self.truth.n_columns() as usize;
            assert_eq!(weights.len(), n_labels, "every label has an inverse propensity");
        }
    }
}

/// One thing, such as a value or an interval, for every metric at every k, k = 1 first.
///
/// The definitions are those of pyxclib, the community's reference; the formulas stand with the
/// functions that compute them (`precision.rs`, `ndcg.rs`, `recall.rs`, `propensity.rs`). A metric
/// of no rows, or of rows without any true label, is 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PerMetric<T> {
    /// The share of true labels among the first k.
    pub precision: Vec<T>,
    /// Normalised discounted cumulative gain.
    pub ndcg: Vec<T>,
    /// Propensity-scored precision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psprecision: Option<Vec<T>>,
    /// Propensity-scored nDCG.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psndcg: Option<Vec<T>>,
    /// The share of the true labels that is among the first k.
    pub recall: Vec<T>,
    /// Propensity-scored recall.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psrecall: Option<Vec<T>>,
}

/// The value of every metric at every k.
pub type Metrics = PerMetric<f64>;

/// The confidence interval of every metric at every k.
pub type Intervals = PerMetric<Interval>;

/// All metrics at 1 to `k`, computed in one pass over the rows.
///
/// # Panics
/// If the parts are about different numbers of points or labels.
pub fn evaluate(predictions: &ScoredCsr, task: &Task<'_>, k: usize) -> Metrics {
    let rows = JudgedRows::new(predictions, task, k);
    let sums = column_sums(&rows);
    rows.metrics(|ratio| ratio.of(&sums).unwrap_or(0.0))
}

/// All metrics at 1 to `k`, the same to the last bit as those of [`evaluate`], and how far they
/// can be trusted: confidence intervals by a bootstrap over points.
///
/// # Panics
/// If the parts are about different numbers of points or labels, or if the bootstrap does not
/// pass [`Bootstrap::validate`].
pub fn evaluate_with_intervals(
    predictions: &ScoredCsr,
    task: &Task<'_>,
    k: usize,
    bootstrap: &Bootstrap,
) -> (Metrics, Intervals) {
    let rows = JudgedRows::new(predictions, task, k);
    let sums = resample(&rows, bootstrap, 0);
    let metrics = rows.metrics(|ratio| ratio.of(&sums.sums).unwrap_or(0.0));
    (metrics, rows.metrics(|ratio| sums.interval(ratio, bootstrap.level)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Case, Row, cases};
    use super::*;
    use proptest::prelude::*;

    fn close(values: &[f64], expected: &[f64]) {
        assert_eq!(values.len(), expected.len());
        for (value, expected) in values.iter().zip(expected) {
            assert!((value - expected).abs() < 1e-12, "{values:?} is not {expected:?}");
        }
    }

    #[test]
    fn metrics_match_values_computed_by_hand() {
        // Row 0 ranks 2, 0, 1 and row 1 ranks 3, 1; row 2 has truth but no predictions, row 3
        // predictions but no truth.
        let case = Case::new(
            4,
            &[
                (&[(2, 0.9), (0, 0.8), (1, 0.7)], &[0, 1]),
                (&[(1, 0.2), (3, 0.6)], &[3]),
                (&[], &[2]),
                (&[(0, 1.0)], &[]),
            ],
        );
        let weights = [1.0, 2.0, 3.0, 4.0];
        let task = Task { inverse_propensities: Some(&weights), ..case.task() };
        let metrics = evaluate(&case.predictions, &task, 3);
        let (second, third) = (1.0 / 3.0f64.log2(), 0.5);
        let ideal = 1.0 + second;
        close(&metrics.precision, &[1.0 / 4.0, 2.0 / 8.0, 3.0 / 12.0]);
        close(
            &metrics.ndcg,
            &[0.25, (second / ideal + 1.0) / 4.0, ((second + third) / ideal + 1.0) / 4.0],
        );
        close(&metrics.recall, &[0.25, 0.375, 0.5]);
        // Weighted hits: row 0 gains 0, 1, 2 and row 1 gains 4. The best: 2, 1 and 4 and 3.
        close(metrics.psprecision.as_ref().unwrap(), &[4.0 / 9.0, 5.0 / 10.0, 7.0 / 10.0]);
        let best = (2.0 + second) / ideal + 4.0 + 3.0;
        close(
            metrics.psndcg.as_ref().unwrap(),
            &[
                4.0 / 9.0,
                (second / ideal + 4.0) / best,
                ((second + 2.0 * third) / ideal + 4.0) / best,
            ],
        );
        close(metrics.psrecall.as_ref().unwrap(), &[4.0 / 8.0, 4.5 / 8.5, 5.5 / 8.5]);
    }

    #[test]
    fn keys_are_stable_and_absent_without_propensities() {
        let case = Case::new(2, &[(&[(0, 1.0)], &[0])]);
        let plain = serde_json::to_string(&evaluate(&case.predictions, &case.task(), 1)).unwrap();
        assert_eq!(plain, r#"{"precision":[1.0],"ndcg":[1.0],"recall":[1.0]}"#);
        let task = Task { inverse_propensities: Some(&[1.0, 1.0]), ..case.task() };
        let (_, intervals) =
            evaluate_with_intervals(&case.predictions, &task, 1, &Bootstrap::default());
        let one = r#"[{"low":1.0,"high":1.0}]"#;
        assert_eq!(
            serde_json::to_string(&intervals).unwrap(),
            format!(
                r#"{{"precision":{one},"ndcg":{one},"psprecision":{one},"psndcg":{one},"recall":{one},"psrecall":{one}}}"#
            )
        );
    }

    #[test]
    fn nothing_at_all_is_zero_and_no_panic() {
        for n_rows in [0, 3] {
            let rows: Vec<Row<'_>> = vec![(&[], &[]); n_rows];
            let case = Case::new(0, &rows);
            let task = Task { inverse_propensities: Some(&[]), ..case.task() };
            for k in [0, 1, 1000] {
                let (metrics, intervals) =
                    evaluate_with_intervals(&case.predictions, &task, k, &Bootstrap::default());
                assert_eq!(metrics.precision, vec![0.0; k]);
                assert_eq!(metrics.psrecall, Some(vec![0.0; k]));
                assert_eq!(intervals.psndcg, Some(vec![Interval { low: 0.0, high: 0.0 }; k]));
                assert_eq!(metrics, evaluate(&case.predictions, &task, k));
            }
        }
    }

    proptest! {
        #[test]
        fn perfect_predictions_are_perfect(case in cases(), k in 1usize..12) {
            let perfect = case.perfect();
            let task = Task { inverse_propensities: Some(&case.weights), ..case.task() };
            let metrics = evaluate(&perfect, &Task { filter: None, ..task }, k);
            let n_rows = case.truth.n_rows() as f64;
            let n_with_truth = case.truth.rows().filter(|row| !row.is_empty()).count() as f64;
            if n_with_truth > 0.0 {
                close(&metrics.precision[..1], &[n_with_truth / n_rows]);
                close(&metrics.ndcg, &vec![n_with_truth / n_rows; k]);
                for perfect in [&metrics.psprecision, &metrics.psndcg, &metrics.psrecall] {
                    close(perfect.as_ref().unwrap(), &vec![1.0; k]);
                }
            }
        }

        #[test]
        fn intervals_hold_the_estimate_and_the_estimate_is_that_of_evaluate(
            case in cases(), k in 1usize..6, seed in any::<u64>(),
        ) {
            let task = Task { inverse_propensities: Some(&case.weights), ..case.task() };
            let bootstrap = Bootstrap { resamples: 100, level: 0.9, seed };
            let (metrics, intervals) =
                evaluate_with_intervals(&case.predictions, &task, k, &bootstrap);
            prop_assert_eq!(&metrics, &evaluate(&case.predictions, &task, k));
            let pairs = [
                (&metrics.precision, &intervals.precision),
                (&metrics.ndcg, &intervals.ndcg),
                (&metrics.recall, &intervals.recall),
                (metrics.psprecision.as_ref().unwrap(), intervals.psprecision.as_ref().unwrap()),
                (metrics.psndcg.as_ref().unwrap(), intervals.psndcg.as_ref().unwrap()),
                (metrics.psrecall.as_ref().unwrap(), intervals.psrecall.as_ref().unwrap()),
            ];
            for (value, interval) in pairs.iter().flat_map(|(v, i)| v.iter().zip(i.iter())) {
                prop_assert!(interval.low <= *value && *value <= interval.high);
                prop_assert!(interval.low >= 0.0 && interval.high <= 1.0 + 1e-12);
            }
        }

        #[test]
        fn the_number_of_threads_changes_nothing(case in cases(), seed in any::<u64>()) {
            let case = case.repeated(40);
            let task = Task { inverse_propensities: Some(&case.weights), ..case.task() };
            let bootstrap = Bootstrap { resamples: 50, level: 0.95, seed };
            let run = |n_threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
                let results = pool.install(|| {
                    (
                        evaluate(&case.predictions, &task, 5),
                        evaluate_with_intervals(&case.predictions, &task, 5, &bootstrap),
                    )
                });
                serde_json::to_string(&results).unwrap()
            };
            prop_assert_eq!(run(1), run(4));
        }

        #[test]
        fn metrics_at_k_do_not_depend_on_the_largest_k(case in cases()) {
            let task = Task { inverse_propensities: Some(&case.weights), ..case.task() };
            let (few, many) =
                (evaluate(&case.predictions, &task, 3), evaluate(&case.predictions, &task, 20));
            prop_assert_eq!(&few.precision[..], &many.precision[..3]);
            prop_assert_eq!(&few.ndcg[..], &many.ndcg[..3]);
            prop_assert_eq!(few.psndcg.as_deref().unwrap(), &many.psndcg.as_deref().unwrap()[..3]);
        }
    }
}
