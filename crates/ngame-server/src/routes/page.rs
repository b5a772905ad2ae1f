//! The pages for people: files that are part of the program.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::openapi;
use crate::problem::Problem;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const ICON: &str = "image/svg+xml";

/// Files of the pages, by name.
const ASSETS: [(&str, &str, &str); 8] = [
    ("style.css", CSS, include_str!("../page/style.css")),
    ("theme.js", SCRIPT, include_str!("../page/theme.js")),
    ("page.js", SCRIPT, include_str!("../page/page.js")),
    ("server.js", SCRIPT, include_str!("../page/server.js")),
    ("card.js", SCRIPT, include_str!("../page/card.js")),
    ("elements.js", SCRIPT, include_str!("../page/elements.js")),
    ("docs.js", SCRIPT, include_str!("../page/docs.js")),
    ("icon.svg", ICON, include_str!("../page/icon.svg")),
];

/// `GET /`
pub(super) async fn index() -> Response {
    file(HTML, include_str!("../page/index.html"))
}

/// `GET /docs`
pub(super) async fn docs() -> Response {
    file(HTML, include_str!("../page/docs.html"))
}

/// `GET /assets/{file}`
pub(super) async fn asset(name: Result<Path<String>, PathRejection>) -> Result<Response, Problem> {
    let Ok(Path(name)) = name else { return Err(Problem::no_route()) };
    let found = ASSETS.iter().find(|(known, ..)| *known == name);
    found.map(|(_, kind, text)| file(kind, text)).ok_or_else(Problem::no_route)
}

/// `GET /favicon.ico`: browsers ask for it whatever the page says.
pub(super) async fn icon() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// `GET /openapi.json`
pub(super) async fn openapi() -> Response {
    file("application/json", openapi::document())
}

fn file(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")], text).into_response()
}
