//! Forward and backward passes over batches of any size, within a budget of memory.
//!
//! A batch is cut into chunks of whole texts, and the activations of as many chunks as fit are kept.
//! The other chunks are run forward for their vectors alone; once the loss has said its gradient by
//! all vectors, they are run forward again and back one by one (gradient caching). Losses that
//! compare every text with every other thus see the whole batch, and the gradient is that of the
//! unchunked batch: dropout counts tokens of the whole batch, so that a chunk run twice drops the
//! same numbers, and what a chunk adds does not depend on the others.
//!
//! ```text
//! forward:   chunk 0 │ chunk 1 │ chunk 2 │ chunk 3     vectors (texts, dim) of all
//! activations: slot 0 ─ slot 0 ─ slot 0    slot 1      of chunks 2 and 3 are there at the end
//! backward:  chunk 2, chunk 3, then chunks 0 and 1 again through slot 0
//! ```

use std::ops::Range;

use crate::batch::Batch;
use crate::encoder::{Dropout, Encoder};
use crate::memory::zeros;
use crate::parameters::Gradients;

/// The tokens of a chunk where memory is plenty: products are at full speed from here on, and more
/// would only leave the caches.
const CHUNK_TOKENS: usize = 4096;

/// Buffers for passes over batches, reused from step to step.
#[derive(Debug)]
pub struct TrainingPass {
    budget: usize,         // bytes
    activations: Vec<f32>, // (slots, slot_len)
    scratch: Vec<f32>,
    again: Vec<f32>, // (texts, dim): vectors that nobody asks for a second time.
    chunks: Vec<Range<usize>>, // Texts of every chunk.
    n_slots: usize,
    slot_len: usize,
    scratch_len: usize,
}

impl TrainingPass {
    /// Passes that take this many bytes for activations and scratch. A single text that needs more
    /// takes more.
    pub fn new(budget: usize) -> Self {
        Self {
            budget,
            activations: Vec::new(),
            scratch: Vec::new(),
            again: Vec::new(),
            chunks: Vec::new(),
            n_slots: 0,
            slot_len: 0,
            scratch_len: 0,
        }
    }

    /// Writes the unit vectors of a batch and keeps what [`TrainingPass::backward`] needs.
    pub fn forward(
        &mut self,
        encoder: &dyn Encoder,
        weights: &[f32],
        batch: Batch<'_>,
        dropout: Dropout,
        vectors: &mut [f32], // (texts, dim)
    ) {
        self.plan(encoder, batch);
        for chunk in 0..self.chunks.len() {
            let slot = self.slot(chunk).unwrap_or(0);
            self.run(encoder, weights, batch, dropout, (chunk, slot), vectors);
        }
    }

    /// Adds to `gradients` the gradient of a loss, given its gradient by the vectors. Everything else
    /// is as it was in the forward pass just before.
    pub fn backward(
        &mut self,
        encoder: &dyn Encoder,
        weights: &[f32],
        batch: Batch<'_>,
        dropout: Dropout,
        d_vectors: &[f32], // (texts, dim)
        gradients: &mut Gradients,
    ) {
        let dim = encoder.dim();
        let n_recomputed = self.n_recomputed();
        let mut again = std::mem::take(&mut self.again);
        grow(&mut again, if n_recomputed > 0 { d_vectors.len() } else { 0 });
        for chunk in (n_recomputed..self.chunks.len()).chain(0..n_recomputed) {
            let slot = self.slot(chunk).unwrap_or_else(|| {
                self.run(encoder, weights, batch, dropout, (chunk, 0), &mut again);
                0
            });
            let texts = self.chunks[chunk].clone();
            encoder.backward(
                weights,
                batch.part(texts.clone()),
                dropout,
                &mut self.activations[slot * self.slot_len..(slot + 1) * self.slot_len],
                &mut self.scratch,
                &d_vectors[texts.start * dim..texts.end * dim],
                gradients,
            );
        }
        self.again = again;
    }

    /// The chunks of the last batch, and how many of them were run forward twice.
    pub fn chunks(&self) -> (usize, usize) {
        (self.chunks.len(), self.n_recomputed())
    }

    fn n_recomputed(&self) -> usize {
        self.chunks.len() - self.n_slots
    }

    /// Where a chunk's activations stay until the backward pass, if they do.
    fn slot(&self, chunk: usize) -> Option<usize> {
        chunk.checked_sub(self.n_recomputed())
    }

    fn run(
        &mut self,
        encoder: &dyn Encoder,
        weights: &[f32],
        batch: Batch<'_>,
        dropout: Dropout,
        (chunk, slot): (usize, usize),
        vectors: &mut [f32], // (texts, dim)
    ) {
        let texts = self.chunks[chunk].clone();
        let dim = encoder.dim();
        encoder.forward(
            weights,
            batch.part(texts.clone()),
            dropout,
            &mut self.activations[slot * self.slot_len..(slot + 1) * self.slot_len],
            &mut self.scratch,
            &mut vectors[texts.start * dim..texts.end * dim],
        );
    }

