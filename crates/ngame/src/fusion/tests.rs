//! What holds of trees, boosting and calibration together, for any pairs.

use proptest::prelude::*;

use super::*;
use crate::Error;
use crate::progress::{Event, Observer, Silent};

/// Points of `n_candidates` pairs with two features: a noisy hint, and a number that only means
/// something within a point.
fn noisy(n_points: usize, n_candidates: usize, seed: u64) -> (Vec<f32>, Vec<bool>, Vec<usize>) {
    use rand::RngExt;
    let mut random = crate::random::generator(seed, &[]);
    let (mut features, mut is_true) = (Vec::new(), Vec::new());
    for _ in 0..n_points {
        let shift: f32 = random.random_range(-2.0..2.0);
        for _ in 0..n_candidates {
            let right = random.random_bool(0.3);
            let hint = f32::from(u8::from(right)) + random.random_range(-0.9..0.9);
            let missing = random.random_bool(0.2);
            features.extend([hint + shift, if missing { f32::NAN } else { hint * shift }]);
            is_true.push(right);
        }
    }
    let offsets = (0..=n_points).map(|point| point * n_candidates).collect();
    (features, is_true, offsets)
}

fn pairs<'a>(made: &'a (Vec<f32>, Vec<bool>, Vec<usize>)) -> Pairs<'a> {
    Pairs {
        features: &made.0,
        n_features: 2,
        is_true: &made.1,
        weights: None,
        offsets: Some(&made.2),
    }
}

fn loss_of(trees: &BoostedTrees, objective: Objective, pairs: &Pairs<'_>) -> f64 {
    let rows = pairs.features.chunks(2);
    let scores: Vec<f64> = rows.map(|row| f64::from(trees.predict(row))).collect();
    objective.loss(pairs, &scores)
}

const OBJECTIVES: [Objective; 2] = [Objective::Logistic, Objective::PairwiseRanking { k: 5 }];

#[test]
fn losses_are_those_of_the_first_trees() {
    let (train, held_out) = (noisy(100, 10, 1), noisy(100, 10, 2));
    let (train, held_out) = (pairs(&train), pairs(&held_out));
    for objective in OBJECTIVES {
        let greedy = TreeOptions { depth: 5, min_leaf: 2, ..Default::default() };
        let options = BoostingOptions {
            n_trees: 60,
            learning_rate: 0.3,
            tree: greedy,
            pairs: 0.7,
            features: 0.5,
            seed: 3,
            linear: false,
        };
        let fit = |n_trees| {
            let options = BoostingOptions { n_trees, ..options };
            BoostedTrees::fit(&train, objective, &options, &Silent).unwrap()
        };
        let all = fit(60);
        let losses = all.losses(&held_out, objective);
        assert_eq!(losses.len(), all.n_trees() + 1);
        let lowest = losses.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(lowest < losses[0] && lowest < losses[60], "{objective:?}: it overfits in the end");
        for n_trees in [0, 1, 17, 60] {
            let mut first = all.clone();
            first.truncate(n_trees);
            assert_eq!(first, fit(n_trees), "the first trees do not know of those to come");
            let loss = loss_of(&first, objective, &held_out);
            assert!((loss - losses[n_trees]).abs() < 1e-6, "{objective:?}: {n_trees} trees");
        }
    }
}

#[test]
fn trees_are_grown_on_the_share_of_pairs_and_features_that_is_asked_for() {
    let made = noisy(100, 10, 11);
    let fit = |pairs_share, features, seed| {
        let options = BoostingOptions {
            n_trees: 20,
            pairs: pairs_share,
            features,
            seed,
            ..Default::default()
        };
        BoostedTrees::fit(&pairs(&made), Objective::Logistic, &options, &Silent).unwrap()
    };
    let features_of = |trees: &BoostedTrees, tree: usize| {
        let written = serde_json::to_value(trees).unwrap()["trees"][tree]["nodes"].clone();
        let nodes = written.as_array().unwrap().clone();
        let mut asked: Vec<u64> =
            nodes.iter().filter_map(|node| node["split"]["feature"].as_u64()).collect();
        asked.sort_unstable();
        asked.dedup();
        asked
    };
    let one_each = fit(1.0, 0.5, 1);
    let asked: Vec<_> = (0..one_each.n_trees()).map(|tree| features_of(&one_each, tree)).collect();
    assert!(asked.iter().all(|features| features.len() == 1), "{asked:?}");
    assert!(asked.contains(&vec![0]) && asked.contains(&vec![1]), "{asked:?}");
    assert_eq!(fit(1.0, 1.0, 1), fit(1.0, 1.0, 2), "nothing is drawn");
    assert_eq!(fit(0.7, 1.0, 1), fit(0.7, 1.0, 1));
    assert_ne!(fit(0.7, 1.0, 1), fit(0.7, 1.0, 2));
    assert_eq!(fit(0.0, 1.0, 1).n_trees(), 0, "no pairs, no trees");
}

