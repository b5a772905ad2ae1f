//! Tests of the module as a whole, and what they share.

mod caching;
mod golden;
mod hostile;
mod merging;
mod same_as_crate;
mod training;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value;

use super::Tokenizer;
use crate::data::Texts;

/// A file of the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// A text file of the repository that is compressed.
fn decompressed(path: &str) -> String {
    let mut text = String::new();
    let file = fs::File::open(repository(path)).unwrap();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

/// The tokenizers of `fixtures/tokens`, by the name they have in `make.py`.
fn tokenizer(name: &str) -> Tokenizer {
    let vocabulary = repository("fixtures/tokens/vocab.txt");
    match name {
        "lowercase" => Tokenizer::load(&vocabulary),
        "cased" => {
            let folder = tempfile::tempdir().unwrap();
            fs::copy(vocabulary, folder.path().join("vocab.txt")).unwrap();
            let config = r#"{"do_lower_case": false}"#;
            fs::write(folder.path().join("tokenizer_config.json"), config).unwrap();
            Tokenizer::load(folder.path())
        }
        _ => Tokenizer::load(&repository(&format!("fixtures/tokens/{name}.json"))),
    }
    .unwrap()
}

/// The texts of the bundled sample: titles and contents.
fn sample_texts() -> Texts {
    decompressed("samples/debian-small/trn.json.gz")
        .lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            format!("{} {}", row["title"].as_str().unwrap(), row["content"].as_str().unwrap())
        })
        .collect()
}

/// The ids of a text.
fn encode(tokenizer: &Tokenizer, text: &str, max_tokens: usize) -> Vec<u32> {
    let mut ids = Vec::new();
    tokenizer.encode(text, max_tokens, &mut ids).unwrap();
    ids
}
