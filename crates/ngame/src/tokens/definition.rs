//! The definition of a tokenizer, checked before the `tokenizers` crate gets to see it.
//!
//! The crate trusts a `tokenizer.json`: some malformed ones make it panic, others make its results
//! depend on the order of a hash table. [`build`] refuses those first.

use std::collections::{BTreeMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Value, json};
use tokenizers::normalizers::Precompiled;
use tokenizers::{AddedToken, NormalizedString, Normalizer};

use crate::Result;
use crate::error::{InputError, InputErrorKind, Place};

/// The most ids a vocabulary may have. Real ones have at most about a million; the bound keeps a
/// file with one absurd id from claiming gigabytes.
pub(super) const MOST_IDS: u64 = 1 << 24;

/// The special tokens of BERT, in the order they get ids in a vocabulary of our own.
pub(super) const SPECIAL_TOKENS: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

/// Longer words become `[UNK]`, as in BERT.
pub(super) const LONGEST_WORD: usize = 100;

/// How BERT's normaliser treats letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Letters {
    /// Whether capitals become small letters.
    pub(super) lowercase: bool,
    /// Whether accents are dropped; `None` does as `lowercase` does.
    pub(super) strip_accents: Option<bool>,
    /// Whether every Chinese character is a word of its own.
    pub(super) split_chinese: bool,
}

/// The definition of a tokenizer around `model` that works as BERT's do: `[CLS] text [SEP]`.
///
/// `id` gives the id of a special token, if the model has it; `[CLS]` and `[SEP]` it must have.
pub(super) fn bert_like(model: Value, letters: Letters, id: impl Fn(&str) -> Option<u32>) -> Value {
    let added_tokens: Vec<Value> = SPECIAL_TOKENS
        .iter()
        .filter_map(|&content| {
            id(content).map(|id| {
                json!({
                    "id": id, "content": content, "single_word": false, "lstrip": false,
                    "rstrip": false, "normalized": false, "special": true
                })
            })
        })
        .collect();
    let special = |content: &str| json!({"SpecialToken": {"id": content, "type_id": 0}});
    let second = json!({"SpecialToken": {"id": "[SEP]", "type_id": 1}});
    let text = |id: &str, kind: u32| json!({"Sequence": {"id": id, "type_id": kind}});
    let token = |content: &str| json!({"id": content, "ids": [id(content)], "tokens": [content]});
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added_tokens,
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": true,
            "handle_chinese_chars": letters.split_chinese,
            "strip_accents": letters.strip_accents,
            "lowercase": letters.lowercase
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [special("[CLS]"), text("A", 0), special("[SEP]")],
            "pair": [special("[CLS]"), text("A", 0), special("[SEP]"), text("B", 1), second],
            "special_tokens": {"[CLS]": token("[CLS]"), "[SEP]": token("[SEP]")}
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": model
    })
}

/// A WordPiece model; the index of a token is its id.
pub(super) fn word_piece<S: AsRef<str>>(tokens: &[S]) -> Value {
    json!({
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": LONGEST_WORD,
        "vocab": vocabulary(tokens)
    })
}

/// The vocabulary of a model, as JSON; the index of a token is its id.
pub(super) fn vocabulary<S: AsRef<str>>(tokens: &[S]) -> Value {
    tokens.iter().enumerate().map(|(id, token)| (token.as_ref().to_owned(), json!(id))).collect()
}

/// Builds the tokenizer that `definition` describes, without its truncation, padding and dropout:
/// how long a row may be is the caller's choice, and the same text always gives the same tokens.
pub(super) fn build(mut definition: Value, place: &Place) -> Result<tokenizers::Tokenizer> {
    if !definition["model"].is_object() {
        return Err(unusable(place.clone().field("model"), "there is no model").into());
    }
    for field in ["truncation", "padding"] {
        definition[field] = Value::Null;
    }
    definition["model"]["dropout"] = Value::Null;
    check_ids(&definition["model"]["vocab"], place)?;
    check_merges(&definition["model"], place)?;
    check_unknown_token(&definition["model"], place)?;
    check_character_maps(&definition["normalizer"], place)?;
    let tokenizer = guarded(|| Ok(serde_json::from_value::<tokenizers::Tokenizer>(definition)?))
        .map_err(|found| unusable(place.clone(), found))?;
    check_added_tokens(&tokenizer, place)?;
    Ok(tokenizer)
}

/// Calls the `tokenizers` crate, which panics on some definitions: a panic there is an error here.
pub(super) fn guarded<T>(work: impl FnOnce() -> tokenizers::Result<T>) -> Result<T, String> {
    // Nothing that the closure could have left half-changed is used after a panic but the crate's
    // own caches, which it fills in one step.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => Err(match panic.downcast_ref::<String>() {
            Some(message) => message.clone(),
            None => panic.downcast_ref::<&str>().unwrap_or(&"it cannot be used").to_string(),
        }),
    }
}

/// A tokenizer that is understood but cannot be used.
pub(super) fn unusable(place: Place, found: impl Into<String>) -> InputError {
    InputError::new(InputErrorKind::UnknownFormat, place)
        .expected("a Hugging Face tokenizer.json of version 1.0")
        .found(found)
        .help("take the tokenizer.json that came with the model, or save it again with tokenizers")
}

