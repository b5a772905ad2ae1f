//! Every route, and every field of what goes in and out.

use serde_json::{Value, json};

use crate::trained::{Router, settings};

fn router() -> Router {
    Router::new(settings())
}

fn labels(answer: &Value, text: usize) -> &Vec<Value> {
    answer["predictions"][text]["labels"].as_array().unwrap()
}

#[tokio::test]
async fn texts_are_answered_in_their_order() {
    let router = router();
    let body = json!({ "texts": ["photo viewer", "", "speech synthesizer"], "top": 3 });
    let answer = router.post("/v1/predict", body.to_string()).await.json();
    assert_eq!(answer["predictions"].as_array().unwrap().len(), 3);
    for text in 0..3 {
        assert_eq!(labels(&answer, text).len(), 3);
        let scores: Vec<f64> =
            labels(&answer, text).iter().map(|label| label["score"].as_f64().unwrap()).collect();
        assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
        assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "{scores:?}");
    }
    let first = &labels(&answer, 0)[0];
    assert!(first["id"].is_string() && first["text"].is_string() && first.get("why").is_none());
    // Each text alone has the same labels.
    for (at, text) in ["photo viewer", "", "speech synthesizer"].iter().enumerate() {
        let body = json!({ "texts": [text], "top": 3 }).to_string();
        let alone = router.post("/v1/predict", body).await.json();
        let ids = |answer: &Value, text| -> Vec<Value> {
            labels(answer, text).iter().map(|label| label["id"].clone()).collect()
        };
        assert_eq!(ids(&alone, 0), ids(&answer, at));
    }
}

