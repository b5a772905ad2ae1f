//! Votes of the nearest training points: labels of texts that are like this one.

use std::sync::Arc;

use crate::data::Csr;
use crate::encoder::VectorMatrix;
use crate::index::{AnyIndex, Index};

/// How fast a vote fades with distance: similarities are raised to this power.
const SHARPNESS: i32 = 4;

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

    /// Counts the votes of some points, each with its similarity, by label in ascending order.
    pub(super) fn count(&self, points: &[u32], similarities: &[f32], votes: &mut Vec<Vote>) {
        votes.clear();
        for (&point, &similarity) in points.iter().zip(similarities) {
            let sum = similarity.max(0.0).powi(SHARPNESS);
            let labels = self.labels.row(point as usize).iter();
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
        let mut counted = Vec::new();
        votes.count(&[0, 1], &[0.5, -0.2], &mut counted);
        assert_eq!(
            counted,
            [
                Vote { label: 1, sum: 0.0625, nearest: 0.5 },
                Vote { label: 3, sum: 0.0625, nearest: 0.5 },
            ]
        );
        votes.count(&[0, 1], &[0.5, 1.0], &mut counted);
        assert_eq!(counted[1], Vote { label: 3, sum: 1.0625, nearest: 1.0 });
    }
}
