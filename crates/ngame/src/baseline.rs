//! What any classifier has to beat: the most frequent labels, and the votes of similar texts.
//!
//! Neither is trained, so both are there in a moment, and both say how hard a data set is: the
//! first how far frequency alone goes, the second how far shared words go.

use std::cmp::Reverse;

use rayon::prelude::*;

use crate::data::{Interner, ScoredCsr, Split, Texts};
use crate::metrics::top_k;

/// Predicts the `k` most frequent training labels for every one of `n_points` points; the score is
/// the label's share of the training points.
pub fn most_frequent(train: &Split, n_points: usize, k: usize) -> ScoredCsr {
    let counts = train.by_point.column_counts();
    let mut labels: Vec<u32> = (0..counts.len() as u32).collect();
    labels.sort_by_key(|&label| Reverse(counts[label as usize]));
    labels.truncate(k);
    let share = |label: u32| counts[label as usize] as f32 / train.n_points().max(1) as f32;
    let row: Vec<(u32, f32)> = labels.into_iter().map(|label| (label, share(label))).collect();
    let mut predictions = ScoredCsr::new(train.by_point.n_columns());
    for _ in 0..n_points {
        predictions.push_row(&mut row.clone());
    }
    predictions
}

/// Training points by their words, to find those most similar to a text.
///
/// Texts are bags of lower-cased words weighted by TF-IDF; similarity is the cosine. The labels of
/// the nearest training points get votes in proportion to that similarity.
pub struct NearestPoints<'a> {
    train: &'a Split,
    words: Interner,
    /// By word, how much it tells: the rarer, the more.
    inverse_frequencies: Vec<f32>,
    /// By word, the points that have it and its weight there. Weights make unit vectors.
    postings: Vec<Vec<(u32, f32)>>,
}

/// How many of the nearest training points vote.
const N_VOTERS: usize = 20;

impl<'a> NearestPoints<'a> {
    /// Indexes the training points.
    pub fn new(train: &'a Split) -> Self {
        let mut words = Interner::default();
        let mut n_points_with = Vec::new();
        let mut bags = Vec::with_capacity(train.n_points());
        for text in train.texts.iter() {
            let mut bag = Vec::new();
            for_each_word(text, |word| {
                let (number, is_new) = words.intern(word);
                if is_new {
                    n_points_with.push(0u32);
                }
                bag.push(number);
            });
            let bag = count(bag);
            for &(word, _) in &bag {
                n_points_with[word as usize] += 1;
            }
            bags.push(bag);
        }
        let n_points = train.n_points() as f32;
        let inverse_frequency = |n_with: u32| ((1.0 + n_points) / (1.0 + n_with as f32)).ln() + 1.0;
        let inverse_frequencies: Vec<f32> =
            n_points_with.into_iter().map(inverse_frequency).collect();
        let mut postings = vec![Vec::new(); inverse_frequencies.len()];
        for (point, bag) in bags.into_iter().enumerate() {
            for (word, weight) in unit(bag, &inverse_frequencies) {
                postings[word as usize].push((point as u32, weight));
            }
        }
        Self { train, words, inverse_frequencies, postings }
    }

    /// The best `k` labels for every text, computed in parallel.
    pub fn predict(&self, texts: &Texts, k: usize) -> ScoredCsr {
        let rows: Vec<Vec<(u32, f32)>> = (0..texts.len())
            .into_par_iter()
            .map(|index| self.predict_one(texts.get(index), k))
            .collect();
        let mut predictions = ScoredCsr::new(self.train.by_point.n_columns());
        for mut row in rows {
            predictions.push_row(&mut row);
        }
        predictions
    }

    /// The `n` training points whose words are most like a text's, and how like: the nearest first.
    pub fn nearest(&self, text: &str, n: usize) -> Vec<(u32, f32)> {
        let mut known = Vec::new();
        for_each_word(text, |word| known.extend(self.words.get(word)));
        let mut similarities = Sums::default();
        for (word, weight) in unit(count(known), &self.inverse_frequencies) {
            for &(point, point_weight) in &self.postings[word as usize] {
                similarities.push((point, weight * point_weight));
            }
        }
        best(similarities, n)
    }

    /// The training points that have a word of a text which at most `most` of them have: a name, where
    /// other words are what many texts have.
    pub fn sharing_rare_words(&self, text: &str, most: usize) -> Vec<u32> {
        let mut points = Vec::new();
        for_each_word(text, |word| {
            let postings = self.words.get(word).map(|number| &self.postings[number as usize]);
            if let Some(postings) = postings.filter(|postings| postings.len() <= most) {
                points.extend(postings.iter().map(|&(point, _)| point));
            }
        });
        points.sort_unstable();
        points.dedup();
        points
    }

