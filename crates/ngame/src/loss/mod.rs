//! Scores to a loss and its gradient: how far the right labels of a batch are from where they should
//! be, compared with the wrong ones.
//!
//! Every loss looks at one point at a time: its scores with all labels of the batch, which of them is
//! its positive, and which are no negatives. It turns the scores into the gradient by them, in place.
//! [`BatchLoss::run`] does so for all points and brings the gradient back to the vectors.
//!
//! ```text
//! points (P, D), labels (M, D) ──> scores (P, M) ──> Loss::row, row by row ──> d_scores (P, M)
//!                                                      d_points (P, D), d_labels (M, D) <──┘
//! ```

mod batch_loss;
mod cross_entropy;
mod hard_negatives;
mod softmax;
mod triplet;

#[cfg(test)]
mod gradcheck;

pub use batch_loss::{BatchLoss, BatchReport, Targets};
pub use cross_entropy::CrossEntropy;
pub use hard_negatives::HardNegatives;
pub use softmax::Softmax;
pub use triplet::{Triplet, TripletShape, Weighting};

/// The loss of one point, given its scores with all labels of a batch.
pub trait Loss: std::fmt::Debug + Send + Sync {
    /// Turns the scores into the gradient of the point's loss by them. `room` is for passing use and
    /// best kept from row to row.
    fn row(
        &self,
        scores: &mut [f32],
        targets: RowTargets<'_>,
        room: &mut Vec<Candidate>,
    ) -> RowReport;
}

/// What the labels of a batch are to a point.
#[derive(Clone, Copy, Debug)]
pub struct RowTargets<'a> {
    /// The positive that was drawn for it, as a column.
    pub positive: usize,
    /// Its other positives, as columns.
    pub other_positives: &'a [u32],
    /// Columns that are neither positive nor negative.
    pub ignored: &'a [u32],
}

impl RowTargets<'_> {
    /// The scores and columns of all positives, the one that was drawn last.
    fn all_positives(&self, scores: &[f32]) -> Vec<Candidate> {
        let columns = self.other_positives.iter().copied().chain([self.positive as u32]);
        columns.map(|column| (scores[column as usize], column)).collect()
    }
}

/// A label of the batch as a point sees it: its score and its column.
pub type Candidate = (f32, u32);

/// What a point's loss looked like.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RowReport {
    /// The loss.
    pub loss: f32,
    /// The negatives that were compared with the positive.
    pub n_negatives: usize,
    /// Those of them that still push: for triplets, those within the margin.
    pub n_active: usize,
    /// The sum of the scores of the negatives compared.
    pub negative_scores: f32,
}

/// The logistic function.
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// log(1 + e^x), without overflow.
fn softplus(x: f32) -> f32 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}
