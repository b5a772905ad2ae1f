//! The same trees, scores and probabilities as scikit-learn (see `fixtures/fusion/make.py`).

use std::path::Path;

use serde::Deserialize;

use super::*;
use crate::progress::Silent;

#[derive(Deserialize)]
struct Golden {
    units: Vec<Option<f32>>,
    n_features: usize,
    is_true: Vec<u8>,
    targets: Vec<f32>,
    tree: GoldenTree,
    tree_of_truth: GoldenTree,
    boosting: GoldenBoosting,
    linear: GoldenLinear,
    isotonic: GoldenIsotonic,
}

#[derive(Deserialize)]
struct GoldenTree {
    max_depth: usize,
    min_samples_leaf: usize,
    n_leaves: usize,
    predictions: Vec<f32>,
}

#[derive(Deserialize)]
struct GoldenBoosting {
    max_iter: usize,
    learning_rate: f64,
    max_depth: usize,
    min_samples_leaf: usize,
    l2_regularization: f64,
    n_fitted: usize,
    scores: Vec<f32>,
}

#[derive(Deserialize)]
struct GoldenLinear {
    scores: Vec<f32>,
}

#[derive(Deserialize)]
struct GoldenIsotonic {
    units: Vec<f32>,
    is_true: Vec<u8>,
    asked: Vec<f32>,
    probabilities: Vec<f32>,
    knot_units: Vec<f32>,
    knot_probabilities: Vec<f32>,
}

impl Golden {
    fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/fusion/golden.json");
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }

    fn features(&self) -> Vec<f32> {
        self.units.iter().map(|unit| unit.map_or(f32::NAN, |unit| unit / 64.0)).collect()
    }
}

fn truth(numbers: &[u8]) -> Vec<bool> {
    numbers.iter().map(|&number| number == 1).collect()
}

/// The largest difference of two lists.
fn distance(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn a_tree_is_that_of_scikit_learn() {
    let golden = Golden::read();
    let features = golden.features();
    assert!(features.iter().any(|value| value.is_nan()));
    let binned = Binned::new(&features, golden.n_features);
    let of_truth: Vec<f32> = golden.is_true.iter().map(|&number| f32::from(number)).collect();
    for (expected, targets) in [(&golden.tree, &golden.targets), (&golden.tree_of_truth, &of_truth)]
    {
        let options = TreeOptions {
            depth: expected.max_depth,
            min_leaf: expected.min_samples_leaf,
            min_hessian: 0.0,
            lambda: 0.0,
        };
        let tree = RegressionTree::fit(&binned, targets, &options);
        assert_eq!(tree.n_leaves(), expected.n_leaves);
        assert_eq!(tree.check(golden.n_features), Ok(()));
        let predictions: Vec<f32> =
            features.chunks(golden.n_features).map(|row| tree.predict(row)).collect();
        let distance = distance(&predictions, &expected.predictions);
        assert!(distance < 1e-6, "{distance}");
    }
}

#[test]
fn boosted_trees_are_those_of_scikit_learn() {
    let golden = Golden::read();
    let (features, is_true) = (golden.features(), truth(&golden.is_true));
    let expected = &golden.boosting;
    let pairs = Pairs {
        features: &features[..expected.n_fitted * golden.n_features],
        n_features: golden.n_features,
        is_true: &is_true[..expected.n_fitted],
        weights: None,
        offsets: None,
    };
    let options = BoostingOptions {
        n_trees: expected.max_iter,
        learning_rate: expected.learning_rate,
        tree: TreeOptions {
            depth: expected.max_depth,
            min_leaf: expected.min_samples_leaf,
            min_hessian: 1e-3,
            lambda: expected.l2_regularization,
        },
        ..Default::default()
    };
    let trees = BoostedTrees::fit(&pairs, Objective::Logistic, &options, &Silent).unwrap();
    assert_eq!((trees.n_trees(), trees.check(golden.n_features)), (expected.max_iter, Ok(())));
    let mut scores = vec![0.0; is_true.len()];
    trees.predict_many(&features, &mut scores);
    let distance = distance(&scores, &expected.scores);
    assert!(distance < 1e-5, "{distance}");
}

#[test]
fn a_weighted_sum_is_that_of_scikit_learn() {
    let golden = Golden::read();
    let (features, is_true) = (golden.features(), truth(&golden.is_true));
    let weight = |pair: usize| if pair.is_multiple_of(3) { 2.0 } else { 1.0 };
    let weights: Vec<f32> = (0..is_true.len()).map(weight).collect();
    let pairs = Pairs {
        features: &features,
        n_features: golden.n_features,
        is_true: &is_true,
        weights: Some(&weights),
        offsets: None,
    };
    let linear = LinearModel::fit(&pairs).expect("some pairs are true and some are not");
    let rows = features.chunks(golden.n_features);
    let scores: Vec<f32> = rows.map(|row| linear.predict(row) as f32).collect();
    let distance = distance(&scores, &golden.linear.scores);
    assert!(distance < 1e-5, "{distance}");
}

#[test]
fn calibration_is_that_of_scikit_learn() {
    let golden = Golden::read().isotonic;
    let over = |units: &[f32], by: f32| units.iter().map(|unit| unit / by).collect::<Vec<f32>>();
    let fitted = Isotonic::fit(&over(&golden.units, 64.0), &truth(&golden.is_true));
    let (scores, probabilities) = fitted.knots();
    assert_eq!(scores, over(&golden.knot_units, 64.0));
    assert!(distance(probabilities, &golden.knot_probabilities) < 1e-6);
    let asked = over(&golden.asked, 128.0);
    let found: Vec<f32> = asked.iter().map(|&score| fitted.probability(score)).collect();
    assert!(distance(&found, &golden.probabilities) < 1e-6);
}
