//! Files that are damaged or made to harm: an error, never a panic, never gigabytes.

use std::fs;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{repository, tokenizer};
use crate::error::{InputErrorKind, Place};
use crate::tokens::Tokenizer;

fn definition() -> Value {
    json!({
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
        "padding": {
            "strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
            "pad_type_id": 0, "pad_token": "[PAD]"
        },
        "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": null,
        "decoder": null,
        "model": {
            "type": "BPE", "dropout": 0.5, "unk_token": "u", "continuing_subword_prefix": "##",
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "ignore_merges": false, "vocab": {"u": 0, "a": 1, "##b": 2, "ab": 3, "é": 4},
            "merges": [["a", "##b"]]
        }
    })
}

fn load(definition: &Value) -> crate::Result<Tokenizer> {
    Tokenizer::from_definition(definition.clone(), Place::file("hostile.json"))
}

#[test]
fn truncation_padding_and_dropout_of_the_file_are_ignored() {
    let tokenizer = load(&definition()).unwrap();
    for _ in 0..20 {
        assert_eq!(super::encode(&tokenizer, "ab ab x ab", 100), [3, 3, 0, 3]);
    }
    assert!(tokenizer.to_json().contains(r#""truncation":null,"padding":null"#));
    assert!(tokenizer.to_json().contains(r#""dropout":null"#));
}

#[test]
fn bad_definitions_are_refused_with_a_reason() {
    let template = |single: Value| {
        let tokens = json!({"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]}});
        json!({"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": tokens})
    };
    let text = json!({"Sequence": {"id": "A", "type_id": 0}});
    let undefined = json!({"SpecialToken": {"id": "undefined", "type_id": 0}});
    let token = |content: &str| {
        json!({
            "id": 9, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": true, "special": false
        })
    };
    let lowercase = json!({"type": "Lowercase"});
    let bert = json!({
        "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
        "strip_accents": null, "lowercase": true
    });
    let bad_map = json!({"type": "Precompiled", "precompiled_charsmap": "AAAA"});
    let bad_pattern = json!({"type": "Replace", "pattern": {"Regex": "("}, "content": ""});
    let nested_map = json!({"type": "Sequence", "normalizers": [bad_map]});
    // What is changed, by JSON pointer, and what the error must mention.
    for (changes, mention) in [
        (json!({"/model": null}), "no model"),
        (json!({"/model": []}), "no model"),
        (json!({"/version": "2.0"}), "version"),
        (json!({"/model/type": "Magic"}), "hostile.json"),
        (json!({"/model/vocab": "a"}), "hostile.json"),
        (json!({"/model/vocab/a": u32::MAX}), "4294967295"),
        (json!({"/model/vocab/a": -1}), "-1"),
        (json!({"/model/vocab/a": 1.5}), "1.5"),
        (json!({"/model/vocab/a": 2}), "both of id 2"),
        (json!({"/model/merges": [["a", "b"]]}), "model.merges"),
        (json!({"/model/merges": [["a", "é"]]}), "model.merges"),
        (json!({"/model/merges": [["ab", "##b"]]}), "model.merges"),
        (json!({"/model/merges": ["a é"]}), "model.merges"),
        (json!({"/model/merges": [[1, 2]]}), "hostile.json"),
        (json!({"/model/merges": ["nospace"]}), "hostile.json"),
        (json!({"/post_processor": template(json!([undefined, text]))}), "post_processor"),
        (json!({"/post_processor": template(json!([text, text]))}), "post_processor"),
        (json!({"/post_processor": {"type": "Magic"}}), "hostile.json"),
        (json!({"/post_processor": {"sep": ["a", 99], "cls": ["a", 1]}}), "the id 99"),
        (json!({"/normalizer": bad_map}), "precompiled_charsmap"),
        (json!({"/normalizer": nested_map}), "precompiled_charsmap"),
        (json!({"/normalizer": bad_pattern}), "hostile.json"),
        (json!({"/normalizer": lowercase, "/added_tokens": [token("Xy"), token("xY")]}), "xY"),
        (json!({"/normalizer": bert, "/added_tokens": [token("\u{200b}")]}), "leaves nothing"),
    ] {
        let mut definition = definition();
        for (pointer, value) in changes.as_object().unwrap() {
            *definition.pointer_mut(pointer).unwrap() = value.clone();
        }
        let error = load(&definition).expect_err(&changes.to_string());
        assert!(error.input_kind().is_some(), "{changes}: {error}");
        assert!(error.to_string().contains(mention), "{changes}: {error}");
    }
}

#[test]
fn merges_may_be_written_the_old_way() {
    let mut definition = definition();
    definition["model"]["merges"] = json!(["#version: 0.2", "a ##b"]);
    assert_eq!(super::encode(&load(&definition).unwrap(), "ab", 9), [3]);
}

#[test]
fn a_model_must_know_its_own_unknown_token() {
    let mut definition = definition();
    definition["model"] = json!({"type": "WordLevel", "unk_token": "?", "vocab": {"a": 0}});
    let error = load(&definition).unwrap_err();
    assert_eq!(error.input_kind(), Some(InputErrorKind::MissingField));
    assert!(error.to_string().contains("`?`"), "{error}");
}

#[test]
fn a_pipeline_that_panics_while_encoding_is_an_error() {
    let mut definition = definition();
    definition["pre_tokenizer"] = json!({"type": "FixedLength", "length": 0});
    let mut ids = vec![7];
    let error = load(&definition).unwrap().encode("ab", 9, &mut ids).unwrap_err();
    assert_eq!(ids, [7]);
    assert!(error.to_string().contains("hostile.json"), "{error}");
}

/// Loads bytes as a file and, if that works, uses the tokenizer.
fn survive(name: &str, bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    if let Ok(tokenizer) = Tokenizer::load(&path) {
        let max_tokens = tokenizer.n_special_tokens() + 5;
        let _ = tokenizer.encode("The [SEP] é文\u{0} <mask>x", max_tokens, &mut Vec::new());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survive("tokenizer.json", &bytes);
        survive("vocab.txt", &bytes);
        survive("unnamed", &bytes);
    }

    #[test]
    fn damaged_files_are_survived(
        file in prop::sample::select(vec!["byte-level.json", "word-level.json", "unigram.json", "vocab.txt"]),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<Option<prop::sample::Index>>(),
    ) {
        let mut bytes = fs::read(repository("fixtures/tokens").join(file)).unwrap();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        survive(file, &bytes);
    }

    #[test]
    fn swapped_parts_are_survived(
        from in prop::sample::select(vec!["byte-level", "word-level", "unigram", "lowercase"]),
        to in prop::sample::select(vec!["byte-level", "word-level", "unigram", "lowercase"]),
        part in prop::sample::select(vec![
            "/normalizer", "/pre_tokenizer", "/post_processor", "/model", "/added_tokens",
            "/model/vocab", "/model/unk_token",
        ]),
    ) {
        let from: Value = serde_json::from_str(tokenizer(from).to_json()).unwrap();
        let mut to: Value = serde_json::from_str(tokenizer(to).to_json()).unwrap();
        if let (Some(value), Some(place)) = (from.pointer(part), to.pointer_mut(part)) {
            *place = value.clone();
        }
        survive("tokenizer.json", to.to_string().as_bytes());
    }
}
