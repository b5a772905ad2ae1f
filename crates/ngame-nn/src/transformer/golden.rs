//! Golden tests against PyTorch: hidden states, vectors, every gradient, ten steps of AdamW. The
//! files come from `fixtures/encoder/make.py`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use safetensors::{Dtype, SafeTensors};

use super::activations::Activations;
use super::{Transformer, TransformerConfig};
use crate::kernels::Level;
use crate::{
    AdamW, AdamWConfig, Batch, Dropout, Encoder, Family, Gradients, Parameters, Pooling,
    read_weights,
};

/// What PyTorch answered, by tensor name.
pub(crate) struct Golden {
    floats: BTreeMap<String, Vec<f32>>,
    integers: BTreeMap<String, Vec<i32>>,
}

impl Golden {
    pub(crate) fn read(name: &str) -> Self {
        let bytes = std::fs::read(fixture(name).join("golden.safetensors"))
            .expect("run fixtures/encoder/make.py");
        let file = SafeTensors::deserialize(&bytes).expect("the fixture is a safetensors file");
        let (mut floats, mut integers) = (BTreeMap::new(), BTreeMap::new());
        for (name, tensor) in file.tensors() {
            let words = tensor.data().chunks_exact(4).map(|b| [b[0], b[1], b[2], b[3]]);
            match tensor.dtype() {
                Dtype::F32 => drop(floats.insert(name, words.map(f32::from_le_bytes).collect())),
                Dtype::I32 => drop(integers.insert(name, words.map(i32::from_le_bytes).collect())),
                other => panic!("{name} is {other:?}"),
            }
        }
        Self { floats, integers }
    }

    pub(crate) fn floats(&self, name: &str) -> &[f32] {
        self.floats.get(name).unwrap_or_else(|| panic!("the fixture has no {name}"))
    }

    pub(crate) fn ids(&self, name: &str) -> Vec<u32> {
        self.integers[name].iter().map(|&id| id as u32).collect()
    }

    fn offsets(&self) -> Vec<usize> {
        self.integers["offsets"].iter().map(|&offset| offset as usize).collect()
    }
}

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/encoder").join(name)
}

/// Asserts that no value is off by more than `tolerance` times the largest one expected.
pub(crate) fn assert_close(what: &str, found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len(), "{what}: number of values");
    let largest = expected.iter().fold(1e-6f32, |most, value| most.max(value.abs()));
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (found - expected).abs() / largest;
        assert!(error <= tolerance, "{what}[{i}]: {found}, expected {expected} (off by {error:e})");
    }
}

struct Case {
    name: &'static str,
    family: Family,
    config: TransformerConfig,
}

fn cases() -> [Case; 2] {
    let bert = TransformerConfig {
        vocabulary_size: 97,
        dim: 32,
        n_layers: 2,
        n_heads: 4,
        feed_forward_dim: 48,
        max_positions: 20,
        n_token_types: 2,
        layer_norm_epsilon: 1e-12,
        dropout: 0.0,
        attention_dropout: 0.0,
        pooling: Pooling::Mean,
    };
    let distilbert = TransformerConfig {
        vocabulary_size: 61,
        dim: 20,
        feed_forward_dim: 28,
        max_positions: 16,
        n_token_types: 0,
        ..bert.clone()
    };
    [
        Case { name: "bert", family: Family::Bert, config: bert },
        Case { name: "distilbert", family: Family::DistilBert, config: distilbert },
    ]
}

impl Case {
    fn weights(&self, transformer: &Transformer) -> Parameters {
        let path = fixture(self.name).join("model.safetensors");
        let weights = read_weights(&path, transformer.layout()).expect("the fixture has weights");
        assert_eq!(weights.family, self.family);
        weights.parameters
    }
}

/// The buffers of a pass.
struct Pass {
    activations: Vec<f32>,
    scratch: Vec<f32>,
    vectors: Vec<f32>,
}

fn forward(transformer: &Transformer, weights: &Parameters, batch: Batch<'_>) -> Pass {
    let (texts, tokens) = (batch.n_texts(), batch.n_tokens());
    // Whatever buffers held before must not matter.
    let mut pass = Pass {
        activations: vec![f32::NAN; transformer.activation_len(texts, tokens)],
        scratch: vec![f32::NAN; transformer.scratch_len(texts, tokens)],
        vectors: vec![f32::NAN; texts * transformer.dim()],
    };
    let Pass { activations, scratch, vectors } = &mut pass;
    transformer.forward(weights.values(), batch, Dropout::Off, activations, scratch, vectors);
    pass
}

