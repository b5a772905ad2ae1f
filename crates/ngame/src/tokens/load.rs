//! Tokenizers from files: a `tokenizer.json`, a `vocab.txt`, or a folder that holds one of them.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::definition::{self, Letters, MOST_IDS};
use crate::error::{InputError, InputErrorKind, Place};
use crate::{Error, Result};

/// The definition that a file or folder holds, and the file it came from.
pub(super) fn read_definition(path: &Path) -> Result<(Value, PathBuf)> {
    let file = if path.is_dir() { find_in(path)? } else { path.to_owned() };
    let bytes = read(&file)?;
    let definition = if is_json(&file, &bytes) {
        read_json(&file, &bytes)?
    } else {
        read_vocabulary(&file, bytes)?
    };
    Ok((definition, file))
}

/// The tokenizer's file in a folder.
fn find_in(folder: &Path) -> Result<PathBuf> {
    for name in ["tokenizer.json", "vocab.txt"] {
        let file = folder.join(name);
        if file.is_file() {
            return Ok(file);
        }
    }
    Err(InputError::new(InputErrorKind::MissingFile, Place::file(folder))
        .expected("tokenizer.json or vocab.txt in the folder")
        .found("neither")
        .help("copy the tokenizer.json that came with the model into the folder")
        .into())
}

/// A file's bytes.
fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => InputError::new(InputErrorKind::MissingFile, Place::file(file))
            .expected("a tokenizer.json, a vocab.txt, or a folder that holds one of them")
            .found("no such file or folder")
            .help("check the path")
            .into(),
        _ => Error::io("read", file, source),
    })
}

/// Whether a file is JSON, by its name or else by how it begins.
fn is_json(file: &Path, bytes: &[u8]) -> bool {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("json") => true,
        Some("txt") => false,
        _ => bytes.trim_ascii_start().starts_with(b"{"),
    }
}

/// A file's JSON.
fn read_json(file: &Path, bytes: &[u8]) -> Result<Value> {
    serde_json::from_slice(bytes).map_err(|error| {
        InputError::new(InputErrorKind::InvalidJson, Place::line(file, error.line() as u64))
            .expected("a JSON object")
            .found(error.to_string())
            .help("the file may have been cut short: copy or download it again")
            .into()
    })
}

/// The definition of the BERT tokenizer that a `vocab.txt` and, if there is one, the
/// `tokenizer_config.json` beside it stand for.
fn read_vocabulary(file: &Path, bytes: Vec<u8>) -> Result<Value> {
    let letters = read_letters(&file.with_file_name("tokenizer_config.json"))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + memchr::memchr_iter(b'\n', valid).count() as u64;
        InputError::new(InputErrorKind::InvalidUtf8, Place::line(file, line))
            .expected("UTF-8 text, one token a line")
            .found("bytes that are not UTF-8")
            .help("convert the file to UTF-8")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let text = text.trim_end_matches(['\n', '\r']);
    if text.is_empty() {
        return Err(InputError::new(InputErrorKind::EmptyFile, Place::file(file))
            .expected("one token a line")
            .found("no token")
            .help("copy the vocab.txt that came with the model")
            .into());
    }
    let tokens: Vec<&str> =
        text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
    let id_of_token = number(file, &tokens)?;
    for name in ["[UNK]", "[CLS]", "[SEP]"] {
        if !id_of_token.contains_key(name) {
            return Err(InputError::new(InputErrorKind::MissingField, Place::file(file))
                .expected(format!("a line with the special token {name}"))
                .found(format!("{} tokens, none of them {name}", tokens.len()))
                .help("use the tokenizer.json of the model: only BERT's have a vocab.txt like this")
                .into());
        }
    }
    let model = definition::word_piece(&tokens);
    Ok(definition::bert_like(model, letters, |token| id_of_token.get(token).copied()))
}

/// Gives each token its id, the number of its line.
fn number<'a>(file: &Path, tokens: &[&'a str]) -> Result<HashMap<&'a str, u32>> {
    if tokens.len() as u64 > MOST_IDS {
        return Err(InputError::new(InputErrorKind::TooLarge, Place::file(file))
            .expected(format!("at most {MOST_IDS} tokens"))
            .found(format!("{} lines", tokens.len()))
            .help("check that this is the vocabulary of a tokenizer")
            .into());
    }
    let mut id_of_token = HashMap::with_capacity(tokens.len());
    for (id, &token) in tokens.iter().enumerate() {
        if let Some(first) = id_of_token.insert(token, id as u32) {
            let place = Place::line(file, id as u64 + 1);
            return Err(InputError::new(InputErrorKind::DamagedFile, place)
                .expected("each token once, one a line")
                .found(format!("`{token}`, which is already on line {}", first + 1))
                .help("copy the vocab.txt that came with the model")
                .into());
        }
    }
    Ok(id_of_token)
}

