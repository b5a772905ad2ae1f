//! A data set in a few numbers.

use rayon::prelude::*;
use serde::Serialize;

use super::dataset::Dataset;
use super::oddities::Oddities;
use super::texts::Texts;

/// Counts, lengths and oddities of a data set. Means are rounded to two digits.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Training points.
    pub n_train: usize,
    /// Validation points, if the data set brings some.
    pub n_valid: Option<usize>,
    /// Test points, if there are any.
    pub n_test: Option<usize>,
    /// Labels.
    pub n_labels: usize,
    /// Training pairs of a point and a label.
    pub n_pairs: u64,
    /// Mean labels of a training point.
    pub labels_per_point: f64,
    /// Mean labels of a test point.
    pub labels_per_point_test: Option<f64>,
    /// Mean training points of a label.
    pub points_per_label: f64,
    /// Median training points of a label.
    pub median_points_per_label: u64,
    /// Training points of the most frequent label.
    pub max_points_per_label: u64,
    /// Labels with exactly one training point.
    pub labels_with_1_train_point: u64,
    /// Mean words of a training point's title.
    pub words_title_train: f64,
    /// Mean words of a training point's content.
    pub words_content_train: f64,
    /// Mean words of a label's title.
    pub words_title_label: f64,
    /// Mean words of a label's content.
    pub words_content_label: f64,
    /// Words of the training texts as they are used.
    pub words_per_text: Distribution,
    /// Words of the label texts as they are used.
    pub words_per_label: Distribution,
    /// Filter pairs of the training split.
    pub filter_pairs_train: u64,
    /// Filter pairs of the test split.
    pub filter_pairs_test: u64,
    /// How many labels have how many training points.
    pub label_frequency: Vec<FrequencyBand>,
    /// Bytes the data set takes in memory.
    pub memory_bytes: u64,
    /// What is odd about the data set.
    pub oddities: Oddities,
}

impl Summary {
    /// Sums up a data set.
    pub fn new(dataset: &Dataset) -> Self {
        let Dataset { labels, train, test, .. } = dataset;
        let mut counts: Vec<u64> = train.by_label.rows().map(|row| row.len() as u64).collect();
        counts.sort_unstable();
        let n_pairs = train.by_point.n_pairs();
        let (train_words, label_words) = (train.words, labels.words);
        Self {
            n_train: train.n_points(),
            n_valid: dataset.valid.as_ref().map(super::Split::n_points),
            n_test: test.as_ref().map(super::Split::n_points),
            n_labels: dataset.n_labels(),
            n_pairs,
            labels_per_point: mean(n_pairs, train.n_points()),
            labels_per_point_test: test
                .as_ref()
                .map(|test| mean(test.by_point.n_pairs(), test.n_points())),
            points_per_label: mean(n_pairs, dataset.n_labels()),
            median_points_per_label: quantile(&counts, 0.5),
            max_points_per_label: counts.last().copied().unwrap_or(0),
            labels_with_1_train_point: counts.iter().filter(|&&count| count == 1).count() as u64,
            words_title_train: mean(train_words.title, train_words.n_rows),
            words_content_train: mean(train_words.content, train_words.n_rows),
            words_title_label: mean(label_words.title, label_words.n_rows),
            words_content_label: mean(label_words.content, label_words.n_rows),
            words_per_text: Distribution::of_words(&train.texts),
            words_per_label: Distribution::of_words(&labels.texts),
            filter_pairs_train: train.filter.n_pairs(),
            filter_pairs_test: test.as_ref().map_or(0, |test| test.filter.n_pairs()),
            label_frequency: frequency_bands(&counts),
            memory_bytes: dataset.memory(),
            oddities: Oddities::count(dataset),
        }
    }
}

/// How a length is spread over many texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// The mean, rounded to two digits.
    pub mean: f64,
    /// Half of the texts are at most so long.
    pub median: u64,
    /// Nine of ten texts are at most so long.
    pub p90: u64,
    /// 99 of a hundred texts are at most so long.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

impl Distribution {
    /// The distribution of some lengths.
    pub fn of(mut lengths: Vec<u64>) -> Self {
        lengths.par_sort_unstable();
        Self {
            mean: mean(lengths.iter().sum(), lengths.len()),
            median: quantile(&lengths, 0.5),
            p90: quantile(&lengths, 0.9),
            p99: quantile(&lengths, 0.99),
            max: lengths.last().copied().unwrap_or(0),
        }
    }

    fn of_words(texts: &Texts) -> Self {
        let n_words = |index| texts.get(index).split_whitespace().count() as u64;
        Self::of((0..texts.len()).into_par_iter().map(n_words).collect())
    }
}

/// Labels with about the same number of training points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FrequencyBand {
    /// The fewest training points of a label here.
    pub from: u64,
    /// The most training points of a label here.
    pub to: u64,
    /// How many labels are here.
    pub labels: u64,
    /// How many training pairs their labels have together.
    pub pairs: u64,
}

/// Bands that double: 0, 1, 2, 3–4, 5–8, …, up to the most frequent label.
fn frequency_bands(sorted_counts: &[u64]) -> Vec<FrequencyBand> {
    let mut bands = Vec::new();
    let mut rest = sorted_counts;
    let (mut from, mut to) = (0, 0);
    while !rest.is_empty() {
        let (band, beyond) = rest.split_at(rest.partition_point(|&count| count <= to));
        if !(band.is_empty() && bands.is_empty()) {
            bands.push(FrequencyBand {
                from,
                to,
                labels: band.len() as u64,
                pairs: band.iter().sum(),
            });
        }
        rest = beyond;
        from = to + 1;
        to = from.next_power_of_two();
    }
    bands
}

/// `sum / n` to two digits; 0 of nothing.
fn mean(sum: u64, n: usize) -> f64 {
    if n == 0 { 0.0 } else { (sum as f64 / n as f64 * 100.0).round() / 100.0 }
}

/// The value that a share of the values reaches or stays below.
fn quantile(sorted: &[u64], share: f64) -> u64 {
    let index = (sorted.len() as f64 * share) as usize;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_double_and_cover_every_label() {
        let bands = frequency_bands(&[0, 1, 1, 2, 3, 4, 5, 8, 9, 40]);
        let shape: Vec<_> = bands.iter().map(|b| (b.from, b.to, b.labels, b.pairs)).collect();
        assert_eq!(
            shape,
            [
                (0, 0, 1, 0),
                (1, 1, 2, 2),
                (2, 2, 1, 2),
                (3, 4, 2, 7),
                (5, 8, 2, 13),
                (9, 16, 1, 9),
                (17, 32, 0, 0),
                (33, 64, 1, 40)
            ]
        );
        assert_eq!(frequency_bands(&[3])[0].from, 3);
        assert_eq!(frequency_bands(&[]), []);
    }

    #[test]
    fn distributions_of_nothing_and_of_one() {
        assert_eq!(Distribution::of(vec![]), Distribution::default());
        let one = Distribution::of(vec![7]);
        assert_eq!((one.mean, one.median, one.p90, one.p99, one.max), (7.0, 7, 7, 7, 7));
    }
}