/// Refuses absurd ids and two tokens of one id, of which the crate would keep a random one.
fn check_ids(vocabulary: &Value, place: &Place) -> Result<()> {
    let place = || place.clone().field("model.vocab");
    // A list, as Unigram has it, numbers its tokens itself; anything else is the crate's to refuse.
    let Some(vocabulary) = vocabulary.as_object() else { return Ok(()) };
    let mut token_of_id = BTreeMap::new();
    for (token, id) in vocabulary {
        let Some(id) = id.as_u64().filter(|&id| id < MOST_IDS) else {
            let error = unusable(place(), format!("id {id} of the token `{token}`"));
            return Err(error.expected(format!("ids from 0 to {}", MOST_IDS - 1)).into());
        };
        if let Some(other) = token_of_id.insert(id, token) {
            let found = format!("the tokens `{other}` and `{token}`, both of id {id}");
            return Err(unusable(place(), found)
                .expected("an id of its own for each token")
                .into());
        }
    }
    Ok(())
}

/// Refuses merges of tokens that are not there, for which the crate would panic or, worse, cut a
/// character in two.
fn check_merges(model: &Value, place: &Place) -> Result<()> {
    let (Some(merges), Some(vocabulary)) = (model["merges"].as_array(), model["vocab"].as_object())
    else {
        return Ok(());
    };
    let prefix = model["continuing_subword_prefix"].as_str().unwrap_or_default();
    for merge in merges {
        let (left, right) = match merge {
            // Old files have a pair in one string, and may begin as a merges.txt does.
            Value::String(line) if line.starts_with("#version") => continue,
            Value::String(line) => match line.split_once(' ') {
                Some(pair) => pair,
                None => continue,
            },
            pair => match (pair[0].as_str(), pair[1].as_str()) {
                (Some(left), Some(right)) => (left, right),
                _ => continue,
            },
        };
        let known = |token: &str| vocabulary.contains_key(token);
        let rest = right.strip_prefix(prefix);
        if !rest.is_some_and(|rest| known(left) && known(right) && known(&format!("{left}{rest}")))
        {
            let error = unusable(place.clone().field("model.merges"), format!("`{left} {right}`"));
            return Err(error.expected("merges of tokens in the vocabulary").into());
        }
    }
    Ok(())
}

/// Refuses a model that would fail at the first unknown word.
fn check_unknown_token(model: &Value, place: &Place) -> Result<()> {
    let word_model = model["merges"].is_null() && model["vocab"].is_object();
    let Some(unknown) = model["unk_token"].as_str().filter(|_| word_model) else { return Ok(()) };
    if model["vocab"].get(unknown).is_none() {
        let place = place.clone().field("model.vocab");
        return Err(InputError::new(InputErrorKind::MissingField, place)
            .expected(format!("the token for unknown words, `{unknown}`"))
            .found(format!("a vocabulary without `{unknown}`"))
            .help("add it to the vocabulary, or name the token that is there in `unk_token`")
            .into());
    }
    Ok(())
}

/// Refuses damaged character maps of SentencePiece, for which the crate would panic.
fn check_character_maps(normalizer: &Value, place: &Place) -> Result<()> {
    for part in normalizer["normalizers"].as_array().into_iter().flatten() {
        check_character_maps(part, place)?;
    }
    if normalizer["type"] == "Precompiled"
        && let Err(error) = serde_json::from_str::<Precompiled>(&normalizer.to_string())
    {
        let place = place.clone().field("normalizer.precompiled_charsmap");
        return Err(unusable(place, error.to_string()).into());
    }
    Ok(())
}

/// Refuses added tokens that vanish when normalised, or two that become the same: the crate would
/// choose between them by the order of a hash table.
fn check_added_tokens(tokenizer: &tokenizers::Tokenizer, place: &Place) -> Result<()> {
    let place = || place.clone().field("added_tokens");
    let mut forms = HashSet::new();
    let tokens = added_tokens(tokenizer).map_err(|found| unusable(place(), found))?;
    for (token, form) in tokens {
        let problem = if form.is_empty() {
            "of which normalisation leaves nothing"
        } else if !forms.insert((token.normalized, form)) {
            "which looks like another once normalised"
        } else {
            continue;
        };
        return Err(unusable(place(), format!("`{}`, {problem}", token.content))
            .expected("added tokens that can be told apart")
            .into());
    }
    Ok(())
}

/// The added tokens in the order of their ids, each with what it looks like where it is searched
/// for: in the text or, if it is a normalised token, in the normalised text.
pub(super) fn added_tokens(
    tokenizer: &tokenizers::Tokenizer,
) -> Result<Vec<(AddedToken, String)>, String> {
    let tokens: BTreeMap<u32, AddedToken> =
        tokenizer.get_added_tokens_decoder().into_iter().collect();
    let with_form = |token: AddedToken| match tokenizer.get_normalizer() {
        Some(normalizer) if token.normalized => guarded(|| {
            let mut form = NormalizedString::from(token.content.as_str());
            normalizer.normalize(&mut form)?;
            Ok((token, form.get().to_owned()))
        }),
        _ => Ok((token.clone(), token.content)),
    };
    tokens.into_values().map(with_form).collect()
}
