//! Texts and labels: the data set in memory, and the readers that fill it.
//!
//! [`Dataset::read`] takes a folder or a file and returns a [`Dataset`]: labels, and points in
//! separate splits, with their filter pairs. Three layouts are read (see [`Format`]), each from
//! plain, gzip or zstd files. What is wrong with a file is an error that names the line; what is
//! merely odd is counted (see [`Oddities`]).

mod csr;
mod dataset;
mod filter;
mod folder;
mod interner;
mod json;
mod label_book;
mod lf;
mod lines;
mod new_labels;
mod npz;
mod oddities;
mod options;
mod own;
mod predictions;
mod read;
mod record;
mod rows;
mod source;
mod sparse_text;
mod split;
mod summary;
mod table;
mod texts;
mod xc;

pub use csr::{Csr, ScoredCsr};
pub use dataset::{Dataset, FieldWords, Ids, Labels, RowNotes, Split};
pub use filter::read_filter;
pub use new_labels::NewLabels;
pub use npz::write_npz;
pub use oddities::Oddities;
pub use options::{Format, ReadOptions, SplitRequest, TextChoice};
pub use predictions::{read_label_counts, read_label_matrix, read_predictions};
pub use read::detect;
pub use summary::{Distribution, FrequencyBand, Summary};
pub use texts::Texts;

pub(crate) use interner::Interner;
pub(crate) use lines::{BlockLines, for_each_line};
pub(crate) use own::FileKind;
pub(crate) use source::Source;
pub(crate) use table::for_each_row;
