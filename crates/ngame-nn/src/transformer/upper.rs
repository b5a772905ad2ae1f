//! Training the upper layers alone: what the lower ones make of every token is computed once, and read
//! in every epoch after.
//!
//! ```text
//! once:        ids ── embedding ── layers 0 … n-1 ──> states (all tokens of all texts, dim), 16 bits
//! every step:  places of tokens ── states ── layers n … L-1 ── pooling ──> vectors (texts, dim)
//! ```
//!
//! To the upper layers a text is a row of places in the table of states, as to the whole transformer it
//! is a row of words: what trains, validates and embeds need not know the difference. With two layers
//! of six a step is a third of the work.

use std::fmt;
use std::sync::Arc;

use half::f16;
use half::slice::HalfFloatSliceExt;
use rayon::prelude::*;

use super::frozen::FrozenTransformer;
use super::{Transformer, TransformerConfig, config};
use crate::batch::Batch;
use crate::encoder::Precision;
use crate::parameters::Parameters;

/// Tokens that one thread copies at a time.
const GRAIN: usize = 256;

/// What lower layers make of tokens, wherever that lies: one row a token.
pub trait TokenStates: Send + Sync + fmt::Debug {
    /// How many tokens there are.
    fn n_tokens(&self) -> usize;

    /// The state of a token, which is below [`TokenStates::n_tokens`].
    fn state(&self, token: u32) -> &[f16]; // (dim)
}

/// The first layers of a transformer with their weights packed.
pub struct LowerLayers(FrozenTransformer);

impl LowerLayers {
    /// Writes what they make of the tokens of a batch, on this thread alone. `workspace` grows as
    /// needed and is best kept by the caller from call to call.
    pub fn states(
        &self,
        batch: Batch<'_>,
        workspace: &mut Vec<f32>,
        states: &mut [f32], // (tokens, dim)
    ) {
        states.copy_from_slice(self.0.hidden(batch, workspace));
    }
}

impl Transformer {
    /// Its first layers.
    ///
    /// # Panics
    /// If there are not as many, or the weights are of another transformer.
    pub fn lower(&self, parameters: &Parameters, n_layers: usize) -> LowerLayers {
        assert!(n_layers <= self.config.n_layers, "no more layers than there are");
        LowerLayers(FrozenTransformer::new(self, parameters, Precision::F32, n_layers))
    }

    /// Its layers from `first_layer` on, as an encoder of its own: the ids of its texts are places in
    /// a table of what the layers below make of tokens. Its weights are
    /// [a part](Parameters::part) of the whole transformer's.
    ///
    /// # Panics
    /// If no layer, or every layer, is left, or there are more tokens than ids can count.
    pub fn upper(&self, first_layer: usize, states: Arc<dyn TokenStates>) -> Self {
        assert!(first_layer > 0 && first_layer < self.config.n_layers, "some layers, not all");
        assert!(states.n_tokens() <= u32::MAX as usize, "ids have 32 bits");
        let config = TransformerConfig {
            vocabulary_size: states.n_tokens(),
            n_layers: self.config.n_layers - first_layer,
            ..self.config.clone()
        };
        let (layout, places) = config::lay_out(&config, first_layer);
        Self { config, layout, places, level: self.level, states: Some(states) }
    }
}

/// Copies the states of a batch's tokens.
pub(super) fn look_up(
    states: &dyn TokenStates,
    batch: Batch<'_>,
    dim: usize,
    hidden: &mut [f32], // (at least tokens, dim)
) {
    let hidden = hidden[..batch.n_tokens() * dim].par_chunks_mut(GRAIN * dim);
    hidden.zip(batch.ids().par_chunks(GRAIN)).for_each(|(rows, ids)| {
        copy_states(states, ids, dim, rows);
    });
}