    /// Cuts a batch into chunks and says how many of them can keep their activations.
    fn plan(&mut self, encoder: &dyn Encoder, batch: Batch<'_>) {
        let budget = self.budget / size_of::<f32>();
        let need = |texts: usize, tokens: usize| {
            (encoder.activation_len(texts, tokens), encoder.scratch_len(texts, tokens))
        };
        // The largest chunk of which one, with its scratch, fits.
        let mut most = CHUNK_TOKENS.min(batch.n_tokens().max(1));
        while most > 1 {
            let (activations, scratch) = need(most, most);
            if activations + scratch <= budget {
                break;
            }
            most = most * 3 / 4;
        }
        // Chunks of like size waste no room in their slots.
        let n_chunks = batch.n_tokens().div_ceil(most).max(1);
        let most = batch.n_tokens().div_ceil(n_chunks);
        self.chunks.clear();
        (self.slot_len, self.scratch_len) = (0, 0);
        let mut start = 0;
        while start < batch.n_texts() {
            let mut end = start + 1;
            let mut tokens = batch.rows(start).len();
            while end < batch.n_texts() && tokens + batch.rows(end).len() <= most {
                tokens += batch.rows(end).len();
                end += 1;
            }
            let (activations, scratch) = need(end - start, tokens);
            self.slot_len = self.slot_len.max(activations);
            self.scratch_len = self.scratch_len.max(scratch);
            self.chunks.push(start..end);
            start = end;
        }
        let room = budget.saturating_sub(self.scratch_len) / self.slot_len.max(1);
        self.n_slots = room.max(1).min(self.chunks.len());
        grow(&mut self.activations, self.n_slots * self.slot_len);
        grow(&mut self.scratch, self.scratch_len);
    }
}

/// Makes room without copying what nobody needs any more.
fn grow(buffer: &mut Vec<f32>, len: usize) {
    if buffer.len() < len {
        *buffer = Vec::new();
        *buffer = zeros(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradcheck::{noise, ragged};
    use crate::{Bag, BagConfig, Pooling, Transformer, TransformerConfig};

    fn transformer() -> Transformer {
        Transformer::new(TransformerConfig {
            vocabulary_size: 50,
            dim: 16,
            n_layers: 2,
            n_heads: 2,
            feed_forward_dim: 24,
            max_positions: 12,
            n_token_types: 2,
            layer_norm_epsilon: 1e-5,
            dropout: 0.1,
            attention_dropout: 0.1,
            pooling: Pooling::Mean,
        })
    }

    /// A batch of many texts of one token to twelve.
    fn many_texts() -> (Vec<u32>, Vec<usize>) {
        let (mut ids, mut offsets) = (Vec::new(), vec![0]);
        for n in 0..60u32 {
            let (more, lengths) = ragged(47 + n % 3, 12);
            let texts = lengths.windows(2).map(|pair| pair[1] - pair[0]);
            offsets.extend(texts.scan(ids.len(), |end, length| {
                *end += length;
                Some(*end)
            }));
            ids.extend(more);
        }
        (ids, offsets)
    }

    /// Vectors and gradient of one step.
    fn step(
        encoder: &dyn Encoder,
        weights: &[f32],
        budget: usize,
    ) -> (Vec<f32>, Vec<f32>, TrainingPass) {
        let (ids, offsets) = many_texts();
        let batch = Batch::new(&ids, &offsets);
        let mut vectors = vec![0.0; batch.n_texts() * encoder.dim()];
        let d_vectors = noise(3, vectors.len());
        let mut gradients = Gradients::zeros(encoder.layout());
        let mut pass = TrainingPass::new(budget);
        for _ in 0..2 {
            // Buffers that have been used before change nothing.
            gradients.clear();
            pass.forward(encoder, weights, batch, Dropout::Seed(8), &mut vectors);
            pass.backward(encoder, weights, batch, Dropout::Seed(8), &d_vectors, &mut gradients);
        }
        (vectors, gradients.values().to_vec(), pass)
    }

    fn assert_same(found: &[f32], expected: &[f32]) {
        let largest = expected.iter().fold(0.0f32, |most, value| most.max(value.abs()));
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() <= 1e-5 * largest, "{found} instead of {expected}");
        }
    }

    #[test]
    fn chunks_and_gradient_caching_change_nothing() {
        let transformer = transformer();
        let bag = Bag::new(BagConfig { vocabulary_size: 50, dim: 16, dropout: 0.1 });
        let encoders: [(&dyn Encoder, Vec<f32>); 2] = [
            (&transformer, transformer.initial_weights(1).values().to_vec()),
            (&bag, bag.initial_weights(1, &[1.0; 50]).values().to_vec()),
        ];
        for (encoder, weights) in encoders {
            let (vectors, gradients, pass) = step(encoder, &weights, 1 << 30);
            assert_eq!(pass.chunks(), (1, 0));
            let whole = 4 * (pass.slot_len + pass.scratch_len);
            for budget in [whole / 2, whole / 5, whole / 20, 1] {
                let (chunked, d_chunked, pass) = step(encoder, &weights, budget);
                let (n_chunks, n_recomputed) = pass.chunks();
                assert!(n_chunks > 1, "{budget}: {:?}", pass.chunks());
                assert!(n_recomputed > 0 || budget > whole / 5, "{budget}: {:?}", pass.chunks());
                assert_same(&chunked, &vectors);
                assert_same(&d_chunked, &gradients);
                if budget > 1 {
                    let used = 4 * (pass.activations.len() + pass.scratch.len());
                    assert!(used <= budget, "{used} of {budget} bytes");
                }
            }
        }
    }

    #[test]
    fn the_same_seed_and_threads_give_the_same_bytes_and_other_threads_the_same_numbers() {
        let transformer = transformer();
        let weights = transformer.initial_weights(1);
        let on = |threads: usize| {
            let pool =
                rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            pool.install(|| step(&transformer, weights.values(), 100_000))
        };
        let (vectors, gradients, _) = on(1);
        let (two, d_two, _) = on(2);
        let (again, d_again, _) = on(2);
        assert_eq!((&two, &d_two), (&again, &d_again));
        assert_same(&two, &vectors);
        assert_same(&d_two, &gradients);
    }
}
