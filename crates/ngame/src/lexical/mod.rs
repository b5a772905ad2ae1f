//! The sparse view: exact words, which dense vectors blur.
//!
//! A text is a sparse vector of its words, their beginnings, and pairs of words (TF-IDF), a label a sparse vector of
//! weights, trained against points that are close to the label and do not have it. An inverted index
//! from features to labels finds the best labels of all, exactly, in well under a millisecond for a
//! title.
//!
//! ```text
//! text ──> words ──> features ──> vector ──> postings ──> labels, best first
//!                                               ^
//!                            means ──> hard negatives ──> dual coordinate descent, a label at a time
//! ```
//!
//! One-vs-all on sparse vectors is DiSMEC (Babbar and Schölkopf, 2017); solving on near negatives only
//! is what Parabel (Prabhu et al., 2018) and Slice (Jain et al., 2019) do, by trees of labels and by
//! search. Here search finds them twice: by labels' mean texts, then by the weights themselves. The
//! second round matters most: what first weights wrongly rank high is what was not among the negatives.
//!
//! Labels of similar texts are in clusters, which have weights of their own and say whether any of their
//! labels is right. Frequent words of a subject are learnt there from many points, where a rare label
//! has only a few. Labels are found by their own weights; what their clusters say is one more number of
//! a candidate.

mod blocks;
mod clusters;
mod dual;
mod features;
mod label_changes;
// The module is named after the type that it is about.
#[allow(clippy::module_inception)]
mod lexical;
mod neighbours;
mod options;
mod overlap;
mod postings;
mod sparse;
mod train;
mod tree;
mod words;

#[cfg(test)]
mod tests;

pub use lexical::{Lexical, LexicalParts, LexicalQuery, PostingParts};
pub use options::LexicalOptions;
pub use overlap::Overlap;
pub use postings::LexicalRoom;
