//! From many texts to a token store, on all threads.

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::store::TokenStore;
use super::store_format::{Digest256, VERSION};
use super::store_writer::{Rows, store_in_file, store_in_memory};
use super::tokenizer::Tokenizer;
use crate::data::Texts;
use crate::progress::{Event, Observer};
use crate::{Error, Result};

/// Texts that one thread tokenises in one go, and hashes in one go for the key of a cache file. The
/// key depends on this number, so a change of it makes all cache files stale.
const CHUNK: usize = 512;

/// Chunks that are in memory at once before they are appended to the store: enough to keep many
/// threads busy, few enough to take little memory.
const CHUNKS_AT_ONCE: usize = 128;

/// Tokenises all texts into memory, each to at most `max_tokens` ids, special tokens included.
///
/// The result is the same on any number of threads.
pub fn tokenize(
    texts: &Texts,
    tokenizer: &Tokenizer,
    max_tokens: usize,
    observer: &dyn Observer,
) -> Result<TokenStore> {
    tokenizer.check_max_tokens(max_tokens)?;
    store_in_memory(tokenizer.vocabulary_size(), |push| {
        tokenize_chunks(texts, tokenizer, max_tokens, observer, push)
    })
}

/// Does what [`tokenize`] does, but keeps the result in a file of `cache_folder` and takes it from
/// there the next time.
///
/// The file's name is a digest of the tokenizer, `max_tokens` and every text, so a file that was
/// made from anything else is never taken. A damaged file is made again. Several processes may use
/// the folder at once.
pub fn tokenize_cached(
    texts: &Texts,
    tokenizer: &Tokenizer,
    max_tokens: usize,
    cache_folder: &Path,
    observer: &dyn Observer,
) -> Result<TokenStore> {
    tokenizer.check_max_tokens(max_tokens)?;
    let key = cache_key(texts, tokenizer, max_tokens);
    let path = cache_file(cache_folder, &key);
    if let Some(store) = open_cached(&path, &key)? {
        return Ok(store);
    }
    std::fs::create_dir_all(cache_folder)
        .map_err(|source| Error::io("create", cache_folder, source))?;
    store_in_file(&path, key, tokenizer.vocabulary_size(), |push| {
        tokenize_chunks(texts, tokenizer, max_tokens, observer, push)
    })?;
    TokenStore::open(&path)
}

/// The store in a cache file, if there is one and it is whole.
fn open_cached(path: &Path, key: &Digest256) -> Result<Option<TokenStore>> {
    if !path.exists() {
        return Ok(None);
    }
    match TokenStore::open(path).and_then(|store| store.verify().map(|()| store)) {
        Ok(store) => Ok((store.key() == Some(key)).then_some(store)),
        Err(Error::Input(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Hands over the rows of all texts, in order.
fn tokenize_chunks(
    texts: &Texts,
    tokenizer: &Tokenizer,
    max_tokens: usize,
    observer: &dyn Observer,
    push: &mut dyn FnMut(&Rows) -> Result<()>,
) -> Result<()> {
    observer.event(Event::Started {
        task: "tokenising the texts",
        total: Some(texts.len() as u64),
        unit: "texts",
    });
    let chunks: Vec<usize> = (0..texts.len()).step_by(CHUNK).collect();
    for chunks in chunks.chunks(CHUNKS_AT_ONCE) {
        let tokenize = |&begin| tokenize_chunk(texts, begin, tokenizer, max_tokens, observer);
        // Collected whole, errors included, so that it is always the first error that is returned.
        let chunks: Vec<Result<Rows>> = chunks.par_iter().map(tokenize).collect();
        for rows in chunks {
            push(&rows?)?;
        }
    }
    observer.event(Event::Finished);
    Ok(())
}

/// The rows of one chunk of texts.
fn tokenize_chunk(
    texts: &Texts,
    begin: usize,
    tokenizer: &Tokenizer,
    max_tokens: usize,
    observer: &dyn Observer,
) -> Result<Rows> {
    if observer.cancelled() {
        return Err(Error::Cancelled);
    }
    let mut rows = Rows::default();
    let mut cache = tokenizer.lend_cache();
    let end = texts.len().min(begin + CHUNK);
    for index in begin..end {
        tokenizer.encode_with(&mut cache, texts.get(index), max_tokens, &mut rows.ids)?;
        rows.ends.push(rows.ids.len());
    }
    observer.event(Event::Advanced((end - begin) as u64));
    Ok(rows)
}

/// A digest of all that the ids depend on.
fn cache_key(texts: &Texts, tokenizer: &Tokenizer, max_tokens: usize) -> Digest256 {
    let chunks: Vec<usize> = (0..texts.len()).step_by(CHUNK).collect();
    let digests: Vec<Digest256> = chunks
        .par_iter()
        .map(|&begin| {
            let mut hash = Sha256::new();
            for index in begin..texts.len().min(begin + CHUNK) {
                let text = texts.get(index);
                hash.update((text.len() as u64).to_le_bytes());
                hash.update(text);
            }
            hash.finalize().into()
        })
        .collect();
    // Every part has a fixed length or its length before it, so no two inputs run into the same.
    let mut hash = Sha256::new();
    hash.update(VERSION.to_le_bytes());
    hash.update((tokenizer.to_json().len() as u64).to_le_bytes());
    hash.update(tokenizer.to_json());
    hash.update((max_tokens as u64).to_le_bytes());
    hash.update((texts.len() as u64).to_le_bytes());
    digests.iter().for_each(|digest| hash.update(digest));
    hash.finalize().into()
}

/// The file of a key.
fn cache_file(folder: &Path, key: &Digest256) -> PathBuf {
    let name: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    folder.join(format!("tokens-{name}.bin"))
}
