//! The transformer encoder of the BERT family: embedding, layers of attention and feed-forward, each
//! with a residual and a LayerNorm behind it, pooling, unit length.
//!
//! ```text
//! ids (tokens) ── embedding ── LayerNorm ── dropout ──> hidden 0 (tokens, dim)
//! for every layer:
//!   hidden l ── qkv (tokens, 3 dim) ── attention ── context (tokens, dim) ── output ─┐
//!       └───────────────────────── + residual <── dropout ───────────────────────────┘
//!                                  └─ LayerNorm ──> middle (tokens, dim)
//!   middle ── expand (tokens, feed-forward dim) ── GELU ── contract (tokens, dim) ───┐
//!       └───────────────────────── + residual <── dropout ───────────────────────────┘
//!                                  └─ LayerNorm ──> hidden l + 1 (tokens, dim)
//! hidden L ── mean or first token of every text ── / norm ──> vectors (texts, dim)
//! ```

mod activations;
mod config;
mod frozen;
#[cfg(test)]
pub(crate) mod golden;
mod upper;

use std::ops::Range;
use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

pub use config::TransformerConfig;
pub use upper::{LowerLayers, TokenStates};

use crate::batch::Batch;
use crate::encoder::{Dropout, Encoder, Frozen, Precision};
use crate::kernels::Level;
use crate::layers::attention::{self, Attention};
use crate::layers::blocks::add_column_sums;
use crate::layers::dropout::{Mask, Site};
use crate::layers::embedding::{self, Tables};
use crate::layers::layer_norm::{self, Gradient, Norm, Sum};
use crate::layers::{gelu, linear, pooling};
use crate::parameters::{Gradients, Layout, Parameters};
use crate::random::fill_normal;
use activations::{Activations, Scratch};
use config::{EmbeddingPlace, LayerPlace, NormPlace, Places};
use frozen::FrozenTransformer;

/// A transformer encoder: the architecture, without weights.
#[derive(Clone, Debug)]
pub struct Transformer {
    config: TransformerConfig,
    layout: Arc<Layout>,
    places: Places,
    level: Level,
    /// What takes the place of the embedding and of layers below, where only upper layers are there.
    states: Option<Arc<dyn TokenStates>>,
}

impl Transformer {
    /// The architecture that a config describes.
    ///
    /// # Panics
    /// If the config is impossible; [`TransformerConfig::problem`] says so before.
    pub fn new(config: TransformerConfig) -> Self {
        Self::at_level(config, Level::best())
    }

    /// The same at an instruction set of choice.
    pub(crate) fn at_level(config: TransformerConfig, level: Level) -> Self {
        assert_eq!(config.problem(), None);
        let (layout, places) = config::lay_out(&config, 0);
        Self { config, layout, places, level, states: None }
    }

    /// Its shape.
    pub fn config(&self) -> &TransformerConfig {
        &self.config
    }

    /// Fresh weights, as BERT starts: normal with deviation 0.02, biases 0, LayerNorms 1.
    pub fn initial_weights(&self, seed: u64) -> Parameters {
        let mut weights = Parameters::zeros(&self.layout);
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        for tensor in self.layout.tensors() {
            let values = &mut weights.values_mut()[tensor.range()];
            if tensor.decay {
                fill_normal(&mut random, 0.02, values);
            } else if tensor.name.ends_with("LayerNorm.weight") {
                values.fill(1.0);
            }
        }
        weights
    }

