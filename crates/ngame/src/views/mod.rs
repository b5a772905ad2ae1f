//! What is known of a text and a label, from several sides: candidates, and numbers that describe each.
//!
//! ```text
//! text ──> vector ──┬──> classifiers, by their index ──┐
//!                   ├──> nearest training points ──────┼──> candidate labels ──> descriptor of each ──> fusion
//!                   └──> words (lexical) ──────────────┘
//! ```
//!
//! A view proposes labels and scores those that others propose. Training the fusion, evaluation and
//! prediction all ask the same [`Views`], so that what is learnt is what will be seen.

mod candidates;
mod descriptor;
mod label_changes;
mod opinion;
mod votes;

pub(crate) use candidates::with_bias_unit;
pub use candidates::{Candidates, Queries, Shortlists, Views};
pub use descriptor::{Column, View};
pub use opinion::ViewSays;
pub(crate) use opinion::scoring_views;
pub use votes::Votes;
