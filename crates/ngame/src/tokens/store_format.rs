//! The layout of a token store, in memory and in a file.
//!
//! ```text
//! offset  bytes  header                          all numbers are little-endian
//!      0      8  magic, "NGAMETOK"
//!      8      4  format version
//!     12      4  width of an id in bytes: 2 or 4
//!     16      8  number of texts
//!     24      8  number of token ids in all texts
//!     32      8  vocabulary size: every id is below it
//!     40     32  key: SHA-256 of all that the ids depend on
//!     72     32  SHA-256 of the body
//!    104     32  SHA-256 of the 104 bytes above
//!    136         body
//!                ids of all texts, back to back
//!                zeros up to a multiple of 8
//!                offsets, 8 bytes each, one more than there are texts: where in the ids a text
//!                begins and, after the last, where that one ends
//! ```
//!
//! In memory there is the body alone.

use sha2::{Digest, Sha256};

/// What a file begins with.
const MAGIC: &[u8; 8] = b"NGAMETOK";

/// The version this build writes, and the only one there has been.
pub(super) const VERSION: u32 = 1;

/// The bytes of a header.
pub(super) const HEADER: usize = 136;

/// The header's bytes that its own checksum covers.
const CHECKED: usize = 104;

/// A SHA-256 digest.
pub(super) type Digest256 = [u8; 32];

/// How many ids there are, how wide, and how they fall into texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) n_texts: u64,
    pub(super) n_tokens: u64,
    pub(super) vocabulary_size: u64,
}

impl Shape {
    /// The bytes of one id.
    pub(super) fn id_width(&self) -> usize {
        id_width(self.vocabulary_size)
    }

    /// Where in the body the offsets begin, and how long the body is; `None` if that is more than
    /// can be counted.
    pub(super) fn offsets_begin_and_end(&self) -> Option<(usize, usize)> {
        let ids = self.n_tokens.checked_mul(self.id_width() as u64)?;
        let begin = ids.checked_next_multiple_of(8)?;
        let end = self.n_texts.checked_add(1)?.checked_mul(8)?.checked_add(begin)?;
        Some((usize::try_from(begin).ok()?, usize::try_from(end).ok()?))
    }
}

/// The bytes of an id: 2 if all ids of the vocabulary fit, else 4.
pub(super) fn id_width(vocabulary_size: u64) -> usize {
    if vocabulary_size <= 1 << 16 { 2 } else { 4 }
}

/// The first bytes of a file: what the body is and how to know that it is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) shape: Shape,
    /// Stands for all that the ids depend on.
    pub(super) key: Digest256,
    /// The checksum of the body.
    pub(super) body: Digest256,
}

impl Header {
    /// The header as it stands in a file.
    pub(super) fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(self.shape.id_width() as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.shape.n_texts.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.shape.n_tokens.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.shape.vocabulary_size.to_le_bytes());
        bytes[40..72].copy_from_slice(&self.key);
        bytes[72..104].copy_from_slice(&self.body);
        let checksum = Sha256::digest(&bytes[..CHECKED]);
        bytes[CHECKED..].copy_from_slice(&checksum);
        bytes
    }

    /// Reads a file's header; the error says what stands there instead.
    pub(super) fn read(file: &[u8]) -> Result<Self, HeaderError> {
        let damaged = |found: &str| HeaderError::Damaged(found.to_owned());
        if !file.starts_with(MAGIC) {
            return Err(damaged("a file that does not begin with NGAMETOK"));
        }
        let Some(bytes) = file.first_chunk::<HEADER>() else {
            return Err(damaged("a file that ends within its header"));
        };
        let number = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(number)
        };
        // The version comes before the checksum: another version may have another header.
        let version = number(8) as u32;
        if version != VERSION {
            return Err(HeaderError::OtherVersion(version));
        }
        if Sha256::digest(&bytes[..CHECKED])[..] != bytes[CHECKED..] {
            return Err(damaged("a header that does not match its checksum"));
        }
        let shape =
            Shape { n_texts: number(16), n_tokens: number(24), vocabulary_size: number(32) };
        if number(8) >> 32 != shape.id_width() as u64 {
            return Err(damaged("ids of another width than the vocabulary needs"));
        }
        let digest = |at: usize| {
            let mut digest = [0; 32];
            digest.copy_from_slice(&bytes[at..at + 32]);
            digest
        };
        Ok(Self { shape, key: digest(40), body: digest(72) })
    }
}

/// Why a header cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HeaderError {
    /// It is not one, or not whole; the text says what was found.
    Damaged(String),
    /// It is of this version, which this build cannot read.
    OtherVersion(u32),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let shape = Shape { n_texts: 2, n_tokens: 3, vocabulary_size: 1 << 16 };
        Header { shape, key: [1; 32], body: [2; 32] }
    }

    #[test]
    fn a_header_comes_back_as_it_went_out() {
        assert_eq!(Header::read(&header().to_bytes()), Ok(header()));
    }

    #[test]
    fn every_flipped_byte_and_every_cut_is_seen() {
        let bytes = header().to_bytes();
        for at in 0..HEADER {
            let mut flipped = bytes;
            flipped[at] ^= 1;
            assert!(Header::read(&flipped).is_err(), "byte {at}");
            assert!(Header::read(&bytes[..at]).is_err(), "cut at {at}");
        }
        let mut newer = bytes;
        newer[8] = 2;
        assert_eq!(Header::read(&newer), Err(HeaderError::OtherVersion(2)));
    }

    #[test]
    fn sizes_follow_the_vocabulary_and_never_overflow() {
        let shape = Shape { n_texts: 2, n_tokens: 3, vocabulary_size: 1 << 16 };
        assert_eq!(shape.offsets_begin_and_end(), Some((8, 32)));
        let wide = Shape { vocabulary_size: (1 << 16) + 1, ..shape };
        assert_eq!(wide.offsets_begin_and_end(), Some((16, 40)));
        for absurd in [Shape { n_tokens: u64::MAX, ..shape }, Shape { n_texts: u64::MAX, ..shape }]
        {
            assert_eq!(absurd.offsets_begin_and_end(), None);
        }
    }
}
