//! `/openapi.json`: the routes in a table, what goes in and out from the types themselves.

use std::sync::OnceLock;

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::problem::Problem;
use crate::types::{
    EmbedAnswer, EmbedRequest, Health, LabelList, LabelQuery, ModelCard, ModelList, PredictAnswer,
    PredictRequest,
};

/// A route.
struct Operation {
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    description: &'static str,
    /// What goes in, if it is a body.
    body: Option<fn(&mut SchemaGenerator) -> Schema>,
    /// What goes in, if it is a query.
    query: Option<fn(&mut SchemaGenerator) -> Schema>,
    /// What comes out; text if nothing is said.
    answer: Option<fn(&mut SchemaGenerator) -> Schema>,
    /// Which problems it can have.
    problems: &'static [u16],
    needs_token: bool,
    example: Option<fn() -> Value>,
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

const ASK_PROBLEMS: &[u16] = &[400, 401, 404, 408, 413, 415, 421, 422, 503];
const LOOK_PROBLEMS: &[u16] = &[400, 401, 404, 421, 422];

fn operations() -> [Operation; 9] {
    let look = Operation {
        method: "get",
        path: "",
        id: "",
        summary: "",
        description: "",
        body: None,
        query: None,
        answer: None,
        problems: &[401, 421],
        needs_token: true,
        example: None,
    };
    [
        Operation {
            method: "post",
            path: "/v1/predict",
            id: "predict",
            summary: "The labels of texts",
            description: "Answers in the order of the texts, the likeliest label first. A score is the \
                          probability that the label is right.",
            body: Some(of::<PredictRequest>),
            answer: Some(of::<PredictAnswer>),
            problems: ASK_PROBLEMS,
            example: Some(|| json!({ "texts": ["a viewer for photos"], "top": 5 })),
            ..look
        },
        Operation {
            method: "post",
            path: "/v1/embed",
            id: "embed",
            summary: "The vectors of texts",
            description: "Unit vectors: the dot product of two is the cosine of their angle.",
            body: Some(of::<EmbedRequest>),
            answer: Some(of::<EmbedAnswer>),
            problems: ASK_PROBLEMS,
            example: Some(|| json!({ "texts": ["a viewer for photos"] })),
            ..look
        },
        Operation {
            path: "/v1/models",
            id: "listModels",
            summary: "The models of this server",
            description: "The first is asked where a request names none.",
            answer: Some(of::<ModelList>),
            ..look
        },
        Operation {
            path: "/v1/models/{name}",
            id: "describeModel",
            summary: "A model's card",
            description: "Sizes, the plan it was trained by, what it reaches, how training went, and \
                          texts to try.",
            answer: Some(of::<ModelCard>),
            problems: LOOK_PROBLEMS,
            ..look
        },
        Operation {
            path: "/v1/models/{name}/labels",
            id: "findLabels",
            summary: "Labels by their words",
            description: "Labels whose text or id holds all words, whole or in part.",
            query: Some(of::<LabelQuery>),
            answer: Some(of::<LabelList>),
            problems: &[400, 401, 404, 421, 422, 503],
            ..look
        },
        Operation {
            path: "/healthz",
            id: "health",
            summary: "Is the process alive?",
            description: "200 as long as it is.",
            answer: Some(of::<Health>),
            problems: &[421],
            needs_token: false,
            ..look
        },
        Operation {
            path: "/readyz",
            id: "ready",
            summary: "May it be sent requests?",
            description: "200 when models are loaded, 503 when the server is about to end.",
            answer: Some(of::<Health>),
            problems: &[421, 503],
            needs_token: false,
            ..look
        },
        Operation {
            path: "/metrics",
            id: "metrics",
            summary: "Measurements, for Prometheus",
            description: "Requests by route and status, latencies, the queue, sizes of batches, \
                          reloads.",
            ..look
        },
        Operation {
            path: "/openapi.json",
            id: "openapi",
            summary: "This description",
            description: "OpenAPI 3.1, made from the types that the server reads and writes.",
            answer: Some(|_| schemars::json_schema!({ "type": "object" })),
            problems: &[421],
            needs_token: false,
            ..look
        },
    ]
}

/// The document, written once.
pub(crate) fn document() -> &'static str {
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    DOCUMENT.get_or_init(|| build().to_string())
}