#[test]
fn hidden_states_vectors_and_gradients_are_those_of_pytorch() {
    for case in cases() {
        let golden = Golden::read(case.name);
        let (ids, offsets) = (golden.ids("ids"), golden.offsets());
        let batch = Batch::new(&ids, &offsets);
        for (pooling, kind) in [(Pooling::Mean, "mean"), (Pooling::Cls, "cls")] {
            for &level in Level::available() {
                let config = TransformerConfig { pooling, ..case.config.clone() };
                let transformer = Transformer::at_level(config, level);
                let weights = case.weights(&transformer);
                let mut pass = forward(&transformer, &weights, batch);
                let config = transformer.config();
                let (texts, tokens) = (batch.n_texts(), batch.n_tokens());
                let kept = Activations::new(config, texts, tokens, &mut pass.activations);
                for (layer, hidden) in kept.hidden.chunks_exact(tokens * config.dim).enumerate() {
                    let name = format!("hidden.{layer}");
                    let what = format!("{} {level:?} {name}", case.name);
                    assert_close(&what, hidden, golden.floats(&name), 2e-6);
                }
                let name = format!("{kind}.unit");
                assert_close(&name, &pass.vectors, golden.floats(&name), 2e-6);

                let mut gradients = Gradients::zeros(transformer.layout());
                let d_vectors = golden.floats("d_vectors");
                let Pass { activations, scratch, .. } = &mut pass;
                transformer.backward(
                    weights.values(),
                    batch,
                    Dropout::Off,
                    activations,
                    scratch,
                    d_vectors,
                    &mut gradients,
                );
                for tensor in transformer.layout().tensors() {
                    let name = format!("{kind}.grad.{}", case.family.spell(&tensor.name));
                    let found = &gradients.values()[tensor.range()];
                    let expected = golden.floats(&name);
                    let what = format!("{} {level:?} {name}", case.name);
                    // A key's bias shifts all scores of a row alike, so its gradient is 0 but for
                    // rounding; it is measured against that of the query's.
                    if tensor.name.ends_with("key.bias") {
                        let query =
                            name.replace("self.key", "self.query").replace("k_lin", "q_lin");
                        let scale =
                            golden.floats(&query).iter().fold(0.0f32, |m, v| m.max(v.abs()));
                        assert!(found.iter().all(|value| value.abs() < 1e-5 * scale), "{what}");
                    } else {
                        assert_close(&what, found, expected, 1e-5);
                    }
                }
            }
        }
    }
}

#[test]
fn ten_steps_of_adamw_are_those_of_pytorch() {
    for case in cases() {
        let golden = Golden::read(case.name);
        let (ids, offsets) = (golden.ids("ids"), golden.offsets());
        let whole = Batch::new(&ids, &offsets);
        let target = golden.floats("target");
        for (max_norm, prefix) in [(None, ""), (Some(0.05), "clipped.")] {
            let transformer = Transformer::new(case.config.clone());
            let mut weights = case.weights(&transformer);
            let mut gradients = Gradients::zeros(transformer.layout());
            let config = AdamWConfig {
                weight_decay: 0.05,
                max_norm,
                lazy_rows: false,
                ..Default::default()
            };
            let mut optimiser = AdamW::new(config, transformer.layout());
            let mut losses = Vec::new();
            for step in 0..10 {
                let batch = if step % 2 == 0 { whole } else { whole.part(0..3) };
                let mut pass = forward(&transformer, &weights, batch);
                let texts = batch.n_texts() as f32;
                let difference: Vec<f32> =
                    pass.vectors.iter().zip(target).map(|(v, t)| v - t).collect();
                losses.push(difference.iter().map(|d| d * d).sum::<f32>() / texts);
                let d_vectors: Vec<f32> = difference.iter().map(|d| 2.0 * d / texts).collect();
                transformer.backward(
                    weights.values(),
                    batch,
                    Dropout::Off,
                    &mut pass.activations,
                    &mut pass.scratch,
                    &d_vectors,
                    &mut gradients,
                );
                let rate = 1e-2 * ((step + 1) as f32 / 3.0).min(1.0);
                optimiser.step(rate, &mut weights, &mut gradients);
                assert!(gradients.values().iter().all(|&value| value == 0.0));
            }
            let name = format!("{prefix}losses");
            assert_close(&name, &losses, golden.floats(&name), 2e-5);
            for tensor in transformer.layout().tensors() {
                // Adam divides a gradient by its own size: a key's bias, whose gradient is nothing
                // but rounding, walks at random. It has no effect on any output.
                if !tensor.name.ends_with("key.bias") {
                    let name = format!("{prefix}after.{}", case.family.spell(&tensor.name));
                    let found = &weights.values()[tensor.range()];
                    assert_close(&name, found, golden.floats(&name), 1e-3);
                }
            }
        }
    }
}
