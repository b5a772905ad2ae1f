//! From one text to its token ids.

use std::fmt;
use std::io::Write;
use std::path::Path;

use serde_json::Value;
use tokenizers::{Model, OffsetReferential, OffsetType, PreTokenizer, TruncationDirection};

use super::ascii_words::{AsciiWords, words};
use super::definition::{self, guarded, unusable};
use super::load::read_definition;
use super::special_tokens::SpecialTokens;
use super::word_cache::{Loan, WordCachePool};
use super::word_local::{is_word_local, pieces};
use crate::atomic_file::FileAside;
use crate::error::Place;
use crate::{Error, Result};

/// Cuts a text into tokens and gives each its id.
///
/// It works as the Hugging Face `tokenizers` crate does, with which it shares its file format and
/// which it calls for every word it has not seen before. What it adds is a cache of words.
///
/// A row of ids is `special tokens, tokens of the text, special tokens`, such as `[CLS] … [SEP]`.
/// A text too long for a row loses its end. Rows are not padded.
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    special_tokens: SpecialTokens,
    vocabulary_size: usize,
    /// Whether words can be tokenised, and cached, one at a time.
    word_local: bool,
    ascii_words: Option<AsciiWords>,
    caches: WordCachePool,
    json: String,
    /// Where it came from, for errors.
    place: Place,
}

impl Tokenizer {
    /// Loads a Hugging Face `tokenizer.json`, or a `vocab.txt` of BERT, or the one that lies in a
    /// folder (a `tokenizer.json` is preferred).
    ///
    /// A `vocab.txt` stands for BERT's tokenizer, which lowercases unless a `tokenizer_config.json`
    /// beside it says `"do_lower_case": false`. What a `tokenizer.json` says about truncation,
    /// padding and dropout is ignored.
    pub fn load(path: &Path) -> Result<Self> {
        let (definition, file) = read_definition(path)?;
        Self::from_definition(definition, Place::file(file))
    }

    /// The tokenizer that a parsed `tokenizer.json` defines.
    pub(super) fn from_definition(definition: Value, place: Place) -> Result<Self> {
        let inner = definition::build(definition, &place)?;
        let special_tokens = SpecialTokens::of(&inner, &place)?;
        let vocabulary_size =
            inner.get_vocab(true).into_values().max().map_or(0, |largest| largest as usize + 1);
        let of_special_tokens = special_tokens.before.iter().chain(&special_tokens.after);
        if let Some(id) = of_special_tokens.copied().find(|&id| id as usize >= vocabulary_size) {
            let error = unusable(place.field("post_processor"), format!("the id {id}"));
            return Err(error.expected(format!("ids below {vocabulary_size}")).into());
        }
        let json = guarded(|| inner.to_string(false)).map_err(|e| unusable(place.clone(), e))?;
        let word_local = is_word_local(&inner);
        Ok(Self {
            ascii_words: AsciiWords::of(&inner).filter(|_| word_local),
            caches: WordCachePool::default(),
            inner,
            special_tokens,
            vocabulary_size,
            word_local,
            json,
            place,
        })
    }

    /// One more than the largest id that [`Tokenizer::encode`] can give: the rows an embedding
    /// table needs.
    pub fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    /// How many special tokens every row has.
    pub fn n_special_tokens(&self) -> usize {
        self.special_tokens.len()
    }

    /// The token that stands in for a text of which no token is left: the one for unknown words or
    /// for padding or, where there is neither, the first.
    pub fn stand_in(&self) -> u32 {
        let json: Value = serde_json::from_str(&self.json).unwrap_or_default();
        let unknown = json["model"]["unk_token"].as_str();
        let id = |token: &str| self.inner.token_to_id(token);
        // A Unigram model names its unknown token by number.
        let by_number = json["model"]["unk_id"].as_u64().and_then(|id| u32::try_from(id).ok());
        unknown
            .and_then(id)
            .or(by_number)
            .or_else(|| ["[UNK]", "<unk>", "[PAD]", "<pad>"].into_iter().find_map(id))
            .filter(|&id| (id as usize) < self.vocabulary_size)
            .unwrap_or(0)
    }

