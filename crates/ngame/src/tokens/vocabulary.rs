//! Training a tokenizer on the texts at hand.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokenizers::normalizers::BertNormalizer;

use super::definition::{self, Letters, SPECIAL_TOKENS};
use super::merges::{CONTINUATION, LearnedTokens, Limits, learn_tokens};
use super::tokenizer::Tokenizer;
use super::word_counts::{choose_alphabet, count_words};
use crate::data::Texts;
use crate::error::{InputError, InputErrorKind, Place};
use crate::progress::Observer;
use crate::{Error, Result};

/// The smallest vocabulary that makes sense: the special tokens and a few characters.
const SMALLEST: usize = 32;

/// The largest vocabulary that can be asked for.
const LARGEST: usize = 1_000_000;

/// How a word is cut into tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VocabularyKind {
    /// The longest token that fits, again and again, as BERT does. A word with a character that is
    /// not in the vocabulary becomes `[UNK]` as a whole.
    #[default]
    WordPiece,
    /// By merging characters in the order in which the pairs were learned. Only the unknown
    /// character becomes `[UNK]`, not the word.
    Bpe,
}

/// What vocabulary to train.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VocabularyOptions {
    /// How a word is cut into tokens.
    pub kind: VocabularyKind,
    /// The number of tokens wanted, special tokens included. Few texts may give fewer. Up to half
    /// of them go to single characters, the most frequent ones.
    pub size: usize,
    /// Pairs of tokens that occur less often are not made one token.
    pub min_frequency: u64,
    /// Whether capitals become small letters; accents are dropped with them.
    pub lowercase: bool,
    /// If there are more texts, a random sample of this many is looked at.
    pub max_texts: usize,
    /// Chooses the sample.
    pub seed: u64,
}

impl Default for VocabularyOptions {
    fn default() -> Self {
        Self {
            kind: VocabularyKind::WordPiece,
            size: 30_000,
            min_frequency: 2,
            lowercase: true,
            max_texts: 1_000_000,
            seed: 0,
        }
    }
}

/// Trains a tokenizer on all sets of texts together.
///
/// It works as BERT's do, on any script: words are cut at spaces and punctuation, and a row is
/// `[CLS] text [SEP]`. The ids of `[PAD]`, `[UNK]`, `[CLS]`, `[SEP]` and `[MASK]` are 0 to 4. The
/// same texts, options and seed give the same tokenizer, on any number of threads.
pub fn train_vocabulary(
    texts: &[&Texts],
    options: &VocabularyOptions,
    observer: &dyn Observer,
) -> Result<Tokenizer> {
    check(options)?;
    let letters =
        Letters { lowercase: options.lowercase, strip_accents: None, split_chinese: true };
    let normalizer = BertNormalizer::new(true, true, None, options.lowercase);
    let sample = sample(texts, options.max_texts, options.seed);
    let words = count_words(&sample, normalizer, observer)?;
    if words.is_empty() {
        return Err(InputError::new(InputErrorKind::NoText, Place::file("the training texts"))
            .expected("texts with words, to learn a vocabulary from")
            .found(format!("{} texts without a word", sample.len()))
            .help("check that the right field is read as text")
            .into());
    }
    let alphabet = choose_alphabet(words, options.size / 2);
    let known = SPECIAL_TOKENS.map(str::to_owned).into_iter().chain(alphabet.tokens).collect();
    let limits = Limits { size: options.size, min_frequency: options.min_frequency };
    let learned = learn_tokens(known, &alphabet.words, limits, observer)?;
    let model = match options.kind {
        VocabularyKind::WordPiece => definition::word_piece(&learned.tokens),
        VocabularyKind::Bpe => byte_pair_encoding(&learned),
    };
    let definition = definition::bert_like(model, letters, |token| {
        SPECIAL_TOKENS.iter().position(|&special| special == token).map(|id| id as u32)
    });
    Tokenizer::from_definition(definition, Place::file("the trained vocabulary"))
}

/// Refuses options that make no sense.
fn check(options: &VocabularyOptions) -> Result<()> {
    if !(SMALLEST..=LARGEST).contains(&options.size) {
        return Err(Error::Option {
            option: "vocabulary size",
            expected: format!("a number from {SMALLEST} to {LARGEST}"),
            found: options.size.to_string(),
        });
    }
    if options.max_texts == 0 {
        return Err(Error::Option {
            option: "max_texts",
            expected: "at least 1".to_owned(),
            found: "0".to_owned(),
        });
    }
    Ok(())
}

/// All texts or, if there are more than `max_texts`, so many of them, chosen without replacement;
/// in order.
fn sample<'a>(texts: &[&'a Texts], max_texts: usize, seed: u64) -> Vec<&'a str> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut n_left: usize = texts.iter().map(|texts| texts.len()).sum();
    let mut n_wanted = max_texts.min(n_left);
    let mut chosen = Vec::with_capacity(n_wanted);
    for text in texts.iter().flat_map(|texts| texts.iter()) {
        // Each text is taken with the chance that makes all samples equally likely (selection
        // sampling, Knuth's algorithm S).
        if n_wanted == n_left || random.random_range(0..n_left as u64) < n_wanted as u64 {
            chosen.push(text);
            n_wanted -= 1;
        }
        n_left -= 1;
    }
    chosen
}

/// A model that replays the merges.
fn byte_pair_encoding(learned: &LearnedTokens) -> Value {
    let token = |id: u32| &learned.tokens[id as usize];
    let merges: Vec<[&String; 2]> =
        learned.merges.iter().map(|&(left, right)| [token(left), token(right)]).collect();
    json!({
        "type": "BPE",
        "dropout": null,
        "unk_token": "[UNK]",
        "continuing_subword_prefix": CONTINUATION,
        "end_of_word_suffix": null,
        "fuse_unk": false,
        "byte_fallback": false,
        "ignore_merges": false,
        "vocab": definition::vocabulary(&learned.tokens),
        "merges": merges
    })
}