#[test]
fn ranking_learns_what_log_loss_does_not() {
    // The true value is one above the false ones, of three kinds of points: 100 have 0 and 1, 20 have
    // 1 and 2, and 80 have 2 and 3. Of all pairs, a 1 is more often true than a 2.
    let mut made = noisy(200, 5, 3);
    for (row, is_true) in made.1.iter_mut().enumerate() {
        let point = row / 5;
        *is_true = row % 5 == point % 5;
        let kind = if point < 100 { 0.0 } else { f32::from(u8::from(point >= 120)) + 1.0 };
        let value = kind + f32::from(u8::from(*is_true));
        made.0[2 * row..2 * row + 2].copy_from_slice(&[value, f32::NAN]);
    }
    let pairs = pairs(&made);
    let ranking = Objective::PairwiseRanking { k: 5 };
    let options = BoostingOptions { n_trees: 100, learning_rate: 0.3, ..Default::default() };
    let lacks = |objective| {
        let trees = BoostedTrees::fit(&pairs, objective, &options, &Silent).unwrap();
        loss_of(&trees, ranking, &pairs)
    };
    assert_eq!(lacks(ranking), 0.0);
    assert!(lacks(Objective::Logistic) > 0.01);
}

#[test]
fn weights_count_like_copies() {
    let made = noisy(40, 5, 4);
    let weights: Vec<f32> = (0..200).map(|n| (n % 3) as f32).collect();
    let weighted = Pairs { weights: Some(&weights), ..pairs(&made) };
    let mut copies = (Vec::new(), Vec::new(), Vec::new());
    for (row, &weight) in weights.iter().enumerate() {
        for _ in 0..weight as usize {
            copies.0.extend_from_slice(&made.0[2 * row..2 * row + 2]);
            copies.1.push(made.1[row]);
        }
    }
    copies.2 = vec![0, copies.1.len()];
    // Leaves by weight: pairs would be counted differently.
    let tree = TreeOptions { depth: 3, min_leaf: 1, min_hessian: 2.0, lambda: 0.5 };
    let options = BoostingOptions { n_trees: 5, tree, ..Default::default() };
    let fit = |pairs: &Pairs<'_>| {
        BoostedTrees::fit(pairs, Objective::Logistic, &options, &Silent).unwrap()
    };
    let (weighted, copied) = (fit(&weighted), fit(&pairs(&copies)));
    for row in copies.0.chunks(2) {
        assert!((weighted.predict(row) - copied.predict(row)).abs() < 1e-4);
    }
}

#[test]
fn a_wish_to_stop_is_heard_between_trees() {
    struct Stop;
    impl Observer for Stop {
        fn event(&self, _: Event<'_>) {}
        fn cancelled(&self) -> bool {
            true
        }
    }
    let made = noisy(20, 5, 5);
    let options = BoostingOptions::default();
    let stopped = BoostedTrees::fit(&pairs(&made), Objective::Logistic, &options, &Stop);
    assert!(matches!(stopped, Err(Error::Cancelled)));
}

#[test]
fn the_same_bytes_on_any_number_of_threads() {
    // Enough pairs for several chunks of a histogram.
    let (train, held_out) = (noisy(8_000, 10, 6), noisy(1_000, 10, 7));
    for objective in OBJECTIVES {
        let on = |n_threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| {
                let options = BoostingOptions { n_trees: 5, ..Default::default() };
                let options = BoostingOptions { pairs: 0.8, linear: true, ..options };
                let trees =
                    BoostedTrees::fit(&pairs(&train), objective, &options, &Silent).unwrap();
                let losses = trees.losses(&pairs(&held_out), objective);
                let mut scores = vec![0.0; 80_000];
                trees.predict_many(&train.0, &mut scores);
                let isotonic = Isotonic::fit(&scores, &train.1);
                (serde_json::to_string(&(trees, isotonic)).unwrap(), scores, losses)
            })
        };
        let alone = on(1);
        assert!(alone.0.len() > 5_000);
        assert!(alone == on(4), "{objective:?}");
    }
}

