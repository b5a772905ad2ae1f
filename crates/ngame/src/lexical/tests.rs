//! The sparse view as a whole: what it learns, that it is the same everywhere, and what it refuses.

use std::borrow::Cow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use half::bf16;

use super::{Lexical, LexicalOptions, LexicalParts, LexicalRoom};
use crate::Error;
use crate::data::{Csr, Dataset, ReadOptions, Texts};
use crate::progress::{Event, Observer, Silent};

fn sample() -> Dataset {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/debian-small"));
    Dataset::read(path, &ReadOptions::default(), &Silent).unwrap()
}

fn trained(dataset: &Dataset, options: &LexicalOptions) -> Lexical {
    let (train, labels) = (&dataset.train, &dataset.labels.texts);
    Lexical::train(&train.texts, &train.by_point, labels, Some(&train.filter), options, &Silent)
        .unwrap()
}

/// A few fruits: enough to search in, small enough to train in every test.
fn fruits() -> Lexical {
    let texts: Texts =
        ["red round apple", "yellow long banana", "green round apple", "yellow sour lemon"]
            .into_iter()
            .collect();
    let labels: Texts = ["apple", "banana", "lemon", "never seen"].into_iter().collect();
    let truth = Csr::from_pairs(4, 4, vec![(0, 0), (1, 1), (2, 0), (3, 2)]);
    let options = LexicalOptions { least_texts: 1, cluster_size: 2, ..Default::default() };
    Lexical::train(&texts, &truth, &labels, None, &options, &Silent).unwrap()
}

#[test]
fn trained_weights_beat_the_nearest_points_on_the_sample() {
    let dataset = sample();
    let lexical = trained(&dataset, &LexicalOptions::default());
    let test = dataset.test.as_ref().unwrap();
    let mut room = LexicalRoom::default();
    let right = (0..test.n_points()).filter(|&point| {
        let excluded = test.filter.row(point);
        let query = lexical.query(test.texts.get(point));
        let best = lexical.search(&query, 1 + excluded.len(), &mut room);
        let first = best.iter().find(|(label, _)| !excluded.contains(label));
        first.is_some_and(|&(label, _)| test.by_point.contains(point, label))
    });
    // The votes of the 20 nearest points get 236 right (see `baseline`).
    let right = right.count();
    assert!(right > 240, "{right}");
}

#[test]
fn a_search_is_the_scores_of_all_labels_sorted() {
    let dataset = sample();
    let lexical = trained(&dataset, &LexicalOptions { rounds: 1, ..Default::default() });
    let labels: Vec<u32> = (0..lexical.n_labels() as u32).collect();
    let (mut room, mut scores) = (LexicalRoom::default(), vec![0.0; labels.len()]);
    for text in dataset.train.texts.iter().take(50) {
        let query = lexical.query(text);
        lexical.scores(&query, &labels, &mut scores);
        let found = lexical.search(&query, labels.len(), &mut room);
        assert!(found.is_sorted_by(|a, b| a.1 > b.1 || a.1 == b.1 && a.0 < b.0));
        for &(label, score) in &found {
            assert_eq!(score.to_bits(), scores[label as usize].to_bits());
        }
        // Labels that were not found have no more than their bias.
        let mut untouched = scores.clone();
        found.iter().for_each(|&(label, _)| untouched[label as usize] = f32::NAN);
        for (score, bias) in untouched.iter().zip(lexical.parts().biases.iter()) {
            assert!(score.is_nan() || score == bias);
        }
        let few: Vec<u32> = found.iter().take(7).map(|&(label, _)| label).collect();
        assert_eq!(lexical.search(&query, 7, &mut room), found[..few.len()]);
        // A few labels are scored the other way round: theirs is the shorter list.
        let mut some = few.clone();
        some.sort_unstable();
        let mut some_scores = vec![9.0; some.len()];
        lexical.scores(&query, &some, &mut some_scores);
        for (&label, score) in some.iter().zip(some_scores) {
            assert_eq!(score.to_bits(), scores[label as usize].to_bits());
        }
    }
}

