//! What was asked of the stages behind the encoder: classifiers, index, fusion.

use serde::{Deserialize, Serialize};

use crate::classifier::{ClassifierTriplet, Objective, OneVsAll, Sampled, SampledLoss};
use crate::fusion::{Aim, MethodChoice};
use crate::index::DEFAULT_RECALL;
use crate::views::{Shortlists, View};

/// How classifiers are trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClassifierConfig {
    /// What is asked of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objective: Option<ObjectiveKind>,
    /// How often every point is seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<usize>,
    /// The points of a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_size: Option<usize>,
    /// The highest learning rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// The share of a point's numbers that training drops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropout: Option<f64>,
    /// How much higher positives should score, for triplets.
    pub margin: f64,
    /// The labels drawn at random for a step, for sampled objectives.
    pub n_sampled: usize,
    /// Whether they are trained once more, on all points, when the fusion has been learnt from those
    /// that were held out.
    pub refit: bool,
}

impl Default for ClassifierConfig {
    fn default() -> Self {
        Self {
            objective: None,
            epochs: None,
            batch_size: None,
            learning_rate: None,
            dropout: None,
            margin: 0.2,
            n_sampled: 2_048,
            refit: true,
        }
    }
}

impl ClassifierConfig {
    /// The objective with every number fixed.
    pub(super) fn objective(&self, seed: u64) -> Objective {
        let Self { epochs, batch_size, margin, n_sampled, .. } = *self;
        let rate = self.learning_rate.map(|rate| rate as f32);
        let dropout = self.dropout.map(|share| share as f32);
        let sampled = |loss| {
            let usual = Sampled::default();
            Objective::Sampled(Sampled {
                loss,
                epochs: epochs.unwrap_or(usual.epochs),
                batch_size: batch_size.unwrap_or(usual.batch_size),
                n_sampled,
                learning_rate: rate.unwrap_or(usual.learning_rate),
                dropout: dropout.unwrap_or(usual.dropout),
                seed,
                ..usual
            })
        };
        match self.objective.unwrap_or(ObjectiveKind::Sampled) {
            ObjectiveKind::OneVsAll => {
                let usual = OneVsAll::default();
                Objective::OneVsAll(OneVsAll {
                    epochs: epochs.unwrap_or(usual.epochs),
                    batch_size: batch_size.unwrap_or(usual.batch_size),
                    learning_rate: rate.unwrap_or(usual.learning_rate),
                    dropout: dropout.unwrap_or(usual.dropout),
                    seed,
                    ..usual
                })
            }
            ObjectiveKind::Sampled => sampled(SampledLoss::CrossEntropy),
            ObjectiveKind::SampledSoftmax => sampled(SampledLoss::Softmax),
            ObjectiveKind::Triplet => {
                let usual = ClassifierTriplet::default();
                Objective::Triplet(ClassifierTriplet {
                    epochs: epochs.unwrap_or(usual.epochs),
                    batch_size: batch_size.unwrap_or(usual.batch_size),
                    learning_rate: rate.unwrap_or(usual.learning_rate),
                    dropout: dropout.unwrap_or(usual.dropout),
                    margin: margin as f32,
                    seed,
                    ..usual
                })
            }
        }
    }
}

/// What is asked of classifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectiveKind {
    /// Every label about every point, by cross-entropy.
    OneVsAll,
    /// The same of a batch's labels and some drawn at random.
    Sampled,
    /// A softmax over a batch's labels and some drawn at random.
    SampledSoftmax,
    /// Hard positives above hard negatives, as in the paper.
    Triplet,
}

/// How classifiers are searched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IndexConfig {
    /// Which index.
    pub kind: IndexChoice,
    /// The share of the best labels that an approximate one has to find.
    pub recall: f64,
}

impl Default for IndexConfig {
    fn default() -> Self {
        Self { kind: IndexChoice::BySize, recall: DEFAULT_RECALL }
    }
}

/// Which index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IndexChoice {
    /// Exact search as long as it is fast.
    #[default]
    BySize,
    /// Every label is compared.
    Exact,
    /// A graph.
    Hnsw,
}

/// How scores become one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FusionConfig {
    /// Which views take part.
    pub views: ViewChoice,
    /// What they are fused by.
    pub method: MethodChoice,
    /// What is to be as high as possible.
    pub aim: Aim,
    /// How many candidates each view proposes.
    pub shortlists: Shortlists,
}

impl FusionConfig {
    /// How many candidates each view proposes: a classifier that takes no part proposes none.
    pub(super) fn shortlists(&self) -> Shortlists {
        let takes_part = self.views.views().contains(&View::Classifier);
        let classifier = if takes_part { self.shortlists.classifier } else { 0 };
        Shortlists { classifier, ..self.shortlists }
    }

    /// Whether some view proposes candidates: embedding and frequency judge those of others.
    pub(super) fn has_candidates(&self) -> bool {
        let proposing = [View::Classifier, View::Votes, View::Lexical];
        self.views.views().iter().any(|view| proposing.contains(view))
    }

    /// Whether the views that the method scores by take part.
    pub(super) fn has_scores(&self) -> bool {
        let has = |view| self.views.views().contains(&view);
        match self.method {
            MethodChoice::Embedding => has(View::Embedding),
            MethodChoice::Classifier => has(View::Classifier),
            MethodChoice::Sum => has(View::Embedding) && has(View::Classifier),
            MethodChoice::Tree | MethodChoice::Best => true,
        }
    }
}

/// Which views take part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ViewChoice {
    /// By a name for several.
    Named(ViewSet),
    /// One by one.
    Listed(Vec<View>),
}

/// Several views.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ViewSet {
    /// All there are.
    All,
    /// The paper's: embedding, classifier, frequency.
    Paper,
}

impl Default for ViewChoice {
    fn default() -> Self {
        Self::Named(ViewSet::All)
    }
}

impl ViewChoice {
    /// The views, in their own order.
    pub fn views(&self) -> Vec<View> {
        let chosen = |view: &View| match self {
            Self::Named(ViewSet::All) => true,
            Self::Named(ViewSet::Paper) => View::PAPER.contains(view),
            Self::Listed(views) => views.contains(view),
        };
        View::ALL.into_iter().filter(chosen).collect()
    }
}
