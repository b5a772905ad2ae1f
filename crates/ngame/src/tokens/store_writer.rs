//! Building a token store row by row, in memory or in a file.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::store::TokenStore;
use super::store_format::{Digest256, HEADER, Header, Shape, id_width};
use crate::atomic_file::FileAside;
use crate::{Error, Result};

/// Some rows of ids on their way into a store.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// The ids of all rows, back to back.
    pub(super) ids: Vec<u32>,
    /// Where in `ids` each row ends.
    pub(super) ends: Vec<usize>,
}

/// Writes the body of a store to anything that takes bytes.
struct BodyWriter<W> {
    output: W,
    shape: Shape,
    /// The offsets, as they will stand in the body.
    offsets: Vec<u8>,
    /// Reused for each set of rows.
    buffer: Vec<u8>,
}

impl<W: Write> BodyWriter<W> {
    fn new(output: W, vocabulary_size: usize) -> Self {
        let shape = Shape { n_texts: 0, n_tokens: 0, vocabulary_size: vocabulary_size as u64 };
        Self { output, shape, offsets: 0u64.to_le_bytes().to_vec(), buffer: Vec::new() }
    }

    fn push(&mut self, rows: &Rows) -> io::Result<()> {
        self.buffer.clear();
        if id_width(self.shape.vocabulary_size) == 2 {
            // The tokenizer gives no id beyond its vocabulary, so each fits.
            self.buffer.extend(rows.ids.iter().flat_map(|&id| (id as u16).to_le_bytes()));
        } else {
            self.buffer.extend(rows.ids.iter().flat_map(|&id| id.to_le_bytes()));
        }
        self.output.write_all(&self.buffer)?;
        let begin = self.shape.n_tokens;
        let offsets = rows.ends.iter().flat_map(|&end| (begin + end as u64).to_le_bytes());
        self.offsets.extend(offsets);
        self.shape.n_tokens += rows.ids.len() as u64;
        self.shape.n_texts += rows.ends.len() as u64;
        Ok(())
    }

    fn finish(mut self) -> io::Result<(W, Shape)> {
        let ids = self.shape.n_tokens as usize * self.shape.id_width();
        self.output.write_all(&[0; 8][..ids.next_multiple_of(8) - ids])?;
        self.output.write_all(&self.offsets)?;
        Ok((self.output, self.shape))
    }
}

/// Builds a store in memory from all the rows that `produce` hands over.
pub(super) fn store_in_memory(
    vocabulary_size: usize,
    produce: impl FnOnce(&mut dyn FnMut(&Rows) -> Result<()>) -> Result<()>,
) -> Result<TokenStore> {
    let memory = |source| Error::io("fill", "memory", source);
    let mut writer = BodyWriter::new(Vec::new(), vocabulary_size);
    produce(&mut |rows| writer.push(rows).map_err(memory))?;
    let (mut body, shape) = writer.finish().map_err(memory)?;
    body.shrink_to_fit();
    Ok(TokenStore::from_body(body, shape))
}

/// Builds a store in a file, whole or not at all, from all the rows that `produce` hands over.
/// The ids are never all in memory.
pub(super) fn store_in_file(
    path: &Path,
    key: Digest256,
    vocabulary_size: usize,
    produce: impl FnOnce(&mut dyn FnMut(&Rows) -> Result<()>) -> Result<()>,
) -> Result<()> {
    let write = |source| Error::io("write", path, source);
    let mut aside = FileAside::create(path)?;
    // The header is written last, when the numbers in it are known.
    aside.file().write_all(&[0; HEADER]).map_err(write)?;
    // No further buffer is needed: rows come in large chunks.
    let output = Hashing { output: aside.file(), hash: Sha256::new() };
    let mut writer = BodyWriter::new(output, vocabulary_size);
    produce(&mut |rows| writer.push(rows).map_err(write))?;
    let (output, shape) = writer.finish().map_err(write)?;
    let header = Header { shape, key, body: output.hash.finalize().into() };
    let file = aside.file();
    file.seek(SeekFrom::Start(0))
        .and_then(|_| file.write_all(&header.to_bytes()))
        .map_err(write)?;
    aside.finish()
}

