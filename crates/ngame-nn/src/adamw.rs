//! AdamW: Adam with weight decay apart from the gradient (Loshchilov and Hutter), as
//! `torch.optim.AdamW` computes it, in one pass over flat buffers.
//!
//! Embedding tables can be updated by row: rows that no token of the step touched stay as they are,
//! with their moments, and decay reaches them only when they are touched (what
//! `torch.optim.SparseAdam` does). A dense update would let them drift along their old momentum for
//! some steps more. For large vocabularies and fast encoders it is the difference between reading a
//! few rows and reading the whole table three times.

use rayon::prelude::*;

use crate::kernels::math::dot;
use crate::kernels::{Level, kernel};
use crate::parameters::{Gradients, Layout, Parameters};

/// The values of a task.
const BLOCK: usize = 16_384;

/// The numbers of AdamW, but the learning rate, which changes from step to step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamWConfig {
    /// How much of the first moment stays from step to step.
    pub beta1: f32,
    /// How much of the second moment stays from step to step.
    pub beta2: f32,
    /// What is added to the square root of the second moment.
    pub epsilon: f32,
    /// The share of a weight that a step takes away, times the learning rate. Biases and LayerNorms
    /// keep theirs.
    pub weight_decay: f32,
    /// The longest gradient, all weights taken as one vector; longer ones are scaled down to it.
    pub max_norm: Option<f32>,
    /// Whether rows of embedding tables that a step did not touch stay as they are.
    pub lazy_rows: bool,
}

impl Default for AdamWConfig {
    fn default() -> Self {
        Self {
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.01,
            max_norm: None,
            lazy_rows: true,
        }
    }
}

/// The optimiser and its moments.
#[derive(Clone, Debug)]
pub struct AdamW {
    config: AdamWConfig,
    first: Vec<f32>,  // (parameters): mean of gradients
    second: Vec<f32>, // (parameters): mean of squared gradients
    n_steps: u64,
    rows: Vec<u32>, // Touched rows in order; kept for its memory.
    level: Level,
}

impl AdamW {
    /// Before the first step.
    pub fn new(config: AdamWConfig, layout: &Layout) -> Self {
        let zeros = || crate::memory::zeros(layout.len());
        Self {
            config,
            first: zeros(),
            second: zeros(),
            n_steps: 0,
            rows: Vec::new(),
            level: Level::best(),
        }
    }

    /// One step against the gradients, which are zero afterwards. Returns the length they had; if it
    /// is not finite, nothing but the gradients has changed.
    pub fn step(
        &mut self,
        learning_rate: f32,
        parameters: &mut Parameters,
        gradients: &mut Gradients,
    ) -> f32 {
        let norm = gradients.norm(self.level);
        if !norm.is_finite() {
            gradients.clear();
            return norm;
        }
        self.n_steps += 1;
        let update = self.update(learning_rate, norm);
        let layout = std::sync::Arc::clone(parameters.layout());
        let mut touched = gradients.touched.iter_mut();
        for tensor in layout.tensors() {
            let range = tensor.range();
            let weights = &mut parameters.values_mut()[range.clone()];
            let slices = Slices {
                weights,
                gradients: &mut gradients.values[range.clone()],
                first: &mut self.first[range.clone()],
                second: &mut self.second[range],
            };
            let update = if tensor.decay { update } else { Update { shrink: 1.0, ..update } };
            let touched = if tensor.by_row { touched.next() } else { None };
            match touched {
                Some(touched) if self.config.lazy_rows => {
                    self.rows.clear();
                    self.rows.extend_from_slice(touched.rows());
                    self.rows.par_sort_unstable();
                    update_rows(self.level, update, &self.rows, tensor.row_len(), 0, slices);
                    touched.clear();
                }
                Some(touched) => {
                    update_all(self.level, update, slices);
                    touched.clear();
                }
                None => update_all(self.level, update, slices),
            }
        }
        norm
    }

    /// The steps taken.
    pub fn n_steps(&self) -> u64 {
        self.n_steps
    }

    /// The moments, mean of gradients and mean of their squares, as flat as the parameters: together
    /// with the steps taken, all there is to keep between runs.
    pub fn moments(&self) -> (&[f32], &[f32]) {
        (&self.first, &self.second)
    }

    /// Goes on from moments kept before.
    ///
    /// # Panics
    /// If they are of another length.
    pub fn restore(&mut self, n_steps: u64, first: &[f32], second: &[f32]) {
        self.n_steps = n_steps;
        self.first.copy_from_slice(first);
        self.second.copy_from_slice(second);
    }

