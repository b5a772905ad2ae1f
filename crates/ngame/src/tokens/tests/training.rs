//! Training gives the same vocabulary every time, and a useful one.

use proptest::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{encode, sample_texts};
use crate::Error;
use crate::data::Texts;
use crate::error::InputErrorKind;
use crate::progress::{Event, Observer, Silent};
use crate::tokens::{Tokenizer, VocabularyKind, VocabularyOptions, train_vocabulary};

fn options(kind: VocabularyKind) -> VocabularyOptions {
    VocabularyOptions { kind, size: 2_000, max_texts: 700, seed: 5, ..Default::default() }
}

fn on_threads<T: Send>(n_threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap().install(work)
}

/// A digest of the tokens in the order of their ids, and of the merges.
fn digest(tokenizer: &Tokenizer) -> String {
    let definition: Value = serde_json::from_str(tokenizer.to_json()).unwrap();
    let vocabulary = definition["model"]["vocab"].as_object().unwrap();
    let mut tokens: Vec<(u64, &String)> =
        vocabulary.iter().map(|(token, id)| (id.as_u64().unwrap(), token)).collect();
    tokens.sort_unstable();
    let learned = json!([tokens, definition["model"]["merges"]]).to_string();
    Sha256::digest(learned).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_same_texts_and_seed_give_the_same_bytes_in_every_run() {
    let texts = sample_texts();
    assert!(texts.len() > 700, "the sample is drawn from {} texts", texts.len());
    // The digests were taken in another process, so they also reveal what changes between runs.
    for (kind, expected) in [
        (
            VocabularyKind::WordPiece,
            "a13ec1455d4e1d5d819c638ee9e1459d5af2308245e22d97e6fc79c42b6a2823",
        ),
        (VocabularyKind::Bpe, "558c437cdf46a2fb992063286515385be349b4b9f73d37625262fbf6fc422c91"),
    ] {
        let train = || train_vocabulary(&[&texts], &options(kind), &Silent).unwrap();
        let first = on_threads(1, train);
        for n_threads in [1, 2, 4] {
            let again = on_threads(n_threads, train);
            assert_eq!(again.to_json(), first.to_json(), "{kind:?} on {n_threads} threads");
        }
        assert_eq!(digest(&first), expected, "{kind:?}");
    }
}

#[test]
fn the_seed_chooses_the_sample() {
    let texts = sample_texts();
    let train = |seed, max_texts| {
        let options = VocabularyOptions { seed, max_texts, size: 300, ..Default::default() };
        train_vocabulary(&[&texts], &options, &Silent).unwrap()
    };
    assert_ne!(train(1, 100).to_json(), train(2, 100).to_json());
    assert_eq!(train(1, usize::MAX).to_json(), train(2, texts.len()).to_json());
}

#[test]
fn special_tokens_come_first_and_frame_the_text() {
    let texts = sample_texts();
    for kind in [VocabularyKind::WordPiece, VocabularyKind::Bpe] {
        let tokenizer = train_vocabulary(&[&texts], &options(kind), &Silent).unwrap();
        assert_eq!(tokenizer.vocabulary_size(), 2_000);
        assert_eq!(encode(&tokenizer, "[PAD] [UNK] [MASK]", 9), [2, 0, 1, 4, 3]);
        let ids = encode(&tokenizer, "The library is a library", 9);
        assert_eq!((ids[0], ids[2], ids.len()), (2, ids[5], 7), "frequent words are one token");
        assert_eq!(encode(&tokenizer, "THE", 9), encode(&tokenizer, "the", 9));
        assert!(!encode(&tokenizer, "unfathomably", 99).contains(&1), "words can be spelled");
    }
}

#[test]
fn a_lone_unknown_character_costs_a_word_or_only_itself() {
    let texts: Texts = ["abc abc abc"].into_iter().collect();
    let train = |kind| {
        let options = VocabularyOptions { kind, size: 32, ..Default::default() };
        train_vocabulary(&[&texts], &options, &Silent).unwrap()
    };
    assert_eq!(encode(&train(VocabularyKind::WordPiece), "abжc", 9), [2, 1, 3]);
    let ids = encode(&train(VocabularyKind::Bpe), "abжc", 9);
    assert_eq!((ids.len(), ids[2]), (5, 1));
}

#[test]
fn any_script_can_be_learned() {
    let lines =
        ["Привет, мир! мир", "日本語の本 日本", "नमस्ते नमस्ते", "שלום שלום", "안녕 안녕", "ಕನ್ನಡ ಕನ್ನಡ"];
    let texts: Texts = lines.into_iter().collect();
    for lowercase in [true, false] {
        let options = VocabularyOptions { lowercase, size: 500, ..Default::default() };
        let tokenizer = train_vocabulary(&[&texts], &options, &Silent).unwrap();
        for line in lines {
            assert!(!encode(&tokenizer, line, 99).contains(&1), "{line}");
        }
    }
}

#[test]
fn several_sets_of_texts_are_one_corpus() {
    let [first, second]: [Texts; 2] = [["aa ab"], ["ab ba"]].map(|set| set.into_iter().collect());
    let both: Texts = ["aa ab", "ab ba"].into_iter().collect();
    let train = |texts: &[&Texts]| {
        let options = VocabularyOptions { size: 40, ..Default::default() };
        train_vocabulary(texts, &options, &Silent).unwrap().to_json().to_owned()
    };
    assert_eq!(train(&[&first, &second]), train(&[&both]));
}

#[test]
fn nothing_to_learn_from_is_an_error_that_says_so() {
    let blank: Texts = ["", " \n", "\u{0}"].into_iter().collect();
    for texts in [&[][..], &[&Texts::new()], &[&blank]] {
        let error = train_vocabulary(texts, &VocabularyOptions::default(), &Silent).unwrap_err();
        assert_eq!(error.input_kind(), Some(InputErrorKind::NoText));
        assert!(error.to_string().contains("no text at all"), "{error}");
    }
}

#[test]
fn senseless_options_are_refused() {
    let texts = sample_texts();
    let default = VocabularyOptions::default;
    for options in [
        VocabularyOptions { size: 31, ..default() },
        VocabularyOptions { size: 1_000_001, ..default() },
        VocabularyOptions { max_texts: 0, ..default() },
    ] {
        let error = train_vocabulary(&[&texts], &options, &Silent).unwrap_err();
        assert!(matches!(error, Error::Option { .. }), "{error}");
    }
}

#[test]
fn training_can_be_stopped() {
    struct Impatient;
    impl Observer for Impatient {
        fn event(&self, _: Event<'_>) {}
        fn cancelled(&self) -> bool {
            true
        }
    }
    let texts = sample_texts();
    let stopped = train_vocabulary(&[&texts], &VocabularyOptions::default(), &Impatient);
    assert!(matches!(stopped, Err(Error::Cancelled)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_texts_train_or_are_refused(
        texts in prop::collection::vec("\\PC{0,40}", 0..20),
        size in 32usize..300,
        min_frequency in 0u64..4,
        bpe in any::<bool>(),
    ) {
        let kind = if bpe { VocabularyKind::Bpe } else { VocabularyKind::WordPiece };
        let options = VocabularyOptions { kind, size, min_frequency, ..Default::default() };
        let corpus: Texts = texts.iter().collect();
        match train_vocabulary(&[&corpus], &options, &Silent) {
            Err(error) => prop_assert_eq!(error.input_kind(), Some(InputErrorKind::NoText)),
            Ok(tokenizer) => {
                prop_assert!(tokenizer.vocabulary_size() <= size);
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("tokenizer.json");
                tokenizer.save(&path).unwrap();
                let again = Tokenizer::load(&path).unwrap();
                for text in &texts {
                    prop_assert_eq!(encode(&again, text, 50), encode(&tokenizer, text, 50));
                }
            }
        }
    }
}
