//! Why a label: what each view says, and which training texts are near.

use std::collections::BTreeMap;

use serde::Serialize;

use super::predictor::{Predicted, PredictionOptions, Predictor};
use crate::Result;
use crate::classifier::BIAS_UNIT;
use crate::encoder::VectorMatrix;
use crate::index::Index;
use crate::views::{View, ViewSays};

/// How many training texts an explanation names.
const NEAR_POINTS: usize = 3;

/// Training texts that are looked through for some that have the label.
const LOOKED_THROUGH: usize = 50;

/// What speaks for a label.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// How close the text is to the label's text, as a cosine.
    pub embedding: f32,
    /// What the label's classifier says.
    pub classifier: f32,
    /// The label's training points.
    pub frequency: u32,
    /// What the text's words say, if they are asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lexical: Option<f32>,
    /// What every view of the fusion says by itself: the one that ranks the label highest carries it.
    pub views: BTreeMap<&'static str, ViewSays>,
    /// The nearest training points that have the label, the nearest first.
    pub nearest: Vec<NearPoint>,
}

/// A training point near the text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NearPoint {
    /// The beginning of its text.
    pub text: String,
    /// How near, as a cosine.
    pub similarity: f32,
}

impl Predictor {
    /// The labels of one text, each with what speaks for it.
    pub fn explain(
        &self,
        text: &str,
        options: PredictionOptions,
        excluded: &[u32],
    ) -> Result<Vec<(Predicted, Explanation)>> {
        let vector = self.embedder().embed_one(text)?;
        let model = self.model();
        let candidates = self.candidates_of_one(text, vector.clone(), excluded)?;
        let Some(candidates) = candidates.first() else { return Ok(Vec::new()) };
        let near = match &model.views.votes {
            Some(votes) => votes.index().search(&vector, LOOKED_THROUGH)?,
            None => Vec::new(),
        };
        let columns = &model.fusion.columns;
        let mut longer = vector.clone();
        longer.push(BIAS_UNIT);
        let explained = self.rank(text, candidates, options).into_iter().map(|found| {
            let label = found.label;
            let nearest = model.points.as_ref().map_or(Vec::new(), |points| {
                let has = near.iter().filter(|(at, _)| points.labels.contains(*at as usize, label));
                let named = has.take(NEAR_POINTS).map(|&(at, similarity)| NearPoint {
                    text: points.texts.get(at as usize).to_owned(),
                    similarity,
                });
                named.collect()
            });
            let views = candidates.opinions(label, columns);
            // Both are known of every label, whether the fusion asks or not.
            let product = |rows: &VectorMatrix, query: &[f32]| {
                ngame_nn::dot(&rows.row(label as usize).to_vec(), query)
            };
            let explanation = Explanation {
                embedding: product(&model.views.embeddings, &vector),
                classifier: product(&model.views.classifiers, &longer),
                frequency: model.views.counts[label as usize],
                lexical: views.get(View::Lexical.name()).map(|says| says.score),
                views,
                nearest,
            };
            (found, explanation)
        });
        Ok(explained.collect())
    }
}