#[tokio::test]
async fn five_labels_come_if_nobody_says_how_many() {
    let answer = router().post("/v1/predict", r#"{"texts":["mail"]}"#).await.json();
    assert_eq!(labels(&answer, 0).len(), 5);
    let answer = router().post("/v1/predict", r#"{"texts":["mail"],"top":7.0}"#).await.json();
    assert_eq!(labels(&answer, 0).len(), 7);
}

#[tokio::test]
async fn a_threshold_leaves_out_what_is_unlikely() {
    let router = router();
    let all = router.post("/v1/predict", r#"{"texts":["photo viewer"],"top":20}"#).await.json();
    let score = labels(&all, 0)[3]["score"].as_f64().unwrap();
    let body = json!({ "texts": ["photo viewer"], "top": 20, "threshold": score }).to_string();
    let some = router.post("/v1/predict", body).await.json();
    let n = labels(&some, 0).len();
    assert!((1..20).contains(&n), "{n}");
    assert!(labels(&some, 0).iter().all(|label| label["score"].as_f64().unwrap() >= score - 1e-6));
}

#[tokio::test]
async fn excluded_labels_do_not_come() {
    let router = router();
    let before = router.post("/v1/predict", r#"{"texts":["photo viewer"]}"#).await.json();
    let ids: Vec<&Value> = labels(&before, 0).iter().map(|label| &label["id"]).collect();
    let body =
        json!({ "texts": ["photo viewer"], "exclude": [ids[0], ids[2], ids[0]] }).to_string();
    let after = router.post("/v1/predict", body).await.json();
    let left: Vec<&Value> = labels(&after, 0).iter().map(|label| &label["id"]).collect();
    assert_eq!(left.len(), 5);
    assert!(!left.contains(&ids[0]) && !left.contains(&ids[2]));
}

#[tokio::test]
async fn reasons_come_with_every_label() {
    let router = router();
    let plain = router.post("/v1/predict", r#"{"texts":["photo viewer"]}"#).await.json();
    let body = r#"{"texts":["photo viewer", "mail client"],"explain":true}"#;
    let answer = router.post("/v1/predict", body).await.json();
    assert_eq!(answer["predictions"].as_array().unwrap().len(), 2);
    let mut any_near = false;
    for (label, bare) in labels(&answer, 0).iter().zip(labels(&plain, 0)) {
        assert_eq!(label["id"], bare["id"]);
        let why = &label["why"];
        for view in ["embedding", "classifier", "lexical"] {
            assert!(why[view].is_f64(), "{view}: {why}");
        }
        assert!(why["frequency"].is_u64());
        let views = why["views"].as_object().unwrap();
        assert_eq!(views["lexical"]["score"], why["lexical"]);
        assert!(views.values().all(|says| says["rank"].as_u64() >= Some(1)), "{why}");
        for near in why["nearest"].as_array().unwrap() {
            any_near = true;
            assert!(near["text"].is_string() && near["similarity"].is_f64());
        }
    }
    assert!(any_near, "{answer}");
}

#[tokio::test]
async fn vectors_have_length_one() {
    let body = r#"{"texts":["photo viewer","mail","photo viewer"],"model":"second"}"#;
    let answer = router().post("/v1/embed", body).await.json();
    let vectors: Vec<Vec<f64>> = serde_json::from_value(answer["vectors"].clone()).unwrap();
    assert_eq!(vectors.iter().map(Vec::len).collect::<Vec<_>>(), [32, 32, 32]);
    for vector in &vectors {
        let length: f64 = vector.iter().map(|x| x * x).sum();
        assert!((length - 1.0).abs() < 1e-4, "{length}");
    }
    assert_eq!(vectors[0], vectors[2]);
    assert_ne!(vectors[0], vectors[1]);
}

#[tokio::test]
async fn models_are_listed_and_described() {
    let router = router();
    let list = router.get("/v1/models").await.json();
    let names: Vec<&str> =
        list["models"].as_array().unwrap().iter().map(|m| m["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["titles", "second"]);
    assert_eq!((&list["models"][0]["dim"], &list["models"][0]["reloads"]), (&json!(32), &json!(0)));

    let card = router.get("/v1/models/second").await.json();
    assert_eq!(card["name"], "second");
    assert_eq!(card["n_labels"], list["models"][1]["n_labels"]);
    assert_eq!((&card["dim"], &card["reloads"]), (&json!(32), &json!(0)));
    assert!(card["bytes"].as_u64().unwrap() > 10_000 && card["n_points"].as_u64().unwrap() > 1_000);
    assert!(card["written_by"].as_str().unwrap().starts_with("ngame "));
    assert_eq!(card["plan"]["config"]["encoder"]["dim"], 32);
    assert_eq!(card["plan"]["data"]["n_labels"], card["n_labels"]);
    assert_eq!(card["metrics"]["fused"]["precision"].as_array().unwrap().len(), 5);
    assert_eq!(card["metrics"]["deciles"].as_array().unwrap().len(), 10);
    assert!(card["tried"].as_array().unwrap().iter().any(|one| one["chosen"] == true));
    assert!(card["views"].as_array().unwrap().len() >= 2 && card["method"].is_string());
    assert!(card["training"]["losses"].as_array().unwrap().len() > 5);
    assert!(card["training"]["validations"].as_array().unwrap()[0]["precision_1"].is_f64());
    let examples = card["examples"].as_array().unwrap();
    assert!((3..=6).contains(&examples.len()), "{examples:?}");
}

#[tokio::test]
async fn labels_are_found_by_their_words() {
    let router = router();
    let found = router.get("/v1/models/titles/labels?q=VIEW%20er&limit=3").await.json();
    let labels = found["labels"].as_array().unwrap();
    assert!((1..=3).contains(&labels.len()), "{found}");
    assert!(found["n_matches"].as_u64().unwrap() >= labels.len() as u64);
    for label in labels {
        let text = format!("{} {}", label["text"], label["id"]).to_lowercase();
        assert!(text.contains("view") && text.contains("er"), "{label}");
        assert!(label["frequency"].is_u64());
    }
    let frequent = router.get("/v1/models/titles/labels").await.json();
    let counts: Vec<u64> = frequent["labels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|label| label["frequency"].as_u64().unwrap())
        .collect();
    assert_eq!(counts.len(), 20);
    assert!(counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
    let none = router.get("/v1/models/titles/labels?q=qqqqqqqq").await.json();
    assert_eq!(none, json!({ "labels": [], "n_matches": 0 }));
}

#[tokio::test]
async fn operators_see_how_it_does() {
    let router = router();
    assert_eq!(router.get("/healthz").await.json(), json!({ "status": "ok" }));
    assert_eq!(router.get("/readyz").await.json(), json!({ "status": "ready" }));
    router.post("/v1/predict", r#"{"texts":["a","b"]}"#).await.json();
    router.post("/v1/predict", "{").await.problem(400);
    let metrics = router.get("/metrics").await;
    assert!(metrics.header("content-type").starts_with("text/plain; version=0.0.4"));
    for line in [
        "ngame_requests_total{route=\"/v1/predict\",status=\"200\"} 1",
        "ngame_requests_total{route=\"/v1/predict\",status=\"400\"} 1",
        "ngame_request_seconds_count{route=\"/healthz\"} 1",
        "ngame_batch_texts_sum 2",
        "ngame_queue_texts 0",
        "ngame_panics_total 0",
    ] {
        assert!(metrics.text.lines().any(|found| found == line), "{line}\n{}", metrics.text);
    }
}

#[tokio::test]
async fn pages_are_whole_and_load_nothing_from_elsewhere() {
    let router = router();
    for path in ["/", "/docs"] {
        let page = router.get(path).await;
        assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
        let policy = page.header("content-security-policy");
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(!page.text.contains("http://") && !page.text.contains("https://"), "{path}");
        assert!(!page.text.contains(" style=") && !page.text.contains("onclick"), "{path}");
        let parts = page.text.split("=\"/assets/").skip(1);
        let assets: Vec<&str> = parts.map(|part| part.split('"').next().unwrap()).collect();
        assert!(assets.len() >= 4, "{assets:?}");
        for asset in assets {
            let found = router.get(&format!("/assets/{asset}")).await;
            assert_eq!(found.status, 200, "{asset}");
            assert_eq!(found.header("x-content-type-options"), "nosniff");
            // Scripts load scripts.
            for part in found.text.split(" from \"./").skip(1) {
                let name = part.split('"').next().unwrap();
                assert_eq!(router.get(&format!("/assets/{name}")).await.status, 200, "{name}");
            }
        }
    }
    assert_eq!(router.get("/favicon.ico").await.status, 204);
}

#[tokio::test]
async fn requests_have_ids_and_times() {
    use axum::body::Body;
    use axum::http::Request;
    let router = router();
    let one = router.get("/healthz").await;
    let other = router.get("/healthz").await;
    assert_eq!(one.header("x-request-id").len(), 16);
    assert_ne!(one.header("x-request-id"), other.header("x-request-id"));
    assert!(one.header("server-timing").starts_with("all;dur="));
    for (given, kept) in [("my-id_1.2", true), ("with space", false), (&"x".repeat(65)[..], false)]
    {
        let request = Request::get("/healthz").header("x-request-id", given);
        let answer = router.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.header("x-request-id") == given, kept, "{given}");
    }
}
