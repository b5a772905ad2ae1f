//! A short way to cut ASCII text into words, for tokenizers that work as BERT's do.
//!
//! The crate's normaliser keeps track of where every byte came from and decomposes every character,
//! which takes microseconds a word. For text of visible ASCII characters all that comes to nothing:
//! there is no control character to clean away, no Chinese, no accent, and the only white space is
//! between pieces. What is left is to lowercase and to part letters and digits from punctuation.

use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;

use super::definition::added_tokens;

/// How to cut a piece of ASCII text into words.
#[derive(Clone, Debug)]
pub(super) struct AsciiWords {
    lowercase: bool,
    /// The characters that the short way leaves to the crate: those that are not visible ASCII, and
    /// those an added token begins with, because no added token can be found where no such
    /// character is.
    left_to_crate: Box<[bool; 256]>,
}

impl AsciiWords {
    /// The short way through a tokenizer's normaliser and pre-tokenizer, if there is one. The
    /// tokenizer must be word-local.
    pub(super) fn of(tokenizer: &tokenizers::Tokenizer) -> Option<Self> {
        let lowercase = match tokenizer.get_normalizer() {
            None => false,
            Some(NormalizerWrapper::BertNormalizer(normalizer)) => normalizer.lowercase,
            Some(NormalizerWrapper::Lowercase(_)) => true,
            Some(_) => return None,
        };
        let Some(PreTokenizerWrapper::BertPreTokenizer(_)) = tokenizer.get_pre_tokenizer() else {
            return None;
        };
        let mut left_to_crate = Box::new([true; 256]);
        for byte in b'!'..=b'~' {
            left_to_crate[usize::from(byte)] = false;
        }
        for (token, form) in added_tokens(tokenizer).ok()? {
            // A text is searched as it is or lowercased, so both letters count.
            for byte in [token.content, form].iter().filter_map(|form| form.bytes().next()) {
                left_to_crate[usize::from(byte.to_ascii_lowercase())] = true;
                left_to_crate[usize::from(byte.to_ascii_uppercase())] = true;
            }
        }
        Some(Self { lowercase, left_to_crate })
    }

    /// A piece as the normaliser leaves it, ready for [`words`]; `None` if that is for the crate to
    /// do.
    pub(super) fn normalize(&self, piece: &str) -> Option<String> {
        if piece.bytes().any(|byte| self.left_to_crate[usize::from(byte)]) {
            return None;
        }
        Some(if self.lowercase { piece.to_ascii_lowercase() } else { piece.to_owned() })
    }
}

/// The words of a piece of visible ASCII characters: runs of letters and digits, and every
/// punctuation mark by itself.
pub(super) fn words(piece: &str) -> impl Iterator<Item = &str> {
    let mut rest = piece;
    std::iter::from_fn(move || {
        let n_letters = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let (word, after) = rest.split_at_checked(n_letters.max(1))?;
        rest = after;
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_part_letters_from_punctuation() {
        let cut = |piece| words(piece).collect::<Vec<_>>();
        assert_eq!(cut("don't"), ["don", "'", "t"]);
        assert_eq!(cut("(a1_b)."), ["(", "a1", "_", "b", ")", "."]);
        assert_eq!(cut("word"), ["word"]);
        assert_eq!(cut("--"), ["-", "-"]);
        assert_eq!(cut(""), [""; 0]);
    }

    #[test]
    fn every_visible_ascii_character_is_a_letter_digit_or_punctuation() {
        for byte in b'!'..=b'~' {
            assert!(byte.is_ascii_alphanumeric() || byte.is_ascii_punctuation(), "{byte}");
        }
    }
}
