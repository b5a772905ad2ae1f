//! Many vectors, one a row, in 32 or 16 bits, in memory or mapped from a `.npy` file.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use half::f16;
use half::slice::HalfFloatSliceExt;
use half::vec::HalfFloatVecExt;
use memmap2::Mmap;
use ngame_nn::Rows;

use super::npy::NpyHeader;
use crate::error::{InputError, InputErrorKind, Place};
use crate::{Error, Result};

// Files are little-endian and their numbers are used as they lie.
const _: () = assert!(cfg!(target_endian = "little"), "only little-endian machines are supported");

/// How the numbers of a vector are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VectorType {
    /// 32 bits.
    #[default]
    F32,
    /// 16 bits: half the space; a unit vector's numbers keep three digits.
    F16,
}

impl VectorType {
    /// The bytes of a number.
    pub fn width(self) -> usize {
        match self {
            Self::F32 => size_of::<f32>(),
            Self::F16 => size_of::<f16>(),
        }
    }

    /// What NumPy calls it.
    pub(super) fn numpy_name(self) -> &'static str {
        match self {
            Self::F32 => "<f4",
            Self::F16 => "<f2",
        }
    }
}

/// Vectors of one length, one a row.
#[derive(Debug)]
pub struct VectorMatrix {
    numbers: Numbers,
    n_rows: usize,
    dim: usize,
}

/// Where the numbers of all rows lie, back to back.
#[derive(Debug)]
enum Numbers {
    F32(Vec<f32>),
    F16(Vec<f16>),
    File { map: Mmap, begin: usize, vector_type: VectorType },
}

/// One row, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Vector<'a> {
    /// 32 bits a number.
    F32(&'a [f32]),
    /// 16 bits a number.
    F16(&'a [f16]),
}

impl Vector<'_> {
    /// Copies the numbers, as f32.
    ///
    /// # Panics
    /// If `numbers` has another length.
    pub fn copy_to(&self, numbers: &mut [f32]) {
        match self {
            Self::F32(row) => numbers.copy_from_slice(row),
            Self::F16(row) => row.convert_to_f32_slice(numbers),
        }
    }

    /// The numbers as f32.
    pub fn to_vec(&self) -> Vec<f32> {
        match self {
            Self::F32(row) => row.to_vec(),
            Self::F16(row) => row.to_f32_vec(),
        }
    }
}

/// One row to be written.
#[derive(Debug)]
pub enum RowMut<'a> {
    /// 32 bits a number.
    F32(&'a mut [f32]),
    /// 16 bits a number.
    F16(&'a mut [f16]),
}

impl RowMut<'_> {
    /// Writes the numbers, rounded where the row has 16 bits.
    ///
    /// # Panics
    /// If `numbers` has another length.
    pub fn set(&mut self, numbers: &[f32]) {
        match self {
            Self::F32(row) => row.copy_from_slice(numbers),
            Self::F16(row) => row.convert_from_f32_slice(numbers),
        }
    }
}

/// Takes rows as they are made, a window at a time.
pub trait VectorSink {
    /// The length of a row.
    fn dim(&self) -> usize;

    /// Adds `n_rows` rows behind those there are; `fill` writes them, on any number of threads.
    fn append(
        &mut self,
        n_rows: usize,
        fill: &mut dyn FnMut(Vec<RowMut<'_>>) -> Result<()>,
    ) -> Result<()>;
}

impl VectorMatrix {
    /// A matrix in memory, all zero.
    pub fn zeros(n_rows: usize, dim: usize, vector_type: VectorType) -> Self {
        assert!(dim > 0, "a vector has a length");
        let numbers = match vector_type {
            VectorType::F32 => Numbers::F32(vec![0.0; n_rows * dim]),
            VectorType::F16 => Numbers::F16(vec![f16::ZERO; n_rows * dim]),
        };
        Self { numbers, n_rows, dim }
    }

