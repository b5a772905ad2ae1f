//! Text to token ids: the tokenizer, its training, and ragged token ids in memory or in a file.
//!
//! A [`Tokenizer`] is loaded from a Hugging Face `tokenizer.json` or `vocab.txt`, or trained on the
//! texts at hand by [`train_vocabulary`]. [`tokenize`] turns many texts into a [`TokenStore`];
//! [`tokenize_cached`] keeps the result in a file that the next run maps into memory.

mod ascii_words;
mod atomic_file;
mod definition;
mod load;
mod merges;
mod special_tokens;
mod store;
mod store_format;
mod store_writer;
mod tokenize;
mod tokenizer;
mod vocabulary;
mod word_cache;
mod word_counts;
mod word_local;

#[cfg(test)]
mod tests;

pub use store::{TokenStore, Tokens};
pub use tokenize::{tokenize, tokenize_cached};
pub use tokenizer::Tokenizer;
pub use vocabulary::{VocabularyKind, VocabularyOptions, train_vocabulary};