    /// The numbers of this step.
    fn update(&self, learning_rate: f32, norm: f32) -> Update {
        let AdamWConfig { beta1, beta2, epsilon, weight_decay, max_norm, .. } = self.config;
        let correction = |beta: f32| 1.0 - f64::from(beta).powi(self.n_steps.min(1 << 30) as i32);
        Update {
            clip: match max_norm {
                Some(most) if norm > most => most / (norm + 1e-6),
                _ => 1.0,
            },
            shrink: 1.0 - learning_rate * weight_decay,
            beta1,
            beta2,
            rate: (f64::from(learning_rate) / correction(beta1)) as f32,
            inverse_deviation: (1.0 / correction(beta2).sqrt()) as f32,
            epsilon,
        }
    }
}

/// What one step does to every weight.
#[derive(Clone, Copy)]
struct Update {
    clip: f32,
    shrink: f32,
    beta1: f32,
    beta2: f32,
    rate: f32,
    inverse_deviation: f32,
    epsilon: f32,
}

/// The same part of the four flat buffers.
struct Slices<'a> {
    weights: &'a mut [f32],
    gradients: &'a mut [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
}

impl<'a> Slices<'a> {
    fn split_at(self, middle: usize) -> (Self, Self) {
        let (weights, weights_right) = self.weights.split_at_mut(middle);
        let (gradients, gradients_right) = self.gradients.split_at_mut(middle);
        let (first, first_right) = self.first.split_at_mut(middle);
        let (second, second_right) = self.second.split_at_mut(middle);
        let right = Slices {
            weights: weights_right,
            gradients: gradients_right,
            first: first_right,
            second: second_right,
        };
        (Self { weights, gradients, first, second }, right)
    }
}

fn update_all(level: Level, update: Update, slices: Slices<'_>) {
    (
        slices.weights.par_chunks_mut(BLOCK),
        slices.gradients.par_chunks_mut(BLOCK),
        slices.first.par_chunks_mut(BLOCK),
        slices.second.par_chunks_mut(BLOCK),
    )
        .into_par_iter()
        .for_each(|(weights, gradients, first, second)| {
            adamw(level, update, weights, gradients, first, second);
        });
}

/// Updates some rows, in order, of a table that begins at `first_row`.
fn update_rows(
    level: Level,
    update: Update,
    rows: &[u32],
    row_len: usize,
    first_row: u32,
    slices: Slices<'_>,
) {
    if rows.len() * row_len > BLOCK && rows.len() > 1 {
        let (left, right) = rows.split_at(rows.len() / 2);
        let (below, above) = slices.split_at((right[0] - first_row) as usize * row_len);
        rayon::join(
            || update_rows(level, update, left, row_len, first_row, below),
            || update_rows(level, update, right, row_len, right[0], above),
        );
        return;
    }
    for &row in rows {
        let start = (row - first_row) as usize * row_len;
        let range = start..start + row_len;
        adamw(
            level,
            update,
            &mut slices.weights[range.clone()],
            &mut slices.gradients[range.clone()],
            &mut slices.first[range.clone()],
            &mut slices.second[range],
        );
    }
}

kernel! {
    /// The step of one weight, for many.
    fn adamw<A>(
        update: Update,
        weights: &mut [f32],
        gradients: &mut [f32],
        first: &mut [f32],
        second: &mut [f32],
    ) {
        let Update { clip, shrink, beta1, beta2, rate, inverse_deviation, epsilon } = update;
        for (((w, g), m), v) in weights.iter_mut().zip(gradients).zip(first).zip(second) {
            let gradient = *g * clip;
            *g = 0.0;
            *m = A::mul_add(*m, beta1, gradient * (1.0 - beta1));
            *v = A::mul_add(*v, beta2, gradient * gradient * (1.0 - beta2));
            let deviation = A::mul_add(v.sqrt(), inverse_deviation, epsilon);
            *w = *w * shrink - rate * *m / deviation;
        }
    }
}

impl Gradients {
    /// The length of the gradient, all weights taken as one vector.
    fn norm(&self, level: Level) -> f32 {
        // Blocks are added in order, so the sum is the same on any number of threads.
        let squares = |values: &[f32]| -> f64 {
            let blocks = values.par_chunks(BLOCK).map(|block| sum_of_squares(level, block));
            blocks.collect_vec_list().into_iter().flatten().sum()
        };
        let mut total = 0.0;
        for tensor in self.layout().tensors().iter().filter(|tensor| !tensor.by_row) {
            total += squares(&self.values()[tensor.range()]);
        }
        for (table, touched) in self.tables() {
            let values = &self.values()[table.range()];
            for &row in touched.rows() {
                let start = row as usize * table.row_len();
                total += sum_of_squares(level, &values[start..start + table.row_len()]);
            }
        }
        total.sqrt() as f32
    }