#[test]
fn many_pairs_get_the_scores_that_each_gets_alone() {
    let made = noisy(60, 10, 9);
    let options = BoostingOptions { n_trees: 12, ..Default::default() };
    let trees = BoostedTrees::fit(&pairs(&made), Objective::Logistic, &options, &Silent).unwrap();
    let n_features = trees.n_features();
    let mut features = made.0.clone();
    features.iter_mut().step_by(11).for_each(|feature| *feature = f32::NAN);
    features[7] = f32::INFINITY;
    for n in [0, 1, 7, 8, 9, 255, 256, 257, 600] {
        let rows = &features[..n * n_features];
        let mut scores = vec![0.0; n];
        trees.predict_many(rows, &mut scores);
        let alone: Vec<f32> = rows.chunks_exact(n_features).map(|row| trees.predict(row)).collect();
        assert_eq!(scores, alone, "{n} pairs");
    }
}

#[test]
fn trees_that_begin_with_a_sum_correct_it() {
    let (made, more) = (noisy(200, 10, 4), noisy(200, 10, 5));
    let (made, more) = (pairs(&made), pairs(&more));
    let fit = |n_trees| {
        let tree = TreeOptions { depth: 3, min_leaf: 20, ..Default::default() };
        let options = BoostingOptions { n_trees, tree, linear: true, ..Default::default() };
        BoostedTrees::fit(&made, Objective::Logistic, &options, &Silent).unwrap()
    };
    let (sum, trees) = (LinearModel::fit(&made).unwrap(), fit(20));
    let losses = trees.losses(&more, Objective::Logistic);
    let of_sum: Vec<f64> = more.features.chunks(2).map(|row| sum.predict(row)).collect();
    assert!((losses[0] - Objective::Logistic.loss(&more, &of_sum)).abs() < 1e-9);
    // One feature times the sign of the other is what no sum can say.
    assert!(losses[20] < losses[0] - 0.01, "{losses:?}");
    let loss = loss_of(&trees, Objective::Logistic, &more);
    assert!((loss - losses[20]).abs() < 1e-6, "{loss}");
    let mut scores = vec![0.0; more.n_pairs()];
    trees.predict_many(more.features, &mut scores);
    let alone: Vec<f32> = more.features.chunks(2).map(|row| trees.predict(row)).collect();
    assert_eq!(scores, alone);
}

#[test]
fn there_is_no_sum_without_true_and_false_pairs_and_missing_features_weigh_nothing() {
    let features = [1.0, f32::NAN, 2.0, f32::NAN, 3.0, f32::INFINITY];
    let fit = |is_true: [bool; 3]| {
        LinearModel::fit(&Pairs {
            features: &features,
            n_features: 2,
            is_true: &is_true,
            weights: None,
            offsets: None,
        })
    };
    assert_eq!((fit([true; 3]), fit([false; 3])), (None, None));
    let sum = fit([false, false, true]).unwrap();
    assert_eq!(sum.check(2), Ok(()));
    assert!(sum.predict(&[1.0, 0.0]) < sum.predict(&[3.0, 0.0]));
    assert_eq!(sum.predict(&[1.0, -7.0]), sum.predict(&[1.0, f32::NAN]));
}

