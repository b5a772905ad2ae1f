//! What is odd about a data set but no error: counted and shown.

use std::hash::BuildHasher;

use hashbrown::DefaultHashBuilder;
use rayon::prelude::*;
use serde::Serialize;

use super::dataset::{Dataset, Ids};
use super::interner::Interner;
use super::texts::Texts;

/// How often each oddity occurs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Oddities {
    /// Training points whose text is that of an earlier training point.
    pub duplicate_points: u64,
    /// Test points whose text is also a training point's.
    pub test_points_in_train: u64,
    /// Points without text, in any split.
    pub empty_texts: u64,
    /// Labels without text.
    pub labels_without_text: u64,
    /// Labels whose text is that of an earlier label.
    pub duplicate_label_texts: u64,
    /// Labels without a training point.
    pub labels_without_train_point: u64,
    /// Training points without labels.
    pub train_points_without_labels: u64,
    /// Test points without labels.
    pub test_points_without_labels: u64,
    /// Labels that stand twice or more in one row.
    pub repeated_labels_in_rows: u64,
    /// Pairs of relevance zero or less.
    pub irrelevant_pairs: u64,
    /// True pairs of the test split that its filter removes, and nobody can predict.
    pub true_pairs_in_filter: u64,
    /// Test points that bear the id of a label, without a filter pair for it.
    pub unfiltered_self_labels: u64,
}

impl Oddities {
    /// Counts the oddities of a data set.
    pub fn count(dataset: &Dataset) -> Self {
        let Dataset { labels, train, test, .. } = dataset;
        let train_hashes = TextHashes::new(&train.texts);
        let mut oddities = Self {
            duplicate_points: train_hashes.n_repeats(),
            empty_texts: dataset.splits().map(|(_, split)| n_empty(&split.texts)).sum(),
            labels_without_text: n_empty(&labels.texts),
            duplicate_label_texts: TextHashes::new(&labels.texts).n_repeats(),
            labels_without_train_point: n_empty_rows(&train.by_label),
            train_points_without_labels: n_empty_rows(&train.by_point),
            repeated_labels_in_rows: dataset.splits().map(|(_, s)| s.notes.repeated_labels).sum(),
            irrelevant_pairs: dataset.splits().map(|(_, s)| s.notes.irrelevant_pairs).sum(),
            ..Self::default()
        };
        if let Some(test) = test {
            oddities.test_points_in_train = train_hashes.n_shared(&test.texts);
            oddities.test_points_without_labels = n_empty_rows(&test.by_point);
            oddities.true_pairs_in_filter = (0..test.n_points())
                .flat_map(|point| test.filter.row(point).iter().map(move |&label| (point, label)))
                .filter(|&(point, label)| test.by_point.contains(point, label))
                .count() as u64;
            if let (Ids::Own(label_ids), Ids::Own(point_ids)) = (&labels.ids, &test.ids) {
                let mut label_of_id = Interner::default();
                for id in label_ids.iter() {
                    label_of_id.intern(id);
                }
                oddities.unfiltered_self_labels = point_ids
                    .iter()
                    .enumerate()
                    .filter_map(|(point, id)| Some((point, label_of_id.get(id)?)))
                    .filter(|&(point, label)| !test.filter.contains(point, label))
                    .count() as u64;
            }
        }
        oddities
    }

    /// The oddities there are: how many, and what they are in words.
    pub fn described(&self) -> impl Iterator<Item = (u64, &'static str)> {
        [
            (self.duplicate_points, "training points repeat the text of an earlier one"),
            (self.test_points_in_train, "test points have the text of a training point"),
            (self.empty_texts, "points have no text"),
            (self.labels_without_text, "labels have no text"),
            (self.duplicate_label_texts, "labels repeat the text of an earlier label"),
            (self.labels_without_train_point, "labels have no training point"),
            (self.train_points_without_labels, "training points have no label"),
            (self.test_points_without_labels, "test points have no label and count as misses"),
            (self.repeated_labels_in_rows, "labels stand twice in a row and count once"),
            (self.irrelevant_pairs, "pairs have relevance 0 and are left out"),
            (self.true_pairs_in_filter, "true pairs are removed by the test filter"),
            (
                self.unfiltered_self_labels,
                "test points are labels themselves, and no filter pair keeps them from being \
                 their own answer",
            ),
        ]
        .into_iter()
        .filter(|&(count, _)| count > 0)
    }
}

fn n_empty(texts: &Texts) -> u64 {
    texts.iter().filter(|text| text.is_empty()).count() as u64
}

fn n_empty_rows(csr: &super::csr::Csr) -> u64 {
    csr.rows().filter(|row| row.is_empty()).count() as u64
}

/// The hashes of texts, sorted: eight bytes a text tell what repeats. Empty texts are left out.
struct TextHashes {
    hasher: DefaultHashBuilder,
    sorted: Vec<u64>,
}

impl TextHashes {
    fn new(texts: &Texts) -> Self {
        let hasher = DefaultHashBuilder::default();
        let mut sorted: Vec<u64> = (0..texts.len())
            .into_par_iter()
            .map(|index| texts.get(index))
            .filter(|text| !text.is_empty())
            .map(|text| hasher.hash_one(text))
            .collect();
        sorted.par_sort_unstable();
        Self { hasher, sorted }
    }

    fn n_repeats(&self) -> u64 {
        self.sorted.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64
    }

    fn n_shared(&self, texts: &Texts) -> u64 {
        let is_shared = |text: &str| {
            !text.is_empty() && self.sorted.binary_search(&self.hasher.hash_one(text)).is_ok()
        };
        (0..texts.len()).into_par_iter().filter(|&index| is_shared(texts.get(index))).count() as u64
    }
}
