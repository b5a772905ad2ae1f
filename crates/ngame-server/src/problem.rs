//! Errors as `application/problem+json` (RFC 9457): what is wrong, and what to do.
//!
//! A problem is written here, word by word, from numbers and names that are the client's own or
//! public. No error of the library goes out: those speak of paths.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

/// What is wrong, and what to do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Problem {
    /// Which kind of problem, as an address below `about:` that programs can compare.
    #[serde(rename = "type")]
    kind: String,
    /// The kind in words.
    title: &'static str,
    /// The status, as in the answer's first line.
    status: u16,
    /// What is wrong with this request.
    detail: String,
    /// What to do about it.
    to_do: String,
    #[serde(skip)]
    retry_after: Option<u64>,
    #[serde(skip)]
    challenge: bool,
}

impl Problem {
    fn new(
        status: StatusCode,
        title: &'static str,
        detail: impl Into<String>,
        to_do: &str,
    ) -> Self {
        let kind = title.to_lowercase().replace(' ', "-");
        Self {
            kind: format!("about:ngame/{kind}"),
            title,
            status: status.as_u16(),
            detail: detail.into(),
            to_do: to_do.to_owned(),
            retry_after: None,
            challenge: false,
        }
    }

    /// A body that is no JSON.
    pub(crate) fn not_json(detail: impl Into<String>) -> Self {
        let to_do = "send one JSON object, in UTF-8; /docs shows what goes into it";
        Self::new(StatusCode::BAD_REQUEST, "Not JSON", detail, to_do)
    }

    /// A query or path that cannot be read.
    pub(crate) fn bad_address(detail: impl Into<String>) -> Self {
        let to_do = "look up the route and its parameters in /docs";
        Self::new(StatusCode::BAD_REQUEST, "Bad address", detail, to_do)
    }

    /// A field that has no meaning, or a value out of bounds.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        let to_do = "mend the field that is named; /docs says what each may hold";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid value", detail, to_do)
    }

    /// A model that is not served.
    pub(crate) fn no_model() -> Self {
        let (detail, to_do) = ("no model has this name", "choose one of those at /v1/models");
        Self::new(StatusCode::NOT_FOUND, "No such model", detail, to_do)
    }

    /// A label that the model does not have.
    pub(crate) fn no_label(position: usize) -> Self {
        let detail = format!("exclude[{position}]: the model has no label with this id");
        let to_do = "find ids at /v1/models/{name}/labels?q=…, or leave it out";
        Self::new(StatusCode::NOT_FOUND, "No such label", detail, to_do)
    }

    /// An address that leads nowhere.
    pub(crate) fn no_route() -> Self {
        let (detail, to_do) = ("nothing is served at this address", "see /docs for all routes");
        Self::new(StatusCode::NOT_FOUND, "No such route", detail, to_do)
    }

    /// A route asked in a way it does not know.
    pub(crate) fn wrong_method() -> Self {
        let detail = "this route does not take requests of this method";
        let to_do = "use a method that the `Allow` header names";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "Wrong method", detail, to_do)
    }

    /// A body of another type than JSON, or a packed one.
    pub(crate) fn wrong_type() -> Self {
        let detail = "the body must be JSON, not packed";
        let to_do = "send the header `content-type: application/json` and no `content-encoding`";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Wrong content type", detail, to_do)
    }

    /// A body that is too long.
    pub(crate) fn too_long(most: usize) -> Self {
        let detail = format!("the body has more than {most} bytes");
        let to_do = "send fewer texts a request";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "Body too long", detail, to_do)
    }

    /// A body that did not come in time.
    pub(crate) fn too_slow() -> Self {
        let detail = "the body did not come in time";
        Self::new(StatusCode::REQUEST_TIMEOUT, "Too slow", detail, "send it again, at once")
    }

    /// A token that is missing or wrong.
    pub(crate) fn no_token() -> Self {
        let detail = "this server asks for a token";
        let to_do = "send the header `authorization: Bearer TOKEN`";
        let problem = Self::new(StatusCode::UNAUTHORIZED, "Token needed", detail, to_do);
        Self { challenge: true, ..problem }
    }

    /// A name of this server that it does not know: a page elsewhere may be behind it.
    pub(crate) fn wrong_host() -> Self {
        let detail = "this server is not known by the name in the `Host` header";
        let to_do = "use its IP address or `localhost`, or start it with --token-file";
        Self::new(StatusCode::MISDIRECTED_REQUEST, "Wrong host", detail, to_do)
    }

    /// No room in the queue.
    pub(crate) fn busy() -> Self {
        let detail = "as many texts wait as the server lets wait";
        let to_do = "try again after the seconds that `Retry-After` says";
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "Busy", detail, to_do);
        Self { retry_after: Some(1), ..problem }
    }

    /// An answer that took too long.
    pub(crate) fn too_late() -> Self {
        let detail = "the answer was not ready in time";
        let to_do = "try again later, with fewer or shorter texts";
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "Too late", detail, to_do);
        Self { retry_after: Some(5), ..problem }
    }

    /// The server is about to end.
    pub(crate) fn stopping() -> Self {
        let detail = "the server is stopping";
        let to_do = "ask again when it is back, or ask another";
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "Stopping", detail, to_do);
        Self { retry_after: Some(5), ..problem }
    }

    /// Our mistake.
    pub(crate) fn bug() -> Self {
        let detail = "something went wrong on our side";
        let to_do = "tell whoever runs the server the request id of this answer";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal error", detail, to_do)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_REQUEST);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let json = [(header::CONTENT_TYPE, "application/problem+json")];
        let mut response = (status, json, body).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.challenge {
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
        }
        response
    }
}
