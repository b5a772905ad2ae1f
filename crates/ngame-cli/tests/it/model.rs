//! A model's life on the command line: train, evaluate, predict, inspect.

use std::path::Path;

use crate::command::{ngame, repository};

/// A small model of the sample's titles.
pub(crate) fn model(folder: &Path) -> String {
    let (data, out) = (repository("samples/debian-small"), folder.join("model"));
    let (data, out) = (data.to_string_lossy(), out.to_string_lossy());
    let mut args = vec!["train", &data, "--out", &out, "--text", "title", "--epochs", "6"];
    let settings = ["encoder.dim=48", "encoder.vocabulary=3000", "classifier.epochs=2"];
    settings.iter().for_each(|setting| args.extend(["--set", setting]));
    let outcome = ngame(&args);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    for part in ["Held-out points", "chosen", "Test points", "fused", "ngame predict"] {
        assert!(outcome.stdout.contains(part), "{part}: {}", outcome.stdout);
    }
    out.into_owned()
}

#[test]
fn a_model_is_evaluated_asked_and_inspected() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let data = repository("samples/debian-small").to_string_lossy().into_owned();

    // The text that it was trained on is the text it is evaluated on.
    let evaluation = ngame(["evaluate", &model, &data, "--json"]).json();
    for part in ["fused", "classifier", "embedding"] {
        assert_eq!(evaluation[part]["precision"].as_array().unwrap().len(), 5, "{part}");
        assert!(evaluation[part]["psndcg"].is_array() && evaluation[part]["recall_100"].is_f64());
    }
    assert_eq!(evaluation["deciles"].as_array().unwrap().len(), 10);
    let text = ngame(["evaluate", &model, &data, "--intervals"]).success();
    assert!(text.contains("label embedding") && text.contains("decile 10") && text.contains('–'));

    // Predictions in a file score the same by `ngame metrics`.
    let matrix = folder.path().join("p.npz").to_string_lossy().into_owned();
    let part = ["--part", "test"];
    let to_file = ["--top", "100", "--format", "npz", "--out", &matrix];
    ngame([&["predict", &model, &data][..], &part, &to_file].concat()).success();
    let metrics = ngame(["metrics", "--predictions", &matrix, "--truth", &data, "--json"]).json();
    assert_eq!(metrics["precision"], evaluation["fused"]["precision"]);
    assert_eq!(metrics["psndcg"], evaluation["fused"]["psndcg"]);

    let texts = folder.path().join("texts.txt");
    std::fs::write(&texts, "photo viewer for KDE\n\nspeech synthesizer\n").unwrap();
    let texts = texts.to_string_lossy().into_owned();
    let lines = ngame(["predict", &model, &texts, "--format", "jsonl", "--top", "3"]).success();
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3, "an empty line is a text, too");
    assert_eq!(lines[2]["text"], "speech synthesizer");
    let first = &lines[0]["labels"][0];
    assert!(first["id"].is_string() && first["text"].is_string() && first["score"].is_f64());
    assert_eq!(lines[0]["labels"].as_array().unwrap().len(), 3);
    let table = ngame(["predict", &model, &texts, "--format", "tsv", "--top", "2"]).success();
    assert_eq!(table.lines().count(), 6);
    assert!(table.lines().all(|line| line.split('\t').count() == 4));
    let explained = ngame(["predict", &model, &texts, "--explain"]).success();
    assert!(explained.contains("classifier") && explained.contains("near"), "{explained}");
    let sure = ngame(["predict", &model, &texts, "--threshold", "1", "--format", "tsv"]).success();
    assert_eq!(sure, "");

    let inspected = ngame(["inspect", &model, "--verify"]).success();
    for part in ["every byte verified", "labels.bin", "exact search", "boosted", "lexical"] {
        assert!(inspected.contains(part), "{part}: {inspected}");
    }
}

#[test]
fn mistakes_with_models_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("absent").to_string_lossy().into_owned();
    let empty = folder.path().to_string_lossy().into_owned();
    let data = repository("samples/debian-small").to_string_lossy().into_owned();
    for (args, expected) in [
        (&["predict", &absent][..], "a model folder"),
        (&["inspect", &empty], "manifest.json"),
        (&["evaluate", &absent, &data], "a model folder"),
        (&["predict", &absent, "--format", "npz"], "--out"),
        (&["predict", &absent, "--threads", "0"], "--threads"),
        (&["predict", &absent, "--threshold", "2"], "from 0 to 1"),
        (&["predict", &absent, "--top", "0"], "--top"),
    ] {
        let told = ngame(args).user_error();
        assert!(told.contains(expected), "{args:?}: {told}");
    }
}
