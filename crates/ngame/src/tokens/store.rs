//! The token ids of many texts, in memory or mapped from a file.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use sha2::{Digest, Sha256};

use super::store_format::{HEADER, Header, HeaderError, Shape, VERSION};
use super::store_writer::{Rows, store_in_memory};
use crate::atomic_file::FileAside;
use crate::error::{InputError, InputErrorKind, Place};
use crate::{Error, Result};

/// Rows of token ids, one row a text, back to back: 2 bytes an id (4 if the vocabulary has more than
/// 65,536 entries) and 8 bytes a text.
#[derive(Debug)]
pub struct TokenStore {
    bytes: Bytes,
    shape: Shape,
    /// Where in the body the offsets begin; the ids are before them.
    offsets_begin: usize,
}

/// Where the bytes of a store lie.
#[derive(Debug)]
enum Bytes {
    /// A body.
    Memory(Vec<u8>),
    /// A header and a body.
    File { map: Mmap, header: Header, path: PathBuf },
}

impl TokenStore {
    /// A store in memory.
    ///
    /// # Panics
    /// If the body is not one of this shape.
    pub(super) fn from_body(body: Vec<u8>, shape: Shape) -> Self {
        let (offsets_begin, end) = shape.offsets_begin_and_end().expect("the body is in memory");
        assert_eq!(body.len(), end, "a body has the length that its shape says");
        Self { bytes: Bytes::Memory(body), shape, offsets_begin }
    }

    /// Maps a file into memory.
    ///
    /// This checks all that reading rows relies on: the header with its checksum, the length of the
    /// file, and that every row lies within the ids. It does not read the ids; whether they are what
    /// was written is for [`TokenStore::verify`] to say.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|source| Error::io("read", path, source))?;
        // SAFETY: a map must not change under its reader. Stores are written aside and renamed,
        // never changed in place, so only a foreign program could change this one. Even then no
        // memory is violated unless the file is cut, because every access below is checked.
        let map = unsafe { Mmap::map(&file) }.map_err(|source| Error::io("read", path, source))?;
        let header = Header::read(&map).map_err(|error| match error {
            HeaderError::Damaged(found) => damaged(path, found),
            HeaderError::OtherVersion(version) => {
                InputError::new(InputErrorKind::UnknownFormat, Place::file(path))
                    .expected(format!("a token store of version {VERSION}"))
                    .found(format!("version {version}"))
                    .help("remove the file: it is a cache, and will be made again")
            }
        })?;
        let shape = header.shape;
        let (offsets_begin, end) = shape
            .offsets_begin_and_end()
            .filter(|(_, end)| map.len() - HEADER == *end)
            .ok_or_else(|| damaged(path, format!("a body of {} bytes", map.len() - HEADER)))?;
        let store = Self {
            bytes: Bytes::File { map, header, path: path.to_owned() },
            shape,
            offsets_begin,
        };
        debug_assert_eq!(store.body().len(), end);
        let (offsets, _) = store.body()[offsets_begin..].as_chunks::<8>();
        let ordered = offsets.iter().map(|&offset| u64::from_le_bytes(offset)).is_sorted();
        if !ordered || store.offset(0) != 0 || store.offset(store.n_texts()) != shape.n_tokens {
            return Err(damaged(path, "offsets that do not divide the ids").into());
        }
        Ok(store)
    }

    /// Checks what [`TokenStore::open`] leaves unchecked: that the ids and offsets match their
    /// checksum and that every id is in the vocabulary. It reads the whole file.
    /// A store in memory has nothing to check.
    pub fn verify(&self) -> Result<()> {
        let Bytes::File { header, path, .. } = &self.bytes else { return Ok(()) };
        if Sha256::digest(self.body())[..] != header.body {
            return Err(damaged(path, "a body that does not match its checksum").into());
        }
        let all = self.row(0, self.shape.n_tokens);
        if all.iter().any(|id| u64::from(id) >= self.shape.vocabulary_size) {
            return Err(damaged(path, "an id beyond the vocabulary").into());
        }
        Ok(())
    }

    /// Writes the store to a file, whole or not at all. `key` is a SHA-256 digest of all that the
    /// ids depend on; [`TokenStore::key`] gives it back.
    pub fn save(&self, path: &Path, key: [u8; 32]) -> Result<()> {
        let header = Header { shape: self.shape, key, body: Sha256::digest(self.body()).into() };
        let mut aside = FileAside::create(path)?;
        let file = aside.file();
        file.write_all(&header.to_bytes())
            .and_then(|()| file.write_all(self.body()))
            .map_err(|source| Error::io("write", path, source))?;
        aside.finish()
    }

    /// The same texts, as places of tokens instead of ids: 0 is the first token of the first text, and
    /// so on through all texts. A text without tokens has one place all the same.
    ///
    /// # Panics
    /// If there are more tokens than 32 bits count.
    pub(crate) fn places(&self) -> Self {
        let mut rows = Rows::default();
        for text in 0..self.n_texts() {
            let begin = rows.ids.len();
            let end = begin + self.len(text).max(1);
            rows.ids.extend((begin..end).map(|place| u32::try_from(place).expect("32 bits")));
            rows.ends.push(end);
        }
        let n_places = rows.ids.len();
        store_in_memory(n_places, |push| push(&rows)).expect("memory takes everything")
    }

    /// How many texts there are.
    pub fn n_texts(&self) -> usize {
        self.shape.n_texts as usize
    }

    /// How many token ids all texts have together.
    pub fn n_tokens(&self) -> usize {
        self.shape.n_tokens as usize
    }

    /// The vocabulary the ids come from: every id is below this.
    pub fn vocabulary_size(&self) -> usize {
        self.shape.vocabulary_size as usize
    }

    /// The key that the file was saved with; a store in memory has none.
    pub fn key(&self) -> Option<&[u8; 32]> {
        match &self.bytes {
            Bytes::Memory(_) => None,
            Bytes::File { header, .. } => Some(&header.key),
        }
    }

    /// The ids of the text at `index`.
    ///
    /// # Panics
    /// If there is no such text.
    pub fn get(&self, index: usize) -> Tokens<'_> {
        self.row(self.offset(index), self.offset(index + 1))
    }

    /// How many ids the text at `index` has.
    ///
    /// # Panics
    /// If there is no such text.
    pub fn len(&self, index: usize) -> usize {
        (self.offset(index + 1) - self.offset(index)) as usize
    }

    /// The texts' ids, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Tokens<'_>> {
        (0..self.n_texts()).map(|index| self.get(index))
    }

    /// How many bytes of memory the store takes; a mapped file takes none of its own, as the
    /// operating system may drop its pages at will.
    pub fn memory(&self) -> u64 {
        match &self.bytes {
            Bytes::Memory(body) => body.capacity() as u64,
            Bytes::File { .. } => 0,
        }
    }

    /// Ids and offsets.
    fn body(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Memory(body) => body,
            Bytes::File { map, .. } => &map[HEADER..],
        }
    }

    /// Where in the ids the text at `index` begins, or the one before it ends.
    #[inline]
    fn offset(&self, index: usize) -> u64 {
        let (offsets, _) = self.body()[self.offsets_begin..].as_chunks::<8>();
        u64::from_le_bytes(offsets[index])
    }

    /// The ids from one offset to another.
    #[inline]
    fn row(&self, begin: u64, end: u64) -> Tokens<'_> {
        let width = self.shape.id_width();
        Tokens { bytes: &self.body()[begin as usize * width..end as usize * width], width }
    }
}

