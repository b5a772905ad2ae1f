//! One vector a label: started at the label's embedding, trained on frozen embeddings of points.
//!
//! Labels are independent of one another given the points' vectors, so any part of them can be trained
//! by itself: on another thread, in another process, on another machine.

mod classifiers;
mod one_vs_all;

pub use classifiers::Classifiers;
pub use one_vs_all::{OneVsAll, train_one_vs_all};
