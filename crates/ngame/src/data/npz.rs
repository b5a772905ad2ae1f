//! SciPy's sparse matrices in compressed rows (`scipy.sparse.save_npz`).
//!
//! An `.npz` file is a zip archive of NumPy arrays; a CSR matrix is five of them. Every size and
//! index in the file is checked before it is used.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use super::csr::ScoredCsr;
use super::rows::check_label;
use super::source::missing_file;
use crate::atomic_file::FileAside;
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

/// Writes a sparse matrix as `scipy.sparse.save_npz` does, whole or not at all.
pub fn write_npz(path: &Path, matrix: &ScoredCsr) -> Result<()> {
    let mut aside = FileAside::create(path)?;
    let (mut ends, mut columns, mut scores) = (vec![0i64], Vec::new(), Vec::new());
    for row in 0..matrix.n_rows() {
        let (labels, values) = matrix.row(row);
        columns.extend(labels.iter().map(|&label| i64::from(label)));
        scores.extend_from_slice(values);
        ends.push(columns.len() as i64);
    }
    let shape = [matrix.n_rows() as i64, i64::from(matrix.n_columns())];
    let list = |n: usize| format!("({n},)");
    let arrays: [(&str, &str, String, &[u8]); 5] = [
        ("indices", "<i8", list(columns.len()), bytemuck::cast_slice(&columns)),
        ("indptr", "<i8", list(ends.len()), bytemuck::cast_slice(&ends)),
        ("format", "|S3", "()".to_owned(), b"csr"),
        ("shape", "<i8", list(2), bytemuck::cast_slice(&shape)),
        ("data", "<f4", list(scores.len()), bytemuck::cast_slice(&scores)),
    ];
    let mut archive = zip::ZipWriter::new(BufWriter::new(aside.file()));
    let options = zip::write::SimpleFileOptions::default().large_file(true);
    let mut written = || -> zip::result::ZipResult<()> {
        for (name, kind, shape, bytes) in &arrays {
            archive.start_file(format!("{name}.npy"), options)?;
            archive.write_all(&npy_header(kind, shape))?;
            archive.write_all(bytes)?;
        }
        Ok(())
    };
    let failed = |error: zip::result::ZipError| Error::io("write", path, error.into());
    written().map_err(failed)?;
    let mut output = archive.finish().map_err(failed)?;
    output.flush().map_err(|source| Error::io("write", path, source))?;
    drop(output);
    aside.finish()
}

/// What stands before an array in NumPy's format, padded to a multiple of 64 bytes.
fn npy_header(kind: &str, shape: &str) -> Vec<u8> {
    const BEFORE: usize = 10;
    let mut text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    let padded = (BEFORE + text.len() + 1).next_multiple_of(64);
    text.extend(std::iter::repeat_n(' ', padded - BEFORE - text.len() - 1));
    text.push('\n');
    [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_that_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("matrix.npz");
        let mut matrix = ScoredCsr::new(7);
        matrix.push_row(&mut vec![(6, 0.25), (1, -1.5)]);
        matrix.push_row(&mut Vec::new());
        matrix.push_row(&mut vec![(0, 3.0)]);
        write_npz(&path, &matrix).unwrap();
        assert_eq!(read(&path).unwrap(), (matrix, 0));
        let empty = ScoredCsr::new(2);
        write_npz(&path, &empty).unwrap();
        assert_eq!(read(&path).unwrap(), (empty, 0));
    }
}
