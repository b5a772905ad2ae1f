//! From a descriptor to a score and a probability.

use serde::{Deserialize, Serialize};

use super::boosting::BoostedTrees;
use super::isotonic::Isotonic;
use super::tree::RegressionTree;
use crate::views::{Column, Shortlists, View};

/// How candidates are found, described, scored and calibrated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fusion {
    /// The views that take part.
    pub views: Vec<View>,
    /// What a candidate is described by, in order.
    pub columns: Vec<Column>,
    /// How many candidates each view proposes.
    pub shortlists: Shortlists,
    /// Whether a classifier's score is the logit of a probability; else it is a cosine.
    pub logits: bool,
    /// How a descriptor becomes a score.
    pub method: Method,
    /// How often a score as high as this one is right.
    pub calibration: Isotonic,
    /// What was tried on held-out points, the chosen one included.
    pub tried: Vec<Tried>,
}

/// How a descriptor becomes a score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Method {
    /// The embedding's score alone.
    Embedding,
    /// The classifier's alone.
    Classifier,
    /// The two added up.
    Sum,
    /// The two and the answer of a regression tree, as in the paper.
    Tree(RegressionTree),
    /// Many trees, which see the two among the other columns.
    Boosted(BoostedTrees),
}

/// A way to score candidates, and what it reached on held-out points, as shares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tried {
    /// Its name.
    pub method: String,
    /// Precision at 1.
    pub precision_1: f64,
    /// Precision at 5.
    pub precision_5: f64,
    /// Propensity-scored precision at 1.
    pub psprecision_1: f64,
    /// Propensity-scored precision at 5.
    pub psprecision_5: f64,
    /// Whether it was chosen.
    pub chosen: bool,
}

impl Method {
    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Embedding => "embedding",
            Self::Classifier => "classifier",
            Self::Sum => "sum",
            Self::Tree(_) => "tree",
            Self::Boosted(_) => "boosted",
        }
    }

    /// The scores of candidates, (candidates, columns) to (candidates): the higher, the likelier.
    pub(super) fn scores(&self, descriptors: &[f32], places: Places, scores: &mut [f32]) {
        if let Self::Boosted(trees) = self {
            return trees.predict_many(descriptors, scores);
        }
        let rows = descriptors.chunks_exact(places.n_columns);
        for (score, row) in scores.iter_mut().zip(rows) {
            *score = match self {
                Self::Embedding => places.embedding(row),
                Self::Classifier => places.classifier(row),
                Self::Sum => places.embedding(row) + places.classifier(row),
                Self::Tree(tree) => {
                    tree.predict(row) + places.embedding(row) + places.classifier(row)
                }
                Self::Boosted(trees) => trees.predict(row),
            };
        }
    }
}

/// Where in a descriptor the two scores of the paper stand, as far as their views take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places {
    n_columns: usize,
    pub(super) embedding: Option<usize>,
    pub(super) classifier: Option<usize>,
    logits: bool,
}

impl Places {
    /// Where they stand among these columns.
    pub(super) fn of(columns: &[Column], logits: bool) -> Self {
        let place = |wanted| columns.iter().position(|&column| column == wanted);
        let (embedding, classifier) = (place(Column::Embedding), place(Column::Classifier));
        Self { n_columns: columns.len(), embedding, classifier, logits }
    }

    /// The cosine of text and label; none where nobody asks.
    fn embedding(self, descriptor: &[f32]) -> f32 {
        self.embedding.map_or(0.0, |at| descriptor[at])
    }

    /// The classifier's score on the scale of a cosine; none where nobody asks.
    fn classifier(self, descriptor: &[f32]) -> f32 {
        let Some(at) = self.classifier else { return 0.0 };
        let score = descriptor[at];
        if self.logits { 1.0 / (1.0 + (-score).exp()) } else { score }
    }
}

impl Fusion {
    /// The scores of candidates: (candidates, columns) to (candidates).
    pub fn scores(&self, descriptors: &[f32]) -> Vec<f32> {
        let places = Places::of(&self.columns, self.logits);
        let mut scores = vec![0.0; descriptors.len() / self.columns.len()];
        self.method.scores(descriptors, places, &mut scores);
        scores
    }

    /// The probability that a label with this score is right.
    pub fn probability(&self, score: f32) -> f32 {
        self.calibration.probability(score)
    }

    /// Whether a fusion that was loaded can be used; else says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        let places = Places::of(&self.columns, self.logits);
        let is_missing = match &self.method {
            Method::Embedding => places.embedding.is_none(),
            Method::Classifier => places.classifier.is_none(),
            Method::Sum => places.embedding.is_none() && places.classifier.is_none(),
            Method::Tree(tree) => {
                tree.check(self.columns.len())?;
                false
            }
            Method::Boosted(trees) => {
                trees.check(self.columns.len())?;
                false
            }
        };
        if is_missing {
            return Err(format!("no column for the method {}", self.method.name()));
        }
        self.calibration.check()
    }
}
