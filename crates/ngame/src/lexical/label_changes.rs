//! Labels that come and go after training: words of a text stand in for weights that nobody trained.

use std::ops::Range;

use super::lexical::{Lexical, LexicalQuery};
use super::neighbours::heaviest;
use super::postings::{LexicalRoom, Postings};
use super::sparse::SparseRows;
use crate::data::Texts;

impl Lexical {
    /// The best `k` of the labels in a range, as if there were no others.
    pub fn search_among(
        &self,
        query: &LexicalQuery,
        labels: Range<u32>,
        k: usize,
        room: &mut LexicalRoom,
    ) -> Vec<(u32, f32)> {
        let skip = |label| !labels.contains(&label);
        let bias = |label: u32| self.biases[label as usize];
        self.postings.search(&query.vector, self.biases.len(), bias, skip, k, room)
    }

    /// The same view with more labels behind the ones it has, known by their texts alone. Their weights
    /// are the words of their texts, as long as the weights of the labels in `like` are by the median, and
    /// their bias is the median of theirs: so other texts find them about as often. Each joins the cluster
    /// that its text speaks for most.
    ///
    /// # Panics
    /// If a label of `like` is none.
    pub fn with_labels(mut self, texts: &Texts, like: &[u32]) -> Self {
        let bias = median(like.iter().map(|&label| self.biases[label as usize]).collect());
        let lengths = self.postings.lengths(self.biases.len());
        let length = median(like.iter().map(|&label| lengths[label as usize]).collect());
        let length = length.unwrap_or(0.0);
        let (mut rows, mut own) = (SparseRows::new(), SparseRows::new());
        let mut homes = Vec::new();
        for text in texts.iter() {
            let mut words = self.query(text).vector;
            homes.push(self.clusters.home(&words));
            own.push(&words);
            words.iter_mut().for_each(|(_, weight)| *weight *= length);
            rows.push(&words);
        }
        self.clusters.tree = self.clusters.tree.with_labels(&homes);
        let first = self.biases.len() as u32;
        let new = Postings::new(&rows, self.features.len());
        self.postings = self.postings.followed_by(&new, first);
        let own = Postings::new(&heaviest(&own), self.features.len());
        self.neighbours.labels = self.neighbours.labels.followed_by(&own, first);
        self.neighbours.truth.widen(first + texts.len() as u32);
        // Without a label to look at, one of which nothing is known: -1 is what every no is met by.
        self.biases.resize(self.biases.len() + texts.len(), bias.unwrap_or(-1.0));
        self
    }

    /// The same view of some of its labels, which ascend; they are numbered anew from 0.
    ///
    /// # Panics
    /// If there is no such label.
    pub fn select(mut self, labels: &[u32]) -> Self {
        let mut number = vec![None; self.biases.len()];
        for (new, &old) in labels.iter().enumerate() {
            number[old as usize] = Some(new as u32);
        }
        self.postings = self.postings.renumbered(&number);
        self.clusters.tree = self.clusters.tree.select(labels);
        self.neighbours.labels = self.neighbours.labels.renumbered(&number);
        self.neighbours.truth = self.neighbours.truth.select_columns(labels);
        self.biases = labels.iter().map(|&label| self.biases[label as usize]).collect();
        self
    }
}

impl Postings {
    /// How long the weight vector of every label is.
    fn lengths(&self, n_labels: usize) -> Vec<f32> {
        let mut squares = vec![0.0; n_labels];
        for (&label, weight) in self.labels.iter().zip(&self.weights) {
            squares[label as usize] += weight.to_f32() * weight.to_f32();
        }
        squares.into_iter().map(f32::sqrt).collect()
    }

    /// These labels and, numbered from `first`, those of others, which are all behind them.
    fn followed_by(&self, others: &Self, first: u32) -> Self {
        let mut all = Self::of_no_feature();
        for feature in 0..self.offsets.len() as u32 - 1 {
            for (postings, shift) in [(self, 0), (others, first)] {
                let (labels, weights) = postings.of(feature);
                all.labels.extend(labels.iter().map(|label| label + shift));
                all.weights.extend(weights);
            }
            all.offsets.push(all.labels.len() as u64);
        }
        all
    }

    /// The labels that have a new number, under it; the others are gone.
    fn renumbered(&self, number: &[Option<u32>]) -> Self {
        let mut all = Self::of_no_feature();
        for feature in 0..self.offsets.len() as u32 - 1 {
            let (labels, weights) = self.of(feature);
            for (&label, &weight) in labels.iter().zip(weights) {
                if let Some(label) = number[label as usize] {
                    all.labels.push(label);
                    all.weights.push(weight);
                }
            }
            all.offsets.push(all.labels.len() as u64);
        }
        all
    }
}

