//! Texts to unit vectors: encoders in folders, and many texts embedded at once.
//!
//! A [`TextEncoder`] is loaded from the folder of a BERT or DistilBERT model as `transformers` and
//! `sentence-transformers` save it, or made from scratch, and saved to such a folder again. An
//! [`Embedder`] is one with its weights packed for answering; it writes the vectors of texts into a
//! [`VectorMatrix`], in memory or as a `.npy` file.

mod config;
mod embed;
mod json_file;
mod npy;
mod save;
mod sentence_files;
mod text_encoder;
mod text_source;
mod upper_layers;
mod vector_file;
mod vector_rows;
mod vectors;

pub use crate::folder_aside::Existing;
pub use embed::{Embedded, Embedder};
pub use ngame_nn::{BagConfig, Family, Pooling, Precision, TransformerConfig, keep_freed_memory};
pub use text_encoder::TextEncoder;
pub use text_source::{TextLines, TextSource};
pub use vector_file::VectorFile;
pub use vectors::{RowMut, Vector, VectorMatrix, VectorSink, VectorType};
