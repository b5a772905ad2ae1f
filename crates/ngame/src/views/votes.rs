//! Votes of the nearest training points: labels of texts that are like this one.

use std::sync::Arc;

use crate::data::Csr;
use crate::encoder::VectorMatrix;
use crate::index::{AnyIndex, Index};

/// How fast a vote fades with distance: similarities of vectors are raised to this power.
const SHARPNESS: i32 = 4;

/// The same where points are near by their words: few have any in common, and cosines fall fast by
/// themselves.
const SHARPNESS_OF_WORDS: i32 = 1;

/// Training points by their vectors, and the labels they vote for.
pub struct Votes {
    index: AnyIndex,
    vectors: Arc<VectorMatrix>, // (points, dim)
    labels: Csr,                // points × labels
}

/// The votes for one label.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Vote {
    pub(super) label: u32,
    /// The votes added up.
    pub(super) sum: f32,
    /// The similarity of the nearest point that has the label.
    pub(super) nearest: f32,
}

impl std::fmt::Debug for Votes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Votes").field("n_points", &self.labels.n_rows()).finish_non_exhaustive()
    }
}

impl Votes {
    /// The points of an index and the labels of each.
    ///
    /// # Panics
    /// If the two differ in number.
    pub fn new(index: AnyIndex, vectors: Arc<VectorMatrix>, labels: Csr) -> Self {
        assert_eq!(index.n_vectors(), labels.n_rows(), "every point has a row of labels");
        Self { index, vectors, labels }
    }

    /// The points' labels.
    pub fn labels(&self) -> &Csr {
        &self.labels
    }

    /// The same points with these labels.
    ///
    /// # Panics
    /// If there is not a row of labels for every point.
    pub fn with_labels(self, labels: Csr) -> Self {
        Self::new(self.index, self.vectors, labels)
    }

    /// The points' vectors.
    pub fn vectors(&self) -> &VectorMatrix {
        &self.vectors
    }

    /// The points' index.
    pub fn index(&self) -> &AnyIndex {
        &self.index
    }

    /// Counts the votes of some of the points, each with its similarity.
    pub(super) fn count(&self, points: &[u32], similarities: &[f32]) -> Counted {
        let points = points.iter().copied().zip(similarities.iter().copied());
        Counted::of(points, &self.labels, SHARPNESS)
    }
}

/// The votes of some points.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counted {
    /// Ascending by label.
    votes: Vec<Vote>,
    /// All votes together.
    sum: f32,
    /// The similarity of the nearest point, whatever its labels.
    pub(super) familiarity: f32,
}

impl Counted {
    /// Counts the votes of points that are near by their words.
    pub(super) fn by_words(points: &[(u32, f32)], labels: &Csr) -> Self {
        Self::of(points.iter().copied(), labels, SHARPNESS_OF_WORDS)
    }

    fn of(points: impl Iterator<Item = (u32, f32)>, labels: &Csr, sharpness: i32) -> Self {
        let mut votes = Vec::new();
        let mut familiarity = f32::NEG_INFINITY;
        for (point, similarity) in points {
            familiarity = familiarity.max(similarity);
            let sum = similarity.max(0.0).powi(sharpness);
            let labels = labels.row(point as usize).iter();
            votes.extend(labels.map(|&label| Vote { label, sum, nearest: similarity }));
        }
        // Stable, so that votes are always added up in the same order.
        votes.sort_by_key(|vote| vote.label);
        votes.dedup_by(|later, first| {
            let same = later.label == first.label;
            if same {
                first.sum += later.sum;
                first.nearest = first.nearest.max(later.nearest);
            }
            same
        });
        let sum = votes.iter().map(|vote| vote.sum).sum();
        Self { votes, sum, familiarity }
    }

    /// The labels that have votes, ascending.
    pub(super) fn labels(&self) -> impl Iterator<Item = u32> {
        self.votes.iter().map(|vote| vote.label)
    }

    /// The votes for a label, if it has any.
    pub(super) fn get(&self, label: u32) -> Option<Vote> {
        let found = self.votes.binary_search_by_key(&label, |vote| vote.label);
        found.ok().map(|at| self.votes[at])
    }

    /// What share of all votes these are.
    pub(super) fn share(&self, vote: Vote) -> f32 {
        vote.sum / self.sum.max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::ExactIndex;

    #[test]
    fn near_points_count_more_and_labels_are_counted_once() {
        let vectors = Arc::new(VectorMatrix::from_f32(vec![1.0, 0.0, 0.0, 1.0, 0.6, 0.8], 2));
        let index = AnyIndex::Exact(ExactIndex::new(Arc::clone(&vectors)));
        let labels = Csr::from_pairs(3, 4, vec![(0, 1), (0, 3), (1, 3), (2, 0)]);
        let votes = Votes::new(index, vectors, labels);
        let counted = votes.count(&[0, 1], &[0.5, -0.2]);
        assert_eq!(
            counted.votes,
            [
                Vote { label: 1, sum: 0.0625, nearest: 0.5 },
                Vote { label: 3, sum: 0.0625, nearest: 0.5 },
            ]
        );
        assert_eq!((counted.get(2), counted.familiarity), (None, 0.5));
        let counted = votes.count(&[0, 1], &[0.5, 1.0]);
        let vote = Vote { label: 3, sum: 1.0625, nearest: 1.0 };
        assert_eq!(counted.get(3), Some(vote));
        assert_eq!(counted.share(vote), 1.0625 / 1.125);
        assert_eq!(counted.familiarity, 1.0);
    }

    #[test]
    fn points_that_are_near_by_words_vote_by_their_cosines() {
        let labels = Csr::from_pairs(2, 3, vec![(0, 1), (1, 1), (1, 2)]);
        let counted = Counted::by_words(&[(1, 0.5), (0, 0.25)], &labels);
        assert_eq!(counted.get(1), Some(Vote { label: 1, sum: 0.75, nearest: 0.5 }));
        assert_eq!(counted.labels().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(Counted::by_words(&[], &labels).familiarity, f32::NEG_INFINITY);
    }
}