fn build() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    // What the server reads and what it writes are different things: a field with a default need not
    // be sent, and always comes.
    let mut reading = settings.clone().for_deserialize().into_generator();
    let mut writing = settings.for_serialize().into_generator();
    let problem = writing.subschema_for::<Problem>();
    let mut paths = Map::new();
    for operation in operations() {
        let described = describe(&operation, &mut reading, &mut writing, &problem);
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = described;
    }
    let mut schemas = reading.take_definitions(false);
    schemas.extend(writing.take_definitions(false));
    // A query is not a body: its fields stand as parameters.
    schemas.remove("LabelQuery");
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "ngame",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "From a text to the few right labels out of many.",
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn describe(
    operation: &Operation,
    reading: &mut SchemaGenerator,
    writing: &mut SchemaGenerator,
    problem: &Schema,
) -> Value {
    let ok = match operation.answer {
        Some(answer) => json!({ "application/json": { "schema": answer(writing) } }),
        None => json!({ "text/plain": { "schema": { "type": "string" } } }),
    };
    let mut responses = Map::new();
    responses.insert("200".to_owned(), json!({ "description": "The answer.", "content": ok }));
    for &status in operation.problems {
        let content = json!({ "application/problem+json": { "schema": problem } });
        let mut response = json!({ "description": meaning(status), "content": content });
        if status == 503 {
            let seconds = json!({ "description": "Seconds.", "schema": { "type": "integer" } });
            response["headers"] = json!({ "Retry-After": seconds });
        }
        responses.insert(status.to_string(), response);
    }
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "description": operation.description,
        "responses": responses,
    });
    if let Some(body) = operation.body {
        let mut content = json!({ "schema": body(reading) });
        if let Some(example) = operation.example {
            content["example"] = example();
        }
        described["requestBody"] =
            json!({ "required": true, "content": { "application/json": content } });
    }
    let parameters = parameters(operation, reading);
    if !parameters.is_empty() {
        described["parameters"] = parameters.into();
    }
    if operation.needs_token {
        // With a token or without one: the operator decides.
        described["security"] = json!([{}, { "token": [] }]);
    }
    described
}

fn parameters(operation: &Operation, reading: &mut SchemaGenerator) -> Vec<Value> {
    let mut parameters = Vec::new();
    if operation.path.contains("{name}") {
        parameters.push(json!({
            "name": "name",
            "in": "path",
            "required": true,
            "description": "The model, by its name at /v1/models.",
            "schema": { "type": "string", "minLength": 1 },
        }));
    }
    if let Some(query) = operation.query {
        query(reading);
        let schema = reading.definitions().get("LabelQuery").cloned().unwrap_or_default();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let mut field = field.clone();
            let description = field["description"].take();
            field.as_object_mut().map(|field| field.remove("description"));
            parameters.push(json!({
                "name": name,
                "in": "query",
                "required": false,
                "description": description,
                "schema": field,
            }));
        }
    }
    parameters
}

fn meaning(status: u16) -> &'static str {
    match status {
        400 => "The request cannot be read.",
        401 => "A token is needed, or this is not it.",
        404 => "There is no such model, or no such label.",
        408 => "The body came too slowly.",
        413 => "The body is too long.",
        415 => "The body is not `application/json`.",
        421 => "The server is not known by the name in the `Host` header.",
        422 => "A field is unknown, missing or out of bounds.",
        _ => "Too many requests wait, or the server is about to end: try again later.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_leads_somewhere() {
        let document = build();
        let text = document.to_string();
        let references: Vec<&str> = text.split("\"$ref\":\"").skip(1).collect();
        assert!(references.len() > 10, "{text}");
        for reference in references {
            let pointer = reference.split('"').next().unwrap().trim_start_matches('#');
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
    }

    #[test]
    fn limits_are_the_ones_that_are_checked() {
        let document = build();
        let fields = &document["components"]["schemas"]["PredictRequest"]["properties"];
        assert_eq!(fields["texts"]["maxItems"], crate::settings::MOST_TEXTS);
        assert_eq!(fields["texts"]["items"]["maxLength"], crate::settings::MOST_CHARACTERS);
        assert_eq!(fields["top"]["maximum"], crate::settings::MOST_LABELS);
        assert_eq!(fields["exclude"]["maxItems"], crate::settings::MOST_EXCLUDED);
        assert_eq!(fields["top"]["default"], 5);
    }
}
