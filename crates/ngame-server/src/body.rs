//! From a request's body to a value: how long, how slow and how odd it may be.

use axum::extract::Request;
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::problem::Problem;
use crate::settings::{Limits, MOST_CHARACTERS, MOST_TEXTS};

/// Reads a body of JSON.
pub(crate) async fn read_json<T: DeserializeOwned>(
    request: Request,
    limits: &Limits,
) -> Result<T, Problem> {
    let headers = request.headers();
    if !is_json(headers) {
        return Err(Problem::wrong_type());
    }
    let said = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let said = said.and_then(|length| length.parse::<usize>().ok());
    if said.is_some_and(|length| length > limits.body_bytes) {
        return Err(Problem::too_long(limits.body_bytes));
    }
    let body = Limited::new(request.into_body(), limits.body_bytes).collect();
    let bytes = match tokio::time::timeout(limits.body_time, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            return Err(Problem::too_long(limits.body_bytes));
        }
        Ok(Err(_)) => return Err(Problem::not_json("the body broke off")),
        Err(_) => return Err(Problem::too_slow()),
    };
    let text = std::str::from_utf8(&bytes)
        .map_err(|error| Problem::not_json(format!("the body: not UTF-8, {error}")))?;
    // Lists would be taken for objects whose fields have lost their names.
    if !text.trim_ascii_start().starts_with('{') {
        return Err(match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => Problem::invalid("the body: expected an object, found something else"),
            Err(error) => Problem::not_json(error.to_string()),
        });
    }
    serde_json::from_str(text).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => Problem::invalid(error.to_string()),
        _ => Problem::not_json(error.to_string()),
    })
}

fn is_json(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map_or(Ok(""), |value| value.to_str());
    let kind = text(header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let plain = matches!(text(header::CONTENT_ENCODING), Ok("" | "identity"));
    plain && kind.eq_ignore_ascii_case("application/json")
}

/// Refuses too many or too long texts.
pub(crate) fn check_texts(texts: &[String]) -> Result<(), Problem> {
    if !(1..=MOST_TEXTS).contains(&texts.len()) {
        let found = texts.len();
        return Err(Problem::invalid(format!(
            "texts: expected 1 to {MOST_TEXTS} of them, found {found}"
        )));
    }
    let long =
        |text: &String| text.len() > MOST_CHARACTERS && text.chars().count() > MOST_CHARACTERS;
    match texts.iter().position(long) {
        Some(at) => Err(Problem::invalid(format!(
            "texts[{at}]: expected at most {MOST_CHARACTERS} characters, found more"
        ))),
        None => Ok(()),
    }
}