/// The middle of some numbers, the lower one of two.
fn median(mut numbers: Vec<f32>) -> Option<f32> {
    numbers.sort_unstable_by(f32::total_cmp);
    numbers.get(numbers.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Csr;
    use crate::lexical::LexicalOptions;
    use crate::progress::Silent;

    const LABELS: [&str; 4] = ["red apple", "yellow banana", "green pear", "blue plum"];

    fn trained() -> Lexical {
        let points: Texts = (0..40).map(|n| format!("one {} more", LABELS[n % 3])).collect();
        let truth = Csr::from_pairs(40, 4, (0..40).map(|n| (n, n % 3)).collect());
        let labels: Texts = LABELS.into_iter().chain([]).collect();
        let options = LexicalOptions { least_texts: 1, cluster_size: 1, ..Default::default() };
        Lexical::train(&points, &truth, &labels, None, &options, &Silent).unwrap()
    }

    fn search(lexical: &Lexical, text: &str, labels: Range<u32>) -> Vec<(u32, f32)> {
        lexical.search_among(&lexical.query(text), labels, 9, &mut LexicalRoom::default())
    }

    #[test]
    fn new_labels_are_found_by_their_words_and_change_no_other_score() {
        let texts = ["red and yellow", "unheard of", "blue pear", "one more"];
        let before: Vec<_> = texts.map(|text| search(&trained(), text, 0..4)).into();
        let new: Texts = ["blue pear", "something else"].into_iter().collect();
        let longer = trained().with_labels(&new, &[3]);
        assert_eq!(longer.n_labels(), 6);
        Lexical::from_parts(longer.parts()).unwrap();
        let clusters = |query, labels: &[u32]| longer.cluster_scores(&longer.query(query), labels);
        assert_eq!(clusters("blue pear", &[4]), clusters("blue pear", &[2]), "with the green pear");
        for (text, before) in texts.iter().zip(before) {
            assert_eq!(search(&longer, text, 0..4), before, "{text}");
        }
        let own = search(&longer, "blue pear", 4..6);
        assert_eq!((own.len(), own[0].0), (1, 4));
        // Its weights are as long as those of the label that it is like.
        let lengths = longer.postings.lengths(6);
        assert!((lengths[4] / lengths[3] - 1.0).abs() < 0.01, "{lengths:?}");
        assert!((own[0].1 - longer.biases[3] - lengths[3]).abs() < 0.02, "{own:?} {lengths:?}");
        let mut own = [0.0; 3];
        longer.label_cosines(&longer.query("blue pear"), &[2, 4, 5], &mut own);
        assert!(own[0] > 0.1 && (own[1] - 1.0).abs() < 0.01 && own[2] == 0.0, "{own:?}");
        assert_eq!(longer.point_labels().n_columns(), 6);
        // Nothing to go by is nothing said.
        let silent = trained().with_labels(&new, &[]);
        assert!(search(&silent, "blue pear", 4..6).iter().all(|&(_, score)| score == -1.0));
    }

    #[test]
    fn labels_that_go_take_their_words_along() {
        let all = trained();
        let before = search(&all, "green pear and red apple", 0..4);
        let fewer = trained().select(&[0, 2, 3]);
        assert_eq!(fewer.n_labels(), 3);
        let clusters = |view: &Lexical, label| view.cluster_scores(&view.query("pear"), &[label]);
        assert_eq!(clusters(&fewer, 1), clusters(&all, 2));
        let number = |label: u32| [Some(0), None, Some(1), Some(2)][label as usize];
        let expected: Vec<(u32, f32)> =
            before.into_iter().filter_map(|(label, score)| Some((number(label)?, score))).collect();
        assert_eq!(search(&fewer, "green pear and red apple", 0..3), expected);
        assert!(fewer.n_weights() < all.n_weights());
        let mut own = [0.0; 3];
        fewer.label_cosines(&fewer.query("green pear"), &[0, 1, 2], &mut own);
        assert!((own[1] - 1.0).abs() < 0.01 && [own[0], own[2]] == [0.0; 2], "{own:?}");
        let votes: Vec<&[u32]> = fewer.point_labels().rows().take(3).collect();
        assert_eq!(votes, [&[0][..], &[], &[1]]);
        Lexical::from_parts(fewer.parts()).unwrap();
    }
}