impl PartialEq for TokenStore {
    /// Whether two stores hold the same ids of the same vocabulary, wherever they lie.
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape && self.body() == other.body()
    }
}

/// The ids of one text, in a [`TokenStore`].
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'a> {
    bytes: &'a [u8],
    /// The bytes of an id.
    width: usize,
}

impl<'a> Tokens<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.width
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The ids in order. To copy them all, [`Tokens::append_to`] is faster.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u32> + Clone + use<'a> {
        self.bytes.chunks_exact(self.width).map(|id| match *id {
            [a, b] => u32::from(u16::from_le_bytes([a, b])),
            [a, b, c, d] => u32::from_le_bytes([a, b, c, d]),
            _ => unreachable!("an id has 2 or 4 bytes"),
        })
    }

    /// Appends the ids to a buffer.
    #[inline]
    pub fn append_to(&self, buffer: &mut Vec<u32>) {
        if self.width == 2 {
            let (ids, _) = self.bytes.as_chunks::<2>();
            buffer.extend(ids.iter().map(|&id| u32::from(u16::from_le_bytes(id))));
        } else {
            let (ids, _) = self.bytes.as_chunks::<4>();
            buffer.extend(ids.iter().map(|&id| u32::from_le_bytes(id)));
        }
    }

    /// The ids as a vector.
    pub fn to_vec(&self) -> Vec<u32> {
        let mut ids = Vec::with_capacity(self.len());
        self.append_to(&mut ids);
        ids
    }
}

/// A file that is not a whole token store.
fn damaged(path: &Path, found: impl Into<String>) -> InputError {
    InputError::new(InputErrorKind::DamagedFile, Place::file(path))
        .expected("a token store, as it was written")
        .found(found)
        .help("remove the file: it is a cache, and will be made again")
}
