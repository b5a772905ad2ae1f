//! A transformer for answering: weights packed, no activations kept, one thread a call.

use super::Transformer;
use super::config::{LinearPlace, NormPlace};
use super::upper::copy_states;
use crate::batch::Batch;
use crate::encoder::{Frozen, Precision};
use crate::kernels::Level;
use crate::layers::attention::{self, Attention};
use crate::layers::embedding::{self, Tables};
use crate::layers::layer_norm::{self, Norm};
use crate::layers::pooling;
use crate::panels::{Epilogue, PackedLinear};
use crate::parameters::Parameters;

/// A transformer with its weights packed.
pub(super) struct FrozenTransformer {
    transformer: Transformer,
    /// None where the transformer has states in its place.
    embedding: Option<FrozenEmbedding>,
    layers: Vec<FrozenLayer>,
    /// The numbers that rows are rounded to on their way into a product, for a token, at most.
    rounded: usize,
}

struct FrozenEmbedding {
    words: Vec<f32>,     // (vocabulary, dim)
    positions: Vec<f32>, // (max positions, dim), the vector of the first type added
    norm: FrozenNorm,
}

struct FrozenLayer {
    qkv: PackedLinear,
    attention_output: PackedLinear,
    attention_norm: FrozenNorm,
    expand: PackedLinear,
    contract: PackedLinear,
    output_norm: FrozenNorm,
}

struct FrozenNorm {
    scale: Vec<f32>, // (dim)
    shift: Vec<f32>, // (dim)
    epsilon: f32,
}

impl FrozenNorm {
    /// Replaces rows by their LayerNorm.
    fn apply(&self, level: Level, rows: &mut [f32]) {
        let norm = Norm { scale: &self.scale, shift: &self.shift, epsilon: self.epsilon };
        layer_norm::apply(level, norm, rows);
    }
}

impl FrozenTransformer {
    /// The first layers of a transformer, or all of them.
    pub(super) fn new(
        transformer: &Transformer,
        parameters: &Parameters,
        precision: Precision,
        n_layers: usize,
    ) -> Self {
        let (places, config) = (&transformer.places, &transformer.config);
        let weights = parameters.values();
        assert_eq!(weights.len(), transformer.layout.len(), "weights of another encoder");
        let norm = |place: &NormPlace| FrozenNorm {
            scale: weights[place.scale.clone()].to_vec(),
            shift: weights[place.shift.clone()].to_vec(),
            epsilon: config.layer_norm_epsilon,
        };
        let linear =
            |place: &LinearPlace| (&weights[place.weight.clone()], &weights[place.bias.clone()]);
        let linears: Vec<(&[f32], &[f32])> = places.layers[..n_layers]
            .iter()
            .flat_map(|place| {
                [&place.qkv, &place.attention_output, &place.expand, &place.contract].map(linear)
            })
            .collect();
        let packed = PackedLinear::pack(transformer.level, &linears, precision);
        let rounded = packed.iter().map(PackedLinear::rounded_len).max().unwrap_or(0);
        let mut packed = packed.into_iter();
        let mut next = || packed.next().expect("four linear layers a layer were packed");
        let embedding = places.embedding.as_ref().map(|place| {
            let mut positions = weights[place.positions.clone()].to_vec();
            if let Some(types) = &place.types {
                let first_type = &weights[types.start..types.start + config.dim];
                for position in positions.chunks_exact_mut(config.dim) {
                    for (value, of_type) in position.iter_mut().zip(first_type) {
                        *value += of_type;
                    }
                }
            }
            let words = weights[place.words.clone()].to_vec();
            FrozenEmbedding { words, positions, norm: norm(&place.norm) }
        });
        let layers = places.layers[..n_layers].iter().map(|place| FrozenLayer {
            qkv: next(),
            attention_output: next(),
            attention_norm: norm(&place.attention_norm),
            expand: next(),
            contract: next(),
            output_norm: norm(&place.output_norm),
        });
        Self { transformer: transformer.clone(), embedding, layers: layers.collect(), rounded }
    }

    /// What goes out of the last layer, (tokens, dim), somewhere in the workspace.
    pub(super) fn hidden<'a>(&self, batch: Batch<'_>, workspace: &'a mut Vec<f32>) -> &'a [f32] {
        let Transformer { config, level, states, .. } = &self.transformer;
        let (level, tokens, dim, inner) =
            (*level, batch.n_tokens(), config.dim, config.feed_forward_dim);
        assert!(batch.longest() <= config.max_positions, "a text of too many tokens");
        let len = tokens * (5 * dim + inner + self.rounded);
        if workspace.len() < len {
            workspace.resize(len, 0.0);
        }
        let (hidden, rest) = workspace[..len].split_at_mut(tokens * dim);
        let (qkv, rest) = rest.split_at_mut(tokens * 3 * dim);
        let (context, rest) = rest.split_at_mut(tokens * dim);
        let (expanded, rounded) = rest.split_at_mut(tokens * inner);
        let rounded = bytemuck::cast_slice_mut(rounded); // (tokens, at most rounded)

        if let Some(states) = states {
            copy_states(&**states, batch.ids(), dim, hidden);
        } else if let Some(FrozenEmbedding { words, positions, norm }) = &self.embedding {
            let tables = Tables { words, positions, first_type: &[] };
            embedding::look_up(tables, dim, batch, hidden);
            norm.apply(level, hidden);
        }
        for layer in &self.layers {
            layer.qkv.forward(hidden, tokens, Epilogue::Bias, rounded, qkv);
            let attention = Attention::without_dropout(dim, config.n_heads);
            attention::attend_texts(level, attention, batch, qkv, context);
            layer.attention_output.forward(context, tokens, Epilogue::BiasAdd, rounded, hidden);
            layer.attention_norm.apply(level, hidden);
            layer.expand.forward(hidden, tokens, Epilogue::BiasGelu, rounded, expanded);
            layer.contract.forward(expanded, tokens, Epilogue::BiasAdd, rounded, hidden);
            layer.output_norm.apply(level, hidden);
        }
        hidden
    }
}

impl Frozen for FrozenTransformer {
    fn dim(&self) -> usize {
        self.transformer.config.dim
    }

    fn embed(&self, batch: Batch<'_>, workspace: &mut Vec<f32>, vectors: &mut [f32]) {
        let Transformer { config, level, .. } = &self.transformer;
        let hidden = self.hidden(batch, workspace);
        pooling::pool_texts(*level, config.pooling, batch, hidden, vectors);
    }
}
