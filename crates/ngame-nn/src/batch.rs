//! A batch of texts as token ids: packed one after the other, without padding.
//!
//! All matrices of the engine have one row a token, in this order. A part of a batch is a batch
//! again and costs no copy, which is what makes chunked passes cheap.

use std::ops::Range;

/// Token ids of several texts, one text after the other.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    ids: &'a [u32],       // All tokens of the whole batch this one may be a part of.
    offsets: &'a [usize], // (texts + 1): text i has the ids offsets[i]..offsets[i + 1].
}

impl<'a> Batch<'a> {
    /// The texts `ids[offsets[i]..offsets[i + 1]]`.
    ///
    /// # Panics
    /// If the offsets decrease, point beyond the ids, or make an empty text: a text has at least
    /// one token (tokenizers add special tokens; an encoder's caller adds a token where none is).
    pub fn new(ids: &'a [u32], offsets: &'a [usize]) -> Self {
        assert!(!offsets.is_empty(), "offsets have one entry more than there are texts");
        assert!(offsets[offsets.len() - 1] <= ids.len(), "offsets point beyond the ids");
        assert!(offsets.windows(2).all(|pair| pair[0] < pair[1]), "a text without tokens");
        Self { ids, offsets }
    }

    /// The number of texts.
    pub fn n_texts(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The number of tokens of all texts.
    pub fn n_tokens(&self) -> usize {
        self.offsets[self.n_texts()] - self.offsets[0]
    }

    /// The tokens of the longest text.
    pub fn longest(&self) -> usize {
        self.offsets.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }

    /// The ids of all tokens.
    pub fn ids(&self) -> &'a [u32] {
        &self.ids[self.offsets[0]..self.offsets[self.n_texts()]]
    }

    /// The rows that text `text` has in a matrix with one row a token.
    pub fn rows(&self, text: usize) -> Range<usize> {
        self.offsets[text] - self.offsets[0]..self.offsets[text + 1] - self.offsets[0]
    }

    /// A part of the texts, as a batch.
    pub fn part(&self, texts: Range<usize>) -> Self {
        Self { ids: self.ids, offsets: &self.offsets[texts.start..texts.end + 1] }
    }

    /// Two parts for two threads, unless there is one text or no more than `grain` tokens.
    pub(crate) fn halves(&self, grain: usize) -> Option<(Self, Self)> {
        if self.n_texts() < 2 || self.n_tokens() <= grain {
            return None;
        }
        let middle = self.n_texts() / 2;
        Some((self.part(0..middle), self.part(middle..self.n_texts())))
    }

    /// Where every text begins in the batch this one is a part of.
    pub(crate) fn starts(&self) -> &'a [usize] {
        &self.offsets[..self.n_texts()]
    }

    /// The place of the first token in the batch this one is a part of. Dropout counts from there,
    /// so that a batch cut into parts drops the same numbers as the whole.
    pub fn first_token(&self) -> usize {
        self.offsets[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_batch_is_a_batch() {
        let ids = [1, 2, 3, 4, 5, 6];
        let offsets = [0, 1, 4, 6];
        let batch = Batch::new(&ids, &offsets);
        assert_eq!((batch.n_texts(), batch.n_tokens(), batch.longest()), (3, 6, 3));
        let part = batch.part(1..3);
        assert_eq!((part.n_texts(), part.n_tokens(), part.first_token()), (2, 5, 1));
        assert_eq!(part.ids(), [2, 3, 4, 5, 6]);
        assert_eq!(part.rows(1), 3..5);
        assert_eq!(batch.part(1..1).n_tokens(), 0);
    }

    #[test]
    #[should_panic(expected = "without tokens")]
    fn an_empty_text_is_refused() {
        Batch::new(&[1, 2], &[0, 1, 1, 2]);
    }
}
