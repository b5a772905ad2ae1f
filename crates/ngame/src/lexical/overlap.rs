//! How much texts have in common with labels: what training the sparse view will walk over, known
//! before it begins.
//!
//! Hard negatives are found by adding up the weights of labels that share a feature with a point, so
//! their cost is how many it is compared with, and texts differ in it: titles of three words share little,
//! abstracts that all begin alike share much. A sample tells.

use rand::seq::index;

use super::options::LexicalOptions;
use super::postings::block_size;
use super::train::MOST_OF_POINT;
use super::tree::Shape;
use super::words::Splitter;
use crate::data::{Csr, Interner, Texts};
use crate::random::generator;

/// The points and the labels of a sample.
const SAMPLE: usize = 1_000;

/// The points of a label that speak for all of them.
const MOST_POINTS: usize = 16;

/// What the sample is drawn for.
const DRAW: u64 = 22;

/// What points and labels have in common, and what is gone through for it, on average.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Overlap {
    /// The features of a point.
    pub features: f64,
    /// The labels that a point is compared with to find its hard negatives, once for every feature they
    /// share.
    pub compared: f64,
    /// The pieces of lists that are gone through for it: one a feature, in every block of labels.
    pub listed: f64,
    /// The clusters of labels that a point is an example for, where its own label lies in one of them.
    pub clusters: f64,
}

impl Overlap {
    /// Estimates it by some of the points and labels.
    pub fn estimate(
        texts: &Texts,
        by_label: &Csr, // (labels, points)
        label_texts: &Texts,
        options: &LexicalOptions,
    ) -> Self {
        let mut random = generator(options.seed, &[DRAW]);
        let mut draw = |n: usize| index::sample(&mut random, n, SAMPLE.min(n)).into_vec();
        let (points, labels) = (draw(texts.len()), draw(label_texts.len()));
        if points.is_empty() || labels.is_empty() {
            return Self::default();
        }
        let splitter = Splitter::new(options.beginnings);
        let mut counter = Counter { splitter, names: Interner::default() };
        let of_points: Vec<Vec<u32>> =
            points.iter().map(|&point| counter.features([texts.get(point)])).collect();
        let of_labels: Vec<Vec<u32>> = labels
            .iter()
            .map(|&label| {
                let points = by_label.row(label).iter().take(MOST_POINTS);
                let texts = points.map(|&point| texts.get(point as usize));
                counter.features(texts.chain([label_texts.get(label)]))
            })
            .collect();
        let (with_points, with_labels) = (counter.count(&of_points), counter.count(&of_labels));
        let each_stands_for = label_texts.len() as f64 / labels.len() as f64;
        let n_compared = |features: &Vec<u32>| -> f64 {
            let mut features = features.clone();
            // A search looks at the heaviest features of a long text, which are the rarest.
            features.sort_unstable_by_key(|&feature| with_points[feature as usize]);
            let labels = |&feature: &u32| f64::from(with_labels[feature as usize]);
            let looked_at = features.iter().take(MOST_OF_POINT).map(labels);
            looked_at.map(|n| (n * each_stands_for).min(options.most_labels as f64)).sum()
        };
        let n_features: usize = of_points.iter().map(Vec::len).sum();
        let features = n_features as f64 / points.len() as f64;
        let compared = of_points.iter().map(n_compared).sum::<f64>() / points.len() as f64;
        let n_labels = label_texts.len();
        let searched = features.min(MOST_OF_POINT as f64);
        let block = block_size(n_labels, searched.ceil() as usize, compared as usize);
        let shape = Shape::of(n_labels, options.cluster_size, options.branches);
        Self {
            features,
            compared,
            listed: searched * n_labels.div_ceil(block) as f64,
            clusters: (shape.levels as usize * shape.children) as f64,
        }
    }
}

/// Numbers features as they come.
struct Counter {
    splitter: Splitter,
    names: Interner,
}

impl Counter {
    /// The features of some texts together, each once.
    fn features<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>) -> Vec<u32> {
        let Self { splitter, names } = self;
        let mut features = Vec::new();
        for text in texts {
            splitter.for_each_feature(text, |feature| features.push(names.intern(feature).0));
        }
        features.sort_unstable();
        features.dedup();
        features
    }

    /// By feature, how many have it.
    fn count(&self, sets: &[Vec<u32>]) -> Vec<u32> {
        let mut counts = vec![0; self.names.strings().len()];
        for &feature in sets.iter().flatten() {
            counts[feature as usize] += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[&str]) -> Texts {
        let mut texts = Texts::default();
        all.iter().for_each(|text| texts.push(text));
        texts
    }

    #[test]
    fn labels_are_counted_once_for_every_feature_and_no_more_than_are_looked_at() {
        // Pairs of words are features: "red apple" has three.
        let points = texts(&["red apple", "green", "red red"]);
        let labels = texts(&["apple", "sky", "red sky"]);
        let by_label = Csr::from_pairs(3, 3, vec![(0, 0), (0, 2)]);
        let estimate = |most_labels| {
            let options = LexicalOptions { most_labels, beginnings: false, ..Default::default() };
            Overlap::estimate(&points, &by_label, &labels, &options)
        };
        // red, apple, red apple; green; red, red red. Two labels have red, the first alone the others.
        let one = Overlap { features: 2.0, listed: 2.0, clusters: 1.0, compared: 0.0 };
        assert_eq!(estimate(10), Overlap { compared: (4.0 + 3.0) / 3.0, ..one });
        assert_eq!(estimate(1), Overlap { compared: (3.0 + 2.0) / 3.0, ..one });
        let (none, options) = (texts(&[]), LexicalOptions::default());
        let nothing = Overlap::estimate(&none, &Csr::new(0), &none, &options);
        assert_eq!(nothing, Overlap::default());
    }
}
