//! From texts to labels: one or millions, on any number of threads.

mod each;
mod explanation;
mod predictor;

pub use explanation::{Explanation, NearPoint};
pub use predictor::{Predicted, PredictionOptions, Predictor};
