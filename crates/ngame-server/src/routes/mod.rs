//! The routes, one concept a file.

mod about_models;
mod ask;
mod operation;
mod page;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use crate::around;
use crate::problem::Problem;
use crate::service::Service;

/// All routes of a service, with everything around them.
pub fn app(service: Arc<Service>) -> Router {
    Router::new()
        .route("/", get(page::index))
        .route("/docs", get(page::docs))
        .route("/assets/{file}", get(page::asset))
        .route("/favicon.ico", get(page::icon))
        .route("/openapi.json", get(page::openapi))
        .route("/healthz", get(operation::health))
        .route("/readyz", get(operation::ready))
        .route("/metrics", get(operation::metrics))
        .route("/v1/predict", post(ask::predict))
        .route("/v1/embed", post(ask::embed))
        .route("/v1/models", get(about_models::list))
        .route("/v1/models/{name}", get(about_models::card))
        .route("/v1/models/{name}/labels", get(about_models::labels))
        .fallback(|| async { Problem::no_route() })
        .method_not_allowed_fallback(|| async { Problem::wrong_method() })
        .layer(from_fn_with_state(Arc::clone(&service), around::every_request))
        .with_state(service)
}
