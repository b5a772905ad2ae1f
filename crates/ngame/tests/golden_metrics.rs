//! The metrics agree with pyxclib, the community's reference, on its own answers.
//!
//! The fixture holds rankings of the 579 test points of debian-small and what pyxclib says of
//! them. Set `NGAME_GOLDEN_METRICS` to another folder of the same files to check that one instead.

#![allow(clippy::unwrap_used, reason = "a fixture that cannot be read should fail the test")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use ngame::data::{Csr, ScoredCsr};
use ngame::metrics::{PropensityModel, Task, evaluate};

/// The peer computes some of its metrics in f32.
const TOLERANCE: f64 = 1e-5;

/// For each case, such as "filtered|A=0.55|B=1.5", each metric's values from k = 1 on.
type Expected = BTreeMap<String, BTreeMap<String, Vec<f64>>>;

#[test]
fn metrics_agree_with_pyxclib() {
    let folder = std::env::var_os("NGAME_GOLDEN_METRICS").map_or_else(
        || concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/metrics-debian-small").into(),
        PathBuf::from,
    );
    let predictions = read_scored(&folder.join("predictions.txt.gz"));
    let truth = read_scored(&folder.join("truth.txt.gz")).into_pattern();
    let filter = read_filter(&folder.join("filter_labels.txt"), &truth);
    let (n_points, label_counts) = read_label_counts(&folder.join("label_counts.txt.gz"));
    let expected = fs::read_to_string(folder.join("expected.json")).unwrap();
    let expected: Expected = serde_json::from_str(&expected).unwrap();

    let (mut n_values, mut largest_deviation) = (0, 0.0f64);
    for (case, metrics) in &expected {
        let parts: Vec<&str> = case.split('|').collect();
        let [filtering, a, b] = parts[..] else { panic!("{case} has three parts") };
        let parameter = |part: &str| part.split_once('=').unwrap().1.parse().unwrap();
        let model = PropensityModel { a: parameter(a), b: parameter(b) };
        let weights = model.inverse_propensities(n_points, &label_counts);
        let task = Task {
            truth: &truth,
            filter: match filtering {
                "filtered" => Some(&filter),
                "unfiltered" => None,
                other => panic!("{other} is no way to filter"),
            },
            inverse_propensities: Some(&weights),
        };
        let found = evaluate(&predictions, &task, 10);
        for (name, values) in metrics {
            let found = match name.as_str() {
                "precision" => &found.precision,
                "ndcg" => &found.ndcg,
                "psprecision" => found.psprecision.as_ref().unwrap(),
                "psndcg" => found.psndcg.as_ref().unwrap(),
                "recall" => &found.recall,
                "psrecall" => found.psrecall.as_ref().unwrap(),
                other => panic!("{other} is no metric"),
            };
            assert_eq!(values.len(), if name == "recall" { 10 } else { 5 }, "{case} {name}");
            for (k, (expected, found)) in (1..).zip(values.iter().zip(found)) {
                let deviation = (expected - found).abs();
                assert!(deviation < TOLERANCE, "{case} {name}@{k}: {found} is not {expected}");
                largest_deviation = largest_deviation.max(deviation);
                n_values += 1;
            }
        }
        assert_eq!(metrics.len(), 6, "{case} has six metrics");
    }
    assert!(n_values >= 2 * 35, "only {n_values} values were compared");
    println!("{n_values} values in {folder:?}, largest deviation {largest_deviation:e}");
}

fn read_lines(path: &Path) -> Vec<String> {
    let mut text = String::new();
    let bytes = fs::read(path).unwrap();
    if path.extension().is_some_and(|extension| extension == "gz") {
        GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    } else {
        text = String::from_utf8(bytes).unwrap();
    }
    text.lines().map(str::to_owned).collect()
}

fn read_pair(line: &str, separator: char) -> (u32, u32) {
    let (first, second) = line.split_once(separator).unwrap();
    (first.trim().parse().unwrap(), second.trim().parse().unwrap())
}

fn read_scored(path: &Path) -> ScoredCsr {
    let lines = read_lines(path);
    let (n_rows, n_labels) = read_pair(&lines[0], ' ');
    let mut scored = ScoredCsr::new(n_labels);
    for line in &lines[1..] {
        let pair = |word: &str| {
            let (label, score) = word.split_once(':').unwrap();
            (label.parse().unwrap(), score.parse().unwrap())
        };
        scored.push_row(&mut line.split_whitespace().map(pair).collect());
    }
    assert_eq!(scored.n_rows(), n_rows as usize);
    scored
}

fn read_filter(path: &Path, truth: &Csr) -> Csr {
    let pairs = read_lines(path).iter().map(|line| read_pair(line, ' ')).collect();
    Csr::from_pairs(truth.n_rows(), truth.n_columns(), pairs)
}

fn read_label_counts(path: &Path) -> (u64, Vec<u32>) {
    let lines = read_lines(path);
    let (n_points, n_labels) = read_pair(&lines[0], ' ');
    let counts: Vec<u32> = lines[1..].iter().map(|line| line.trim().parse().unwrap()).collect();
    assert_eq!(counts.len(), n_labels as usize);
    (u64::from(n_points), counts)
}