    /// The names of the special tokens there are, by role: `("cls_token", "[CLS]")`.
    pub(crate) fn special_token_roles(&self) -> Vec<(&'static str, &'static str)> {
        const ROLES: [(&str, [&str; 2]); 5] = [
            ("pad_token", ["[PAD]", "<pad>"]),
            ("unk_token", ["[UNK]", "<unk>"]),
            ("cls_token", ["[CLS]", "<s>"]),
            ("sep_token", ["[SEP]", "</s>"]),
            ("mask_token", ["[MASK]", "<mask>"]),
        ];
        let known = |name: &&str| self.inner.token_to_id(name).is_some();
        let named =
            |(role, names): (_, [&'static str; 2])| Some((role, names.into_iter().find(known)?));
        ROLES.into_iter().filter_map(named).collect()
    }

    /// Whether capitals become small letters before anything else happens.
    pub(crate) fn lowercases(&self) -> bool {
        fn lowercases(normalizer: &Value) -> bool {
            normalizer["lowercase"] == true
                || normalizer["type"] == "Lowercase"
                || normalizer["normalizers"]
                    .as_array()
                    .is_some_and(|all| all.iter().any(lowercases))
        }
        serde_json::from_str(&self.json).is_ok_and(|json: Value| lowercases(&json["normalizer"]))
    }

    /// The tokenizer as the text of a `tokenizer.json`: the same text for the same tokenizer.
    pub fn to_json(&self) -> &str {
        &self.json
    }

    /// Writes a `tokenizer.json`, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut aside = FileAside::create(path)?;
        aside
            .file()
            .write_all(self.json.as_bytes())
            .map_err(|source| Error::io("write", path, source))?;
        aside.finish()
    }

    /// Appends the ids of `text` to `ids`: at most `max_tokens` of them, special tokens included.
    ///
    /// There must be room for the special tokens and one more. An error appends nothing.
    pub fn encode(&self, text: &str, max_tokens: usize, ids: &mut Vec<u32>) -> Result<()> {
        self.check_max_tokens(max_tokens)?;
        let begin = ids.len();
        let result = self.encode_with(&mut self.lend_cache(), text, max_tokens, ids);
        if result.is_err() {
            ids.truncate(begin);
        }
        result
    }

    /// Refuses a `max_tokens` that leaves no room for the text.
    pub(crate) fn check_max_tokens(&self, max_tokens: usize) -> Result<()> {
        let special = self.special_tokens.len();
        if max_tokens > special {
            return Ok(());
        }
        Err(Error::Option {
            option: "max_tokens",
            expected: format!("at least {} ({special} special tokens and one more)", special + 1),
            found: max_tokens.to_string(),
        })
    }

    /// A cache of words to encode many texts with, on one thread.
    pub(super) fn lend_cache(&self) -> Loan<'_> {
        self.caches.lend()
    }

    /// Does what [`Tokenizer::encode`] does, with a cache and a `max_tokens` that was checked; an
    /// error may leave some ids behind.
    pub(super) fn encode_with(
        &self,
        cache: &mut Loan<'_>,
        text: &str,
        max_tokens: usize,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        ids.extend_from_slice(&self.special_tokens.before);
        let room = max_tokens - self.special_tokens.len();
        let end = ids.len().saturating_add(room);
        if self.word_local {
            for piece in pieces(text) {
                if ids.len() >= end {
                    break;
                }
                if !cache.append(piece, ids) {
                    self.tokenize_piece(cache, piece, ids)?;
                }
            }
        } else {
            self.tokenize(text, room, ids)?;
        }
        ids.truncate(end);
        ids.extend_from_slice(&self.special_tokens.after);
        Ok(())
    }

    /// Appends the ids of a piece that is not in the cache, and stores them there.
    #[cold]
    fn tokenize_piece(&self, cache: &mut Loan<'_>, piece: &str, ids: &mut Vec<u32>) -> Result<()> {
        let begin = ids.len();
        match self.ascii_words.as_ref().and_then(|ascii| ascii.normalize(piece)) {
            None => self.tokenize(piece, usize::MAX, ids)?,
            Some(normalized) => {
                // A word alone would make a piece of the same ids, so words are cached as pieces.
                for word in words(&normalized) {
                    if !cache.append(word, ids) {
                        let begin = ids.len();
                        let tokens = guarded(|| self.inner.get_model().tokenize(word));
                        let tokens = tokens.map_err(|e| unusable(self.place.clone(), e))?;
                        ids.extend(tokens.iter().map(|token| token.id));
                        cache.store(word, &ids[begin..]);
                    }
                }
            }
        }
        cache.store(piece, &ids[begin..]);
        Ok(())
    }

    /// Runs the crate's pipeline: appends the first `enough` ids of `text`, or a few more.
    ///
    /// The steps are those of the crate's `encode_fast`, called one by one because its own
    /// truncation is a property of the tokenizer, not of the call.
    fn tokenize(&self, text: &str, enough: usize, ids: &mut Vec<u32>) -> Result<()> {
        let split = guarded(|| {
            let added_tokens = self.inner.get_added_vocabulary();
            let mut split = added_tokens.extract_and_normalize(self.inner.get_normalizer(), text);
            if let Some(pre_tokenizer) = self.inner.get_pre_tokenizer() {
                pre_tokenizer.pre_tokenize(&mut split)?;
            }
            let limit = Some((enough, TruncationDirection::Right));
            self.inner.get_model().tokenize_in_pretokenized(&mut split, limit)?;
            Ok(split)
        });
        let split = split.map_err(|found| unusable(self.place.clone(), found))?;
        for (_, _, tokens) in split.get_splits(OffsetReferential::Original, OffsetType::None) {
            ids.extend(tokens.iter().flatten().map(|token| token.id));
        }
        Ok(())
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer")
            .field("place", &self.place)
            .field("vocabulary_size", &self.vocabulary_size)
            .field("special_tokens", &self.special_tokens)
            .field("word_local", &self.word_local)
            .finish_non_exhaustive()
    }
}
