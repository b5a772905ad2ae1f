//! The theorem on small data, against definitions written out in full.

use proptest::prelude::*;
use rand::RngExt;

use super::*;
use crate::batching::{Clusters, KMeansOptions, cluster};
use crate::data::Csr;
use crate::encoder::VectorMatrix;
use crate::progress::Silent;
use crate::random::generator;

const RADII: [f32; 4] = [0.2, 0.45, 0.8, 1.3];

/// Unit vectors drawn at random.
fn unit_vectors(n: usize, dim: usize, seed: u64) -> VectorMatrix {
    let mut random = generator(seed, &[1]);
    let mut numbers: Vec<f32> = (0..n * dim).map(|_| random.random_range(-1.0..1.0f32)).collect();
    for row in numbers.chunks_mut(dim) {
        let norm = row.iter().map(|x| x * x).sum::<f32>().sqrt().max(1e-6);
        row.iter_mut().for_each(|x| *x /= norm);
    }
    VectorMatrix::from_f32(numbers, dim)
}

/// A data set whose points all have `p` labels and whose labels all have `p` points: point i has the
/// labels i to i + p - 1, around a circle.
fn ring(n: usize, p: usize) -> (VectorMatrix, VectorMatrix, Csr) {
    let at = |position: f64| {
        let angle = position / n as f64 * std::f64::consts::TAU;
        [angle.cos() as f32, angle.sin() as f32]
    };
    let points = VectorMatrix::from_f32((0..n).flat_map(|i| at(i as f64)).collect(), 2);
    let labels = (0..n).flat_map(|l| at(l as f64 - (p as f64 - 1.0) / 2.0)).collect();
    let pairs = (0..n).flat_map(|i| (0..p).map(move |k| (i as u32, ((i + k) % n) as u32)));
    let truth = Csr::from_pairs(n, n as u32, pairs.collect());
    (points, VectorMatrix::from_f32(labels, 2), truth)
}

fn options(sample: Option<usize>) -> TheoryOptions {
    TheoryOptions { radii: RADII.to_vec(), sample, seed: 5 }
}

#[test]
fn where_all_labels_and_all_points_are_alike_the_corollary_holds() {
    for (n, p) in [(60, 3), (64, 8), (40, 1)] {
        let (points, labels, truth) = ring(n, p);
        let by_kmeans = cluster(&points, 8, &KMeansOptions::default());
        // The worst there is: neighbours are never together.
        let scattered: Vec<u32> = (0..n as u32).map(|i| (i * 7) % n as u32).collect();
        let scattered = match Clusters::checked(scattered, n / 8) {
            Some(scattered) => scattered,
            None => Clusters::singletons(n),
        };
        for clusters in [&by_kmeans, &scattered, &Clusters::singletons(n)] {
            let task = TheoryTask {
                points: &points,
                labels: &labels,
                truth: &truth,
                not_negative: None,
                clusters,
            };
            let theory = measure(&task, &options(None), &Silent).unwrap();
            let constants = theory.constants;
            assert!((constants.c_1 - (n - p) as f64 / n as f64).abs() < 1e-9, "{constants:?}");
            assert!((constants.c_2 - 1.0).abs() < 1e-9, "{constants:?}");
            assert_eq!((constants.sigma_1 < 1e-9, constants.sigma_2 < 1e-9), (true, true));
            assert!(theory.exact && theory.n_looked_at == n);
            for at in &theory.radii {
                assert!(at.missed.value <= at.epsilon_1 + at.epsilon_2.value, "{n}, {p}: {at:?}");
                // Where all are alike there is nothing to simplify.
                assert!((at.sharp.value - at.bound.value).abs() < 1e-9, "{at:?}");
                assert!(at.holds && at.missed.value <= at.hard.value, "{at:?}");
            }
        }
    }
    // One cluster of all points misses nothing, and the scattered ones do miss some.
    let (points, labels, truth) = ring(60, 3);
    let missed = |clusters: &Clusters| {
        let task = TheoryTask {
            points: &points,
            labels: &labels,
            truth: &truth,
            not_negative: None,
            clusters,
        };
        let theory = measure(&task, &options(None), &Silent).unwrap();
        (theory.radii[1].missed.value, theory.radii[1].epsilon_2.value)
    };
    assert_eq!(missed(&Clusters::new((0..60).collect(), 1)), (0.0, 0.0));
    assert!(missed(&Clusters::singletons(60)).0 > 0.05);
}