#[test]
fn damaged_boosted_trees_are_refused() {
    let made = noisy(40, 5, 8);
    let options = BoostingOptions { n_trees: 3, linear: true, ..Default::default() };
    let trees = BoostedTrees::fit(&pairs(&made), Objective::Logistic, &options, &Silent).unwrap();
    let written = serde_json::to_value(&trees).unwrap();
    let read = |value| serde_json::from_value::<BoostedTrees>(value).unwrap();
    assert_eq!(read(written.clone()), trees);
    assert_eq!(trees.check(2), Ok(()));
    assert_eq!(trees.check(3), Err("trees for 2 features, but there are 3".to_owned()));
    for (place, value, expected) in [
        ("/trees/0/nodes/0/split/left", 0.into(), "tree 0, node 0: child 0"),
        ("/trees/2/nodes/0/split/feature", 7.into(), "tree 2, node 0: feature 7, but there are 2"),
        ("/trees/1/nodes/0/split/threshold", 1e39.into(), "the threshold inf is not finite"),
        ("/trees/1/nodes", serde_json::json!([]), "tree 1, the tree has no nodes"),
        ("/base", 1e39.into(), "the base inf is not finite"),
        ("/linear/weights/1", 1e39.into(), "the weight inf is not finite"),
        ("/linear/means", serde_json::json!([0.5]), "2 weights and 1 means for 2 features"),
    ] {
        let mut damaged = written.clone();
        *damaged.pointer_mut(place).unwrap() = value;
        let problem = read(damaged).check(2).unwrap_err();
        assert!(problem.contains(expected), "{problem:?} should say {expected:?}");
    }
}

/// Values of which many are equal, some missing and some extreme.
fn values() -> impl Strategy<Value = f32> {
    prop_oneof![
        6 => (-12i8..12).prop_map(|n| f32::from(n) / 4.0),
        1 => any::<f32>(),
        1 => Just(f32::NAN),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn raw_features_and_bins_lead_to_the_same_leaf(
        rows in prop::collection::vec(([values(), values(), values()], -2.0f32..2.0), 1..300),
        depth in 0usize..7,
        min_leaf in 0usize..6,
    ) {
        let features: Vec<f32> = rows.iter().flat_map(|(row, _)| *row).collect();
        let targets: Vec<f32> = rows.iter().map(|&(_, target)| target).collect();
        let binned = Binned::new(&features, 3);
        let options = TreeOptions { depth, min_leaf, min_hessian: 0.0, lambda: 0.0 };
        let tree = RegressionTree::fit(&binned, &targets, &options);
        prop_assert_eq!(tree.check(3), Ok(()));
        prop_assert!(tree.n_leaves() <= 1 << depth);
        // The answer is the mean of the pairs that get the same answer, so bins put each of them
        // where its raw features lead.
        let answers: Vec<f32> = rows.iter().map(|(row, _)| tree.predict(row)).collect();
        for answer in &answers {
            let same = answers.iter().zip(&targets).filter(|(other, _)| *other == answer);
            let (sum, count) = same.fold((0.0, 0.0), |(sum, n), (_, target)| (sum + target, n + 1.0));
            prop_assert!((sum / count - answer).abs() < 1e-4);
            prop_assert!(count as usize >= min_leaf.min(rows.len()));
        }
    }

    #[test]
    fn boosting_lowers_the_loss(seed in any::<u64>(), rate in 0.05f64..0.5) {
        let made = noisy(30, 6, seed);
        let pairs = pairs(&made);
        for objective in OBJECTIVES {
            let fit = |n_trees| {
                let tree = TreeOptions { depth: 3, min_leaf: 5, lambda: 1.0, ..Default::default() };
                let options = BoostingOptions { n_trees, learning_rate: rate, tree, ..Default::default() };
                BoostedTrees::fit(&pairs, objective, &options, &Silent).unwrap()
            };
            let losses = [0, 4, 16].map(|n_trees| loss_of(&fit(n_trees), objective, &pairs));
            prop_assert!(losses[2] < losses[0], "{objective:?}: {losses:?}");
            // nDCG goes by steps, and not every tree takes one upwards.
            let falls = losses[1] < losses[0] && losses[2] < losses[1];
            prop_assert!(objective != Objective::Logistic || falls, "{losses:?}");
        }
    }
}