    /// Maps a `.npy` file into memory: two dimensions, `<f4` or `<f2`, row by row.
    pub fn open(path: &Path) -> Result<Self> {
        let unusable = |kind, found: String| {
            InputError::new(kind, Place::file(path))
                .expected("a .npy file of vectors: float32 or float16, two dimensions, C order")
                .found(found)
                .help("make it with `ngame embed`, or with numpy.save of such an array")
        };
        let read = |source| Error::io("read", path, source);
        let file = File::open(path).map_err(read)?;
        // SAFETY: a map must not change under its reader. Files of vectors are written aside and
        // renamed, never changed in place, so only a foreign program could change this one. Every
        // access is checked, and every bit pattern is a number.
        let map = unsafe { Mmap::map(&file) }.map_err(read)?;
        let (header, begin) = NpyHeader::read(&map)
            .map_err(|found| unusable(InputErrorKind::UnknownFormat, found))?;
        let NpyHeader { vector_type, n_rows, dim } = header;
        if dim == 0 {
            let found = format!("{n_rows} vectors of length 0");
            return Err(unusable(InputErrorKind::UnknownFormat, found).into());
        }
        let found = map.len() - begin;
        if header.data_len() != Some(found) {
            let found = format!("{found} bytes for {n_rows} vectors of {dim} numbers");
            return Err(unusable(InputErrorKind::DamagedFile, found).into());
        }
        if !begin.is_multiple_of(vector_type.width()) {
            let found = format!("numbers that begin at byte {begin}");
            return Err(unusable(InputErrorKind::UnknownFormat, found).into());
        }
        Ok(Self { numbers: Numbers::File { map, begin, vector_type }, n_rows, dim })
    }

    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The length of a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// How numbers are stored.
    pub fn vector_type(&self) -> VectorType {
        match self.numbers {
            Numbers::F32(_) => VectorType::F32,
            Numbers::F16(_) => VectorType::F16,
            Numbers::File { vector_type, .. } => vector_type,
        }
    }

    /// A matrix in memory, of numbers there are already.
    ///
    /// # Panics
    /// If they do not make whole rows.
    pub fn from_f32(numbers: Vec<f32>, dim: usize) -> Self {
        assert!(dim > 0 && numbers.len().is_multiple_of(dim), "whole rows");
        Self { n_rows: numbers.len() / dim, numbers: Numbers::F32(numbers), dim }
    }

    /// The same in 16 bits.
    ///
    /// # Panics
    /// If they do not make whole rows.
    pub fn from_f16(numbers: Vec<f16>, dim: usize) -> Self {
        assert!(dim > 0 && numbers.len().is_multiple_of(dim), "whole rows");
        Self { n_rows: numbers.len() / dim, numbers: Numbers::F16(numbers), dim }
    }

    /// A copy of all rows in memory, in 16 bits.
    pub fn to_f16(&self) -> Self {
        let numbers = match self.all() {
            Vector::F32(numbers) => Vec::from_f32_slice(numbers),
            Vector::F16(numbers) => numbers.to_vec(),
        };
        Self::from_f16(numbers, self.dim)
    }

    /// All rows, for sums over them.
    pub fn as_rows(&self) -> Rows<'_> {
        match self.all() {
            Vector::F32(numbers) => Rows::f32(numbers, self.dim),
            Vector::F16(numbers) => Rows::f16(numbers, self.dim),
        }
    }

