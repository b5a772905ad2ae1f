//! Text to token ids: the tokenizer, its training, and ragged token ids in memory or in a file.
//!
//! A [`Tokenizer`] is loaded from a Hugging Face `tokenizer.json` or `vocab.txt`, or trained on the
//! texts at hand by [`train_vocabulary`]. [`tokenize`] turns many texts into a [`TokenStore`];
//! [`tokenize_cached`] keeps the result in a file that the next run maps into memory.
//!
//! ```
//! use ngame::data::Texts;
//! use ngame::progress::Silent;
//! use ngame::tokens::{VocabularyOptions, tokenize, train_vocabulary};
//!
//! let texts: Texts = ["the cat", "the cat sat"].into_iter().collect();
//! let options = VocabularyOptions { size: 40, ..Default::default() };
//! let tokenizer = train_vocabulary(&[&texts], &options, &Silent)?;
//! let store = tokenize(&texts, &tokenizer, 16, &Silent)?;
//! let rows: Vec<Vec<u32>> = store.iter().map(|row| row.to_vec()).collect();
//! assert_eq!(rows[0][..3], rows[1][..3]); // [CLS] the cat
//! assert_eq!((rows[0].len(), rows[0][3]), (4, 3)); // [SEP] is 3
//! # Ok::<(), ngame::Error>(())
//! ```

mod ascii_words;
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
