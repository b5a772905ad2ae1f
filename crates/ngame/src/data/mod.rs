//! Texts and labels: the data set in memory, and the readers that fill it.

mod csr;
mod texts;

pub use csr::{Csr, ScoredCsr};
pub use texts::Texts;