#[test]
fn clusters_know_where_a_text_belongs() {
    let dataset = sample();
    let lexical = trained(&dataset, &LexicalOptions::default());
    let n_labels = lexical.n_labels() as u32;
    let labels: Vec<u32> = (0..n_labels).collect();
    let train = &dataset.train;
    let (mut of_right, mut of_all) = (0.0, 0.0);
    for point in 0..100 {
        let scores = lexical.cluster_scores(&lexical.query(train.texts.get(point)), &labels);
        assert!(scores.iter().all(|&score| score <= 0.0));
        let mean = |labels: &[u32]| {
            labels.iter().map(|&label| scores[label as usize]).sum::<f32>() / labels.len() as f32
        };
        of_right += mean(train.by_point.row(point)) / 100.0;
        of_all += mean(&labels) / 100.0;
    }
    assert!(of_right > -0.3 && of_all < -0.9, "{of_right} of right labels, {of_all} of all");
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let dataset = sample();
    let options = LexicalOptions { label_text: 0.5, ..Default::default() };
    let on = |n_threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| trained(&dataset, &options))
    };
    let (one, four) = (on(1), on(4));
    assert_eq!(one.parts(), four.parts());
    assert!(one.n_weights() > 1000);
}

#[test]
fn parts_make_the_same_again() {
    let lexical = fruits();
    let again = Lexical::from_parts(lexical.parts()).unwrap();
    assert_eq!(again.parts(), lexical.parts());
    let (query, mut room) = (lexical.query("a round apple"), LexicalRoom::default());
    assert_eq!(again.query("a round apple"), query);
    let best = lexical.search(&query, 4, &mut room);
    assert_eq!(again.search(&query, 4, &mut room), best);
    assert_eq!(best[0].0, 0);
    // A label without a point is never found.
    assert!(best.iter().all(|&(label, _)| label != 3));
}

