//! Some facts and large arrays in one file, used where they lie.
//!
//! ```text
//! magic (8 bytes) | length of the header (8) | header, JSON | arrays | SHA-256 of all before (32)
//! ```
//!
//! Every array begins at a multiple of [`ALIGNMENT`] bytes, so that a file mapped into memory needs no
//! copy. The checksum is read on request only: it costs a pass over the whole file.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytemuck::Pod;
use memmap2::Mmap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{InputError, InputErrorKind, Place};
use crate::{Error, Result};

const MAGIC: &[u8; 8] = b"ngamear1";
const DIGEST: usize = 32;
const ALIGNMENT: usize = 64;

/// Named arrays to be written.
pub(crate) type Arrays<'a> = Vec<(&'static str, &'a [u8])>;

/// What stands before the arrays.
#[derive(Serialize, Deserialize)]
struct Header<S> {
    state: S,
    arrays: Vec<(String, u64)>, // Names and bytes.
}

/// Whether the checksum is compared when a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// Every byte.
    Whole,
    /// The shape alone: whoever opens it has seen to the rest.
    Shape,
}

/// Writes facts and arrays.
pub(crate) fn write(
    output: &mut dyn Write,
    state: &impl Serialize,
    arrays: &Arrays<'_>,
) -> io::Result<()> {
    let sizes = arrays.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.len() as u64));
    let header = Header { state, arrays: sizes.collect() };
    let header = serde_json::to_vec(&header)?;
    let mut hash = Sha256::new();
    let mut written = 0;
    let mut put = |part: &[u8]| {
        hash.update(part);
        written += part.len();
        output.write_all(part).map(|()| written)
    };
    put(MAGIC)?;
    put(&(header.len() as u64).to_le_bytes())?;
    let mut at = put(&header)?;
    for (_, bytes) in arrays {
        put(&[0; ALIGNMENT][..at.next_multiple_of(ALIGNMENT) - at])?;
        at = put(bytes)?;
    }
    output.write_all(&hash.finalize())
}

/// A file that was opened.
#[derive(Debug)]
pub(crate) struct ArrayFile<S> {
    pub(crate) state: S,
    map: Mmap,
    arrays: Vec<(String, Range<usize>)>,
    path: PathBuf,
}

impl<S: DeserializeOwned> ArrayFile<S> {
    /// Maps a file into memory. `help` says what to do about a damaged one.
    pub(crate) fn open(path: &Path, check: Check, help: &'static str) -> Result<Self> {
        let read = |source| Error::io("read", path, source);
        let file = File::open(path).map_err(read)?;
        // SAFETY: a map must not change under its reader. These files are written aside and renamed,
        // never changed in place, so only a foreign program could change this one. Every access is
        // checked, and what is read is numbers, for which every bit pattern is valid.
        let map = unsafe { Mmap::map(&file) }.map_err(read)?;
        let damaged = |found: &str| damaged(path, found, help);
        let (content, digest) = map
            .split_at_checked(map.len().saturating_sub(DIGEST))
            .filter(|(content, _)| content.len() >= 16)
            .ok_or_else(|| damaged("a file that is too short"))?;
        if !content.starts_with(MAGIC) {
            return Err(damaged("a file of another kind"));
        }
        if check == Check::Whole && Sha256::digest(content)[..] != *digest {
            return Err(damaged("bytes that do not match their checksum"));
        }
        let other = || damaged("a file that is not whole, or of another version of ngame");
        let length = content[8..16].try_into().map(u64::from_le_bytes).unwrap_or(u64::MAX);
        let end = usize::try_from(length).ok().and_then(|length| length.checked_add(16));
        let end = end.filter(|&end| end <= content.len()).ok_or_else(other)?;
        let header: Header<S> = serde_json::from_slice(&content[16..end]).map_err(|_| other())?;
        let (mut arrays, mut at) = (Vec::new(), end);
        for (name, length) in header.arrays {
            let begin = at.next_multiple_of(ALIGNMENT);
            let end = usize::try_from(length).ok().and_then(|length| begin.checked_add(length));
            at = end.filter(|&end| end <= content.len()).ok_or_else(other)?;
            arrays.push((name, begin..at));
        }
        if at != content.len() {
            return Err(other());
        }
        Ok(Self { state: header.state, map, arrays, path: path.to_owned() })
    }
}

impl<S> ArrayFile<S> {
    /// The array of this name, if there is one of whole numbers of this type.
    pub(crate) fn array<T: Pod>(&self, name: &str) -> Option<&[T]> {
        let (_, range) = self.arrays.iter().find(|(found, _)| found == name)?;
        bytemuck::try_cast_slice(&self.map[range.clone()]).ok()
    }

    /// The array of this name, which must be there.
    pub(crate) fn require<T: Pod>(&self, name: &str, help: &'static str) -> Result<&[T]> {
        let missing = || damaged(&self.path, &format!("no array `{name}`"), help);
        self.array(name).ok_or_else(missing)
    }
}

/// A file that is not what was written.
pub(crate) fn damaged(path: &Path, found: &str, help: &str) -> Error {
    InputError::new(InputErrorKind::DamagedFile, Place::file(path))
        .expected("a whole file, as it was written")
        .found(found)
        .help(help)
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "begin anew";

    fn bytes() -> Vec<u8> {
        let (numbers, letters) = ([1.5f32, -2.0, 3.0], *b"abc");
        let mut bytes = Vec::new();
        let arrays = vec![("letters", &letters[..]), ("numbers", bytemuck::cast_slice(&numbers))];
        write(&mut bytes, &"state".to_owned(), &arrays).unwrap();
        bytes
    }

    fn open(bytes: &[u8], check: Check) -> Result<ArrayFile<String>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, bytes).unwrap();
        ArrayFile::open(&path, check, HELP)
    }

    #[test]
    fn facts_and_arrays_come_back() {
        for check in [Check::Whole, Check::Shape] {
            let file = open(&bytes(), check).unwrap();
            assert_eq!(file.state, "state");
            assert_eq!(file.array::<f32>("numbers").unwrap(), [1.5, -2.0, 3.0]);
            assert_eq!(file.array::<u8>("letters").unwrap(), b"abc");
            assert!(file.array::<u32>("letters").is_none(), "three bytes are no u32");
            let error = file.require::<u8>("others", HELP).unwrap_err().to_string();
            assert!(error.contains("no array `others`") && error.contains(HELP), "{error}");
        }
    }

    #[test]
    fn damage_anywhere_is_noticed() {
        let whole = bytes();
        for length in 0..whole.len() {
            assert!(open(&whole[..length], Check::Shape).is_err(), "cut at {length}");
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            assert!(open(&bytes, Check::Whole).is_err(), "byte {at}");
            let _ = open(&bytes, Check::Shape); // No panic.
        }
    }
}
