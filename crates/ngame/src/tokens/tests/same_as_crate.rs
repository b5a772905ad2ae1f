//! The same ids as the `tokenizers` crate alone, for any text and many pipelines.

use std::str::FromStr;

use proptest::prelude::*;
use serde_json::{Value, json};
use tokenizers::TruncationParams;

use super::{encode, tokenizer};
use crate::error::Place;
use crate::progress::Silent;
use crate::tokens::word_local::is_word_local;
use crate::tokens::{Tokenizer, VocabularyKind, VocabularyOptions, train_vocabulary};

/// Bits of text that have something to do with each step of a pipeline.
const BITS: &[&str] = &[
    " ",
    " ",
    " ",
    "  ",
    "\t",
    "\r\n",
    "\n",
    "\u{a0}",
    "\u{2009}",
    "\u{3000}",
    "\u{2028}",
    "\u{85}",
    "\u{b}",
    "\u{c}",
    "\u{1f}",
    "\u{0}",
    "\u{7f}",
    "\u{ad}",
    "\u{200b}",
    "\u{feff}",
    "\u{fffd}",
    "\u{301}",
    "\u{300}",
    "\u{323}",
    "\u{315}",
    "\u{93e}",
    "\u{94d}",
    "é",
    "É",
    "e\u{301}",
    "ñ",
    "Å",
    "\u{212b}",
    "ß",
    "İ",
    "Σ",
    "ς",
    "ǅ",
    "ﬁ",
    "日",
    "文字",
    "豈",
    "𠀀",
    "한",
    "\u{1112}\u{1161}",
    "カ",
    "ж",
    "ש",
    "ع",
    "ก",
    "😀",
    "👩\u{200d}👧",
    "€",
    "→",
    "“",
    "—",
    "。",
    "[SEP]",
    "[CLS]",
    "[MASK]",
    "[SEP",
    "SEP]",
    "[",
    "]",
    "[sep]",
    "<left>",
    "<right>",
    "<word>",
    "<Both>",
    "<both>",
    "LeTTers",
    "letters",
    "ters",
    "Étoile",
    "etoile",
    "a",
    "B",
    "the",
    "The",
    "package",
    "ing",
    "s",
    "9",
    "42",
    ".",
    ",",
    "-",
    "'",
    "_",
    "#",
    "##",
    "##s",
    "$",
    "+",
    "^",
    "`",
    "\u{10ffff}",
    "\u{e000}",
    "\u{378}",
];

fn text() -> impl Strategy<Value = String> {
    let bit = prop_oneof![
        12 => prop::sample::select(BITS).prop_map(str::to_owned),
        2 => any::<char>().prop_map(String::from),
        2 => "[ -~]{1,8}",
        1 => "[a-z]{20,140}",
    ];
    prop::collection::vec(bit, 0..24).prop_map(|bits| bits.concat())
}

/// The fixture's WordPiece tokenizer with other parts and added tokens of all kinds.
fn variant(normalizer: Value, pre_tokenizer: &str, added: &[Value]) -> Tokenizer {
    let mut definition: Value = serde_json::from_str(tokenizer("lowercase").to_json()).unwrap();
    definition["normalizer"] = normalizer;
    definition["pre_tokenizer"] = json!({"type": pre_tokenizer});
    definition["added_tokens"].as_array_mut().unwrap().extend_from_slice(added);
    Tokenizer::from_definition(definition, Place::file("variant")).unwrap()
}

fn added(content: &str, flags: &[&str]) -> Value {
    let mut token = json!({
        "id": 0, "content": content, "special": false, "single_word": false, "lstrip": false,
        "rstrip": false, "normalized": false
    });
    flags.iter().for_each(|&flag| token[flag] = true.into());
    token
}

fn bert_normalizer(clean: bool, chinese: bool, strip: Option<bool>, lowercase: bool) -> Value {
    json!({
        "type": "BertNormalizer", "clean_text": clean, "handle_chinese_chars": chinese,
        "strip_accents": strip, "lowercase": lowercase
    })
}

