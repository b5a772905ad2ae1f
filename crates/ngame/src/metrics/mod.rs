//! How good are predictions? Pure functions of a ranking and the truth.
//!
//! - [`evaluate`]: precision, nDCG and recall at 1 to k, plain and propensity-scored, exactly as
//!   the community's reference (pyxclib) defines them; [`evaluate_with_intervals`] adds confidence
//!   intervals.
//! - [`evaluate_groups`]: the same precision broken down by groups of labels, from the most
//!   frequent to the rarest.
//! - [`evaluate_online`]: the yields of a live A/B test from its search log.
//! - [`top_k`]: the ranking itself, for whoever else needs the best few of many scores.
//!
//! All results are the same to the last bit on any number of threads: rows are added up in chunks
//! of a fixed size, chunks in order, and random numbers belong to chunks.
//!
//! ```
//! use ngame::data::{Csr, ScoredCsr};
//! use ngame::metrics::{Bootstrap, PropensityModel, Task, evaluate, evaluate_with_intervals};
//!
//! let mut predictions = ScoredCsr::new(3);
//! predictions.push_row(&mut vec![(0, 0.9), (2, 0.5)]);
//! predictions.push_row(&mut vec![(1, 0.7), (2, 0.8)]);
//! let truth = Csr::from_pairs(2, 3, vec![(0, 0), (1, 1)]);
//!
//! let weights = PropensityModel::default().inverse_propensities(10, &[5, 4, 1]);
//! let task = Task { truth: &truth, filter: None, inverse_propensities: Some(&weights) };
//! let metrics = evaluate(&predictions, &task, 2);
//! assert_eq!(metrics.precision, [0.5, 0.5]);
//! assert_eq!(metrics.recall, [0.5, 1.0]);
//!
//! let (_, intervals) = evaluate_with_intervals(&predictions, &task, 2, &Bootstrap::default());
//! assert!(intervals.precision[0].low < 0.5 && intervals.precision[0].high > 0.5);
//! ```

mod bootstrap;
mod columns;
mod contributions;
mod deciles;
mod evaluate;
mod ndcg;
mod online;
mod poisson;
mod precision;
mod propensity;
mod ranking;
mod recall;
mod search_log;

pub use bootstrap::{Bootstrap, Interval};
pub use deciles::{GroupMetrics, HEAD_COUNT, LabelGroups, TORSO_COUNT, evaluate_groups};
pub use evaluate::{Intervals, Metrics, PerMetric, Task, evaluate, evaluate_with_intervals};
pub use online::{
    ArmMetrics, Estimate, OnlineMetrics, OnlineReport, Search, SearchLog, evaluate_online,
};
pub use propensity::PropensityModel;
pub use ranking::{TopK, top_k};

#[cfg(test)]
mod tests;