/// Passes bytes on and takes their checksum.
struct Hashing<W> {
    output: W,
    hash: Sha256,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n_written = self.output.write(bytes)?;
        self.hash.update(&bytes[..n_written]);
        Ok(n_written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn rows(texts: &[Vec<u32>]) -> Rows {
        let mut rows = Rows::default();
        for text in texts {
            rows.ids.extend(text);
            rows.ends.push(rows.ids.len());
        }
        rows
    }

    fn in_memory(texts: &[Vec<u32>], vocabulary_size: usize, at_once: usize) -> TokenStore {
        store_in_memory(vocabulary_size, |push| {
            texts.chunks(at_once).try_for_each(|texts| push(&rows(texts)))
        })
        .unwrap()
    }

    fn in_file(texts: &[Vec<u32>], vocabulary_size: usize, path: &Path) {
        store_in_file(path, [7; 32], vocabulary_size, |push| {
            texts.chunks(2).try_for_each(|texts| push(&rows(texts)))
        })
        .unwrap();
    }

    fn check(store: &TokenStore, texts: &[Vec<u32>]) {
        assert_eq!(store.n_texts(), texts.len());
        assert_eq!(store.n_tokens(), texts.iter().map(Vec::len).sum::<usize>());
        for (index, text) in texts.iter().enumerate() {
            assert_eq!(store.len(index), text.len());
            assert_eq!(store.get(index).len(), text.len());
            assert_eq!(store.get(index).is_empty(), text.is_empty());
            assert_eq!(store.get(index).to_vec(), *text);
            assert_eq!(store.get(index).iter().collect::<Vec<_>>(), *text);
        }
        assert_eq!(store.iter().count(), texts.len());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn rows_come_back_from_memory_and_from_files(
            texts in prop::collection::vec(prop::collection::vec(0u32..65_536, 0..5), 0..20),
            wide in any::<bool>(),
            at_once in 1usize..8,
        ) {
            let vocabulary_size = 65_536 + usize::from(wide);
            let memory = in_memory(&texts, vocabulary_size, at_once);
            check(&memory, &texts);
            let folder = tempfile::tempdir().unwrap();
            let (path, copy) = (folder.path().join("a"), folder.path().join("b"));
            in_file(&texts, vocabulary_size, &path);
            let file = TokenStore::open(&path).unwrap();
            file.verify().unwrap();
            check(&file, &texts);
            prop_assert_eq!(&file, &memory);
            prop_assert_eq!(file.key(), Some(&[7; 32]));
            prop_assert_eq!(file.memory(), 0);
            memory.save(&copy, [7; 32]).unwrap();
            prop_assert_eq!(fs::read(&copy).unwrap(), fs::read(&path).unwrap());
        }
    }

    #[test]
    fn files_of_version_1_stay_readable_and_are_still_written_so() {
        // These files are kept for ever; another version gets files of its own.
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tokens");
        let texts = [vec![2, 300, 3], vec![], vec![2, 65_535, 7, 3]];
        for vocabulary_size in [65_536, 65_537] {
            let path = fixtures.join(format!("store-version-1-of-{vocabulary_size}.bin"));
            let store = TokenStore::open(&path).unwrap();
            store.verify().unwrap();
            check(&store, &texts);
            assert_eq!(store.vocabulary_size(), vocabulary_size);
            let folder = tempfile::tempdir().unwrap();
            let again = folder.path().join("again");
            in_file(&texts, vocabulary_size, &again);
            assert_eq!(fs::read(again).unwrap(), fs::read(path).unwrap());
        }
    }

    #[test]
    fn damage_is_seen_and_never_a_panic() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        for vocabulary_size in [10, 100_000] {
            let texts = [vec![1, 2, 3], vec![], vec![4, 5], vec![9; 4]];
            in_file(&texts, vocabulary_size, &path);
            let whole = fs::read(&path).unwrap();
            let opened = |bytes: &[u8]| {
                fs::write(&path, bytes).unwrap();
                let store = TokenStore::open(&path)?;
                // Whatever was opened can be read.
                store.iter().map(|row| row.to_vec().len()).sum::<usize>();
                store.verify().map(|()| store)
            };
            check(&opened(&whole).unwrap(), &texts);
            for length in 0..whole.len() {
                assert!(opened(&whole[..length]).is_err(), "cut at {length}");
            }
            assert!(opened(&[&whole[..], &[0]].concat()).is_err(), "a byte too many");
            for at in 0..whole.len() {
                for bit in [1, 0x80] {
                    let mut flipped = whole.clone();
                    flipped[at] ^= bit;
                    let error = opened(&flipped).err();
                    assert!(error.is_some(), "byte {at} flipped");
                }
            }
        }
    }

    #[test]
    fn a_forged_file_of_bad_offsets_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        in_file(&[vec![1, 2], vec![3, 4]], 10, &path);
        let whole = fs::read(&path).unwrap();
        for offsets in [[0, 9, 4], [1, 2, 4], [0, 2, 3], [0, 2, 5], [0, u64::MAX, 4]] {
            let mut body = whole[HEADER..HEADER + 8].to_vec();
            body.extend(offsets.iter().flat_map(|offset| offset.to_le_bytes()));
            let shape = Shape { n_texts: 2, n_tokens: 4, vocabulary_size: 10 };
            let header = Header { shape, key: [0; 32], body: Sha256::digest(&body).into() };
            fs::write(&path, [&header.to_bytes()[..], &body].concat()).unwrap();
            let refused = TokenStore::open(&path).unwrap_err().to_string();
            assert!(refused.contains("offsets"), "{offsets:?}: {refused}");
        }
    }

    #[test]
    fn an_id_beyond_the_vocabulary_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        in_file(&[vec![10]], 10, &path);
        let error = TokenStore::open(&path).unwrap().verify().unwrap_err();
        assert!(error.to_string().contains("beyond the vocabulary"), "{error}");
    }

    #[test]
    fn an_interrupted_file_leaves_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let stopped = store_in_file(&path, [0; 32], 10, |push| {
            push(&rows(&[vec![1]]))?;
            Err(Error::Cancelled)
        });
        assert!(matches!(stopped, Err(Error::Cancelled)));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