    /// The best `k` labels for a text, best first, with the votes they got.
    pub fn predict_one(&self, text: &str, k: usize) -> Vec<(u32, f32)> {
        let mut votes = Sums::default();
        for (point, similarity) in self.nearest(text, N_VOTERS) {
            let labels = self.train.by_point.row(point as usize);
            votes.extend(labels.iter().map(|&label| (label, similarity)));
        }
        best(votes, k)
    }
}

/// Numbers with parts of their sums, in any order.
type Sums = Vec<(u32, f32)>;

/// Adds up the parts of each number and returns the `k` numbers of the highest sums.
fn best(mut parts: Sums, k: usize) -> Vec<(u32, f32)> {
    // A stable sort adds the parts of a number in the order they came, whatever the machine.
    parts.sort_by_key(|&(number, _)| number);
    let (numbers, sums): (Vec<u32>, Vec<f32>) = parts
        .chunk_by(|a, b| a.0 == b.0)
        .map(|parts| (parts[0].0, parts.iter().map(|&(_, part)| part).sum::<f32>()))
        .unzip();
    let mut best = Vec::new();
    top_k(&numbers, &sums, &[], k, &mut best);
    best
}

/// Calls `each` with every lower-cased run of letters and digits.
fn for_each_word(text: &str, mut each: impl FnMut(&str)) {
    let lower = text.to_lowercase();
    lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).for_each(&mut each);
}

/// Words with how often they occur.
fn count(mut words: Vec<u32>) -> Vec<(u32, u32)> {
    words.sort_unstable();
    words.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)).collect()
}

/// Counted words as a vector of unit length, each word weighted by how much it tells.
fn unit(counted: Vec<(u32, u32)>, inverse_frequencies: &[f32]) -> Vec<(u32, f32)> {
    let mut vector: Vec<(u32, f32)> = counted
        .into_iter()
        .map(|(word, count)| {
            (word, (1.0 + (count as f32).ln()) * inverse_frequencies[word as usize])
        })
        .collect();
    let norm = vector.iter().map(|(_, weight)| weight * weight).sum::<f32>().sqrt();
    for (_, weight) in &mut vector {
        *weight /= norm;
    }
    vector
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::data::{Csr, Dataset, ReadOptions};
    use crate::metrics::{Task, evaluate};
    use crate::progress::Silent;

    fn sample() -> Dataset {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/debian-small"));
        Dataset::read(path, &ReadOptions::default(), &Silent).unwrap()
    }

    fn precision_at_1(dataset: &Dataset, predictions: &ScoredCsr) -> f64 {
        let test = dataset.test.as_ref().unwrap();
        let task =
            Task { truth: &test.by_point, filter: Some(&test.filter), inverse_propensities: None };
        evaluate(predictions, &task, 1).precision[0]
    }

    #[test]
    fn similar_texts_beat_frequency_on_the_sample() {
        let dataset = sample();
        let test = dataset.test.as_ref().unwrap();
        let frequent = most_frequent(&dataset.train, test.n_points(), 10);
        let nearest = NearestPoints::new(&dataset.train).predict(&test.texts, 10);
        let (frequent, nearest) =
            (precision_at_1(&dataset, &frequent), precision_at_1(&dataset, &nearest));
        assert!(frequent > 0.03 && frequent < 0.1, "{frequent}");
        // scikit-learn gets 236 of 579 right with TfidfVectorizer(sublinear_tf=True,
        // token_pattern=r"(?u)\w+") and the same votes.
        assert!((nearest - 236.0 / 579.0).abs() < 0.004, "{nearest}");
    }

    #[test]
    fn a_training_text_finds_its_own_labels() {
        let dataset = sample();
        let nearest = NearestPoints::new(&dataset.train);
        let text = dataset.train.texts.get(0);
        let labels: Vec<u32> =
            nearest.predict_one(text, 10).into_iter().map(|(label, _)| label).collect();
        assert!(labels.contains(&dataset.train.by_point.row(0)[0]), "{labels:?}");
    }

    #[test]
    fn a_text_without_a_known_word_has_no_answer() {
        let dataset = sample();
        let nearest = NearestPoints::new(&dataset.train);
        assert_eq!(nearest.predict_one("", 5), []);
        assert_eq!(nearest.predict_one("qqqqzzzz ???", 5), []);
    }

    #[test]
    fn the_most_frequent_labels_come_first() {
        let mut dataset = sample();
        dataset.train.by_point =
            Csr::from_pairs(3, 3, vec![(0, 2), (1, 2), (2, 1), (0, 1), (1, 1)]);
        let predictions = most_frequent(&dataset.train, 2, 2);
        assert_eq!(predictions.row(1).0, [1, 2]);
        assert!(predictions.row(0).1[0] > predictions.row(0).1[1]);
    }
}
