//! Extreme classification: from a text to the few right labels out of millions, where labels are
//! texts too.
//!
//! The modules in the order data flows; each uses only those before it:
//!
//! ```text
//!  files ──> data ──> Dataset ──┬──> tokens ──> TokenStore ──> encoder ──> vectors ──> index
//!                               │                              ^    │          │
//!                               │                          training ┴── batching, loss, classifier
//!                               ├──> baseline ──┐
//!  any system's predictions ────┼───────────────┴──> metrics ──> numbers people trust
//!                               └── truth, filter pairs, label counts ──┘
//! ```
//!
//! - [`data`] reads the field's layouts and a user's own tables into a compact [`data::Dataset`];
//! - [`metrics`] says how good predictions are, as the community's reference does;
//! - [`baseline`] predicts without training: what any classifier has to beat;
//! - [`tokens`] turns texts into token ids, once;
//! - [`encoder`] turns token ids into unit vectors;
//! - [`index`] finds the vectors that score highest with another;
//! - [`batching`] says which points share a mini-batch: those that are close;
//! - [`loss`] says how wrong the scores of a batch are, and which way is better;
//! - [`classifier`] learns a vector for every label, beyond what its text says;
//! - [`lexical`] learns sparse weights of exact words for every label;
//! - [`views`] looks at a text and a label from several sides;
//! - [`fusion`] learns from several scores of a label how likely it is right;
//! - [`model`] is the folder that keeps all that;
//! - [`prediction`] answers with it, [`evaluation`] says how well, and [`error_analysis`] what is missed;
//! - [`theory`] measures the paper's guarantee on your data;
//! - [`training`] makes a model of a data set: a plan, a run, and a way to go on after a stop;
//! - [`error`] tells what went wrong and what to do, [`progress`] how far long work is.
//!
//! The library never prints. Whoever calls it passes an [`progress::Observer`], which hears of
//! progress and can stop the work. Randomness is an argument: the same seed gives the same bytes on
//! any number of threads.
//!
//! # From a table to a score
//!
//! ```
//! use ngame::baseline::NearestPoints;
//! use ngame::data::{Dataset, ReadOptions};
//! use ngame::metrics::{Task, evaluate};
//! use ngame::progress::Silent;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! std::fs::write(
//!     folder.path().join("train.csv"),
//!     "text,labels\nred and round,apple\nyellow and long,banana\ngreen and round,apple;pear\n",
//! )?;
//! std::fs::write(folder.path().join("test.csv"), "text,labels\nround and red,apple\n")?;
//!
//! let dataset = Dataset::read(folder.path(), &ReadOptions::default(), &Silent)?;
//! assert_eq!(dataset.n_labels(), 3);
//!
//! let nearest = NearestPoints::new(&dataset.train);
//! let (label, _votes) = nearest.predict_one("a round fruit", 1)[0];
//! assert_eq!(dataset.labels.id(label as usize), "apple");
//!
//! let test = dataset.test.as_ref().expect("there is a test file");
//! let predictions = nearest.predict(&test.texts, 5);
//! let task =
//!     Task { truth: &test.by_point, filter: Some(&test.filter), inverse_propensities: None };
//! assert_eq!(evaluate(&predictions, &task, 1).precision, [1.0]);
//! # Ok(())
//! # }
//! ```

mod array_file;
mod atomic_file;
pub mod baseline;
pub mod batching;
pub mod classifier;
pub mod data;
pub mod encoder;
pub mod error;
pub mod error_analysis;
pub mod evaluation;
mod folder_aside;
pub mod fusion;
pub mod index;
pub mod lexical;
mod logistic;
pub mod loss;
pub mod metrics;
pub mod model;
pub mod prediction;
pub mod progress;
mod random;
pub mod theory;
pub mod tokens;
pub mod training;
pub mod views;

pub use atomic_file::FileAside;
pub use error::{Error, Result};
