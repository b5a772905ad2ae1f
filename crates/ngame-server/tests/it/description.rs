//! `/openapi.json` against the server itself: every route, every field.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::trained::{Router, settings};

async fn description(router: &Router) -> Value {
    let document = router.get("/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    document
}

#[tokio::test]
async fn every_route_is_described_and_every_description_is_a_route() {
    let router = Router::new(settings());
    let document = description(&router).await;
    let source = include_str!("../../src/routes/mod.rs");
    let pages = ["/", "/docs", "/assets/{file}", "/favicon.ico"];
    let routes: BTreeSet<&str> = source
        .split(".route(\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .filter(|route| !pages.contains(route))
        .collect();
    let paths = document["paths"].as_object().unwrap();
    assert_eq!(paths.keys().map(String::as_str).collect::<BTreeSet<_>>(), routes);
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().unwrap() {
            let uri = path.replace("{name}", "titles");
            let body = &operation["requestBody"]["content"]["application/json"]["example"];
            let mut request = Request::builder().method(method.to_uppercase().as_str()).uri(uri);
            request = request.header("content-type", "application/json");
            let answer = router.send(request.body(Body::from(body.to_string())).unwrap()).await;
            assert_eq!(answer.status, 200, "{method} {path}: {}", answer.text);
            let content = operation["responses"]["200"]["content"].as_object().unwrap();
            let kind = answer.header("content-type").split(';').next().unwrap();
            assert!(content.contains_key(kind), "{method} {path}: {kind}");
            if kind == "application/json" {
                let value = serde_json::from_str(&answer.text).unwrap();
                check(&document, &content[kind]["schema"], &value, path);
            }
        }
    }
}

#[tokio::test]
async fn reasons_and_problems_are_as_described() {
    let router = Router::new(settings());
    let document = description(&router).await;
    let body = json!({ "texts": ["photo viewer"], "explain": true }).to_string();
    let value = router.post("/v1/predict", body).await.json();
    assert!(value["predictions"][0]["labels"][0]["why"]["frequency"].is_u64());
    check(&document, &json!({ "$ref": "#/components/schemas/PredictAnswer" }), &value, "why");
    let problem = router.post("/v1/predict", "{").await.problem(400);
    check(&document, &json!({ "$ref": "#/components/schemas/Problem" }), &problem, "problem");
}

#[tokio::test]
async fn what_is_sent_is_described_field_by_field() {
    let router = Router::new(settings());
    let document = description(&router).await;
    let fields = |name: &str| -> BTreeSet<String> {
        let schema = &document["components"]["schemas"][name];
        assert_eq!(schema["additionalProperties"], false, "{name}: unknown fields are refused");
        assert_eq!(schema["required"], json!(["texts"]), "{name}");
        schema["properties"].as_object().unwrap().keys().cloned().collect()
    };
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let predict: BTreeSet<String> =
        set(&["texts", "top", "threshold", "explain", "exclude", "model"]);
    assert_eq!(fields("PredictRequest"), predict);
    assert_eq!(fields("EmbedRequest"), set(&["texts", "model"]));
    let query = document["paths"]["/v1/models/{name}/labels"]["get"]["parameters"].as_array();
    let names: Vec<&Value> = query.unwrap().iter().map(|parameter| &parameter["name"]).collect();
    assert_eq!(names, ["name", "limit", "q"]);
    // Each field can be sent.
    let all = json!({
        "texts": ["a"], "top": 3, "threshold": 0.1, "explain": false, "exclude": [], "model": "titles"
    });
    assert_eq!(all.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>(), predict);
    router.post("/v1/predict", all.to_string()).await.json();
}

/// As much of JSON Schema as the description uses. Every field that comes must be described, and every
/// field that is required must come.
fn check(document: &Value, schema: &Value, value: &Value, place: &str) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.trim_start_matches('#'));
        return check(document, target.unwrap_or_else(|| panic!("{reference}")), value, place);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let null = value.is_null() && choices.iter().any(|choice| choice["type"] == "null");
        let other = choices.iter().find(|choice| choice["type"] != "null");
        if !null {
            check(document, other.unwrap(), value, place);
        }
        return;
    }
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = |kind: &Value| kind == found || (kind == "number" && found == "integer");
    let kinds = schema["type"].as_array().cloned().unwrap_or(vec![schema["type"].clone()]);
    let any = schema == &Value::Bool(true) || schema["type"].is_null();
    assert!(any || kinds.iter().any(fits), "{place}: {found}, expected {kinds:?}");
    if let (Value::Array(values), items) = (value, &schema["items"]) {
        for value in values.iter().filter(|_| !items.is_null()) {
            check(document, items, value, &format!("{place}[]"));
        }
    }
    if let (Value::Object(fields), Some(described)) = (value, schema["properties"].as_object()) {
        for (name, value) in fields {
            let place = format!("{place}.{name}");
            let field = described.get(name).unwrap_or_else(|| panic!("{place} is not described"));
            check(document, field, value, &place);
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(fields.contains_key(name.as_str().unwrap()), "{place} lacks {name}");
        }
    }
}
