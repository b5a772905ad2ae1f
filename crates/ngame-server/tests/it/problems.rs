//! Every mistake gets a 4xx that says what to do; nothing gets a 500.

use std::io::Write;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::Request;
use ngame_server::{Log, LogFormat, Token};
use serde_json::{Value, json};

use crate::trained::{Answer, Router, settings};

#[tokio::test]
async fn bodies_that_are_not_what_they_should_be() {
    let router = Router::new(settings());
    let long = "x".repeat(20_001);
    let many = vec!["x"; 129];
    let too_many_excluded = vec!["x"; 1_001];
    let fits = json!({ "texts": ["é".repeat(20_000)] }).to_string();
    router.post("/v1/predict", fits).await.json();
    for (body, status, told) in [
        (String::new(), 400, "EOF"),
        ("{".to_owned(), 400, "EOF"),
        ("texts".to_owned(), 400, "expected"),
        ("{\"texts\":[\"a\"]} x".to_owned(), 400, "trailing"),
        (r#"{"texts":["\ud800"]}"#.to_owned(), 400, "hex escape"),
        ("[]".to_owned(), 422, "expected an object"),
        (r#"[["a"],5,0.0,false,[],null]"#.to_owned(), 422, "expected an object"),
        ("5".to_owned(), 422, "expected an object"),
        ("{}".to_owned(), 422, "missing field `texts`"),
        (json!({ "texts": "a" }).to_string(), 422, "expected a sequence"),
        (json!({ "texts": [1] }).to_string(), 422, "expected a string"),
        (json!({ "texts": [] }).to_string(), 422, "texts: expected 1 to 128"),
        (json!({ "texts": many }).to_string(), 422, "found 129"),
        (json!({ "texts": ["a", long] }).to_string(), 422, "texts[1]: expected at most 20000"),
        (json!({ "texts": ["a"], "tpo": 5 }).to_string(), 422, "unknown field `tpo`"),
        (json!({ "texts": ["a"], "top": 0 }).to_string(), 422, "top: expected 1 to 100"),
        (json!({ "texts": ["a"], "top": 101 }).to_string(), 422, "top: expected 1 to 100"),
        (json!({ "texts": ["a"], "top": 2.5 }).to_string(), 422, "a whole number"),
        (json!({ "texts": ["a"], "top": -1 }).to_string(), 422, "invalid value"),
        (json!({ "texts": ["a"], "top": "5" }).to_string(), 422, "invalid type"),
        (
            json!({ "texts": ["a"], "threshold": 1.5 }).to_string(),
            422,
            "threshold: expected 0 to 1",
        ),
        (json!({ "texts": ["a"], "threshold": null }).to_string(), 422, "invalid type"),
        (json!({ "texts": ["a"], "explain": "yes" }).to_string(), 422, "expected a boolean"),
        (json!({ "texts": ["a"], "exclude": ["?"] }).to_string(), 404, "exclude[0]"),
        (json!({ "texts": ["a"], "exclude": too_many_excluded }).to_string(), 422, "found 1001"),
        (json!({ "texts": ["a"], "exclude": [long] }).to_string(), 422, "exclude[0]"),
        (json!({ "texts": ["a"], "model": "no" }).to_string(), 404, "no model has this name"),
        (r#"{"texts":["a"],"texts":["b"]}"#.to_owned(), 422, "duplicate field"),
    ] {
        let problem = router.post("/v1/predict", body.clone()).await.problem(status);
        let detail = problem["detail"].as_str().unwrap();
        let start: String = body.chars().take(60).collect();
        assert!(detail.contains(told), "{start}: {detail}");
    }
    for (body, status) in [
        ("{}", 422),
        ("nonsense", 400),
        (r#"{"texts":[]}"#, 422),
        (r#"{"texts":["a"],"top":5}"#, 422),
        (r#"{"texts":["a"],"model":"no"}"#, 404),
    ] {
        router.post("/v1/embed", body).await.problem(status);
    }
    router.post("/v1/predict", vec![b'"', 0xff, b'"']).await.problem(400);
    let deep = "[".repeat(100_000);
    router.post("/v1/predict", deep).await.problem(400);
}

#[tokio::test]
async fn bodies_of_the_wrong_kind_or_size() {
    let router = Router::new(settings());
    let send = async |headers: &[(&str, &str)], body: Vec<u8>| -> Answer {
        let mut request = Request::post("/v1/predict");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        router.send(request.body(Body::from(body)).unwrap()).await
    };
    let json = ("content-type", "application/json");
    let body = || br#"{"texts":["a"]}"#.to_vec();
    send(&[], body()).await.problem(415);
    send(&[("content-type", "text/plain")], body()).await.problem(415);
    send(&[("content-type", "application/x-www-form-urlencoded")], body()).await.problem(415);
    send(&[json, ("content-encoding", "gzip")], body()).await.problem(415);
    assert_eq!(
        send(&[("content-type", "Application/JSON; charset=utf-8")], body()).await.status,
        200
    );
    send(&[json], vec![b' '; (2 << 20) + 1]).await.problem(413);
    send(&[json, ("content-length", "99999999999")], body()).await.problem(413);
}

#[tokio::test]
async fn addresses_and_methods_that_do_not_exist() {
    let router = Router::new(settings());
    for path in ["/nothing", "/v1", "/v1/predict/", "/v2/predict", "/assets/nothing", "//"] {
        router.get(path).await.problem(404);
    }
    for path in ["/assets/..%2Flib.rs", "/assets/%2e%2e%2fCargo.toml", "/assets/%ff"] {
        router.get(path).await.problem(404);
    }
    router.get("/v1/models/nothing").await.problem(404);
    router.get("/v1/models/nothing/labels").await.problem(404);
    router.get("/v1/models/%ff").await.problem(400);
    for (query, status) in [
        ("limit=0", 422),
        ("limit=101", 422),
        ("limit=many", 400),
        ("limit=-1", 400),
        ("other=1", 400),
        ("q=a&q=b", 400),
        (&format!("q={}", "x".repeat(201)), 422),
    ] {
        router.get(&format!("/v1/models/titles/labels?{query}")).await.problem(status);
    }
    for (method, path, allowed) in [
        ("GET", "/v1/predict", "POST"),
        ("DELETE", "/v1/embed", "POST"),
        ("POST", "/v1/models", "GET,HEAD"),
        ("PUT", "/", "GET,HEAD"),
        ("OPTIONS", "/v1/predict", "POST"),
        ("TRACE", "/healthz", "GET,HEAD"),
    ] {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        let answer = router.send(request).await;
        answer.problem(405);
        assert_eq!(answer.header("allow"), allowed, "{method} {path}");
    }
}

#[tokio::test]
async fn without_the_token_nothing_is_told() {
    let mut settings = settings();
    settings.token = Some(Token::new("correct-horse-battery").unwrap());
    let router = Router::new(settings);
    let get = async |path: &str, token: Option<&str>| {
        let mut request = Request::get(path).header("host", "example.org");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        router.send(request.body(Body::empty()).unwrap()).await
    };
    for path in
        ["/v1/models", "/v1/models/titles", "/v1/models/titles/labels", "/metrics", "/v1/predict"]
    {
        for token in [None, Some("wrong"), Some("correct-horse-batter"), Some("")] {
            let answer = get(path, token).await;
            answer.problem(401);
            assert_eq!(answer.header("www-authenticate"), "Bearer");
        }
        assert_ne!(get(path, Some("correct-horse-battery")).await.status, 401, "{path}");
    }
    for path in ["/", "/docs", "/assets/page.js", "/openapi.json", "/healthz", "/readyz"] {
        assert_eq!(get(path, None).await.status, 200, "{path}");
    }
    router.post("/v1/predict", r#"{"texts":["a"]}"#).await.problem(401);
}

#[tokio::test]
async fn without_a_token_only_names_of_this_machine_are_answered() {
    let router = Router::new(settings());
    let get = async |host: &str| {
        let request = Request::get("/v1/models").header("host", host);
        router.send(request.body(Body::empty()).unwrap()).await
    };
    get("localhost:8080").await.json();
    get("127.0.0.1").await.json();
    get("evil.example").await.problem(421);
    get("localhost.evil.example:8080").await.problem(421);
}

#[tokio::test]
async fn other_origins_are_let_in_by_name_only() {
    let mut settings = settings();
    settings.cors = Some("https://library.example".to_owned());
    let router = Router::new(settings);
    let send = async |method: &str, origin: &str| {
        let request = Request::builder().method(method).uri("/v1/models").header("origin", origin);
        let request = request.header("access-control-request-method", "POST");
        router.send(request.body(Body::empty()).unwrap()).await
    };
    let asked = send("OPTIONS", "https://library.example").await;
    assert_eq!(asked.status, 204);
    assert_eq!(asked.header("access-control-allow-origin"), "https://library.example");
    assert!(asked.header("access-control-allow-headers").contains("content-type"));
    let answer = send("GET", "https://library.example").await;
    assert_eq!(answer.header("access-control-allow-origin"), "https://library.example");
    assert_eq!(answer.header("vary"), "Origin");
    for other in ["https://evil.example", "null", "https://library.example.evil"] {
        assert_eq!(send("OPTIONS", other).await.status, 405);
        assert_eq!(send("GET", other).await.header("access-control-allow-origin"), "");
    }
}

/// A log that can be read afterwards.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_log_tells_of_requests_and_not_of_texts() {
    let kept = Kept::default();
    let log = Log::new(LogFormat::Json, Box::new(kept.clone()));
    let router = Router::with_log(settings(), log);
    router.post("/v1/predict", r#"{"texts":["verysecret"]}"#).await.json();
    router.post("/v1/predict", r#"{"verysecret":["verysecret"]}"#).await.problem(422);
    router.get("/v1/models/titles/labels?q=verysecret").await.json();
    router.get("/v1/models/verysecret").await.problem(404);
    let answer = router.get("/verysecret").await;
    answer.problem(404);
    let odd = Request::builder().method("VERYSECRET").uri("/").body(Body::empty()).unwrap();
    router.send(odd).await.problem(405);
    let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
    assert!(!text.to_lowercase().contains("verysecret"), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 6);
    for line in &lines {
        assert_eq!(line["event"], "request");
        for field in ["time", "id", "method", "route", "status", "milliseconds"] {
            assert!(!line[field].is_null(), "{field}: {line}");
        }
    }
    assert_eq!(lines[0]["route"], "/v1/predict");
    assert_eq!((&lines[4]["route"], &lines[4]["status"]), (&json!("unknown"), &json!(404)));
    assert_eq!(lines[4]["id"], answer.header("x-request-id"));
}
