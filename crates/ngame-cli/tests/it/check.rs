//! `ngame check`.

use crate::command::{ngame, repository, temporary};

#[test]
fn the_sample_has_its_counts() {
    let sample = repository("samples/debian-small");
    let json = ngame(["check".as_ref(), sample.as_os_str(), "--json".as_ref()]).json();
    for (key, value) in [
        ("n_train", 1408.0),
        ("n_test", 579.0),
        ("n_labels", 1180.0),
        ("labels_per_point", 5.24),
        ("points_per_label", 6.25),
        ("median_points_per_label", 3.0),
    ] {
        assert_eq!(json[key].as_f64(), Some(value), "{key}");
    }
    assert_eq!((json["format"].as_str(), json["text"].as_str()), (Some("lf"), Some("both")));
    let text = ngame(["check".as_ref(), sample.as_os_str()]).success();
    for part in ["1,408", "579", "1,180 labels", "6.25 training points each"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "no colours where there is no terminal");
}

#[test]
fn five_rows_of_csv_are_enough() {
    let (_folder, path) = temporary(
        "mine.csv",
        "text,labels\nred and round,apple\nyellow and long,banana\ngreen and round,apple;pear\n\
         orange and round,orange\nsmall and red,cherry;apple\n",
    );
    let text = ngame(["check".as_ref(), path.as_os_str()]).success();
    assert!(text.contains("5 labels"), "{text}");
    assert!(!text.contains("worth a look"), "{text}");
    assert!(text.contains("no test rows: add a test file, or make some with --split 0.1"));
    let json = ngame(["check", path.to_str().unwrap(), "--split", "0.4", "--json"]).json();
    assert_eq!((json["n_train"].as_u64(), json["n_test"].as_u64()), (Some(3), Some(2)));
}

#[test]
fn oddities_are_shown_and_no_error() {
    let (_folder, path) = temporary("mine.csv", "text,labels\na,x;x\na,y\n,y\nb,\n");
    let text = ngame(["check".as_ref(), path.as_os_str()]).success();
    for part in [
        "worth a look",
        "1 training points repeat the text of an earlier one",
        "1 points have no text",
        "1 training points have no label",
        "1 labels stand twice in a row and count once",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn tokens_are_counted_on_request() {
    let sample = repository("samples/debian-small");
    let tokenizer = repository("fixtures/tokens");
    let args = ["check", sample.to_str().unwrap(), "--max-tokens", "16", "--json", "--tokenizer"];
    let json = ngame(args.into_iter().chain(tokenizer.to_str())).json();
    let mean = |key: &str| json[key]["mean"].as_f64().unwrap();
    assert!(mean("tokens_per_text") > mean("words_per_text"));
    assert!(json["share_cut"].as_f64().unwrap() > 0.5);
}

#[test]
fn mistakes_are_explained() {
    let (_folder, path) = temporary("mine.csv", "text,labels\na,b,c\n");
    let message = ngame(["check".as_ref(), path.as_os_str()]).user_error();
    assert!(message.starts_with("error: "), "{message}");
    assert!(message.contains("mine.csv, line 2: counts disagree"), "{message}");
    assert!(message.contains("to do:"), "{message}");
    let message = ngame(["check", "no-such-folder"]).user_error();
    assert!(message.contains("no-such-folder: file not found"), "{message}");
    let message = ngame(["check", path.to_str().unwrap(), "--split", "2"]).user_error();
    assert!(message.contains("--split: expected a share between 0 and 1"), "{message}");
    let message = ngame(["check", path.to_str().unwrap(), "--format", "xml"]).user_error();
    assert!(message.contains("expected lf, xc or own"), "{message}");
}
