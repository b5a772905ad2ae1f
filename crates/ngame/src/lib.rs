//! Extreme classification: from a text to the few right labels out of millions.

pub mod baseline;
pub mod data;
pub mod error;
pub mod metrics;
pub mod progress;
pub mod tokens;

pub use error::{Error, Result};
