//! For whoever runs the server: is it alive, may it be sent requests, how does it do?

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

use crate::problem::Problem;
use crate::service::Service;
use crate::types::Health;

/// `GET /healthz`: the process lives.
pub(super) async fn health() -> Json<Health> {
    Json(Health { status: "ok".to_owned() })
}

/// `GET /readyz`: models are loaded, and it is not about to end.
pub(super) async fn ready(State(service): State<Arc<Service>>) -> Result<Json<Health>, Problem> {
    match service.is_stopping() {
        true => Err(Problem::stopping()),
        false => Ok(Json(Health { status: "ready".to_owned() })),
    }
}

/// `GET /metrics`
pub(super) async fn metrics(State(service): State<Arc<Service>>) -> impl IntoResponse {
    let text = service.measurements.to_text(service.gauges());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
}
