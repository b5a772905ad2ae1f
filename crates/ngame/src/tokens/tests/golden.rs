//! The same ids as the Python package `tokenizers` (see `fixtures/tokens/make.py`).

use serde::Deserialize;

use super::{decompressed, encode, tokenizer};
use crate::Error;
use crate::data::Texts;
use crate::progress::Silent;
use crate::tokens::{Tokenizer, tokenize};

#[derive(Deserialize)]
struct Golden {
    texts: Vec<String>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    tokenizer: String,
    max_tokens: usize,
    ids: Vec<Vec<u32>>,
}

#[test]
fn ids_are_those_of_python() {
    let golden = decompressed("fixtures/tokens/golden.json.gz");
    let golden: Golden = serde_json::from_str(&golden).unwrap();
    assert!(golden.texts.len() > 200 && golden.cases.len() == 10);
    let texts: Texts = golden.texts.iter().collect();
    for Case { tokenizer: name, max_tokens, ids } in golden.cases {
        let tokenizer = tokenizer(&name);
        let store = tokenize(&texts, &tokenizer, max_tokens, &Silent).unwrap();
        assert_eq!(store.n_texts(), ids.len());
        for (index, expected) in ids.iter().enumerate() {
            let text = &golden.texts[index];
            let about = format!("{name}, {max_tokens}, {text:?}");
            assert_eq!(encode(&tokenizer, text, max_tokens), *expected, "{about}");
            assert_eq!(store.get(index).to_vec(), *expected, "{about}");
        }
    }
}

#[test]
fn sizes_count_what_an_embedding_needs() {
    assert_eq!(tokenizer("lowercase").vocabulary_size(), 1182);
    assert_eq!(tokenizer("lowercase").n_special_tokens(), 2);
    // Added tokens that the model does not know come after its own.
    let word_level = tokenizer("word-level");
    let sep = encode(&word_level, "<sep>", 1);
    assert_eq!((word_level.vocabulary_size(), sep), (306, vec![301]));
    assert_eq!(word_level.n_special_tokens(), 0);
}

#[test]
fn rows_may_be_as_long_as_one_likes() {
    let (tokenizer, mut ids) = (tokenizer("lowercase"), vec![7]);
    tokenizer.encode("debian", usize::MAX, &mut ids).unwrap();
    assert_eq!(ids.len(), 4);
}

#[test]
fn too_few_tokens_are_refused() {
    let tokenizer = tokenizer("lowercase");
    let mut ids = vec![];
    tokenizer.encode("debian package", 3, &mut ids).unwrap();
    assert_eq!(ids.len(), 3);
    for max_tokens in 0..3 {
        let error = tokenizer.encode("debian", max_tokens, &mut ids).unwrap_err();
        assert!(matches!(error, Error::Option { option: "max_tokens", .. }), "{error}");
        let texts: Texts = ["debian"].into_iter().collect();
        assert!(tokenize(&texts, &tokenizer, max_tokens, &Silent).is_err());
    }
    assert_eq!(ids.len(), 3, "nothing is appended along with an error");
}

#[test]
fn a_saved_tokenizer_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    for name in ["lowercase", "cased", "byte-level", "word-level", "unigram"] {
        let tokenizer = tokenizer(name);
        tokenizer.save(&path).unwrap();
        let again = Tokenizer::load(folder.path()).unwrap();
        assert_eq!(again.to_json(), tokenizer.to_json(), "{name}");
        let text = "The Debian packages, [SEP] and <mask>s";
        assert_eq!(encode(&again, text, 9), encode(&tokenizer, text, 9), "{name}");
    }
}
