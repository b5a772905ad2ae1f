//! The header of a `.npy` file, NumPy's format for one array.
//!
//! ```text
//! offset  bytes  header
//!      0      6  magic, "\x93NUMPY"
//!      6      2  format version: 1, 0
//!      8      2  length of what follows, little-endian
//!     10         {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, spaces, a line feed
//! ```
//!
//! Ours are always [`HEADER`] bytes long, so that the number of rows can be filled in at the end and
//! the numbers behind begin at a multiple of 64 bytes, as NumPy's own do.

use super::vectors::VectorType;

/// The bytes of a header that is written here.
pub(super) const HEADER: usize = 128;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NpyHeader {
    pub(super) vector_type: VectorType,
    pub(super) n_rows: usize,
    pub(super) dim: usize,
}

impl NpyHeader {
    /// The header as it stands in a file.
    pub(super) fn to_bytes(self) -> [u8; HEADER] {
        let Self { vector_type, n_rows, dim } = self;
        let description = format!(
            "{{'descr': '{}', 'fortran_order': False, 'shape': ({n_rows}, {dim}), }}",
            vector_type.numpy_name()
        );
        let mut bytes = [b' '; HEADER];
        bytes[..6].copy_from_slice(MAGIC);
        bytes[6..10].copy_from_slice(&[1, 0, (HEADER - 10) as u8, 0]);
        // Two numbers of 20 digits at most leave room.
        bytes[10..10 + description.len()].copy_from_slice(description.as_bytes());
        bytes[HEADER - 1] = b'\n';
        bytes
    }

    /// The numbers of bytes behind the header; `None` if that is more than can be counted.
    pub(super) fn data_len(&self) -> Option<usize> {
        self.n_rows.checked_mul(self.dim)?.checked_mul(self.vector_type.width())
    }

    /// Reads a header, also one that NumPy wrote, and where the numbers begin. The error says what
    /// stands there instead.
    pub(super) fn read(file: &[u8]) -> Result<(Self, usize), String> {
        let Some(rest) = file.strip_prefix(MAGIC) else {
            return Err("a file that does not begin as .npy files do".to_owned());
        };
        let (length, begin) = match *rest {
            [1, _, a, b, ..] => (usize::from(u16::from_le_bytes([a, b])), 10),
            [2 | 3, _, a, b, c, d, ..] => (u32::from_le_bytes([a, b, c, d]) as usize, 12),
            [version, ..] => return Err(format!("version {version} of the format")),
            [] => return Err("a file that ends within its header".to_owned()),
        };
        let end = begin + length;
        let text = file.get(begin..end).ok_or("a file that ends within its header")?;
        let text = std::str::from_utf8(text).map_err(|_| "a header that is no text")?;
        let header = Self::parse(text)?;
        Ok((header, end))
    }

    /// The header that a description in Python's notation stands for.
    fn parse(text: &str) -> Result<Self, String> {
        let value = |key: &str| {
            let (_, rest) = text.split_once(&format!("'{key}':"))?;
            Some(rest.trim_start())
        };
        let found = || format!("the header {}", text.trim_end());
        let descr = value("descr").ok_or_else(found)?;
        let vector_type = [VectorType::F32, VectorType::F16]
            .into_iter()
            .find(|kind| descr.starts_with(&format!("'{}'", kind.numpy_name())))
            .ok_or_else(|| {
                format!("numbers of type {}", descr.split(',').next().unwrap_or(descr))
            })?;
        if !value("fortran_order").ok_or_else(found)?.starts_with("False") {
            return Err("an array that lies column by column".to_owned());
        }
        let shape = value("shape").and_then(|rest| rest.strip_prefix('(')?.split_once(')'));
        let (shape, _) = shape.ok_or_else(found)?;
        let numbers: Option<Vec<usize>> = shape
            .split(',')
            .map(str::trim)
            .filter(|number| !number.is_empty())
            .map(|number| number.parse().ok())
            .collect();
        match numbers.as_deref() {
            Some(&[n_rows, dim]) => Ok(Self { vector_type, n_rows, dim }),
            _ => Err(format!("an array of shape ({shape})")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_as_it_went_out() {
        for (n_rows, dim) in [(0, 1), (3, 4), (usize::MAX, usize::MAX)] {
            for vector_type in [VectorType::F32, VectorType::F16] {
                let header = NpyHeader { vector_type, n_rows, dim };
                assert_eq!(NpyHeader::read(&header.to_bytes()), Ok((header, HEADER)));
            }
        }
        let absurd = NpyHeader { vector_type: VectorType::F32, n_rows: usize::MAX, dim: 2 };
        assert_eq!(absurd.data_len(), None);
    }

    #[test]
    fn other_files_are_told_apart() {
        let with = |text: &str| {
            let length = (text.len() as u16).to_le_bytes();
            [&MAGIC[..], &[1, 0], &length, text.as_bytes()].concat()
        };
        let read = |text: &str| NpyHeader::read(&with(text)).unwrap_err();
        let plain = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)}";
        assert!(NpyHeader::read(&with(plain)).is_ok());
        assert_eq!(read(&plain.replace("<f4", "<f8")), "numbers of type '<f8'");
        assert_eq!(read(&plain.replace("False", "True")), "an array that lies column by column");
        assert_eq!(read(&plain.replace("3, 4", "3,")), "an array of shape (3,)");
        assert_eq!(read(&plain.replace("3, 4", "-3, 4")), "an array of shape (-3, 4)");
        assert!(read("{}").contains("the header {}"));
        for length in 0..10 {
            assert!(NpyHeader::read(&with(plain)[..length]).is_err(), "{length}");
        }
        assert!(NpyHeader::read(b"\x93NUMPY\x02\0\xff\xff\xff\xff").is_err());
        assert!(NpyHeader::read(b"\x93NUMPY\x09\0\xff\xff").unwrap_err().contains("version 9"));
    }
}
