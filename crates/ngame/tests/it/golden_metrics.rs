//! The metrics agree with pyxclib, the community's reference: rankings of the 579 test points of
//! debian-small and what it answers to them, read by the readers that users use.

use std::collections::BTreeMap;
use std::path::Path;

use ngame::data::{read_filter, read_label_counts, read_label_matrix, read_predictions};
use ngame::metrics::{PropensityModel, Task, evaluate};
use ngame::progress::Silent;

/// The peer computes some of its metrics in f32.
const TOLERANCE: f64 = 1e-5;

/// For each case, such as "filtered|A=0.55|B=1.5", each metric's values from k = 1 on.
type Expected = BTreeMap<String, BTreeMap<String, Vec<f64>>>;

#[test]
fn metrics_agree_with_pyxclib() {
    let folder =
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/metrics-debian-small"));
    let truth = read_label_matrix(&folder.join("truth.txt.gz"), &Silent).unwrap();
    let (n_points, n_labels) = (truth.n_rows(), truth.n_columns());
    let predictions = folder.join("predictions.txt.gz");
    let predictions = read_predictions(&predictions, n_points, n_labels, None, &Silent).unwrap();
    let filter =
        read_filter(&folder.join("filter_labels.txt"), n_points, n_labels, &Silent).unwrap();
    let (n_train, counts) =
        read_label_counts(&folder.join("label_counts.txt.gz"), &Silent).unwrap();
    let expected = std::fs::read_to_string(folder.join("expected.json")).unwrap();
    let expected: Expected = serde_json::from_str(&expected).unwrap();

    let mut n_values = 0;
    for (case, metrics) in &expected {
        let parts: Vec<&str> = case.split('|').collect();
        let [filtering, a, b] = parts[..] else { panic!("{case} has three parts") };
        let parameter = |part: &str| part.split_once('=').unwrap().1.parse().unwrap();
        let model = PropensityModel { a: parameter(a), b: parameter(b) };
        let weights = model.inverse_propensities(n_train, &counts);
        let task = Task {
            truth: &truth,
            filter: (filtering == "filtered").then_some(&filter),
            inverse_propensities: Some(&weights),
        };
        let found = serde_json::to_value(evaluate(&predictions, &task, 10)).unwrap();
        for (name, values) in metrics {
            for (rank, expected) in values.iter().enumerate() {
                let found = found[name][rank].as_f64().unwrap();
                let k = rank + 1;
                assert!(
                    (found - expected).abs() < TOLERANCE,
                    "{case}: {name}@{k} is {found}, pyxclib says {expected}"
                );
                n_values += 1;
            }
        }
    }
    assert_eq!(n_values, 210, "six cases of 35 values each");
}
