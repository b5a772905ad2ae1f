//! The numbers that make a transformer encoder, and the layout of its weights that follows.

use std::ops::Range;
use std::sync::Arc;

use crate::layers::pooling::Pooling;
use crate::parameters::{Kind, Layout};

/// The shape of a BERT-like encoder. DistilBERT is one without token types.
#[derive(Clone, Debug, PartialEq)]
pub struct TransformerConfig {
    /// The number of token ids.
    pub vocabulary_size: usize,
    /// The length of a token's vector between the layers ("hidden size").
    pub dim: usize,
    /// The number of layers.
    pub n_layers: usize,
    /// The number of attention heads; they share `dim` evenly.
    pub n_heads: usize,
    /// The length of a token's vector inside the feed-forward part ("intermediate size").
    pub feed_forward_dim: usize,
    /// The longest text, in tokens.
    pub max_positions: usize,
    /// The number of token types; 0 for DistilBERT. Texts are of type 0 throughout.
    pub n_token_types: usize,
    /// What LayerNorm adds to the variance.
    pub layer_norm_epsilon: f32,
    /// The share of activations dropped after embeddings, attention and feed-forward.
    pub dropout: f32,
    /// The share of attention weights dropped.
    pub attention_dropout: f32,
    /// How the tokens of a text become one vector.
    pub pooling: Pooling,
}

impl TransformerConfig {
    /// The length of a token's vector inside one attention head.
    pub fn head_dim(&self) -> usize {
        self.dim / self.n_heads
    }

    /// What makes this config impossible, if anything: a sentence with the names of its fields.
    pub fn problem(&self) -> Option<String> {
        let counts = [
            ("vocabulary_size", self.vocabulary_size),
            ("dim", self.dim),
            ("n_layers", self.n_layers),
            ("n_heads", self.n_heads),
            ("feed_forward_dim", self.feed_forward_dim),
            ("max_positions", self.max_positions),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Some(format!("{name} is 0"));
        }
        if let Some((name, count)) = counts.iter().find(|(_, count)| *count > 1 << 28) {
            return Some(format!("{name} is {count}, which is beyond any encoder"));
        }
        if !self.dim.is_multiple_of(self.n_heads) {
            return Some(format!("dim {} is no multiple of n_heads {}", self.dim, self.n_heads));
        }
        let rates = [("dropout", self.dropout), ("attention_dropout", self.attention_dropout)];
        if let Some((name, rate)) = rates.iter().find(|(_, rate)| !(0.0..1.0).contains(rate)) {
            return Some(format!("{name} is {rate}, not from 0 to below 1"));
        }
        if !(self.layer_norm_epsilon > 0.0 && self.layer_norm_epsilon < 1.0) {
            return Some(format!("layer_norm_epsilon is {}", self.layer_norm_epsilon));
        }
        None
    }
}

/// A LayerNorm's scale and shift in the flat buffers.
#[derive(Clone, Debug)]
pub(super) struct NormPlace {
    pub(super) scale: Range<usize>, // (dim)
    pub(super) shift: Range<usize>, // (dim)
}

/// A linear layer's weight and bias in the flat buffers.
#[derive(Clone, Debug)]
pub(super) struct LinearPlace {
    pub(super) weight: Range<usize>, // (out, in)
    pub(super) bias: Range<usize>,   // (out)
}

/// Where one layer's weights lie. Query, key and value lie one behind the other, so that one
/// product makes all three.
#[derive(Clone, Debug)]
pub(super) struct LayerPlace {
    pub(super) qkv: LinearPlace,              // (3 dim, dim)
    pub(super) attention_output: LinearPlace, // (dim, dim)
    pub(super) attention_norm: NormPlace,
    pub(super) expand: LinearPlace,   // (feed-forward dim, dim)
    pub(super) contract: LinearPlace, // (dim, feed-forward dim)
    pub(super) output_norm: NormPlace,
}

/// Where the embedding's weights lie.
#[derive(Clone, Debug)]
pub(super) struct EmbeddingPlace {
    pub(super) words: Range<usize>,         // (vocabulary, dim)
    pub(super) positions: Range<usize>,     // (max positions, dim)
    pub(super) types: Option<Range<usize>>, // (token types, dim)
    pub(super) norm: NormPlace,
}

/// Where all weights lie.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// None where layers below have been left out, and the embedding with them.
    pub(super) embedding: Option<EmbeddingPlace>,
    pub(super) layers: Vec<LayerPlace>,
}

/// The layout of the weights, with the names that `transformers` gives to BERT's. Layers count from
/// `first_layer`; with layers below, there is no embedding.
pub(super) fn lay_out(config: &TransformerConfig, first_layer: usize) -> (Arc<Layout>, Places) {
    let dim = config.dim;
    let mut layout = Layout::default();
    let embedding = (first_layer == 0).then(|| lay_out_embedding(config, &mut layout));
    let layers = (first_layer..first_layer + config.n_layers)
        .map(|layer| {
            let prefix = format!("encoder.layer.{layer}");
            let inner = config.feed_forward_dim;
            let attention = format!("{prefix}.attention");
            let qkv = LinearPlace {
                weight: join(["query", "key", "value"].map(|part| {
                    let name = format!("{attention}.self.{part}.weight");
                    layout.add(name, &[dim, dim], Kind::Matrix)
                })),
                bias: join(["query", "key", "value"].map(|part| {
                    layout.add(format!("{attention}.self.{part}.bias"), &[dim], Kind::Vector)
                })),
            };
            let attention_output =
                linear(&mut layout, &format!("{attention}.output.dense"), dim, dim);
            let attention_norm = norm(&mut layout, &format!("{attention}.output"), dim);
            let expand = linear(&mut layout, &format!("{prefix}.intermediate.dense"), inner, dim);
            let contract = linear(&mut layout, &format!("{prefix}.output.dense"), dim, inner);
            let output_norm = norm(&mut layout, &format!("{prefix}.output"), dim);
            LayerPlace { qkv, attention_output, attention_norm, expand, contract, output_norm }
        })
        .collect();
    (Arc::new(layout), Places { embedding, layers })
}

fn lay_out_embedding(config: &TransformerConfig, layout: &mut Layout) -> EmbeddingPlace {
    let dim = config.dim;
    let table = |layout: &mut Layout, name: &str, rows: usize, kind: Kind| {
        layout.add(format!("embeddings.{name}_embeddings.weight"), &[rows, dim], kind)
    };
    let words = table(layout, "word", config.vocabulary_size, Kind::Table);
    let positions = table(layout, "position", config.max_positions, Kind::Matrix);
    let types = (config.n_token_types > 0)
        .then(|| table(layout, "token_type", config.n_token_types, Kind::Matrix));
    EmbeddingPlace { words, positions, types, norm: norm(layout, "embeddings", dim) }
}

fn norm(layout: &mut Layout, prefix: &str, dim: usize) -> NormPlace {
    NormPlace {
        scale: layout.add(format!("{prefix}.LayerNorm.weight"), &[dim], Kind::Vector),
        shift: layout.add(format!("{prefix}.LayerNorm.bias"), &[dim], Kind::Vector),
    }
}

fn linear(layout: &mut Layout, prefix: &str, outputs: usize, inputs: usize) -> LinearPlace {
    LinearPlace {
        weight: layout.add(format!("{prefix}.weight"), &[outputs, inputs], Kind::Matrix),
        bias: layout.add(format!("{prefix}.bias"), &[outputs], Kind::Vector),
    }
}

/// One range out of three that follow each other.
fn join(ranges: [Range<usize>; 3]) -> Range<usize> {
    ranges[0].start..ranges[2].end
}
