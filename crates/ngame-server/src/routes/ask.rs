//! Texts in, labels or vectors out.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use ngame::prediction::{Explanation, Predicted, PredictionOptions};
use ngame::views::ViewSays;

use crate::batcher::{Answer, Work};
use crate::body::{check_texts, read_json};
use crate::models::Served;
use crate::problem::Problem;
use crate::service::Service;
use crate::settings::{MOST_EXCLUDED, MOST_LABELS};
use crate::types::{
    EmbedAnswer, EmbedRequest, NearText, PredictAnswer, PredictRequest, PredictedLabel, Prediction,
    ViewScore, Why,
};

/// `POST /v1/predict`
pub(super) async fn predict(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Json<PredictAnswer>, Problem> {
    let asked: PredictRequest = read_json(request, &service.settings.limits).await?;
    check(&asked)?;
    let model = service.model(asked.model.as_deref())?.current();
    let excluded = excluded(&model, &asked.exclude)?;
    let options = PredictionOptions { top: asked.top, threshold: asked.threshold };
    let work = match asked.explain {
        true => Work::Explain { options, excluded },
        false => Work::Predict { options, excluded },
    };
    let texts = asked.texts.iter().map(String::as_str).collect();
    match service.ask(Arc::clone(&model), work, texts).await? {
        Answer::Labels(found) => {
            let predictions = found.into_iter().map(|row| prediction(&model, row)).collect();
            Ok(Json(PredictAnswer { predictions }))
        }
        Answer::Vectors(_) => Err(Problem::bug()),
    }
}

/// `POST /v1/embed`
pub(super) async fn embed(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Json<EmbedAnswer>, Problem> {
    let asked: EmbedRequest = read_json(request, &service.settings.limits).await?;
    check_texts(&asked.texts)?;
    let model = service.model(asked.model.as_deref())?.current();
    let texts = asked.texts.iter().map(String::as_str).collect();
    match service.ask(model, Work::Embed, texts).await? {
        Answer::Vectors(vectors) => Ok(Json(EmbedAnswer { vectors })),
        Answer::Labels(_) => Err(Problem::bug()),
    }
}

fn check(asked: &PredictRequest) -> Result<(), Problem> {
    check_texts(&asked.texts)?;
    if !(1..=MOST_LABELS).contains(&asked.top) {
        let found = asked.top;
        return Err(Problem::invalid(format!("top: expected 1 to {MOST_LABELS}, found {found}")));
    }
    if !(0.0..=1.0).contains(&asked.threshold) {
        let found = asked.threshold;
        return Err(Problem::invalid(format!("threshold: expected 0 to 1, found {found}")));
    }
    if asked.exclude.len() > MOST_EXCLUDED {
        let found = asked.exclude.len();
        let detail = format!("exclude: expected at most {MOST_EXCLUDED} ids, found {found}");
        return Err(Problem::invalid(detail));
    }
    let long = |id: &String| id.chars().count() > MOST_EXCLUDED;
    match asked.exclude.iter().position(long) {
        Some(at) => Err(Problem::invalid(format!(
            "exclude[{at}]: expected at most {MOST_EXCLUDED} characters, found more"
        ))),
        None => Ok(()),
    }
}

/// The labels with these ids, ascending, each once.
fn excluded(model: &Served, ids: &[String]) -> Result<Vec<u32>, Problem> {
    let find = |(at, id): (usize, &String)| {
        model.search.with_id(model.labels(), id).ok_or_else(|| Problem::no_label(at))
    };
    let mut labels: Vec<u32> = ids.iter().enumerate().map(find).collect::<Result<_, _>>()?;
    labels.sort_unstable();
    labels.dedup();
    Ok(labels)
}

fn prediction(model: &Served, row: Vec<(Predicted, Option<Explanation>)>) -> Prediction {
    let labels = model.labels();
    let named = row.into_iter().map(|(found, why)| PredictedLabel {
        id: labels.id(found.label as usize).into_owned(),
        text: labels.texts.get(found.label as usize).to_owned(),
        // Ranks are kept by the least bit, which may lift a certain label above certainty.
        score: found.score.clamp(0.0, 1.0),
        why: why.map(explained),
    });
    Prediction { labels: named.collect() }
}

fn explained(why: Explanation) -> Why {
    let number = |number: f32| Some(number).filter(|number| number.is_finite());
    let scored = |says: ViewSays| ViewScore { score: says.score, rank: says.rank };
    let near = why.nearest.into_iter();
    Why {
        embedding: number(why.embedding),
        classifier: number(why.classifier),
        lexical: why.lexical.and_then(number),
        views: why.views.into_iter().map(|(view, says)| (view, scored(says))).collect(),
        frequency: why.frequency,
        nearest: near.map(|p| NearText { text: p.text, similarity: p.similarity }).collect(),
    }
}
