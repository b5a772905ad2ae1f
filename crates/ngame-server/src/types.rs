//! What goes in and out, as types: the JSON, its checks and `/openapi.json` all come from here.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Texts whose labels are wanted.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PredictRequest {
    /// The texts, each of at most 20,000 characters.
    #[schemars(length(min = 1, max = 128), inner(length(max = 20_000)))]
    pub texts: Vec<String>,
    /// The most labels a text is given.
    #[serde(default = "default_top", deserialize_with = "whole_number")]
    #[schemars(range(min = 1, max = 100))]
    pub top: usize,
    /// Only labels that are right with at least this probability.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub threshold: f32,
    /// Whether to say why: what each view says, and the nearest training texts.
    #[serde(default)]
    pub explain: bool,
    /// The ids of labels that are never given.
    #[serde(default)]
    #[schemars(length(max = 1_000), inner(length(max = 1_000)))]
    pub exclude: Vec<String>,
    /// The model to ask; the first of `/v1/models` if none is named.
    #[serde(default)]
    pub model: Option<String>,
}

fn default_top() -> usize {
    5
}

/// A number without a fraction. In JSON, 5.0 is one too.
fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let number = f64::deserialize(deserializer)?;
    let whole = number as usize;
    if whole as f64 == number {
        return Ok(whole);
    }
    Err(Error::invalid_value(Unexpected::Float(number), &"a whole number"))
}

/// The labels of every text, in the order of the texts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PredictAnswer {
    /// One for every text.
    pub predictions: Vec<Prediction>,
}

/// The labels of a text.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Prediction {
    /// The labels, the likeliest first.
    pub labels: Vec<PredictedLabel>,
}

/// A label, how likely it is right, and why.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PredictedLabel {
    /// What the data set calls it.
    pub id: String,
    /// Its text; empty if it has none.
    pub text: String,
    /// The probability that it is right.
    pub score: f32,
    /// Why, if that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
}

/// What speaks for a label.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Why {
    /// How close the text is to the label's text, as a cosine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding: Option<f32>,
    /// What the label's classifier says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classifier: Option<f32>,
    /// What the words of the text say, where the model asks them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lexical: Option<f32>,
    /// By view that the fusion asks and that has something to say, its score and the rank it gives the
    /// label: `embedding`, `classifier`, `votes`, `lexical`, `label-words`, `word-votes`.
    pub views: BTreeMap<&'static str, ViewScore>,
    /// The training texts that have the label.
    pub frequency: u32,
    /// The nearest of them, the nearest first.
    pub nearest: Vec<NearText>,
}

/// What a view by itself says of a label.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ViewScore {
    /// Its score, on the view's own scale; higher is likelier.
    pub score: f32,
    /// Where it puts the label among all candidates of the text, from 1.
    pub rank: u32,
}

/// A training text near the one asked about.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NearText {
    /// Its beginning.
    pub text: String,
    /// How near, as a cosine.
    pub similarity: f32,
}

/// Texts whose vectors are wanted.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmbedRequest {
    /// The texts, each of at most 20,000 characters.
    #[schemars(length(min = 1, max = 128), inner(length(max = 20_000)))]
    pub texts: Vec<String>,
    /// The model to ask; the first of `/v1/models` if none is named.
    #[serde(default)]
    pub model: Option<String>,
}

/// The vectors of every text, in the order of the texts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EmbedAnswer {
    /// One unit vector for every text.
    pub vectors: Vec<Vec<f32>>,
}

/// The models of the server.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ModelList {
    /// The first is asked where a request names none.
    pub models: Vec<ModelEntry>,
}

/// A model in a few words.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ModelEntry {
    /// The name, for `model` in requests and for addresses.
    pub name: String,
    /// Labels it can predict.
    pub n_labels: usize,
    /// The length of its vectors.
    pub dim: usize,
    /// How often it was loaded anew since the server began.
    pub reloads: u64,
}

/// Everything about a model that people ask.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ModelCard {
    /// The name.
    pub name: String,
    /// How often it was loaded anew since the server began.
    pub reloads: u64,
    /// Labels it can predict.
    pub n_labels: usize,
    /// Training texts that it keeps.
    pub n_points: usize,
    /// The length of its vectors.
    pub dim: usize,
    /// The bytes of its folder.
    pub bytes: u64,
    /// The program that wrote it.
    pub written_by: String,
    /// The views that labels are judged by.
    pub views: Vec<String>,
    /// How their scores become one.
    pub method: String,
    /// How it was trained: sizes of the data, all settings, and what was chosen why.
    pub plan: BTreeMap<String, Value>,
    /// What it reaches on test points, if there were any: metrics at 1 to 5 of every way to score, and
    /// by how frequent labels are.
    pub metrics: Option<BTreeMap<String, Value>>,
    /// What each way to score reached on held-out points.
    pub tried: Vec<TriedMethod>,
    /// How training went.
    pub training: TrainingCurve,
    /// Texts to try, from its own data.
    pub examples: Vec<String>,
}

/// A way to score candidates, on held-out points.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TriedMethod {
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
    /// Whether it is the one in use.
    pub chosen: bool,
}

/// How training went, in few enough points to draw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct TrainingCurve {
    /// The loss, as means of neighbouring steps.
    pub losses: Vec<LossPoint>,
    /// The encoder on held-out points.
    pub validations: Vec<ValidationPoint>,
}

/// The loss at a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LossPoint {
    /// The step.
    pub step: u64,
    /// The mean loss around it.
    pub loss: f64,
}

/// The encoder on held-out points, at a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ValidationPoint {
    /// The step.
    pub step: u64,
    /// Precision at 1.
    pub precision_1: f64,
    /// Precision at 5.
    pub precision_5: f64,
}

/// Which labels are looked for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelQuery {
    /// Words that must be in a label's text or id, in any order; without any, the most frequent labels.
    #[serde(default)]
    #[schemars(length(max = 200))]
    pub q: String,
    /// The most labels.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    pub limit: usize,
}

fn default_limit() -> usize {
    20
}

/// Labels that were found.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LabelList {
    /// The best matches first, the more frequent first among equals.
    pub labels: Vec<FoundLabel>,
    /// All that match, shown or not.
    pub n_matches: usize,
}

/// A label.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FoundLabel {
    /// What the data set calls it.
    pub id: String,
    /// Its text; empty if it has none.
    pub text: String,
    /// The training texts that have it.
    pub frequency: u32,
}

/// How the server is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Health {
    /// `ok`, `ready` or `stopping`.
    pub status: String,
}
