//! What is known of the models and their labels.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};

use crate::label_search::LabelSearch;
use crate::problem::Problem;
use crate::service::Service;
use crate::types::{FoundLabel, LabelList, LabelQuery, ModelCard, ModelList};

/// The most labels of a search.
const MOST_FOUND: usize = 100;

/// The most characters of a search.
const MOST_CHARACTERS: usize = 200;

/// `GET /v1/models`
pub(super) async fn list(State(service): State<Arc<Service>>) -> Json<ModelList> {
    let models = service.models.places().iter().map(|place| place.entry()).collect();
    Json(ModelList { models })
}

/// `GET /v1/models/{name}`
pub(super) async fn card(
    State(service): State<Arc<Service>>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<ModelCard>, Problem> {
    Ok(Json(service.model(Some(&readable(name)?))?.card()))
}

/// `GET /v1/models/{name}/labels`
pub(super) async fn labels(
    State(service): State<Arc<Service>>,
    name: Result<Path<String>, PathRejection>,
    query: Result<Query<LabelQuery>, QueryRejection>,
) -> Result<Json<LabelList>, Problem> {
    let name = readable(name)?;
    let Query(LabelQuery { q, limit }) =
        query.map_err(|error| Problem::bad_address(error.body_text()))?;
    if !(1..=MOST_FOUND).contains(&limit) {
        return Err(Problem::invalid(format!("limit: expected 1 to {MOST_FOUND}, found {limit}")));
    }
    if q.chars().count() > MOST_CHARACTERS {
        let detail = format!("q: expected at most {MOST_CHARACTERS} characters, found more");
        return Err(Problem::invalid(detail));
    }
    let model = service.model(Some(&name))?.current();
    let room = Arc::clone(&service.searches).try_acquire_owned().map_err(|_| Problem::busy())?;
    // Looking through a million labels takes long enough to hold up others on this thread.
    let found = tokio::task::spawn_blocking(move || {
        // Held here: a client that is gone does not end the search.
        let _room = room;
        let (labels, counts) = (model.labels(), model.counts());
        let (found, n_matches) = LabelSearch::with_words(labels, counts, &q, limit);
        let named = found.into_iter().map(|label| FoundLabel {
            id: labels.id(label as usize).into_owned(),
            text: labels.texts.get(label as usize).to_owned(),
            frequency: counts.get(label as usize).copied().unwrap_or(0),
        });
        LabelList { labels: named.collect(), n_matches }
    });
    found.await.map(Json).map_err(|_| Problem::bug())
}

fn readable(name: Result<Path<String>, PathRejection>) -> Result<String, Problem> {
    name.map(|Path(name)| name).map_err(|error| Problem::bad_address(error.body_text()))
}
