//! Approximate search in a graph (HNSW, Malkov and Yashunin), by the `usearch` crate.

use usearch::{Index, IndexOptions, MetricKind, ScalarKind, VectorType as _};

use crate::encoder::VectorMatrix;
use crate::progress::{Event, Observer};
use crate::{Error, Result};

/// How a graph is built and searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HnswOptions {
    /// The neighbours of a vector in the graph (M).
    pub connectivity: usize,
    /// The candidates kept while a vector is added; more make a better graph.
    pub build_width: usize,
    /// The candidates kept during a search; more find more.
    pub search_width: usize,
}

impl Default for HnswOptions {
    fn default() -> Self {
        Self { connectivity: 16, build_width: 128, search_width: 128 }
    }
}

/// Vectors in a graph.
pub struct Hnsw {
    index: Index,
}

impl std::fmt::Debug for Hnsw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hnsw").field("n_vectors", &self.index.size()).finish_non_exhaustive()
    }
}

impl Hnsw {
    /// Builds a graph of all vectors. It is built on one thread: then it depends on nothing but the
    /// vectors and the options.
    pub fn build(
        vectors: &VectorMatrix,
        options: &HnswOptions,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let options = IndexOptions {
            dimensions: vectors.dim(),
            metric: MetricKind::IP,
            quantization: ScalarKind::F32,
            connectivity: options.connectivity,
            expansion_add: options.build_width,
            expansion_search: options.search_width,
            multi: false,
        };
        let mut index = Index::new(&options).map_err(refused)?;
        let dim = vectors.dim();
        let distance = move |a: *const f32, b: *const f32| {
            // SAFETY: the index calls this with vectors of its own, which have its length.
            let (a, b) =
                unsafe { (std::slice::from_raw_parts(a, dim), std::slice::from_raw_parts(b, dim)) };
            1.0 - ngame_nn::dot(a, b)
        };
        f32::change_metric(&mut index, Box::new(distance)).map_err(refused)?;
        let threads = rayon::current_num_threads();
        index.reserve_capacity_and_threads(vectors.n_rows(), threads).map_err(refused)?;
        let total = Some(vectors.n_rows() as u64);
        observer.event(Event::Started { task: "building the index", total, unit: "vectors" });
        let mut row = vec![0.0; vectors.dim()];
        for vector in 0..vectors.n_rows() {
            if observer.cancelled() {
                return Err(Error::Cancelled);
            }
            vectors.row(vector).copy_to(&mut row);
            index.add(vector as u64, &row).map_err(refused)?;
            observer.event(Event::Advanced(1));
        }
        observer.event(Event::Finished);
        Ok(Self { index })
    }

    /// About the `k` vectors with the highest inner products, best first. Any number of threads of
    /// the pool it was built in may search at once.
    pub fn search(&self, query: &[f32], k: usize) -> Result<Vec<(u32, f32)>> {
        let matches = self.index.search(query, k).map_err(refused)?;
        // The distance of `usearch` is 1 less the inner product.
        let found = matches.keys.iter().zip(&matches.distances);
        Ok(found.map(|(&key, &distance)| (key as u32, 1.0 - distance)).collect())
    }
}

/// An index runs out of memory, or is asked for what its caller should not.
fn refused(error: impl std::fmt::Display) -> Error {
    Error::Option {
        option: "index",
        expected: "enough memory for an index of the vectors".to_owned(),
        found: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::encoder::VectorType;
    use crate::index::search_exact;
    use crate::progress::Silent;

    #[test]
    fn the_graph_finds_almost_all_of_the_nearest() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut unit = |n: usize| {
            let mut matrix = VectorMatrix::zeros(n, 24, VectorType::F32);
            for row in 0..n {
                let vector: Vec<f32> = (0..24).map(|_| random.random::<f32>() - 0.5).collect();
                let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
                matrix.set(row, &vector.iter().map(|x| x / norm).collect::<Vec<f32>>());
            }
            matrix
        };
        let (vectors, queries) = (unit(2_000), unit(50));
        let exact = search_exact(&queries, &vectors, 10, None, &Silent).unwrap();
        let index = Hnsw::build(&vectors, &HnswOptions::default(), &Silent).unwrap();
        let mut hits = 0;
        for query in 0..50 {
            let found = index.search(&queries.row(query).to_vec(), 10).unwrap();
            assert!(found.is_sorted_by(|a, b| a.1 >= b.1));
            hits += found.iter().filter(|(key, _)| exact.row(query).0.contains(key)).count();
        }
        assert!(hits >= 485, "{hits} of 500");
    }
}
