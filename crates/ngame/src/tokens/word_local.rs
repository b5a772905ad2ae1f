//! Pipelines in which every word is tokenised on its own.
//!
//! For such a pipeline the tokens of a text are the tokens of its *pieces*, one after the other,
//! where pieces are what lies between the separators space, tab, carriage return and line feed.
//! That is what lets a cache answer for whole pieces. Most texts of most models qualify: it holds
//! for every BERT-like tokenizer. Why it holds, step by step through the pipeline:
//!
//! 1. **Added tokens are searched in the text** (those not normalised, such as `[SEP]`). Their
//!    content has no white space, so a match never leaves a piece, and leftmost-longest matching
//!    within one piece never depends on another. A `single_word` token asks whether the
//!    neighbouring character is a word character; a separator is not, and neither is the end of the
//!    piece when it stands alone. `lstrip` and `rstrip` let a match swallow the white space around
//!    it, which would not have become a token anyway (step 4).
//! 2. **What lies between the matches is normalised.** Lowercasing, cleaning and the spacing of
//!    Chinese characters look at one character at a time. Accents are stripped after canonical
//!    decomposition, which reorders combining marks but never across a starter, and all white
//!    space is a starter that decomposes to white space. So separators stay, or become a space, and
//!    nothing moves across them: the normalised text is the normalised pieces with white space
//!    between.
//! 3. **Normalised added tokens are searched in the result.** Their normalised content has no white
//!    space either, so step 1 applies again.
//! 4. **The pre-tokenizer splits at white space** and drops it, and then splits further by looking
//!    within a run without white space only. Parts that became empty are dropped by the crate.
//! 5. **The model tokenises each part by itself**: WordPiece, WordLevel and BPE without dropout are
//!    functions of the part alone. Unigram is too, but its usual pre-tokenizer, Metaspace, is not.

use tokenizers::models::ModelWrapper;
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;

use super::definition::added_tokens;

/// Whether each piece of a text can be tokenised by itself.
pub(super) fn is_word_local(tokenizer: &tokenizers::Tokenizer) -> bool {
    let normalizer = match tokenizer.get_normalizer() {
        None => true,
        Some(NormalizerWrapper::BertNormalizer(_) | NormalizerWrapper::Lowercase(_)) => true,
        Some(_) => false,
    };
    let pre_tokenizer = matches!(
        tokenizer.get_pre_tokenizer(),
        Some(
            PreTokenizerWrapper::BertPreTokenizer(_)
                | PreTokenizerWrapper::Whitespace(_)
                | PreTokenizerWrapper::WhitespaceSplit(_)
        )
    );
    let model = match tokenizer.get_model() {
        ModelWrapper::WordPiece(_) | ModelWrapper::WordLevel(_) => true,
        ModelWrapper::BPE(model) => model.dropout.is_none(),
        ModelWrapper::Unigram(_) => false,
    };
    let without_space = |text: &str| !text.contains(char::is_whitespace);
    let added_tokens = added_tokens(tokenizer).is_ok_and(|tokens| {
        tokens.iter().all(|(token, form)| without_space(&token.content) && without_space(form))
    });
    normalizer && pre_tokenizer && model && added_tokens && !tokenizer.get_encode_special_tokens()
}

/// The pieces of a text: what lies between spaces, tabs, carriage returns and line feeds.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let separates = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let mut rest = text;
    // Looking at bytes is faster than at characters, and separators are bytes of their own.
    std::iter::from_fn(move || {
        let begin = rest.bytes().position(|byte| !separates(&byte))?;
        let length = rest.as_bytes()[begin..].iter().position(separates);
        let end = length.map_or(rest.len(), |length| begin + length);
        let piece = &rest[begin..end];
        rest = &rest[end..];
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_lie_between_separators_only() {
        let text = "  a\tb\r\nc\u{a0}d\u{b}e \u{3000} ";
        assert_eq!(pieces(text).collect::<Vec<_>>(), ["a", "b", "c\u{a0}d\u{b}e", "\u{3000}"]);
        assert_eq!(pieces("").count(), 0);
        assert_eq!(pieces(" \n").count(), 0);
    }

    #[test]
    fn all_white_space_is_a_starter_that_stays_white_space() {
        // Step 2 of the proof, checked for every white space character there is.
        use tokenizers::NormalizedString;
        for c in (0..=0x10ffff).filter_map(char::from_u32).filter(|c| c.is_whitespace()) {
            let text = format!("\u{315}{c}\u{300}");
            let mut normalized = NormalizedString::from(text.as_str());
            normalized.nfd();
            let middle: String = normalized.get().chars().skip(1).take(1).collect();
            assert!(normalized.get().starts_with('\u{315}'), "{c:?}");
            assert!(normalized.get().ends_with('\u{300}'), "{c:?}");
            assert!(middle.contains(char::is_whitespace), "{c:?}");
        }
    }
}
