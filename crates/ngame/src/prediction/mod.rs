//! From texts to labels: one or millions, on any number of threads.

mod each;
mod explanation;
mod predictor;
mod ranking;

pub use explanation::{Explanation, NearPoint};
pub use predictor::{Predicted, PredictionOptions, Predictor};
