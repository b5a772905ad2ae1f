//! What is learnt of every label: a vector and a bias.

use crate::encoder::VectorMatrix;

/// What biases are counted in where they stand behind vectors, and what stands behind every query.
///
/// Biases are alike and large, -10 to -40: as they are, they would be most of the inner product of any
/// two classifiers, and a graph of these would know all as neighbours of all.
pub const BIAS_UNIT: f32 = 32.0;

/// A vector and a bias for every label. The score of label l for a point x is
/// `scale · (vector · x) + bias`.
#[derive(Clone, Debug, PartialEq)]
pub struct Classifiers {
    vectors: Vec<f32>, // (labels, dim)
    biases: Vec<f32>,  // (labels)
    dim: usize,
    scale: f32,
}

impl Classifiers {
    /// Classifiers of these vectors and biases.
    ///
    /// # Panics
    /// If there is not one bias for every vector.
    pub fn new(vectors: Vec<f32>, biases: Vec<f32>, scale: f32) -> Self {
        let dim = vectors.len() / biases.len().max(1);
        assert_eq!(vectors.len(), dim * biases.len(), "a bias for every vector");
        Self { vectors, biases, dim, scale }
    }

    /// How many labels there are.
    pub fn n_labels(&self) -> usize {
        self.biases.len()
    }

    /// The length of a vector.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// What inner products are multiplied by.
    pub fn scale(&self) -> f32 {
        self.scale
    }

    /// All vectors, back to back.
    pub fn vectors(&self) -> &[f32] {
        &self.vectors
    }

    /// All biases.
    pub fn biases(&self) -> &[f32] {
        &self.biases
    }

    /// The score of a label for a point.
    pub fn score(&self, label: usize, point: &[f32]) -> f32 {
        let vector = &self.vectors[label * self.dim..(label + 1) * self.dim];
        self.scale * ngame_nn::dot(vector, point) + self.biases[label]
    }

    /// Vectors one longer, whose inner products with points that have a [`BIAS_UNIT`] behind them are the
    /// scores: what an index of inner products can search.
    pub fn with_biases(&self) -> VectorMatrix {
        let mut numbers = Vec::with_capacity(self.n_labels() * (self.dim + 1));
        for (vector, bias) in self.vectors.chunks_exact(self.dim).zip(&self.biases) {
            numbers.extend(vector.iter().map(|value| self.scale * value));
            numbers.push(*bias / BIAS_UNIT);
        }
        VectorMatrix::from_f32(numbers, self.dim + 1)
    }

    /// Joins parts that were trained apart, in order.
    ///
    /// # Panics
    /// If they differ in length or scale.
    pub fn join(parts: Vec<Self>) -> Self {
        let mut parts = parts.into_iter();
        let mut all = parts.next().expect("at least one part");
        for part in parts {
            assert!(part.dim == all.dim && part.scale == all.scale, "parts of one kind");
            all.vectors.extend(part.vectors);
            all.biases.extend(part.biases);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_inner_products_with_the_bias_behind() {
        let classifiers = Classifiers::new(vec![1.0, 2.0, 3.0, 4.0], vec![0.5, -0.5], 10.0);
        let indexed = classifiers.with_biases();
        for label in 0..2 {
            let row = indexed.row(label).to_vec();
            let product: f32 = row.iter().zip([0.3, 0.7, BIAS_UNIT]).map(|(a, b)| a * b).sum();
            assert!((product - classifiers.score(label, &[0.3, 0.7])).abs() < 1e-5);
        }
    }
}
