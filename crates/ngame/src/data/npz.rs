//! SciPy's sparse matrices in compressed rows (`scipy.sparse.save_npz`).
//!
//! An `.npz` file is a zip archive of NumPy arrays; a CSR matrix is five of them. Every size and
//! index in the file is checked before it is used.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use super::csr::ScoredCsr;
use super::rows::check_label;
use super::source::missing_file;
use crate::error::{Error, InputError, InputErrorKind, Place, Result};

/// Reads a sparse matrix; also returns how many columns stood twice in a row.
pub(crate) fn read(path: &Path) -> Result<(ScoredCsr, u64)> {
    let file = File::open(path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => missing_file(path),
        _ => Error::io("open", path, source),
    })?;
    let mut archive = zip::ZipArchive::new(BufReader::new(file))
        .map_err(|error| damaged(path, "", error.to_string()))?;
    let format = read_array(path, &mut archive, "format")?;
    if format.bytes != b"csr" && format.bytes != b"c\0\0\0s\0\0\0r\0\0\0" {
        return Err(InputError::new(InputErrorKind::UnknownFormat, Place::file(path))
            .expected("a matrix in compressed rows (csr)")
            .found(format!("`{}`", String::from_utf8_lossy(&format.bytes).replace('\0', "")))
            .help("convert it in Python: scipy.sparse.save_npz(path, matrix.tocsr())")
            .into());
    }
    let shape = read_array(path, &mut archive, "shape")?.integers(path, "shape")?;
    let [n_rows, n_columns] = shape[..] else {
        return Err(damaged(path, "shape", format!("{} numbers", shape.len())));
    };
    let (Ok(_), Ok(n_columns)) = (u32::try_from(n_rows), u32::try_from(n_columns)) else {
        return Err(InputError::new(InputErrorKind::TooLarge, Place::file(path).field("shape"))
            .expected(format!("at most {} rows and columns", u32::MAX))
            .found(format!("{n_rows} × {n_columns}"))
            .help("split the matrix")
            .into());
    };
    let row_ends = read_array(path, &mut archive, "indptr")?.integers(path, "indptr")?;
    let columns = read_array(path, &mut archive, "indices")?.integers(path, "indices")?;
    let values = read_array(path, &mut archive, "data")?.floats(path)?;
    if columns.len() != values.len() || row_ends.len() as u64 != n_rows as u64 + 1 {
        return Err(damaged(path, "indptr", "arrays whose lengths disagree".to_owned()));
    }
    let mut matrix = ScoredCsr::new(n_columns);
    let mut repeats = 0;
    let mut row = Vec::new();
    for bounds in row_ends.windows(2) {
        let range = match (usize::try_from(bounds[0]), usize::try_from(bounds[1])) {
            (Ok(begin), Ok(end)) if begin <= end && end <= columns.len() => begin..end,
            _ => return Err(damaged(path, "indptr", format!("{} to {}", bounds[0], bounds[1]))),
        };
        row.clear();
        for (&column, &value) in columns[range.clone()].iter().zip(&values[range]) {
            let place = || Place::file(path).field("indices");
            row.push((check_label(column, n_columns, place)?, value));
        }
        repeats += matrix.push_row(&mut row) as u64;
    }
    Ok((matrix, repeats))
}

/// A NumPy array as it lies in the file.
struct Array {
    /// NumPy's type code without the byte order: "i4", "f8".
    kind: String,
    bytes: Vec<u8>,
}

fn read_array<R: Read + std::io::Seek>(
    path: &Path,
    archive: &mut zip::ZipArchive<R>,
    name: &str,
) -> Result<Array> {
    let mut file = archive.by_name(&format!("{name}.npy")).map_err(|error| match error {
        zip::result::ZipError::FileNotFound => {
            InputError::new(InputErrorKind::MissingField, Place::file(path).field(name))
                .expected("the arrays of a SciPy sparse matrix: format, shape, indptr, …")
                .found("another .npz file")
                .help("write it in Python: scipy.sparse.save_npz(path, matrix.tocsr())")
                .into()
        }
        other => damaged(path, name, other.to_string()),
    })?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| damaged(path, name, error.to_string()))?;
    parse_npy(&bytes)
        .ok_or_else(|| damaged(path, name, "not a little-endian NumPy array in C order".to_owned()))
}

/// Takes the header off a `.npy` file: magic, version, length, then a Python dictionary.
fn parse_npy(bytes: &[u8]) -> Option<Array> {
    let rest = bytes.strip_prefix(b"\x93NUMPY")?;
    let (header_len, rest) = match *rest.first_chunk::<2>()? {
        [1, _] => (u16::from_le_bytes(*rest[2..].first_chunk()?) as usize, &rest[4..]),
        [2 | 3, _] => (u32::from_le_bytes(*rest[2..].first_chunk()?) as usize, &rest[6..]),
        _ => return None,
    };
    let header = std::str::from_utf8(rest.get(..header_len)?).ok()?;
    if !header.contains("'fortran_order': False") {
        return None;
    }
    let (_, after) = header.split_once("'descr':")?;
    let (_, after) = after.split_once('\'')?;
    let (descr, _) = after.split_once('\'')?;
    let kind = descr.strip_prefix(['<', '|'])?.to_owned();
    Some(Array { kind, bytes: rest[header_len..].to_owned() })
}

impl Array {
    fn integers(&self, path: &Path, name: &str) -> Result<Vec<i64>> {
        let bytes = &self.bytes;
        match self.kind.as_str() {
            "i4" => Ok(numbers(bytes, |b| i64::from(i32::from_le_bytes(b)))),
            "u4" => Ok(numbers(bytes, |b| i64::from(u32::from_le_bytes(b)))),
            "i8" => Ok(numbers(bytes, i64::from_le_bytes)),
            "u8" => {
                Ok(numbers(bytes, |b| i64::try_from(u64::from_le_bytes(b)).unwrap_or(i64::MAX)))
            }
            kind => Err(damaged(path, name, format!("numbers of type {kind}"))),
        }
    }

    fn floats(&self, path: &Path) -> Result<Vec<f32>> {
        let bytes = &self.bytes;
        match self.kind.as_str() {
            "f4" => Ok(numbers(bytes, f32::from_le_bytes)),
            "f8" => Ok(numbers(bytes, |b| f64::from_le_bytes(b) as f32)),
            "b1" | "u1" => Ok(numbers(bytes, |[b]: [u8; 1]| f32::from(b))),
            "i1" => Ok(numbers(bytes, |b| f32::from(i8::from_le_bytes(b)))),
            "i2" => Ok(numbers(bytes, |b| f32::from(i16::from_le_bytes(b)))),
            "i4" => Ok(numbers(bytes, |b| i32::from_le_bytes(b) as f32)),
            "i8" => Ok(numbers(bytes, |b| i64::from_le_bytes(b) as f32)),
            kind => Err(damaged(path, "data", format!("numbers of type {kind}"))),
        }
    }
}

/// Bytes as numbers of `N` bytes each; bytes that make no whole number are dropped, and the
/// lengths of the arrays then disagree.
fn numbers<const N: usize, T>(bytes: &[u8], parse: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(|&chunk| parse(chunk)).collect()
}

fn damaged(path: &Path, array: &str, found: String) -> Error {
    let place = Place::file(path);
    let place = if array.is_empty() { place } else { place.field(array) };
    InputError::new(InputErrorKind::DamagedFile, place)
        .expected("a sparse matrix written by scipy.sparse.save_npz")
        .found(found)
        .help("write or copy the file again")
        .into()
}