    /// Back to zero.
    pub fn clear(&mut self) {
        for touched in &mut self.touched {
            touched.clear();
        }
        self.values.fill(0.0);
    }
}

kernel! {
    /// The sum of the squares of a block.
    fn sum_of_squares<A>(values: &[f32]) -> f64 {
        f64::from(dot(values, values))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::parameters::Kind;
    use crate::transformer::golden::{Golden, assert_close};

    fn table(rows: usize, dim: usize) -> Arc<Layout> {
        let mut layout = Layout::default();
        layout.add("table".to_owned(), &[rows, dim], Kind::Table);
        Arc::new(layout)
    }

    #[test]
    fn lazy_rows_move_as_in_sparse_adam() {
        let golden = Golden::read("adam");
        let layout = table(40, 6);
        let mut parameters = Parameters::zeros(&layout);
        parameters.values_mut().copy_from_slice(golden.floats("start"));
        let mut gradients = Gradients::zeros(&layout);
        let config = AdamWConfig { weight_decay: 0.0, ..AdamWConfig::default() };
        let mut optimiser = AdamW::new(config, &layout);
        for step in 0..8 {
            let rows = golden.ids(&format!("rows.{step}"));
            gradients.scatter_rows(0, &rows, golden.floats(&format!("grad.{step}")));
            let norm = optimiser.step(0.05, &mut parameters, &mut gradients);
            assert!(norm > 0.0);
            assert!(gradients.values().iter().all(|&value| value == 0.0));
        }
        assert_close("after", parameters.values(), golden.floats("after"), 1e-6);
    }

    #[test]
    fn untouched_rows_stay_as_they_are_when_lazy_and_shrink_when_not() {
        let layout = table(3, 2);
        for lazy_rows in [true, false] {
            let mut parameters = Parameters::zeros(&layout);
            parameters.values_mut().fill(1.0);
            let mut gradients = Gradients::zeros(&layout);
            let config = AdamWConfig { weight_decay: 0.5, lazy_rows, ..AdamWConfig::default() };
            let mut optimiser = AdamW::new(config, &layout);
            gradients.scatter_rows(0, &[1], &[1.0, -1.0]);
            optimiser.step(0.1, &mut parameters, &mut gradients);
            let untouched = if lazy_rows { 1.0 } else { 0.95 };
            assert_close(
                "weights",
                parameters.values(),
                &[untouched, untouched, 0.85, 1.05, untouched, untouched],
                1e-6,
            );
        }
    }

    #[test]
    fn gradients_that_are_not_finite_change_nothing() {
        let layout = table(3, 2);
        let mut parameters = Parameters::zeros(&layout);
        let mut gradients = Gradients::zeros(&layout);
        let mut optimiser = AdamW::new(AdamWConfig::default(), &layout);
        gradients.scatter_rows(0, &[1], &[1.0, f32::INFINITY]);
        assert!(!optimiser.step(0.1, &mut parameters, &mut gradients).is_finite());
        assert_eq!((parameters.values(), gradients.values()), (&[0.0; 6][..], &[0.0; 6][..]));
        assert_eq!(optimiser.n_steps(), 0);
    }

    #[test]
    fn a_run_goes_on_from_its_moments() {
        let layout = table(3, 2);
        let mut gradients = Gradients::zeros(&layout);
        let mut step = |optimiser: &mut AdamW, parameters: &mut Parameters, row: u32| {
            gradients.scatter_rows(0, &[row], &[0.3, -0.7]);
            optimiser.step(0.1, parameters, &mut gradients);
        };
        let mut straight =
            (AdamW::new(AdamWConfig::default(), &layout), Parameters::zeros(&layout));
        let mut resumed = (straight.0.clone(), straight.1.clone());
        for row in [0, 1, 1, 2, 0] {
            step(&mut straight.0, &mut straight.1, row);
            let mut fresh = AdamW::new(AdamWConfig::default(), &layout);
            let (first, second) = resumed.0.moments();
            fresh.restore(resumed.0.n_steps(), first, second);
            step(&mut fresh, &mut resumed.1, row);
            resumed.0 = fresh;
        }
        assert_eq!(straight.1.values(), resumed.1.values());
    }
}
