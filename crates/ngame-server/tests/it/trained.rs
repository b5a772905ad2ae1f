//! A small model of the sample's titles, trained once for all tests of this binary.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::http::{HeaderMap, Request};
use http_body_util::BodyExt;
use ngame::data::{Dataset, ReadOptions, TextChoice};
use ngame::encoder::Existing;
use ngame::progress::Silent;
use ngame::training::{TrainPlan, config_from, parse_setting, start_encoder, train};
use ngame_server::{Log, LogFormat, Service, Settings, app};
use serde_json::Value;
use tower::ServiceExt;

/// Below the build's own folder: what lies there is never dropped, and the next run clears it away.
static MODEL: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("served");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    train_model(&folder.join("model"), "0");
    folder
});

/// Trains a model; another seed is another model.
pub(crate) fn train_model(model: &Path, seed: &str) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/debian-small");
    let options = ReadOptions { text: TextChoice::Title, ..Default::default() };
    let dataset = Dataset::read(&data, &options, &Silent).unwrap();
    let seed = format!("run.seed={seed}");
    let settings = [
        "encoder.dim=32",
        "encoder.vocabulary=3000",
        "batching.batch_size=200",
        "run.epochs=3",
        "classifier.epochs=2",
        "validation.points=280",
        &seed,
    ];
    let settings: Vec<_> = settings.iter().map(|one| parse_setting(one).unwrap()).collect();
    let config = config_from(None, None, &settings).unwrap();
    let encoder = start_encoder(&dataset, &config.encoder, 0, &Silent).unwrap();
    let (plan, corpus, encoder) =
        TrainPlan::new(&dataset, TextChoice::Title, config, encoder, &Silent).unwrap();
    train(&plan, &dataset, &corpus, encoder, model, Existing::Keep, &Silent).unwrap();
}

/// The folder of the model.
pub(crate) fn model() -> PathBuf {
    MODEL.join("model")
}

/// Settings for the model under two names.
pub(crate) fn settings() -> Settings {
    let models = vec![("titles".to_owned(), model()), ("second".to_owned(), model())];
    let mut settings = Settings::new(models, "127.0.0.1:0".parse().unwrap());
    settings.threads = Some(1);
    settings
}

/// A log that nobody reads.
pub(crate) fn no_log() -> Log {
    Log::new(LogFormat::Text, Box::new(std::io::sink()))
}

/// The service without a socket.
pub(crate) struct Router {
    router: axum::Router,
}

impl Router {
    pub(crate) fn new(settings: Settings) -> Self {
        Self::with_log(settings, no_log())
    }

    pub(crate) fn with_log(settings: Settings, log: Log) -> Self {
        let service: Arc<Service> = Service::open(settings, log).unwrap();
        Self { router: app(service) }
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            text: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Body>) -> Answer {
        let request = Request::post(path).header("content-type", "application/json");
        self.send(request.body(body.into()).unwrap()).await
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    /// The JSON of an answer that is well.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text);
        assert_eq!(self.header("content-type"), "application/json");
        serde_json::from_str(&self.text).unwrap()
    }

    /// The problem that an answer tells, whole and with this status.
    pub(crate) fn problem(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem: Value = serde_json::from_str(&self.text).unwrap();
        assert_eq!(problem["status"], status);
        for field in ["type", "title", "detail", "to_do"] {
            assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "{problem}");
        }
        let folder = MODEL.to_string_lossy();
        assert!(!self.text.contains(&*folder), "no path leaves the server: {}", self.text);
        problem
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// A request that takes a while.
pub(crate) fn heavy() -> String {
    let text = "photo viewer for the desktop ".repeat(600);
    serde_json::json!({ "texts": vec![text; 60], "explain": true }).to_string()
}
