//! `ngame serve` as operators run it: the address it prints, signals, and what it refuses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::command::{ngame, repository};

/// A model that takes a moment to make.
fn model(folder: &Path) -> String {
    let (data, out) = (repository("samples/debian-small"), folder.join("small"));
    let (data, out) = (data.to_string_lossy(), out.to_string_lossy());
    let mut args = vec!["train", &data, "--out", &out, "--text", "title", "--epochs", "2"];
    let settings = ["encoder.dim=32", "encoder.vocabulary=2000", "classifier.epochs=1"];
    settings.iter().for_each(|setting| args.extend(["--set", setting]));
    let outcome = ngame(&args);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    out.into_owned()
}

struct Serving {
    process: Child,
    address: String,
    /// What it has printed.
    printed: Vec<String>,
}

impl Serving {
    fn start(args: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_ngame"))
            .arg("serve")
            .args(args)
            .args(["--addr", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let printed: Vec<String> = lines.by_ref().take(2).map(Result::unwrap).collect();
        let address = printed[0].split_whitespace().next().unwrap();
        let address = address.strip_prefix("http://").unwrap().to_owned();
        Self { process, address, printed }
    }

    fn ask(&self, head: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{head} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    }

    #[cfg(unix)]
    fn signal(&self, name: &str) {
        let process = self.process.id().to_string();
        assert!(Command::new("kill").args([name, &process]).status().unwrap().success());
    }

    /// Its exit code and its log, when it has ended.
    fn ended(mut self) -> (Option<i32>, String) {
        let code = self.process.wait().unwrap().code();
        let mut log = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        (code, log)
    }
}

#[cfg(unix)]
#[test]
fn it_answers_loads_anew_and_ends_when_told() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let second = format!("other={model}");
    let serving = Serving::start(&[&model, &second, "--log", "json", "--threads", "1"]);
    assert!(serving.printed[1].contains("/docs"), "{:?}", serving.printed);
    let answer = serving.ask("POST /v1/predict", r#"{"texts":["photo viewer"],"model":"other"}"#);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"score\""), "{answer}");
    let models = serving.ask("GET /v1/models", "");
    assert!(models.contains("\"small\"") && models.contains("\"other\""), "{models}");
    serving.signal("-HUP");
    for _ in 0..1_000 {
        if serving.ask("GET /metrics", "").contains("ngame_reloads_total 2") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(serving.ask("GET /metrics", "").contains("ngame_reloads_total 2"));
    serving.signal("-TERM");
    let (code, log) = serving.ended();
    assert_eq!(code, Some(0), "{log}");
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = |event: &str| lines.iter().filter(|line| line["event"] == event).count();
    assert_eq!((told("listening"), told("model loaded anew"), told("stopped")), (1, 2, 1), "{log}");
    assert!(told("request") >= 3 && !log.contains("photo viewer"), "{log}");
}

#[test]
fn what_is_unsafe_or_wrong_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("absent").to_string_lossy().into_owned();
    let weak = folder.path().join("weak");
    std::fs::write(&weak, "secret\n").unwrap();
    let weak = weak.to_string_lossy().into_owned();
    let twice = format!("absent={absent}");
    for (args, expected) in [
        (&["serve", &absent, "--addr", "0.0.0.0:0"][..], "--token-file"),
        (&["serve", &absent, "--addr", "nowhere"], "127.0.0.1:8080"),
        (&["serve", &absent, "--addr", "127.0.0.1:0", "--token-file", &weak], "openssl"),
        (&["serve", &absent, "--addr", "127.0.0.1:0", "--token-file", &absent], "--token-file"),
        (&["serve", &absent, "--addr", "127.0.0.1:0"], "a model folder"),
        (&["serve", &absent, &twice, "--addr", "127.0.0.1:0"], "two models"),
        (&["serve", &absent, "--addr", "127.0.0.1:0", "--cors", "*"], "https://example.org"),
        (&["serve", &absent, "--addr", "127.0.0.1:0", "--max-queue", "0"], "--max-queue"),
        (&["serve"], "MODEL"),
    ] {
        let told = ngame(args).user_error();
        assert!(told.contains(expected), "{args:?}: {told}");
    }
}