    /// All rows, back to back.
    pub fn all(&self) -> Vector<'_> {
        match &self.numbers {
            Numbers::F32(numbers) => Vector::F32(numbers),
            Numbers::F16(numbers) => Vector::F16(numbers),
            // The casts cannot fail: a map begins at a page, and the place of the numbers in it
            // and their length were checked when the file was opened.
            Numbers::File { map, begin, vector_type: VectorType::F32 } => {
                Vector::F32(bytemuck::cast_slice(&map[*begin..]))
            }
            Numbers::File { map, begin, vector_type: VectorType::F16 } => {
                Vector::F16(bytemuck::cast_slice(&map[*begin..]))
            }
        }
    }

    /// Some rows, back to back.
    ///
    /// # Panics
    /// If there are no such rows.
    pub fn rows(&self, rows: Range<usize>) -> Vector<'_> {
        let range = rows.start * self.dim..rows.end * self.dim;
        match self.all() {
            Vector::F32(numbers) => Vector::F32(&numbers[range]),
            Vector::F16(numbers) => Vector::F16(&numbers[range]),
        }
    }

    /// One row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> Vector<'_> {
        self.rows(row..row + 1)
    }

    /// Some rows to be written, each on its own, so that threads can share them out. A matrix that
    /// is mapped from a file cannot be written: `None`.
    ///
    /// # Panics
    /// If there are no such rows.
    pub fn rows_mut(&mut self, rows: Range<usize>) -> Option<Vec<RowMut<'_>>> {
        let (range, dim) = (rows.start * self.dim..rows.end * self.dim, self.dim);
        match &mut self.numbers {
            Numbers::F32(all) => Some(all[range].chunks_mut(dim).map(RowMut::F32).collect()),
            Numbers::F16(all) => Some(all[range].chunks_mut(dim).map(RowMut::F16).collect()),
            Numbers::File { .. } => None,
        }
    }

    /// Writes one row.
    ///
    /// # Panics
    /// If there is no such row, or the matrix is mapped from a file.
    pub fn set(&mut self, row: usize, numbers: &[f32]) {
        let rows = self.rows_mut(row..row + 1).expect("a matrix in memory can be written");
        rows.into_iter().for_each(|mut row| row.set(numbers));
    }

    /// Writes a `.npy` file, which [`VectorMatrix::open`] maps.
    pub(crate) fn write_npy(&self, output: &mut impl Write) -> io::Result<()> {
        let Self { n_rows, dim, .. } = *self;
        let header = NpyHeader { vector_type: self.vector_type(), n_rows, dim };
        output.write_all(&header.to_bytes())?;
        output.write_all(self.bytes())
    }

    /// The bytes of all rows.
    pub(super) fn bytes(&self) -> &[u8] {
        match self.all() {
            Vector::F32(numbers) => bytemuck::cast_slice(numbers),
            Vector::F16(numbers) => bytemuck::cast_slice(numbers),
        }
    }

    /// Makes a matrix in memory longer or shorter; new rows are zero.
    pub(super) fn resize(&mut self, n_rows: usize) {
        match &mut self.numbers {
            Numbers::F32(numbers) => numbers.resize(n_rows * self.dim, 0.0),
            Numbers::F16(numbers) => numbers.resize(n_rows * self.dim, f16::ZERO),
            Numbers::File { .. } => unreachable!("only matrices in memory are made longer"),
        }
        self.n_rows = n_rows;
    }
}

impl VectorSink for VectorMatrix {
    fn dim(&self) -> usize {
        self.dim
    }

    /// # Panics
    /// If the matrix is mapped from a file.
    fn append(
        &mut self,
        n_rows: usize,
        fill: &mut dyn FnMut(Vec<RowMut<'_>>) -> Result<()>,
    ) -> Result<()> {
        let begin = self.n_rows;
        self.resize(begin + n_rows);
        let rows = self.rows_mut(begin..begin + n_rows).expect("a matrix in memory can be written");
        let result = fill(rows);
        if result.is_err() {
            self.resize(begin);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_written_and_read_in_both_widths() {
        for vector_type in [VectorType::F32, VectorType::F16] {
            let mut matrix = VectorMatrix::zeros(1, 2, vector_type);
            matrix
                .append(2, &mut |mut rows| {
                    rows[1].set(&[0.5, -2.0]);
                    Ok(())
                })
                .unwrap();
            assert_eq!((matrix.n_rows(), matrix.vector_type()), (3, vector_type));
            assert_eq!(matrix.row(1).to_vec(), [0.0, 0.0]);
            let mut row = [0.0; 2];
            matrix.row(2).copy_to(&mut row);
            assert_eq!(row, [0.5, -2.0]);
            let failed = matrix.append(5, &mut |_| Err(Error::Cancelled));
            assert!(failed.is_err());
            assert_eq!(matrix.n_rows(), 3, "rows that were not filled are gone");
        }
    }
}