/// The same, on this thread.
pub(super) fn copy_states(
    states: &dyn TokenStates,
    ids: &[u32],
    dim: usize,
    hidden: &mut [f32], // (ids, dim)
) {
    for (row, &id) in hidden.chunks_exact_mut(dim).zip(ids) {
        states.state(id).convert_to_f32_slice(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::{Dropout, Encoder};
    use crate::gradcheck::{noise, ragged};
    use crate::parameters::Gradients;
    use crate::{Pooling, TrainingPass};

    #[derive(Debug)]
    struct Table(Vec<f16>, usize);

    impl TokenStates for Table {
        fn n_tokens(&self) -> usize {
            self.0.len() / self.1
        }

        fn state(&self, token: u32) -> &[f16] {
            &self.0[token as usize * self.1..(token as usize + 1) * self.1]
        }
    }

    fn whole() -> (Transformer, Parameters) {
        let whole = Transformer::new(TransformerConfig {
            vocabulary_size: 50,
            dim: 16,
            n_layers: 3,
            n_heads: 2,
            feed_forward_dim: 24,
            max_positions: 12,
            n_token_types: 2,
            layer_norm_epsilon: 1e-5,
            dropout: 0.0,
            attention_dropout: 0.0,
            pooling: Pooling::Mean,
        });
        let mut weights = whole.initial_weights(1);
        // At first all layers do next to nothing.
        weights.values_mut().iter_mut().for_each(|value| *value *= 5.0);
        (whole, weights)
    }

    /// Vectors and gradient of a batch.
    fn pass(
        encoder: &dyn Encoder,
        weights: &Parameters,
        batch: Batch<'_>,
    ) -> (Vec<f32>, Gradients) {
        let mut vectors = vec![0.0; batch.n_texts() * encoder.dim()];
        let d_vectors = noise(3, vectors.len());
        let mut gradients = Gradients::zeros(encoder.layout());
        let mut pass = TrainingPass::new(1 << 20);
        let (values, off) = (weights.values(), Dropout::Off);
        pass.forward(encoder, values, batch, off, &mut vectors);
        pass.backward(encoder, values, batch, off, &d_vectors, &mut gradients);
        (vectors, gradients)
    }

    fn distance(found: &[f32], expected: &[f32]) -> f32 {
        let largest = expected.iter().fold(0.0f32, |most, value| most.max(value.abs()));
        let apart = found.iter().zip(expected).map(|(found, expected)| (found - expected).abs());
        apart.fold(0.0, f32::max) / largest
    }

    #[test]
    fn upper_layers_on_the_states_of_the_lower_are_the_whole() {
        let (whole, weights) = whole();
        let (ids, offsets) = ragged(50, 12);
        let batch = Batch::new(&ids, &offsets);
        let (vectors, gradients) = pass(&whole, &weights, batch);
        for first_layer in [1, 2] {
            let mut states = vec![0.0; ids.len() * 16];
            whole.lower(&weights, first_layer).states(batch, &mut Vec::new(), &mut states);
            let table = Table(states.iter().map(|&state| f16::from_f32(state)).collect(), 16);
            let upper = whole.upper(first_layer, Arc::new(table));
            let part = weights.part(upper.layout());
            let places: Vec<u32> = (0..ids.len() as u32).collect();
            let batch = Batch::new(&places, &offsets);
            let (found, found_gradients) = pass(&upper, &part, batch);
            // States have 16 bits.
            assert!(distance(&found, &vectors) < 2e-3, "{}", distance(&found, &vectors));
            for tensor in upper.layout().tensors() {
                let of_whole = whole.layout().tensor(&tensor.name).expect("a part of the whole");
                let expected = &gradients.values()[of_whole.range()];
                if tensor.name.ends_with("key.bias") {
                    continue; // It moves all scores of a query alike, so its gradient is rounding.
                }
                let distance = distance(&found_gradients.values()[tensor.range()], expected);
                assert!(distance < 2e-2, "{}: {distance}", tensor.name);
            }
            let mut frozen = vec![0.0; found.len()];
            upper.freeze(&part, Precision::F32).embed(batch, &mut Vec::new(), &mut frozen);
            assert!(distance(&frozen, &found) < 1e-4, "{}", distance(&frozen, &found));
        }
    }

    #[test]
    fn a_part_of_the_weights_goes_back_where_it_came_from() {
        let (whole, weights) = whole();
        let table = Table(vec![f16::ZERO; 16], 16);
        let upper = whole.upper(2, Arc::new(table));
        let mut part = weights.part(upper.layout());
        part.values_mut().iter_mut().for_each(|value| *value += 1.0);
        let mut changed = weights.clone();
        changed.set_part(&part);
        for tensor in whole.layout().tensors() {
            let moved = if tensor.name.starts_with("encoder.layer.2.") { 1.0 } else { 0.0 };
            let (before, after) = (weights.get(&tensor.name), changed.get(&tensor.name));
            let pairs = before.unwrap().iter().zip(after.unwrap());
            assert!(pairs.into_iter().all(|(a, b)| a + moved == *b), "{}", tensor.name);
        }
    }
}
