//! What happens around every request: an id, a look at who asks, a line in the log, headers that
//! keep browsers safe, and a net under bugs.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::access;
use crate::problem::Problem;
use crate::service::Service;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// Pages may load what this server has, and nothing else; no page may frame them.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                              img-src 'self' data:; connect-src 'self'; base-uri 'none'; \
                              form-action 'none'; frame-ancestors 'none'";

/// Routes for which no token is needed: they tell nothing of models or clients.
const OPEN: [&str; 7] =
    ["/", "/docs", "/assets/{file}", "/favicon.ico", "/openapi.json", "/healthz", "/readyz"];

/// Everything around a request.
pub(crate) async fn every_request(
    State(service): State<Arc<Service>>,
    request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let id = request_id(&service, request.headers());
    let method = request.method().clone();
    let route = route(&request);
    let cors = allowed_origin(&service, request.headers());
    let mut response = match (refusal(&service, route, &request), &cors) {
        (_, Some(_)) if access::is_preflight(&method, request.headers()) => {
            let mut response = StatusCode::NO_CONTENT.into_response();
            access::preflight(response.headers_mut());
            response
        }
        (Some(problem), _) => problem.into_response(),
        (None, _) => guarded(&service, next.run(request)).await,
    };
    let took = began.elapsed();
    let headers = response.headers_mut();
    if let Some(origin) = cors {
        access::allow(&origin, headers);
    }
    let milliseconds = took.as_secs_f64() * 1e3;
    protect(headers);
    for (name, value) in
        [(REQUEST_ID, id.clone()), (SERVER_TIMING, format!("all;dur={milliseconds:.2}"))]
    {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
    let status = response.status().as_u16();
    service.measurements.answered(route, status, took);
    service.log.info(
        "request",
        &[
            ("id", id.into()),
            ("method", known_method(&method).into()),
            ("route", route.into()),
            ("status", status.into()),
            ("milliseconds", ((milliseconds * 100.0).round() / 100.0).into()),
        ],
    );
    response
}

/// Why a request is not let through, if it is not.
fn refusal(service: &Service, route: &str, request: &Request) -> Option<Problem> {
    match &service.settings.token {
        Some(token) => {
            let open = OPEN.contains(&route) || route == UNKNOWN;
            (!open && !token.is_known(request.headers())).then(Problem::no_token)
        }
        None => (!access::is_own_name(request.headers())).then(Problem::wrong_host),
    }
}

/// The route that will answer, as it is written in the table of routes: never what the client wrote,
/// which may hold a text.
fn route(request: &Request) -> &'static str {
    let matched = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let known = ROUTES.iter().find(|route| Some(**route) == matched);
    known.copied().unwrap_or(UNKNOWN)
}

const UNKNOWN: &str = "unknown";

pub(crate) const ROUTES: [&str; 13] = [
    "/",
    "/docs",
    "/assets/{file}",
    "/favicon.ico",
    "/openapi.json",
    "/healthz",
    "/readyz",
    "/metrics",
    "/v1/predict",
    "/v1/embed",
    "/v1/models",
    "/v1/models/{name}",
    "/v1/models/{name}/labels",
];

/// A method can be any word a client makes up.
fn known_method(method: &Method) -> &str {
    match method.as_str() {
        known @ ("GET" | "HEAD" | "POST" | "OPTIONS" | "PUT" | "PATCH" | "DELETE") => known,
        _ => "other",
    }
}

/// The client's own id where it is harmless, else a new one.
fn request_id(service: &Service, headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let harmless = |id: &&str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        (1..=64).contains(&id.len()) && id.chars().all(fits)
    };
    given.filter(harmless).map_or_else(|| service.request_id(), str::to_owned)
}

fn allowed_origin(service: &Service, headers: &HeaderMap) -> Option<String> {
    let allowed = service.settings.cors.as_ref()?;
    let asked = headers.get(header::ORIGIN)?.to_str().ok()?;
    (asked == allowed).then(|| allowed.clone())
}

fn protect(headers: &mut HeaderMap) {
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    set(header::CONTENT_SECURITY_POLICY, CONTENT_POLICY);
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::X_FRAME_OPTIONS, "DENY");
    set(header::REFERRER_POLICY, "no-referrer");
    set(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

/// Runs what answers; a panic there is a bug and becomes an answer that tells nothing.
async fn guarded(service: &Service, answer: impl Future<Output = Response>) -> Response {
    let mut answer = pin!(answer);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(context)));
        polled.unwrap_or_else(|_| {
            service.measurements.panics.fetch_add(1, Ordering::Relaxed);
            Poll::Ready(Problem::bug().into_response())
        })
    })
    .await
}