/// Checks that a tokenizer does what the crate does with its definition.
fn check(tokenizer: &Tokenizer, word_local: bool) {
    let mut plain = tokenizers::Tokenizer::from_str(tokenizer.to_json()).unwrap();
    assert_eq!(is_word_local(&plain), word_local);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(192));
    let least = tokenizer.n_special_tokens() + 1;
    let max_tokens = prop_oneof![Just(1000usize), least..40];
    let result = runner.run(&(text(), max_tokens), |(text, max_tokens)| {
        let mut plain = plain.clone();
        let truncation = TruncationParams { max_length: max_tokens, ..Default::default() };
        plain.with_truncation(Some(truncation)).unwrap();
        let expected = plain.encode_fast(text.as_str(), true).unwrap();
        // Twice, as the second time the words come from the cache.
        prop_assert_eq!(&encode(tokenizer, &text, max_tokens), expected.get_ids());
        prop_assert_eq!(&encode(tokenizer, &text, max_tokens), expected.get_ids());
        Ok(())
    });
    plain.with_padding(None);
    result.unwrap_or_else(|error| panic!("{tokenizer:?}: {error}"));
}

#[test]
fn fixtures_encode_as_in_the_crate() {
    for (name, word_local) in [
        ("lowercase", true),
        ("cased", true),
        ("word-level", true),
        ("byte-level", false),
        ("unigram", false),
    ] {
        check(&tokenizer(name), word_local);
    }
}

#[test]
fn all_flags_of_berts_normaliser_encode_as_in_the_crate() {
    for bits in 0..8 {
        let [clean, chinese, lowercase] = [1, 2, 4].map(|bit| bits & bit > 0);
        let strip = [None, Some(true), Some(false)][bits % 3];
        let normalizer = bert_normalizer(clean, chinese, strip, lowercase);
        check(&variant(normalizer, "BertPreTokenizer", &[]), true);
    }
}

#[test]
fn other_parts_encode_as_in_the_crate() {
    for normalizer in
        [Value::Null, json!({"type": "Lowercase"}), bert_normalizer(true, true, None, true)]
    {
        for pre_tokenizer in ["Whitespace", "WhitespaceSplit", "BertPreTokenizer"] {
            check(&variant(normalizer.clone(), pre_tokenizer, &[]), true);
        }
    }
    check(&variant(json!({"type": "NFC"}), "BertPreTokenizer", &[]), false);
    check(&variant(json!({"type": "Lowercase"}), "UnicodeScripts", &[]), false);
}

#[test]
fn added_tokens_of_all_kinds_encode_as_in_the_crate() {
    let tokens = [
        added("<left>", &["lstrip"]),
        added("<right>", &["rstrip", "special"]),
        added("<word>", &["single_word"]),
        added("<Both>", &["lstrip", "rstrip", "normalized"]),
        added("LeTTers", &["normalized", "single_word"]),
        added("Étoile", &["normalized", "rstrip"]),
        added("ß", &[]),
        added("the", &["single_word", "lstrip"]),
    ];
    for normalizer in
        [Value::Null, bert_normalizer(true, true, None, true), json!({"type": "Lowercase"})]
    {
        for pre_tokenizer in ["Whitespace", "WhitespaceSplit", "BertPreTokenizer"] {
            check(&variant(normalizer.clone(), pre_tokenizer, &tokens), true);
        }
    }
    // Tokens with white space, as they are or once normalised, tie pieces together.
    let normalizer = || bert_normalizer(true, true, None, true);
    for content in ["the package", "a\u{a0}B"] {
        check(&variant(normalizer(), "BertPreTokenizer", &[added(content, &[])]), false);
    }
    let chinese = added("文字", &["normalized"]);
    check(&variant(normalizer(), "BertPreTokenizer", &[chinese]), false);
}

#[test]
fn trained_vocabularies_encode_as_in_the_crate() {
    let texts = super::sample_texts();
    for kind in [VocabularyKind::WordPiece, VocabularyKind::Bpe] {
        for lowercase in [true, false] {
            let options = VocabularyOptions { kind, lowercase, size: 800, ..Default::default() };
            check(&train_vocabulary(&[&texts], &options, &Silent).unwrap(), true);
        }
    }
}
