//! A model and points it was not trained on: what it reaches, and what each of its parts would.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::data::{Csr, Interner, Labels, ScoredCsr, Split, Texts};
use crate::encoder::VectorMatrix;
use crate::index::search_exact;
use crate::metrics::{
    Bootstrap, GroupMetrics, Intervals, LabelGroups, Metrics, PropensityModel, Task, evaluate,
    evaluate_groups, evaluate_with_intervals,
};
use crate::prediction::{PredictionOptions, Predictor};
use crate::progress::{Observer, StopOnly};
use crate::views::with_bias_unit;

/// How deep recall is looked at.
pub const DEPTH: usize = 100;

/// Points that search is compared with exact search on.
const COMPARED: usize = 1_000;

/// What a model reaches.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Evaluation {
    /// Points it was tried on.
    pub n_points: usize,
    /// Labels.
    pub n_labels: usize,
    /// The fused scores: what `ngame predict` gives.
    pub fused: Reached,
    /// The classifiers alone, by exact search.
    pub classifier: Reached,
    /// The labels' embeddings alone, by exact search.
    pub embedding: Reached,
    /// The fused scores by how frequent labels are.
    pub deciles: Vec<GroupMetrics>,
    /// The same for head, torso, tail and unseen labels.
    pub head_torso_tail: Vec<GroupMetrics>,
    /// The share of exact search's best labels that the index found.
    pub index_recall: f64,
    /// Milliseconds a point, all threads at work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub milliseconds: Option<f64>,
}

/// What one way to score reaches.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reached {
    /// Every metric at 1 to k.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// Recall at 100.
    pub recall_100: f64,
    /// Confidence intervals, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Intervals>,
}

/// What is asked of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct EvaluationOptions {
    /// Metrics at 1 to k.
    pub k: usize,
    /// How intervals are found, if they are wanted.
    pub bootstrap: Option<Bootstrap>,
    /// How propensities are.
    pub propensities: PropensityModel,
    /// The training points that propensities are about.
    pub n_train: u64,
}

/// Points whose labels are called as a model calls them.
#[derive(Debug)]
pub struct Aligned<'a> {
    texts: &'a Texts,
    /// Which labels each point has; those that the model does not know come behind its own.
    truth: Csr,
    /// Which labels of the model do not count.
    filter: Csr,
    /// Labels that the model does not know.
    pub n_unknown: usize,
    /// What those are called in the data set, by their numbers there.
    unknown: Vec<u32>,
}

impl Aligned<'_> {
    /// The points' texts.
    pub fn texts(&self) -> &Texts {
        self.texts
    }

    /// Which labels each point has; those that the model does not know come behind its own.
    pub fn truth(&self) -> &Csr {
        &self.truth
    }

    /// Which labels of the model do not count.
    pub fn filter(&self) -> &Csr {
        &self.filter
    }

    /// The data set's number of a label that the model does not know, given by its number here.
    pub fn unknown(&self, label: u32) -> Option<u32> {
        let behind = label.checked_sub(self.filter.n_columns())?;
        self.unknown.get(behind as usize).copied()
    }
}

/// Finds the labels of points among those of a model, by their ids.
pub fn align<'a>(model: &Labels, labels: &Labels, split: &'a Split) -> Aligned<'a> {
    let (n_known, n_labels) = (model.texts.len(), labels.texts.len());
    let same = n_known == n_labels && (0..n_known).all(|label| model.id(label) == labels.id(label));
    if same {
        let (truth, filter) = (split.by_point.clone(), split.filter.clone());
        return Aligned { texts: &split.texts, truth, filter, n_unknown: 0, unknown: Vec::new() };
    }
    let mut ids = Interner::default();
    for label in 0..n_known {
        ids.intern(&model.id(label));
    }
    let mut unknown = Vec::new();
    let of: Vec<u32> = (0..n_labels)
        .map(|label| {
            ids.get(&labels.id(label)).unwrap_or_else(|| {
                unknown.push(label as u32);
                (n_known + unknown.len() - 1) as u32
            })
        })
        .collect();
    let renamed = |pairs: &Csr, n_columns: usize| {
        let mut renamed = Csr::new(n_columns as u32);
        for row in pairs.rows() {
            let row = row.iter().map(|&label| of[label as usize]);
            let kept: Vec<u32> = row.filter(|&label| (label as usize) < n_columns).collect();
            renamed.push_row(&kept);
        }
        renamed
    };
    Aligned {
        texts: &split.texts,
        truth: renamed(&split.by_point, n_known + unknown.len()),
        filter: renamed(&split.filter, n_known),
        n_unknown: unknown.len(),
        unknown,
    }
}

/// Tries a model on points.
///
/// # Panics
/// If the points were aligned with another model.
pub fn evaluate_model(
    predictor: &Predictor,
    points: &Aligned<'_>,
    options: &EvaluationOptions,
    observer: &dyn Observer,
) -> Result<Evaluation> {
    let model = predictor.model();
    let views = &model.views;
    let n_labels = model.labels.texts.len();
    assert_eq!(points.filter.n_columns() as usize, n_labels, "points aligned with this model");
    let n_points = points.texts.len();
    let filter = Some(&points.filter);
    let mut counts = views.counts.clone();
    counts.resize(n_labels + points.n_unknown, 0);
    let weights = options.propensities.inverse_propensities(options.n_train, &counts);
    let task = Task { truth: &points.truth, filter: None, inverse_propensities: Some(&weights) };
    let reached = |predictions: &ScoredCsr| {
        let recall_100 = evaluate(predictions, &task, DEPTH).recall[DEPTH - 1];
        match &options.bootstrap {
            None => Reached {
                metrics: evaluate(predictions, &task, options.k),
                recall_100,
                intervals: None,
            },
            Some(bootstrap) => {
                let (metrics, intervals) =
                    evaluate_with_intervals(predictions, &task, options.k, bootstrap);
                Reached { metrics, recall_100, intervals: Some(intervals) }
            }
        }
    };
    let began = Instant::now();
    let wanted = PredictionOptions { top: DEPTH.max(options.k), ..Default::default() };
    let (fused, vectors) =
        predictor.predict_matrix_with_vectors(points.texts, wanted, filter, observer)?;
    let milliseconds = began.elapsed().as_secs_f64() * 1e3 / n_points.max(1) as f64;

    let quiet = StopOnly(observer);
    let depth = DEPTH.max(options.k);
    let by_embedding = search_exact(&vectors, &views.embeddings, depth, filter, &quiet)?;
    let longer = with_bias_unit(&vectors);
    let by_classifier = search_exact(&longer, &views.classifiers, depth, filter, &quiet)?;
    let groups = |groups: &LabelGroups| evaluate_groups(&fused, &task, groups, &counts, options.k);
    let n_compared = n_points.min(COMPARED);
    let some = VectorMatrix::from_f32(longer.rows(0..n_compared).to_vec(), longer.dim());
    Ok(Evaluation {
        n_points,
        n_labels,
        fused: reached(&fused),
        classifier: reached(&by_classifier),
        embedding: reached(&by_embedding),
        deciles: groups(&LabelGroups::by_decile(&counts)),
        head_torso_tail: groups(&LabelGroups::by_training_count(&counts)),
        index_recall: views.index.recall(&some, &views.classifiers, DEPTH, &quiet)?,
        milliseconds: Some(milliseconds),
    })
}
