//! The file of a graph: its links, but not the vectors, which have a file of their own.
//!
//! ```text
//! offset  bytes  header                          all numbers are little-endian
//!      0      8  magic, "NGAMEHNW"
//!      8      4  format version
//!     12      4  bytes of a number of a vector: 4 (f32) or 2 (f16)
//!     16      8  number of vectors
//!     24      8  length of a vector
//!     32      8  connectivity
//!     40      8  search width
//!     48      8  the node that searches begin at
//!     56      8  rows of links in upper layers
//!     64     32  SHA-256 of some of the vectors
//!     96     32  SHA-256 of the body
//!    128     32  SHA-256 of the 128 bytes above
//!    160         body, 4 bytes a number: links of the lowest layer, links of the upper layers, and
//!                where in the latter a vector's begin (see `graph`)
//! ```
//!
//! A graph is read into memory and checked whole, link by link: a file that was damaged, or made to do
//! harm, is refused, and what happens to it later makes no difference. It is small beside the vectors.

use std::fs::File;
use std::io::{Read, Write};
use std::ops::Deref;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::graph::Graph;
use super::hnsw::{Hnsw, MOST_LINKS};
use crate::atomic_file::FileAside;
use crate::encoder::{Vector, VectorMatrix};
use crate::error::{InputError, InputErrorKind, Place};
use crate::{Error, Result};

const MAGIC: &[u8; 8] = b"NGAMEHNW";

/// The version this build writes, and the only one there has been.
const VERSION: u32 = 1;

const HEADER: usize = 160;

/// The header's bytes that its own checksum covers.
const CHECKED: usize = 128;

/// The vectors that stand for all in a file's header: enough to tell one training run from another.
const SAMPLED: usize = 256;

impl<V: Deref<Target = VectorMatrix>> Hnsw<V> {
    /// Writes the graph and its search width, all at once or not at all.
    pub fn save(&self, path: &Path) -> Result<()> {
        let parts: [&[u32]; 3] = [&self.graph.lowest, &self.graph.upper, &self.graph.upper_begin];
        let mut body = Sha256::new();
        parts.iter().for_each(|part| body.update(bytemuck::cast_slice::<u32, u8>(part)));
        let header = Header {
            n_vectors: self.graph.n_nodes() as u64,
            connectivity: self.graph.connectivity as u64,
            search_width: self.search_width() as u64,
            entry: u64::from(self.graph.entry),
            n_upper: (self.graph.upper.len() / (1 + self.graph.connectivity)) as u64,
            body: body.finalize().into(),
        };
        let mut aside = FileAside::create(path)?;
        let write = |source| Error::io("write", path, source);
        aside.file().write_all(&header.to_bytes(self.vectors())).map_err(write)?;
        for part in parts {
            aside.file().write_all(bytemuck::cast_slice(part)).map_err(write)?;
        }
        aside.finish()
    }

    /// Reads a graph of these vectors. A file that is damaged, or of other vectors, is an error.
    pub fn open(path: &Path, vectors: V) -> Result<Self> {
        let n_vectors = vectors.n_rows();
        Self::open_first(path, vectors, n_vectors)
    }

    /// Reads a graph of the first `n_vectors` of these vectors.
    pub fn open_first(path: &Path, vectors: V, n_vectors: usize) -> Result<Self> {
        let unusable = |problem: Problem| -> Error {
            InputError::new(problem.0, Place::file(path))
                .expected("an index of these vectors, as `save` writes it")
                .found(problem.1)
                .help("delete it and build it again: it follows from the vectors")
                .into()
        };
        let read = |source| Error::io("read", path, source);
        let mut file = File::open(path).map_err(read)?;
        let length = file.metadata().map_err(read)?.len();
        let mut bytes = Vec::with_capacity(HEADER);
        Read::by_ref(&mut file).take(HEADER as u64).read_to_end(&mut bytes).map_err(read)?;
        let header = Header::read(&bytes, &vectors, n_vectors).map_err(unusable)?;
        let n_words = header.n_words().filter(|&n| n * 4 + HEADER as u64 == length);
        let Some(n_words) = n_words else {
            let found = format!("{length} bytes for {} vectors", header.n_vectors);
            return Err(unusable(damaged(found)));
        };
        // No more is asked for than the file was just seen to have.
        let mut words = vec![0u32; n_words as usize];
        file.read_exact(bytemuck::cast_slice_mut(&mut words)).map_err(read)?;
        let search_width = header.search_width as usize;
        let graph = header.graph(words).map_err(unusable)?;
        Ok(Self::new(vectors, graph, search_width))
    }
}

/// Why a file cannot be used, and what stands there instead.
type Problem = (InputErrorKind, String);

fn damaged(found: impl Into<String>) -> Problem {
    (InputErrorKind::DamagedFile, found.into())
}

struct Header {
    n_vectors: u64,
    connectivity: u64,
    search_width: u64,
    entry: u64,
    n_upper: u64,
    body: [u8; 32],
}

