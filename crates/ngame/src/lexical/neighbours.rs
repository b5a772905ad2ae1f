//! Texts that have words in common: with a label's own text, and with the training points.
//!
//! Weights say which words speak for a label after training; they cannot say that a text and a label are
//! called alike, nor that one training text is almost this one. Both are cosines of the same sparse vectors,
//! read off inverted indexes.

use super::postings::{LexicalRoom, Postings};
use super::sparse::{SparseRows, prune};
use crate::data::Csr;

/// The features of a text that are compared: its heaviest. Of a long text the others are many and light.
const MOST_OF_TEXT: usize = 64;

/// The points of a feature that are compared: those it weighs most in, which are the shortest. A word that
/// more points have says little about which of them is near, and would take most of the time.
const MOST_POINTS: usize = 4_000;

/// The labels' texts and the training points by their words.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Neighbours {
    /// By feature, the labels whose own text has it.
    pub(super) labels: Postings,
    /// By feature, the training points that have it.
    pub(super) points: Postings,
    /// Which labels every point votes for: points × labels.
    pub(super) truth: Csr,
}

impl Neighbours {
    /// The texts of labels and points.
    pub(super) fn new(
        labels: &SparseRows, // (labels, features)
        points: &SparseRows, // (points, features)
        truth: &Csr,         // (points, labels)
        n_features: usize,
    ) -> Self {
        Self {
            labels: Postings::new(&heaviest(labels), n_features),
            points: Postings::new(&heaviest(points), n_features).heaviest(MOST_POINTS),
            truth: truth.clone(),
        }
    }

    /// What is wrong with it for so many features and labels, if anything.
    pub(super) fn check(&self, n_features: usize, n_labels: usize) -> Result<(), String> {
        self.labels.check(n_features, n_labels)?;
        self.points.check(n_features, self.truth.n_rows())?;
        match self.truth.n_columns() as usize {
            n if n == n_labels => Ok(()),
            n => Err(format!("{n_labels} labels, but points that vote for {n}")),
        }
    }

    /// The `k` points that a text has most in common with, nearest first, and the cosine of each.
    pub(super) fn nearest(
        &self,
        vector: &[(u32, f32)],
        k: usize,
        room: &mut LexicalRoom,
    ) -> Vec<(u32, f32)> {
        self.points.search(vector, self.truth.n_rows(), |_| 0.0, |_| false, k, room)
    }
}

/// Every row with the entries that are compared.
pub(super) fn heaviest(rows: &SparseRows) -> SparseRows {
    let mut kept = SparseRows::new();
    for row in 0..rows.n_rows() {
        let mut entries: Vec<(u32, f32)> = rows.entries(row).collect();
        prune(&mut entries, MOST_OF_TEXT, 0.0);
        kept.push(&entries);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(all: &[&[(u32, f32)]]) -> SparseRows {
        let mut rows = SparseRows::new();
        all.iter().for_each(|row| rows.push(row));
        rows
    }

    #[test]
    fn the_nearest_points_are_those_of_the_highest_cosines() {
        let points = rows(&[&[(0, 0.6), (1, 0.8)], &[(1, 1.0)], &[(2, 1.0)], &[]]);
        let truth = Csr::from_pairs(4, 2, vec![(0, 0), (1, 1), (2, 0), (3, 1)]);
        let near = Neighbours::new(&rows(&[&[], &[(2, 1.0)]]), &points, &truth, 3);
        near.check(3, 2).unwrap();
        let room = &mut LexicalRoom::default();
        let mut nearest = |vector: &[(u32, f32)], k| near.nearest(vector, k, room);
        let found = nearest(&[(0, 0.8), (1, 0.6)], 9);
        assert_eq!(found.iter().map(|&(point, _)| point).collect::<Vec<_>>(), [0, 1]);
        // A weight has two bytes, eight bits of them for its digits.
        assert!((found[0].1 - 0.96).abs() < 0.01 && (found[1].1 - 0.6).abs() < 0.01, "{found:?}");
        assert_eq!(nearest(&[(0, 0.8), (1, 0.6)], 1), found[..1]);
        assert_eq!(nearest(&[], 5), []);
    }

    #[test]
    fn of_long_texts_the_heaviest_features_are_compared() {
        let long: Vec<(u32, f32)> = (0..100).map(|feature| (feature, feature as f32)).collect();
        let kept = heaviest(&rows(&[&long, &long[..3]]));
        assert_eq!(kept.row(0).0, (36..100).collect::<Vec<u32>>());
        assert_eq!(kept.row(1).0, [0, 1, 2]);
    }

    #[test]
    fn of_frequent_features_the_points_they_weigh_most_in_are_compared() {
        let mut points = SparseRows::new();
        (0..5_000).for_each(|point| points.push(&[(0, if point < 1_000 { 0.5 } else { 1.0 })]));
        let near = Neighbours::new(&SparseRows::new(), &points, &Csr::empty(5_000, 1), 1);
        let found = near.nearest(&[(0, 1.0)], 5_000, &mut LexicalRoom::default());
        assert_eq!(found.len(), MOST_POINTS);
        assert!(found.iter().all(|&(point, cosine)| point >= 1_000 && cosine == 1.0));
    }
}
