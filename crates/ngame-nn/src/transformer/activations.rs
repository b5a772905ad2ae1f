//! What a forward pass keeps for the backward pass, and the buffers both use in passing: named
//! parts of two flat allocations.

use super::config::TransformerConfig;
use crate::layers::blocks::partial_len;

/// What one layer keeps.
pub(super) struct LayerActivations<'a> {
    pub(super) qkv: &'a mut [f32],     // (tokens, 3 dim), biases included
    pub(super) context: &'a mut [f32], // (tokens, dim)
    pub(super) attention_hat: &'a mut [f32], // (tokens, dim): x̂ of the LayerNorm
    pub(super) attention_deviation: &'a mut [f32], // (tokens): 1 / deviation of the LayerNorm
    pub(super) middle: &'a mut [f32],  // (tokens, dim): what the feed-forward part gets
    pub(super) expanded: &'a mut [f32], // (tokens, feed-forward dim), before GELU
    pub(super) output_hat: &'a mut [f32], // (tokens, dim)
    pub(super) output_deviation: &'a mut [f32], // (tokens)
}

/// What a whole forward pass keeps.
pub(super) struct Activations<'a> {
    pub(super) embedding_hat: &'a mut [f32], // (tokens, dim)
    pub(super) embedding_deviation: &'a mut [f32], // (tokens)
    pub(super) vectors: &'a mut [f32],       // (texts, dim)
    pub(super) norms: &'a mut [f32],         // (texts)
    pub(super) hidden: &'a mut [f32],        // (layers + 1, tokens, dim)
    layers: &'a mut [f32],                   // (layers, layer_len)
    tokens: usize,
}

impl<'a> Activations<'a> {
    /// The floats that [`Activations::new`] needs.
    pub(super) fn len(config: &TransformerConfig, texts: usize, tokens: usize) -> usize {
        tokens * (config.dim + 1)
            + texts * (config.dim + 1)
            + (config.n_layers + 1) * tokens * config.dim
            + config.n_layers * layer_len(config, tokens)
    }

    /// Shares out a buffer.
    pub(super) fn new(
        config: &TransformerConfig,
        texts: usize,
        tokens: usize,
        mut buffer: &'a mut [f32],
    ) -> Self {
        Self {
            embedding_hat: take(&mut buffer, tokens * config.dim),
            embedding_deviation: take(&mut buffer, tokens),
            vectors: take(&mut buffer, texts * config.dim),
            norms: take(&mut buffer, texts),
            hidden: take(&mut buffer, (config.n_layers + 1) * tokens * config.dim),
            layers: take(&mut buffer, config.n_layers * layer_len(config, tokens)),
            tokens,
        }
    }

    /// What one layer keeps, what came into it and what goes out of it.
    pub(super) fn layer(
        &mut self,
        config: &TransformerConfig,
        layer: usize,
    ) -> (LayerActivations<'_>, &mut [f32], &mut [f32]) {
        let (tokens, dim) = (self.tokens, config.dim);
        let (input, output) = self.hidden[layer * tokens * dim..].split_at_mut(tokens * dim);
        let len = layer_len(config, tokens);
        let mut buffer = &mut self.layers[layer * len..(layer + 1) * len];
        let kept = LayerActivations {
            qkv: take(&mut buffer, tokens * 3 * dim),
            context: take(&mut buffer, tokens * dim),
            attention_hat: take(&mut buffer, tokens * dim),
            attention_deviation: take(&mut buffer, tokens),
            middle: take(&mut buffer, tokens * dim),
            expanded: take(&mut buffer, tokens * config.feed_forward_dim),
            output_hat: take(&mut buffer, tokens * dim),
            output_deviation: take(&mut buffer, tokens),
        };
        (kept, input, &mut output[..tokens * dim])
    }
}

fn layer_len(config: &TransformerConfig, tokens: usize) -> usize {
    tokens * (7 * config.dim + config.feed_forward_dim + 2)
}

/// Buffers of passing use.
pub(super) struct Scratch<'a> {
    pub(super) activated: &'a mut [f32], // (tokens, feed-forward dim), after GELU
    pub(super) d_expanded: &'a mut [f32], // (tokens, feed-forward dim); in turn d_qkv and d_context
    pub(super) d_hidden: &'a mut [f32],  // (tokens, dim)
    pub(super) d_branch: &'a mut [f32],  // (tokens, dim)
    pub(super) partials: &'a mut [f32],  // sums of blocks of rows
}

impl<'a> Scratch<'a> {
    /// The floats that [`Scratch::new`] needs.
    pub(super) fn len(config: &TransformerConfig, tokens: usize) -> usize {
        let [activated, d_expanded, d_hidden, partials] = Self::sizes(config, tokens);
        activated + d_expanded + 2 * d_hidden + partials
    }

    /// Shares out a buffer.
    pub(super) fn new(
        config: &TransformerConfig,
        tokens: usize,
        mut buffer: &'a mut [f32],
    ) -> Self {
        let [activated, d_expanded, d_hidden, partials] = Self::sizes(config, tokens);
        Self {
            activated: take(&mut buffer, activated),
            d_expanded: take(&mut buffer, d_expanded),
            d_hidden: take(&mut buffer, d_hidden),
            d_branch: take(&mut buffer, d_hidden),
            partials: take(&mut buffer, partials),
        }
    }

    fn sizes(config: &TransformerConfig, tokens: usize) -> [usize; 4] {
        let inner = config.feed_forward_dim;
        let partials = partial_len(tokens, inner.max(3 * config.dim));
        [tokens * inner, tokens * inner.max(4 * config.dim), tokens * config.dim, partials]
    }
}

/// The first `len` floats of a buffer, which loses them.
fn take<'a>(buffer: &mut &'a mut [f32], len: usize) -> &'a mut [f32] {
    let (taken, rest) = std::mem::take(buffer).split_at_mut(len);
    *buffer = rest;
    taken
}