/// The counts by the words of the definitions: missed, hard, far true pairs, close pairs apart.
fn by_definition(task: &TheoryTask<'_>, r: f64) -> [u64; 4] {
    let (n, l) = (task.points.n_rows(), task.labels.n_rows());
    let distance = |a: Vec<f32>, b: Vec<f32>| {
        a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(b)).powi(2)).sum::<f64>().sqrt()
    };
    let cluster_of =
        |point: u32| task.clusters.iter().position(|points| points.contains(&point)).unwrap();
    let (x, z) = (|i: usize| task.points.row(i).to_vec(), |l: usize| task.labels.row(l).to_vec());
    let mut counts = [0; 4];
    for i in 0..n {
        for label in 0..l {
            let close = distance(x(i), z(label)) <= r;
            let true_pair = task.truth.contains(i, label as u32);
            counts[2] += u64::from(true_pair && !close);
            let holders: Vec<usize> =
                (0..n).filter(|&j| task.truth.contains(j, label as u32)).collect();
            if close && !true_pair && !holders.is_empty() {
                counts[1] += 1;
                let together = |&j: &usize| cluster_of(j as u32) == cluster_of(i as u32);
                counts[0] += u64::from(!holders.iter().any(together));
            }
        }
        for j in 0..n {
            let close = distance(x(i), x(j)) <= 2.0 * r;
            counts[3] += u64::from(close && cluster_of(i as u32) != cluster_of(j as u32));
        }
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn counts_are_those_of_the_definitions_and_the_bound_holds(
        seed in 0u64..1_000,
        n in 2usize..24,
        l in 1usize..12,
        n_clusters in 1usize..6,
    ) {
        let points = unit_vectors(n, 3, seed);
        let labels = unit_vectors(l, 3, seed + 1);
        let mut random = generator(seed, &[2]);
        let mut pairs = vec![(0, 0)];
        for i in 0..n as u32 {
            pairs.extend((0..l as u32).filter(|_| random.random_range(0..4) == 0).map(|l| (i, l)));
        }
        let truth = Csr::from_pairs(n, l as u32, pairs);
        let clusters = Clusters::new((0..n as u32).collect(), n_clusters.min(n));
        let task = TheoryTask {
            points: &points,
            labels: &labels,
            truth: &truth,
            not_negative: None,
            clusters: &clusters,
        };
        let theory = measure(&task, &options(None), &Silent).unwrap();
        let n_labels = theory.constants.n_labels as f64;
        for at in &theory.radii {
            let [missed, hard, far, apart] = by_definition(&task, f64::from(at.radius));
            let of_all = (n as f64) * n_labels;
            prop_assert!((at.missed.value - missed as f64 / of_all).abs() < 1e-12);
            prop_assert!((at.hard.value - hard as f64 / of_all).abs() < 1e-12);
            prop_assert!((at.epsilon_1 - far as f64 / truth.n_pairs() as f64).abs() < 1e-12);
            prop_assert!((at.epsilon_2.value - apart as f64 / (n * n) as f64).abs() < 1e-12);
            prop_assert!(at.holds, "{:?}", at);
            prop_assert!(at.sharp.value <= at.bound.value + 1e-9, "{:?}", at);
            prop_assert_eq!((at.missed.low, at.missed.high), (at.missed.value, at.missed.value));
        }
    }
}

#[test]
fn a_sample_is_near_the_whole_and_says_how_near() {
    let n = 900;
    let (points, labels) = (unit_vectors(n, 4, 3), unit_vectors(50, 4, 4));
    let pairs = (0..n as u32).map(|i| (i, i % 50)).collect();
    let truth = Csr::from_pairs(n, 50, pairs);
    let clusters = cluster(&points, 30, &KMeansOptions::default());
    let task = TheoryTask {
        points: &points,
        labels: &labels,
        truth: &truth,
        not_negative: None,
        clusters: &clusters,
    };
    let whole = measure(&task, &options(None), &Silent).unwrap();
    // Of many samples, about one in twenty intervals may miss; as many again are forgiven. Where all
    // points are alike, an interval is a point and rounding decides.
    let (mut n_inside, mut n_all) = (0, 0);
    for seed in 0..40 {
        let some = TheoryOptions { seed, ..options(Some(150)) };
        let theory = measure(&task, &some, &Silent).unwrap();
        assert!(!theory.exact && theory.n_looked_at == 150);
        for (found, exact) in theory.radii.iter().zip(&whole.radii) {
            assert_eq!(found.epsilon_1, exact.epsilon_1);
            for (found, exact) in [(found.epsilon_2, exact.epsilon_2), (found.missed, exact.missed)]
            {
                assert!(found.low <= found.value && found.value <= found.high);
                n_all += 1;
                let within = found.low - 1e-9..=found.high + 1e-9;
                n_inside += i32::from(within.contains(&exact.value));
            }
        }
    }
    assert!(f64::from(n_inside) >= 0.9 * f64::from(n_all), "{n_inside} of {n_all}");
}

#[test]
fn pairs_that_do_not_count_are_not_missed_and_radii_are_checked() {
    let (points, labels, truth) = ring(20, 1);
    let clusters = Clusters::singletons(20);
    let beside: Vec<(u32, u32)> = (0..20).map(|i| (i, (i + 1) % 20)).collect();
    let beside = Csr::from_pairs(20, 20, beside);
    let mut task = TheoryTask {
        points: &points,
        labels: &labels,
        truth: &truth,
        not_negative: None,
        clusters: &clusters,
    };
    // Neighbours are 2 sin(π / 20) ≈ 0.31 apart: one on either side.
    let all = measure(&task, &options(None), &Silent).unwrap();
    assert!((all.radii[1].missed.value - 2.0 / 20.0).abs() < 1e-9, "{:?}", all.radii[1]);
    task.not_negative = Some(&beside);
    let fewer = measure(&task, &options(None), &Silent).unwrap();
    assert!((fewer.radii[1].missed.value - 1.0 / 20.0).abs() < 1e-9, "{:?}", fewer.radii[1]);
    for radius in [0.0, -1.0, f32::NAN, 2.5] {
        let wrong = TheoryOptions { radii: vec![radius], ..options(None) };
        let error = measure(&task, &wrong, &Silent).unwrap_err().to_string();
        assert!(error.starts_with("radius: expected"), "{error}");
    }
}
