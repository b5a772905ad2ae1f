//! `ngame metrics`.

use serde_json::Value;

use crate::command::{Outcome, ngame, repository, temporary};

fn golden(more: &[&str]) -> Outcome {
    let folder = repository("fixtures/metrics-debian-small");
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let mut args = vec!["metrics".to_owned()];
    args.extend(["--predictions".to_owned(), file("predictions.txt.gz")]);
    args.extend(["--truth".to_owned(), file("truth.txt.gz")]);
    args.extend(["--label-counts".to_owned(), file("label_counts.txt.gz")]);
    args.extend(more.iter().map(|&word| match word {
        "FILTER" => file("filter_labels.txt"),
        word => word.to_owned(),
    }));
    ngame(args)
}

#[test]
fn every_number_of_pyxclib_comes_out() {
    let expected: Value = serde_json::from_slice(
        &std::fs::read(repository("fixtures/metrics-debian-small/expected.json")).unwrap(),
    )
    .unwrap();
    for (case, metrics) in expected.as_object().unwrap() {
        let mut parts = case.split('|');
        let mut more = vec!["-k", "10", "--json"];
        if parts.next() == Some("filtered") {
            more.extend(["--filter", "FILTER"]);
        }
        for (flag, part) in ["--a", "--b"].into_iter().zip(parts) {
            more.extend([flag, part.split_once('=').unwrap().1]);
        }
        let found = golden(&more).json();
        for (name, values) in metrics.as_object().unwrap() {
            for (rank, value) in values.as_array().unwrap().iter().enumerate() {
                let (found, value) = (found[name][rank].as_f64().unwrap(), value.as_f64().unwrap());
                assert!((found - value).abs() < 1e-5, "{case} {name} at {rank}");
            }
        }
    }
}

#[test]
fn tables_and_groups_are_for_people() {
    let text = golden(&["--filter", "FILTER", "--intervals", "--groups"]).success();
    for part in ["579 points, 1,180 labels, 49 filter pairs", "precision", "55.61", "PS nDCG"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    for part in ["decile 10", "torso", "part of P@5"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn intervals_are_the_same_for_the_same_seed() {
    let run =
        |seed: &str| golden(&["--intervals", "--seed", seed, "--json"]).json()["intervals"].clone();
    assert_eq!(run("1"), run("1"));
    assert_ne!(run("1"), run("2"));
}

#[test]
fn a_data_set_folder_brings_truth_filter_and_counts() {
    let folder = repository("fixtures/metrics-debian-small");
    let predictions = folder.join("predictions.txt.gz");
    let sample = repository("samples/debian-small");
    let args = ["metrics", "--predictions", predictions.to_str().unwrap(), "--truth"];
    let args: Vec<&str> = args.into_iter().chain(sample.to_str()).collect();
    let from_folder = ngame(args.iter().chain(&["--json"])).json();
    let filtered = golden(&["--filter", "FILTER", "--json"]).json();
    assert_eq!(from_folder["precision"], filtered["precision"]);
    let unfiltered = golden(&["--json"]).json();
    let without = ngame(args.iter().chain(&["--json", "--no-filter"])).json();
    assert_eq!(without["precision"], unfiltered["precision"]);
    assert_ne!(unfiltered["precision"], filtered["precision"]);
}

#[test]
fn propensities_go_by_name() {
    let amazon = golden(&["--propensity", "LF-AmazonTitles-131K", "--json"]).json();
    assert_eq!(
        amazon["psprecision"],
        golden(&["--a", "0.6", "--b", "2.6", "--json"]).json()["psprecision"]
    );
    let message = golden(&["--propensity", "nowhere"]).user_error();
    assert!(message.contains("`nowhere` is not known"), "{message}");
}

#[test]
fn without_counts_there_are_no_propensity_scores() {
    let (_truth_folder, truth) = temporary("t.txt", "1 2\n0:1\n");
    let (_folder, predictions) = temporary("p.jsonl", "[[0, 0.5], [1, 0.9]]\n");
    let args = ["metrics", "--truth", truth.to_str().unwrap(), "--predictions"];
    let args: Vec<&str> = args.into_iter().chain(predictions.to_str()).collect();
    let json = ngame(args.iter().chain(&["-k", "2", "--json"])).json();
    assert_eq!(json["precision"], serde_json::json!([0.0, 0.5]));
    assert!(json.get("psprecision").is_none());
    assert!(ngame(&args).success().contains("no label counts"));
    let message = ngame(args.iter().chain(&["--groups"])).user_error();
    assert!(message.contains("--groups needs --label-counts"), "{message}");
}
