//! Several scores of a label to one probability: learning how to rank candidates.
//!
//! Views (an encoder, classifiers, word overlap) each score some candidate labels of a point. A pair
//! of a point and a label is described by those few scores, its features; a view that did not score
//! the label leaves "not a number". Trees learn from pairs whose truth is known what the features
//! mean together, and calibration turns a tree's score into the share of such pairs that are true.
//!
//! ```text
//! views ──> features (pairs, features) ──> Binned ──> RegressionTree or BoostedTrees ──> scores (pairs)
//!            a missing score is NaN                     Objective: log-loss or ranking      │
//!                                                        probabilities (pairs) <── Isotonic ┘
//! ```
//!
//! - [`Binned`] turns features into bytes, so that a split is found by counting and not by sorting;
//! - [`RegressionTree`] is one tree: squared error, or any loss by its gradients;
//! - [`BoostedTrees`] are many small trees, each correcting those before it, and the first one a
//!   [`LinearModel`] where that is asked for;
//! - [`Isotonic`] says how often a score as high as this one was right.
//!
//! The same pairs give the same bytes on any number of threads. What is loaded from a file is checked
//! by the `check` of each type before it is used: a tree with a circle in it would never answer.

mod binned;
mod boosting;
mod examples;
mod fit;
mod flat_trees;
mod fused;
mod growth;
mod histogram;
mod isotonic;
mod judged;
mod linear;
mod objective;
mod tree;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;

pub use binned::Binned;
pub use boosting::{BoostedTrees, BoostingOptions};
pub use examples::Examples;
pub use fit::{FusionTask, MethodChoice, fit};
pub use fused::{Fusion, Method, Tried};
pub use isotonic::Isotonic;
pub use judged::Aim;
pub use linear::LinearModel;
pub use objective::{Objective, Pairs};
pub use tree::{RegressionTree, TreeOptions};