impl Header {
    /// The header as it stands in a file.
    fn to_bytes(&self, vectors: &VectorMatrix) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(vectors.vector_type().width() as u32).to_le_bytes());
        let (n_vectors, dim) = (self.n_vectors, vectors.dim() as u64);
        let numbers =
            [n_vectors, dim, self.connectivity, self.search_width, self.entry, self.n_upper];
        for (place, number) in bytes[16..64].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes[64..96].copy_from_slice(&sample(vectors, n_vectors as usize));
        bytes[96..128].copy_from_slice(&self.body);
        let checksum = Sha256::digest(&bytes[..CHECKED]);
        bytes[CHECKED..].copy_from_slice(&checksum);
        bytes
    }

    /// Reads a file's header, which must be of the first `n_first` of these vectors.
    fn read(file: &[u8], vectors: &VectorMatrix, n_first: usize) -> Result<Self, Problem> {
        if !file.starts_with(MAGIC) {
            let found = "a file that does not begin with NGAMEHNW".to_owned();
            return Err((InputErrorKind::UnknownFormat, found));
        }
        let Some(bytes) = file.first_chunk::<HEADER>() else {
            return Err(damaged("a file that ends within its header"));
        };
        let mut numbers = [0u64; 7];
        for (number, eight) in numbers.iter_mut().zip(bytes[8..64].as_chunks::<8>().0) {
            *number = u64::from_le_bytes(*eight);
        }
        let [kind, n_vectors, dim, connectivity, search_width, entry, n_upper] = numbers;
        // The version comes before the checksum: another version may have another header.
        if kind as u32 != VERSION {
            let found = format!("version {} of the format", kind as u32);
            return Err((InputErrorKind::Unsupported, found));
        }
        if Sha256::digest(&bytes[..CHECKED])[..] != bytes[CHECKED..] {
            return Err(damaged("a header that does not match its checksum"));
        }
        let shape = (n_vectors, dim, kind >> 32);
        let width = vectors.vector_type().width() as u64;
        if shape != (n_first as u64, vectors.dim() as u64, width) {
            let found = format!("one of {n_vectors} vectors of {dim} x {} bytes", kind >> 32);
            return Err((InputErrorKind::CountMismatch, found));
        }
        if bytes[64..96] != sample(vectors, n_first) {
            let found = "one of other vectors of the same number and length".to_owned();
            return Err((InputErrorKind::CountMismatch, found));
        }
        let mut body = [0; 32];
        body.copy_from_slice(&bytes[96..128]);
        Ok(Self { n_vectors, connectivity, search_width, entry, n_upper, body })
    }

    /// The numbers of the body; `None` if that is more than can be counted, or makes no sense.
    fn n_words(&self) -> Option<u64> {
        if !(2..=MOST_LINKS as u64).contains(&self.connectivity) {
            return None;
        }
        let lowest = self.n_vectors.checked_mul(1 + 2 * self.connectivity)?;
        let upper = self.n_upper.checked_mul(1 + self.connectivity)?;
        let n_words = lowest.checked_add(upper)?.checked_add(self.n_vectors + 1)?;
        // In bytes, with a header, it can be counted too.
        n_words.checked_mul(4)?.checked_add(HEADER as u64)?;
        usize::try_from(self.search_width).ok()?;
        Some(n_words)
    }

    /// The graph that the numbers of a body are, checked whole.
    fn graph(&self, mut words: Vec<u32>) -> Result<Graph, Problem> {
        if Sha256::digest(bytemuck::cast_slice::<u32, u8>(&words))[..] != self.body {
            return Err(damaged("links that do not match their checksum"));
        }
        // All counts fit: together they are the length of `words`.
        let connectivity = self.connectivity as usize;
        let upper_begin = words.split_off(words.len() - self.n_vectors as usize - 1);
        let upper = words.split_off(self.n_vectors as usize * (1 + 2 * connectivity));
        words.shrink_to_fit();
        let first_and_last = (upper_begin.first(), upper_begin.last().map(|&n| u64::from(n)));
        if !upper_begin.is_sorted() || first_and_last != (Some(&0), Some(self.n_upper)) {
            return Err(damaged("layers that are not the ones of the vectors"));
        }
        let entry = self.entry as u32;
        let graph = Graph { connectivity, entry, lowest: words, upper, upper_begin };
        let n_nodes = graph.n_nodes();
        if n_nodes > 0 && self.entry >= n_nodes as u64 {
            return Err(damaged(format!("a search that begins at vector {}", self.entry)));
        }
        let highest = if n_nodes == 0 { 0 } else { graph.top_layer(entry) };
        for node in 0..n_nodes as u32 {
            let top = graph.top_layer(node);
            if top > highest {
                return Err(damaged("a vector above the one that searches begin at"));
            }
            for layer in 0..=top {
                let whole = graph.count(node, layer) <= graph.room(layer)
                    && graph
                        .links(node, layer)
                        .iter()
                        .all(|&link| (link as usize) < n_nodes && graph.top_layer(link) >= layer);
                if !whole {
                    return Err(damaged(format!("links of vector {node} that lead nowhere")));
                }
            }
        }
        Ok(graph)
    }
}

/// The checksum of some of the first `n_first` vectors, evenly spread.
fn sample(vectors: &VectorMatrix, n_first: usize) -> [u8; 32] {
    let mut hash = Sha256::new();
    let n = SAMPLED.min(n_first);
    for at in 0..n {
        match vectors.row(at * n_first / n) {
            Vector::F32(row) => hash.update(bytemuck::cast_slice::<f32, u8>(row)),
            Vector::F16(row) => hash.update(bytemuck::cast_slice::<half::f16, u8>(row)),
        }
    }
    hash.finalize().into()
}

/// Makes both checksums right again after a change: what someone who means harm can do.
#[cfg(test)]
pub(super) fn sign(file: &mut [u8]) {
    let body: [u8; 32] = Sha256::digest(&file[HEADER..]).into();
    file[96..CHECKED].copy_from_slice(&body);
    let header: [u8; 32] = Sha256::digest(&file[..CHECKED]).into();
    file[CHECKED..HEADER].copy_from_slice(&header);
}
