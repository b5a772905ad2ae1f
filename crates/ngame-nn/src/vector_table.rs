//! A table of vectors that are trained row by row: one classifier a label, of which a step touches
//! few.

use std::sync::Arc;

use crate::adamw::{AdamW, AdamWConfig};
use crate::parameters::{Gradients, Kind, Layout, Parameters};

/// Vectors with their gradients and moments.
#[derive(Clone, Debug)]
pub struct VectorTable {
    parameters: Parameters, // (rows, dim)
    gradients: Gradients,
    optimiser: AdamW,
    dim: usize,
}

impl VectorTable {
    /// A table of these vectors.
    ///
    /// # Panics
    /// If they do not make whole rows.
    pub fn new(vectors: &[f32], dim: usize, config: AdamWConfig) -> Self {
        assert!(dim > 0 && vectors.len().is_multiple_of(dim), "whole rows");
        let mut layout = Layout::default();
        layout.add("vectors".to_owned(), &[vectors.len() / dim, dim], Kind::Table);
        let layout = Arc::new(layout);
        let mut parameters = Parameters::zeros(&layout);
        parameters.values_mut().copy_from_slice(vectors);
        let gradients = Gradients::zeros(&layout);
        let optimiser = AdamW::new(config, &layout);
        Self { parameters, gradients, optimiser, dim }
    }

    /// All vectors, back to back.
    pub fn values(&self) -> &[f32] {
        self.parameters.values()
    }

    /// All vectors, back to back.
    pub fn values_mut(&mut self) -> &mut [f32] {
        self.parameters.values_mut()
    }

    /// Copies some rows.
    pub fn gather(&self, rows: &[u32], out: &mut [f32]) {
        for (&row, out) in rows.iter().zip(out.chunks_exact_mut(self.dim)) {
            let start = row as usize * self.dim;
            out.copy_from_slice(&self.parameters.values()[start..start + self.dim]);
        }
    }

    /// One step of some rows against their gradients. Returns the length of the whole gradient; if it
    /// is not finite, nothing has changed.
    pub fn step(&mut self, learning_rate: f32, rows: &[u32], d_rows: &[f32]) -> f32 {
        self.gradients.scatter_rows(0, rows, d_rows);
        self.optimiser.step(learning_rate, &mut self.parameters, &mut self.gradients)
    }

    /// The moments and the steps taken, to be kept between runs.
    pub fn optimiser(&self) -> &AdamW {
        &self.optimiser
    }

    /// Goes on from moments kept before.
    pub fn restore(&mut self, n_steps: u64, first: &[f32], second: &[f32]) {
        self.optimiser.restore(n_steps, first, second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_move_against_their_gradients_and_others_stay() {
        let config = AdamWConfig { weight_decay: 0.0, ..AdamWConfig::default() };
        let mut table = VectorTable::new(&[1.0; 6], 2, config);
        assert!(table.step(0.1, &[2, 0, 2], &[1.0, 1.0, -1.0, 0.0, 1.0, 1.0]) > 2.0);
        let mut rows = [0.0; 6];
        table.gather(&[0, 1, 2], &mut rows);
        let expected = [1.1, 1.0, 1.0, 1.0, 0.9, 0.9];
        for (found, expected) in rows.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5, "{rows:?}");
        }
        assert!(table.step(0.1, &[1], &[f32::NAN, 0.0]).is_nan());
        assert_eq!(table.optimiser().n_steps(), 1);
    }
}