/// How letters are treated, from a `tokenizer_config.json`, which need not be there.
fn read_letters(config: &Path) -> Result<Letters> {
    let config = match config.is_file() {
        true => read_json(config, &read(config)?)?,
        false => Value::Null,
    };
    Ok(Letters {
        lowercase: config["do_lower_case"].as_bool().unwrap_or(true),
        strip_accents: config["strip_accents"].as_bool(),
        split_chinese: config["tokenize_chinese_chars"].as_bool().unwrap_or(true),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_and_text(name: &str, bytes: &[u8]) -> (Option<InputErrorKind>, String) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        fs::write(&file, bytes).unwrap();
        let error = read_definition(&file).unwrap_err();
        (error.input_kind(), error.to_string())
    }

    #[test]
    fn a_vocabulary_of_lines_is_bert() {
        let folder = tempfile::tempdir().unwrap();
        let vocabulary = "\u{feff}[UNK]\r\n[CLS]\r\n[SEP]\r\na\r\n\r\n\r\n";
        fs::write(folder.path().join("vocab.txt"), vocabulary).unwrap();
        let (definition, file) = read_definition(folder.path()).unwrap();
        assert_eq!(file, folder.path().join("vocab.txt"));
        assert_eq!(definition["model"]["vocab"].as_object().unwrap().len(), 4);
        assert_eq!(definition["model"]["vocab"]["a"], 3);
        assert_eq!(definition["normalizer"]["lowercase"], true);
        assert_eq!(definition["added_tokens"].as_array().unwrap().len(), 3);
    }

    #[test]
    fn the_config_beside_a_vocabulary_counts() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("vocab.txt"), "[UNK]\n[CLS]\n[SEP]").unwrap();
        let config = folder.path().join("tokenizer_config.json");
        fs::write(&config, r#"{"do_lower_case": false, "strip_accents": true}"#).unwrap();
        let normalizer = &read_definition(folder.path()).unwrap().0["normalizer"];
        assert_eq!(normalizer["lowercase"], false);
        assert_eq!(normalizer["strip_accents"], true);
        assert_eq!(normalizer["handle_chinese_chars"], true);
        fs::write(&config, "{").unwrap();
        let error = read_definition(folder.path()).unwrap_err();
        assert_eq!(error.input_kind(), Some(InputErrorKind::InvalidJson));
    }

    #[test]
    fn mistakes_say_where_and_what() {
        let (kind, text) = kind_and_text("vocab.txt", b"");
        assert_eq!(kind, Some(InputErrorKind::EmptyFile), "{text}");
        let (kind, text) = kind_and_text("vocab.txt", b"[UNK]\n[CLS]\n\xff\n");
        assert_eq!(kind, Some(InputErrorKind::InvalidUtf8));
        assert!(text.contains("line 3"), "{text}");
        let (kind, text) = kind_and_text("vocab.txt", b"a\nb\n[UNK]\nb\n");
        assert_eq!(kind, Some(InputErrorKind::DamagedFile));
        assert!(text.contains("line 4") && text.contains("line 2"), "{text}");
        let (kind, text) = kind_and_text("vocab.txt", b"[UNK]\n[CLS]\na");
        assert_eq!(kind, Some(InputErrorKind::MissingField));
        assert!(text.contains("special token [SEP]"), "{text}");
        let (kind, text) = kind_and_text("tokenizer.json", b"{\n\n\"a\":");
        assert_eq!(kind, Some(InputErrorKind::InvalidJson));
        assert!(text.contains("line 3"), "{text}");
        let (kind, _) = kind_and_text("unnamed", b"  {");
        assert_eq!(kind, Some(InputErrorKind::InvalidJson));
    }

    #[test]
    fn missing_files_and_empty_folders_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let text = read_definition(folder.path()).unwrap_err().to_string();
        assert!(text.contains("tokenizer.json or vocab.txt"), "{text}");
        let error = read_definition(&folder.path().join("absent")).unwrap_err();
        assert_eq!(error.input_kind(), Some(InputErrorKind::MissingFile));
    }
}
