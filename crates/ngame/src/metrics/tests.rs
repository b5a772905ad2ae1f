//! Small random rankings for the tests of this module.

use proptest::prelude::*;

use super::evaluate::Task;
use crate::data::{Csr, ScoredCsr};

/// A row's predictions and its true labels.
pub(super) type Row<'a> = (&'a [(u32, f32)], &'a [u32]);

/// Predictions and what they are judged against, with a weight for each label.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) predictions: ScoredCsr,
    pub(super) truth: Csr,
    pub(super) filter: Csr,
    pub(super) weights: Vec<f64>,
}

impl Case {
    /// A case without filter, all weights 1.
    pub(super) fn new(n_labels: u32, rows: &[Row<'_>]) -> Self {
        let mut case = Self {
            predictions: ScoredCsr::new(n_labels),
            truth: Csr::new(n_labels),
            filter: Csr::empty(rows.len(), n_labels),
            weights: vec![1.0; n_labels as usize],
        };
        for (predictions, truth) in rows {
            case.predictions.push_row(&mut predictions.to_vec());
            case.truth.push_row(truth);
        }
        case
    }

    /// What the predictions are judged against, without weights.
    pub(super) fn task(&self) -> Task<'_> {
        Task { truth: &self.truth, filter: Some(&self.filter), inverse_propensities: None }
    }

    /// Predictions of the true labels and no others, in the order of their weights.
    pub(super) fn perfect(&self) -> ScoredCsr {
        let mut perfect = ScoredCsr::new(self.truth.n_columns());
        for row in self.truth.rows() {
            let score = |&label: &u32| (label, self.weights[label as usize] as f32);
            perfect.push_row(&mut row.iter().map(score).collect());
        }
        perfect
    }

    /// The same rows over and over again.
    pub(super) fn repeated(&self, times: usize) -> Self {
        let n_labels = self.truth.n_columns();
        let mut case = Self {
            predictions: ScoredCsr::new(n_labels),
            truth: Csr::new(n_labels),
            filter: Csr::new(n_labels),
            weights: self.weights.clone(),
        };
        for row in (0..times).flat_map(|_| 0..self.truth.n_rows()) {
            let (columns, scores) = self.predictions.row(row);
            let mut predicted = columns.iter().copied().zip(scores.iter().copied()).collect();
            case.predictions.push_row(&mut predicted);
            case.truth.push_row(self.truth.row(row));
            case.filter.push_row(self.filter.row(row));
        }
        case
    }
}

/// Up to forty rows over twenty labels: few enough that hits are common, some rows empty.
pub(super) fn cases() -> impl Strategy<Value = Case> {
    let labels = || prop::collection::vec(0u32..20, 0..8);
    let predictions = prop::collection::vec((0u32..20, -2.0f32..2.0), 0..15);
    let row = (predictions, labels(), prop::collection::vec(0u32..20, 0..3));
    let rows = prop::collection::vec(row, 0..40);
    // Weights that are the same in f32, in which `perfect` ranks by them.
    let weight = (4u8..40).prop_map(|quarters| f64::from(quarters) / 4.0);
    (rows, prop::collection::vec(weight, 20)).prop_map(|(rows, weights)| {
        let mut case = Case {
            predictions: ScoredCsr::new(20),
            truth: Csr::new(20),
            filter: Csr::new(20),
            weights,
        };
        for (mut predictions, truth, filter) in rows {
            case.predictions.push_row(&mut predictions);
            case.truth.push_row(&truth);
            case.filter.push_row(&filter);
        }
        case
    })
}
