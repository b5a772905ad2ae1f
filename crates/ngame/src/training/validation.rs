//! How good an encoder is: the labels whose embeddings score highest, for points it was not trained on.

use serde::{Deserialize, Serialize};

use super::config::ValidationMetric;
use super::corpus::Corpus;
use crate::Result;
use crate::encoder::{Embedder, Vector, VectorMatrix, VectorType};
use crate::index::search_exact;
use crate::metrics::{Task, evaluate};
use crate::progress::Observer;

/// How many labels are looked at for each point.
const DEPTH: usize = 100;

/// What exact retrieval by label embedding reaches, as shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Retrieval {
    /// Precision at 1.
    pub precision_1: f64,
    /// Precision at 5.
    pub precision_5: f64,
    /// Recall at 100.
    pub recall_100: f64,
}

impl Retrieval {
    /// The metric that is asked for.
    pub fn get(&self, metric: ValidationMetric) -> f64 {
        match metric {
            ValidationMetric::Precision1 => self.precision_1,
            ValidationMetric::Precision5 => self.precision_5,
            ValidationMetric::Recall100 => self.recall_100,
        }
    }
}

/// The embedding of every label.
pub(super) fn label_vectors(
    corpus: &Corpus,
    embedder: &Embedder,
    observer: &dyn Observer,
) -> Result<VectorMatrix> {
    let texts: Vec<u32> = (0..corpus.n_label_texts as u32).collect();
    let by_text = embedder.embed_some(&corpus.tokens, &texts, VectorType::F32, observer)?;
    let mut numbers = Vec::with_capacity(corpus.label_text.len() * embedder.dim());
    for &text in &corpus.label_text {
        if let Vector::F32(row) = by_text.row(text as usize) {
            numbers.extend_from_slice(row);
        }
    }
    Ok(VectorMatrix::from_f32(numbers, embedder.dim()))
}

/// Tries an encoder on the held-out points, against all labels' vectors.
pub(super) fn validate(
    corpus: &Corpus,
    embedder: &Embedder,
    labels: &VectorMatrix,
    observer: &dyn Observer,
) -> Result<Retrieval> {
    let held_out = &corpus.held_out;
    let queries = embedder.embed_some(&corpus.tokens, &held_out.text, VectorType::F32, observer)?;
    let filter = Some(&held_out.filter);
    let predictions = search_exact(&queries, labels, DEPTH, filter, observer)?;
    let task = Task { truth: &held_out.truth, filter: None, inverse_propensities: None };
    let metrics = evaluate(&predictions, &task, DEPTH);
    Ok(Retrieval {
        precision_1: metrics.precision[0],
        precision_5: metrics.precision[4],
        recall_100: metrics.recall[DEPTH - 1],
    })
}
