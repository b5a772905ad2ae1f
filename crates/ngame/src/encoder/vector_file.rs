//! A `.npy` file of vectors on its way: rows go in window by window, and the file appears under its
//! name when it is complete.
//!
//! Rows are made in a buffer of one window and then written in one go, rather than through a
//! writable memory map: a full disk is then an error that can be told, not the end of the process.

use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::npy::{HEADER, NpyHeader};
use super::vectors::{RowMut, VectorMatrix, VectorSink, VectorType};
use crate::atomic_file::FileAside;
use crate::{Error, Result};

/// A file of vectors that is being written. Dropped before [`VectorFile::finish`], it leaves no
/// trace.
#[derive(Debug)]
pub struct VectorFile {
    aside: FileAside,
    path: PathBuf,
    /// The rows of one window.
    window: VectorMatrix,
    n_rows: usize,
}

impl VectorFile {
    /// Begins a file.
    pub fn create(path: &Path, dim: usize, vector_type: VectorType) -> Result<Self> {
        let mut aside = FileAside::create(path)?;
        // The header is written last, when the number of rows is known.
        let write = |source| Error::io("write", path, source);
        aside.file().write_all(&[0; HEADER]).map_err(write)?;
        let window = VectorMatrix::zeros(0, dim, vector_type);
        Ok(Self { aside, path: path.to_owned(), window, n_rows: 0 })
    }

    /// Writes the header, syncs the file, gives it its name and maps it into memory.
    pub fn finish(mut self) -> Result<VectorMatrix> {
        let header = NpyHeader {
            vector_type: self.window.vector_type(),
            n_rows: self.n_rows,
            dim: self.window.dim(),
        };
        let file = self.aside.file();
        file.seek(SeekFrom::Start(0))
            .and_then(|_| file.write_all(&header.to_bytes()))
            .map_err(|source| Error::io("write", &self.path, source))?;
        self.aside.finish()?;
        VectorMatrix::open(&self.path)
    }
}

impl VectorSink for VectorFile {
    fn dim(&self) -> usize {
        self.window.dim()
    }

    fn append(
        &mut self,
        n_rows: usize,
        fill: &mut dyn FnMut(Vec<RowMut<'_>>) -> Result<()>,
    ) -> Result<()> {
        self.window.resize(n_rows);
        fill(self.window.rows_mut(0..n_rows).expect("the window lies in memory"))?;
        self.aside
            .file()
            .write_all(self.window.bytes())
            .map_err(|source| Error::io("write", &self.path, source))?;
        self.n_rows += n_rows;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::InputErrorKind;

    fn write(path: &Path, vector_type: VectorType) -> Result<VectorMatrix> {
        let mut file = VectorFile::create(path, 3, vector_type)?;
        for window in [[1.0f32, 2.0], [3.0, 4.0]] {
            file.append(2, &mut |rows| {
                for (mut row, value) in rows.into_iter().zip(window) {
                    row.set(&[value, -value, 0.25]);
                }
                Ok(())
            })?;
        }
        file.finish()
    }

    #[test]
    fn a_file_appears_complete_and_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vectors.npy");
        for vector_type in [VectorType::F32, VectorType::F16] {
            let matrix = write(&path, vector_type).unwrap();
            assert_eq!((matrix.n_rows(), matrix.dim()), (4, 3));
            assert_eq!(matrix.vector_type(), vector_type);
            assert_eq!(matrix.row(2).to_vec(), [3.0, -3.0, 0.25]);
            assert_eq!(matrix.rows(0..2).to_vec(), [1.0, -1.0, 0.25, 2.0, -2.0, 0.25]);
            let length = std::fs::metadata(&path).unwrap().len();
            assert_eq!(length as usize, HEADER + 12 * vector_type.width());
        }
    }

    #[test]
    fn an_unfinished_file_leaves_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vectors.npy");
        let mut file = VectorFile::create(&path, 3, VectorType::F32).unwrap();
        assert!(file.append(1, &mut |_| Err(Error::Cancelled)).is_err());
        drop(file);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn damaged_and_foreign_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vectors.npy");
        write(&path, VectorType::F32).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let opened = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            VectorMatrix::open(&path)
        };
        for length in 0..whole.len() {
            assert!(opened(&whole[..length]).is_err(), "cut at {length}");
        }
        let error = opened(&whole[..whole.len() - 4]).unwrap_err();
        assert_eq!(error.input_kind(), Some(InputErrorKind::DamagedFile));
        assert!(error.to_string().contains("44 bytes for 4 vectors of 3 numbers"), "{error}");
        let empty = NpyHeader { vector_type: VectorType::F32, n_rows: 4, dim: 0 };
        let error = opened(&empty.to_bytes()).unwrap_err().to_string();
        assert!(error.contains("4 vectors of length 0"), "{error}");
        let error = opened(b"PK\x03\x04").unwrap_err().to_string();
        assert!(error.contains("does not begin as .npy files do"), "{error}");
        let error = VectorMatrix::open(&folder.path().join("absent")).unwrap_err().to_string();
        assert!(error.contains("cannot read") && error.contains("absent"), "{error}");
    }
}