    fn norm<'a>(&self, weights: &'a [f32], place: &NormPlace) -> Norm<'a> {
        Norm {
            scale: &weights[place.scale.clone()],
            shift: &weights[place.shift.clone()],
            epsilon: self.config.layer_norm_epsilon,
        }
    }

    fn attention(&self, layer: usize, dropout: Dropout) -> Attention {
        Attention {
            dim: self.config.dim,
            n_heads: self.config.n_heads,
            layer,
            dropout,
            rate: self.config.attention_dropout,
        }
    }

    fn mask(&self, dropout: Dropout, site: Site) -> Option<Mask> {
        Mask::new(dropout, self.config.dropout, site)
    }

    fn embed_tokens(
        &self,
        weights: &[f32],
        places: &EmbeddingPlace,
        batch: Batch<'_>,
        dropout: Dropout,
        kept: &mut Activations<'_>,
    ) {
        let dim = self.config.dim;
        let tables = Tables {
            words: &weights[places.words.clone()],
            positions: &weights[places.positions.clone()],
            first_type: match &places.types {
                Some(types) => &weights[types.start..types.start + dim],
                None => &[],
            },
        };
        embedding::forward(tables, dim, batch, kept.embedding_hat);
        let norm = self.norm(weights, &places.norm);
        let (x_hat, deviation) = (&mut *kept.embedding_hat, &mut *kept.embedding_deviation);
        let hidden = &mut kept.hidden[..batch.n_tokens() * dim];
        layer_norm::forward(self.level, norm, x_hat, deviation, hidden);
        if let Some(mask) = self.mask(dropout, Site::Embedding) {
            mask.apply_rows(self.level, batch.first_token(), dim, hidden);
        }
    }

    fn layer_forward(
        &self,
        weights: &[f32],
        (layer, place): (usize, &LayerPlace),
        batch: Batch<'_>,
        dropout: Dropout,
        kept: &mut Activations<'_>,
        scratch: &mut Scratch<'_>,
    ) {
        let (level, tokens, dim) = (self.level, batch.n_tokens(), self.config.dim);
        let inner = self.config.feed_forward_dim;
        let first_row = batch.first_token();
        let weight = |range: &Range<usize>| &weights[range.clone()];
        let (kept, input, output) = kept.layer(&self.config, layer);

        linear::forward(input, weight(&place.qkv.weight), kept.qkv, [tokens, dim, 3 * dim]);
        let attention = self.attention(layer, dropout);
        attention::forward(
            level,
            attention,
            batch,
            weight(&place.qkv.bias),
            kept.qkv,
            kept.context,
        );
        let output_weight = weight(&place.attention_output.weight);
        linear::forward(kept.context, output_weight, kept.attention_hat, [tokens, dim, dim]);
        let sum = Sum {
            bias: weight(&place.attention_output.bias),
            residual: input,
            mask: self.mask(dropout, Site::AttentionOutput { layer }),
            first_row,
        };
        let norm = self.norm(weights, &place.attention_norm);
        let (x_hat, deviation) = (kept.attention_hat, kept.attention_deviation);
        layer_norm::forward_sum(level, norm, sum, x_hat, deviation, kept.middle);

        linear::forward(
            kept.middle,
            weight(&place.expand.weight),
            kept.expanded,
            [tokens, dim, inner],
        );
        gelu::forward(level, weight(&place.expand.bias), kept.expanded, scratch.activated);
        let contract = weight(&place.contract.weight);
        linear::forward(scratch.activated, contract, kept.output_hat, [tokens, inner, dim]);
        let sum = Sum {
            bias: weight(&place.contract.bias),
            residual: kept.middle,
            mask: self.mask(dropout, Site::Output { layer }),
            first_row,
        };
        let norm = self.norm(weights, &place.output_norm);
        let (x_hat, deviation) = (kept.output_hat, kept.output_deviation);
        layer_norm::forward_sum(level, norm, sum, x_hat, deviation, output);
    }

    /// On entry `scratch.d_hidden` is the gradient by what goes out of the layer, at the end that by
    /// what comes in.
    fn layer_backward(
        &self,
        weights: &[f32],
        (layer, place): (usize, &LayerPlace),
        batch: Batch<'_>,
        dropout: Dropout,
        kept: &mut Activations<'_>,
        scratch: &mut Scratch<'_>,
        gradients: &mut [f32],
    ) {
        let (level, tokens, dim) = (self.level, batch.n_tokens(), self.config.dim);
        let inner = self.config.feed_forward_dim;
        let first_row = batch.first_token();
        let weight = |range: &Range<usize>| &weights[range.clone()];
        let (kept, input, _) = kept.layer(&self.config, layer);
        let Scratch { activated, d_expanded, d_hidden, d_branch, partials } = scratch;

        // Output LayerNorm. d_hidden becomes the gradient by the residual.
        let mask = self.mask(dropout, Site::Output { layer });
        layer_norm::backward(
            level,
            weight(&place.output_norm.scale),
            (mask, first_row),
            kept.output_hat,
            kept.output_deviation,
            d_hidden,
            d_branch,
            norm_gradient(gradients, &place.output_norm, &place.contract.bias),
            partials,
        );
        // Feed-forward.
        let d_contracted = if mask.is_some() { &**d_branch } else { &**d_hidden };
        let sizes = [tokens, inner, dim];
        let d_expanded_now = &mut d_expanded[..tokens * inner];
        linear::backward_input(d_contracted, weight(&place.contract.weight), d_expanded_now, sizes);
        let d_bias = &mut gradients[place.expand.bias.clone()];
        gelu::backward(level, kept.expanded, d_expanded_now, activated, d_bias, partials);
        let d_weight = &mut gradients[place.contract.weight.clone()];
        linear::backward_weight(d_contracted, activated, d_weight, sizes);
        let sizes = [tokens, dim, inner];
        let d_weight = &mut gradients[place.expand.weight.clone()];
        linear::backward_weight(d_expanded_now, kept.middle, d_weight, sizes);
        let expand = weight(&place.expand.weight);
        linear::backward_input_add(d_expanded_now, expand, d_hidden, sizes);

        // Attention LayerNorm.
        let mask = self.mask(dropout, Site::AttentionOutput { layer });
        layer_norm::backward(
            level,
            weight(&place.attention_norm.scale),
            (mask, first_row),
            kept.attention_hat,
            kept.attention_deviation,
            d_hidden,
            d_branch,
            norm_gradient(gradients, &place.attention_norm, &place.attention_output.bias),
            partials,
        );
        // Attention.
        let d_attended = if mask.is_some() { &**d_branch } else { &**d_hidden };
        let sizes = [tokens, dim, dim];
        let (d_qkv, rest) = d_expanded.split_at_mut(tokens * 3 * dim);
        let d_context = &mut rest[..tokens * dim];
        let output_weight = weight(&place.attention_output.weight);
        linear::backward_input(d_attended, output_weight, d_context, sizes);
        let d_weight = &mut gradients[place.attention_output.weight.clone()];
        linear::backward_weight(d_attended, kept.context, d_weight, sizes);
        let attention = self.attention(layer, dropout);
        attention::backward(level, attention, batch, kept.qkv, d_context, d_qkv);
        add_column_sums(level, d_qkv, &mut gradients[place.qkv.bias.clone()], partials);
        let sizes = [tokens, dim, 3 * dim];
        let d_weight = &mut gradients[place.qkv.weight.clone()];
        linear::backward_weight(d_qkv, input, d_weight, sizes);
        // Nobody asks for the gradient by states that stay as they are.
        if layer > 0 || self.states.is_none() {
            linear::backward_input_add(d_qkv, weight(&place.qkv.weight), d_hidden, sizes);
        }
    }

    /// From the gradient by hidden 0 to that of the embedding tables.
    fn embedding_backward(
        &self,
        weights: &[f32],
        places: &EmbeddingPlace,
        batch: Batch<'_>,
        dropout: Dropout,
        kept: &mut Activations<'_>,
        scratch: &mut Scratch<'_>,
        gradients: &mut Gradients,
    ) {
        let (level, dim) = (self.level, self.config.dim);
        let Scratch { d_hidden, partials, .. } = scratch;
        if let Some(mask) = self.mask(dropout, Site::Embedding) {
            mask.apply_rows(level, batch.first_token(), dim, d_hidden);
        }
        // Scale and shift lie one behind the other.
        let scale = &places.norm.scale;
        let both = &mut gradients.values[scale.start..places.norm.shift.end];
        let (d_scale, d_shift) = both.split_at_mut(dim);
        layer_norm::backward(
            level,
            &weights[scale.clone()],
            (None, 0),
            kept.embedding_hat,
            kept.embedding_deviation,
            d_hidden,
            &mut [],
            Gradient { d_scale, d_shift, d_bias: None },
            partials,
        );
        gradients.scatter_rows(0, batch.ids(), d_hidden);
        let d_positions = &mut gradients.values[places.positions.clone()];
        embedding::backward_positions(dim, batch, d_hidden, d_positions);
        if let Some(types) = &places.types {
            let d_type = &mut gradients.values[types.start..types.start + dim];
            add_column_sums(level, d_hidden, d_type, partials);
        }
    }
}