/// Something done to parts that makes them unfit.
type Change<'a> = &'a dyn Fn(&mut LexicalParts<'_>);

#[test]
fn parts_that_do_not_fit_are_refused() {
    let lexical = fruits();
    let refused = |change: Change<'_>| {
        let mut parts = lexical.parts();
        change(&mut parts);
        Lexical::from_parts(parts).unwrap_err()
    };
    let n_weights = lexical.n_weights() as u64;
    let cases: [(&str, Change<'_>); 22] = [
        ("weights for", &|parts| parts.features.to_mut().push("one more")),
        ("twice", &|parts| {
            let n = parts.features.len() as u32;
            let names: Vec<u32> = (0..n - 1).chain([0]).collect();
            parts.features = Cow::Owned(parts.features.select(&names));
        }),
        ("sensible", &|parts| parts.inverse_frequencies.to_mut()[0] = f32::NAN),
        ("sensible", &|parts| parts.inverse_frequencies.to_mut()[0] = f32::INFINITY),
        ("offsets", &|parts| parts.labels.offsets.to_mut().truncate(1)),
        ("cover", &|parts| parts.labels.offsets.to_mut()[0] = 1),
        ("cover", &|parts| parts.labels.offsets.to_mut()[1] = u64::MAX),
        ("cover", &|parts| *parts.labels.offsets.to_mut().last_mut().unwrap() = n_weights + 1),
        ("ascend", &|parts| parts.labels.numbers.to_mut()[0] = 4),
        ("ascend", &|parts| parts.labels.numbers.to_mut().fill(1)),
        ("weights", &|parts| parts.labels.weights.to_mut().truncate(1)),
        ("finite", &|parts| parts.labels.weights.to_mut()[0] = bf16::NAN),
        ("finite", &|parts| parts.biases.to_mut()[3] = f32::NEG_INFINITY),
        ("finite", &|parts| parts.cluster_biases.to_mut()[0] = f32::NAN),
        ("biases of", &|parts| parts.cluster_biases.to_mut().push(0.0)),
        ("tree", &|parts| parts.parents.to_mut()[0] = 9),
        ("cover", &|parts| parts.clusters.offsets.to_mut()[0] = 1),
        ("ascend", &|parts| parts.clusters.numbers.to_mut().fill(2)),
        ("ascend", &|parts| parts.label_texts.numbers.to_mut()[0] = 4),
        ("finite", &|parts| parts.label_texts.weights.to_mut()[0] = bf16::INFINITY),
        ("ascend", &|parts| parts.points.numbers.to_mut()[0] = 4),
        ("vote for 5", &|parts| parts.truth.to_mut().widen(5)),
    ];
    for (number, (expected, change)) in cases.into_iter().enumerate() {
        let message = refused(change);
        assert!(message.contains(expected), "case {number}: {message}");
    }
}

#[test]
fn texts_are_near_those_that_share_their_words() {
    let lexical = fruits();
    let (query, mut room) = (lexical.query("green apple"), LexicalRoom::default());
    let nearest = lexical.nearest_points(&query, 9, &mut room);
    assert_eq!(nearest.iter().map(|&(point, _)| point).collect::<Vec<_>>(), [2, 0]);
    assert_eq!(lexical.point_labels().row(2), [0]);
    let mut cosines = [9.0; 4];
    lexical.label_cosines(&query, &[0, 1, 2, 3], &mut cosines);
    assert!(cosines[0] > 0.3 && cosines[1..] == [0.0; 3], "{cosines:?}");
    lexical.label_cosines(&lexical.query("a lemon"), &[2], &mut cosines[..1]);
    assert!((cosines[0] - 1.0).abs() < 0.01, "its own text: {cosines:?}");
}

#[test]
fn labels_meet_no_negatives_that_the_filter_names() {
    let texts: Texts = ["red apple", "red apple", "blue plum"].into_iter().collect();
    let labels: Texts = ["", ""].into_iter().collect();
    let truth = Csr::from_pairs(3, 2, vec![(0, 0), (2, 1)]);
    let options = LexicalOptions { least_texts: 1, ..Default::default() };
    let score = |filter: Option<&Csr>| {
        let lexical = Lexical::train(&texts, &truth, &labels, filter, &options, &Silent).unwrap();
        let mut scores = [0.0];
        lexical.scores(&lexical.query("red apple"), &[0], &mut scores);
        scores[0]
    };
    let filter = Csr::from_pairs(3, 2, vec![(1, 0)]);
    let (without, with) = (score(None), score(Some(&filter)));
    assert!(with > without + 0.3, "{without} to {with}");
}

#[test]
fn texts_of_nothing_are_fine() {
    let none = Texts::new();
    let options = LexicalOptions::default();
    let empty = Lexical::train(&none, &Csr::new(0), &none, None, &options, &Silent).unwrap();
    assert_eq!(empty.search(&empty.query("a b"), 5, &mut LexicalRoom::default()), []);
    let blank: Texts = ["", "?!"].into_iter().collect();
    let truth = Csr::from_pairs(2, 2, vec![(0, 0), (1, 1)]);
    let lexical = Lexical::train(&blank, &truth, &blank, None, &options, &Silent).unwrap();
    assert_eq!((lexical.n_labels(), lexical.n_features()), (2, 0));
    assert_eq!(lexical.search(&lexical.query("a b"), 5, &mut LexicalRoom::default()), []);
    Lexical::from_parts(lexical.parts()).unwrap();
}

/// Says stop after so many questions.
struct StopAfter(AtomicUsize);

impl Observer for StopAfter {
    fn event(&self, _: Event<'_>) {}

    fn cancelled(&self) -> bool {
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(before.saturating_sub(1), Ordering::Relaxed);
        before == 0
    }
}

#[test]
fn training_stops_when_asked() {
    let dataset = sample();
    let (train, labels) = (&dataset.train, &dataset.labels.texts);
    for n_questions in [0, 1, 3, 10, 30, 60] {
        let observer = StopAfter(AtomicUsize::new(n_questions));
        let options = LexicalOptions::default();
        let stopped =
            Lexical::train(&train.texts, &train.by_point, labels, None, &options, &observer);
        assert!(matches!(stopped, Err(Error::Cancelled)), "after {n_questions}");
    }
}
