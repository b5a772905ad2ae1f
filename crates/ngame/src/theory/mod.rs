//! The negative mining guarantee, measured: how many hard negatives clusters miss, and what the theorem
//! allows.
//!
//! The theorem of the paper (Negative Mining Guarantee) says that clustering misses few hard negatives
//! where points lie close to their labels and clusters keep close points together:
//!
//! ```text
//! missed / (N L)  ≤  c₁ ε₁ + c₂ ε₂
//!
//! missed   pairs of a point and a label that it does not have, at most r apart, where no point of the
//!          point's own cluster has the label
//! ε₁       the share of true pairs that are more than r apart                       (the encoder's part)
//! ε₂       the share of pairs of points at most 2r apart in different clusters      (the clustering's)
//! c₁, c₂   from the numbers of labels of points and of points of labels alone       (the data's)
//! ```
//!
//! Everything is counted, for every point or for a sample of points against everything else; then there
//! are intervals. The catch: labels that no point has cannot be mined by anybody, and (N − q)/q has no
//! meaning for them, so they are left out; and on real data, where one label has one point and another
//! thousands, c₁ and c₂ are in the hundreds and allow more than there is. The proof loses that where it
//! puts deviations and q_min in the place of sums; [`AtRadius::sharp`] is its bound before that step,
//! which on any data lies near ε₁ + ε₂.

mod constants;
mod counting;
mod measure;

#[cfg(test)]
mod tests;

pub use constants::DataConstants;
pub use measure::{AtRadius, Estimate, Theory, TheoryOptions, TheoryTask, measure};