/// The gradients of a LayerNorm and of the bias before it, which lie in this order: bias, scale,
/// shift.
fn norm_gradient<'a>(
    gradients: &'a mut [f32],
    norm: &NormPlace,
    bias: &Range<usize>,
) -> Gradient<'a> {
    debug_assert!(bias.end == norm.scale.start && norm.scale.end == norm.shift.start);
    let (d_bias, rest) = gradients[bias.start..norm.shift.end].split_at_mut(bias.len());
    let (d_scale, d_shift) = rest.split_at_mut(norm.scale.len());
    Gradient { d_scale, d_shift, d_bias: Some(d_bias) }
}

impl Encoder for Transformer {
    fn dim(&self) -> usize {
        self.config.dim
    }

    fn max_tokens(&self) -> usize {
        self.config.max_positions
    }

    fn vocabulary_size(&self) -> usize {
        self.config.vocabulary_size
    }

    fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    fn activation_len(&self, n_texts: usize, n_tokens: usize) -> usize {
        Activations::len(&self.config, n_texts, n_tokens)
    }

    fn scratch_len(&self, _n_texts: usize, n_tokens: usize) -> usize {
        Scratch::len(&self.config, n_tokens)
    }

    fn forward(
        &self,
        weights: &[f32],
        batch: Batch<'_>,
        dropout: Dropout,
        activations: &mut [f32],
        scratch: &mut [f32],
        vectors: &mut [f32],
    ) {
        assert!(batch.longest() <= self.config.max_positions, "a text of too many tokens");
        let (texts, tokens) = (batch.n_texts(), batch.n_tokens());
        let mut kept = Activations::new(&self.config, texts, tokens, activations);
        let mut scratch = Scratch::new(&self.config, tokens, scratch);
        match (&self.states, &self.places.embedding) {
            (Some(states), _) => upper::look_up(&**states, batch, self.config.dim, kept.hidden),
            (None, Some(place)) => self.embed_tokens(weights, place, batch, dropout, &mut kept),
            (None, None) => unreachable!("a transformer has an embedding or states in its place"),
        }
        for layer in self.places.layers.iter().enumerate() {
            self.layer_forward(weights, layer, batch, dropout, &mut kept, &mut scratch);
        }
        let last = self.config.n_layers * tokens * self.config.dim;
        let hidden = &kept.hidden[last..];
        pooling::forward(self.level, self.config.pooling, batch, hidden, kept.vectors, kept.norms);
        vectors.copy_from_slice(kept.vectors);
    }

    fn backward(
        &self,
        weights: &[f32],
        batch: Batch<'_>,
        dropout: Dropout,
        activations: &mut [f32],
        scratch: &mut [f32],
        d_vectors: &[f32],
        gradients: &mut Gradients,
    ) {
        let (texts, tokens) = (batch.n_texts(), batch.n_tokens());
        let mut kept = Activations::new(&self.config, texts, tokens, activations);
        let mut scratch = Scratch::new(&self.config, tokens, scratch);
        pooling::backward(
            self.level,
            self.config.pooling,
            batch,
            kept.vectors,
            kept.norms,
            d_vectors,
            scratch.d_hidden,
        );
        for layer in self.places.layers.iter().enumerate().rev() {
            let gradients = &mut gradients.values;
            self.layer_backward(weights, layer, batch, dropout, &mut kept, &mut scratch, gradients);
        }
        if let Some(place) = &self.places.embedding {
            let scratch = &mut scratch;
            self.embedding_backward(weights, place, batch, dropout, &mut kept, scratch, gradients);
        }
    }

    fn freeze(&self, parameters: &Parameters, precision: Precision) -> Box<dyn Frozen> {
        Box::new(FrozenTransformer::new(self, parameters, precision, self.config.n_layers))
    }
}
