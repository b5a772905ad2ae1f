//! Every spelling and every type, read back; every kind of damage, refused.

use safetensors::serialize;
use safetensors::tensor::TensorView;

use super::*;
use crate::layers::pooling::Pooling;
use crate::transformer::{Transformer, TransformerConfig};
use crate::weights::write_weights;

/// The layout of a small encoder.
fn layout(n_token_types: usize) -> Arc<Layout> {
    let config = TransformerConfig {
        vocabulary_size: 5,
        dim: 4,
        n_layers: 2,
        n_heads: 2,
        feed_forward_dim: 6,
        max_positions: 3,
        n_token_types,
        layer_norm_epsilon: 1e-12,
        dropout: 0.0,
        attention_dropout: 0.0,
        pooling: Pooling::Mean,
    };
    Arc::clone(Transformer::new(config).initial_weights(0).layout())
}

/// Weights that count up, so that a swapped tensor shows. All are exact in 16 bits.
fn counting(layout: &Arc<Layout>) -> Parameters {
    let mut parameters = Parameters::zeros(layout);
    for (index, value) in parameters.values_mut().iter_mut().enumerate() {
        *value = (index % 251) as f32 - 100.0;
    }
    parameters
}

/// A file with every tensor of the layout, its name and numbers as the two functions say.
fn file(
    parameters: &Parameters,
    dtype: Dtype,
    name: impl Fn(&str) -> String,
    number: impl Fn(f32) -> Vec<u8>,
) -> Vec<u8> {
    let tensors: Vec<(String, Vec<usize>, Vec<u8>)> = parameters
        .layout()
        .tensors()
        .iter()
        .map(|tensor| {
            let values = &parameters.values()[tensor.range()];
            let bytes = values.iter().flat_map(|&value| number(value)).collect();
            (name(&tensor.name), tensor.shape.clone(), bytes)
        })
        .collect();
    let views = tensors.iter().map(|(name, shape, bytes)| {
        (name.as_str(), TensorView::new(dtype, shape.clone(), bytes).unwrap())
    });
    serialize(views, None).unwrap()
}

fn plain(parameters: &Parameters, name: impl Fn(&str) -> String) -> Vec<u8> {
    file(parameters, Dtype::F32, name, |value| value.to_le_bytes().to_vec())
}

fn message(bytes: &[u8], layout: &Arc<Layout>) -> String {
    read_bytes(bytes, layout).unwrap_err().to_string()
}

#[test]
fn every_spelling_is_understood() {
    let layout = layout(2);
    let parameters = counting(&layout);
    let older = |name: &str| {
        name.replace("LayerNorm.weight", "LayerNorm.gamma")
            .replace("LayerNorm.bias", "LayerNorm.beta")
    };
    for (bytes, family) in [
        (plain(&parameters, str::to_owned), Family::Bert),
        (plain(&parameters, |name| format!("bert.{name}")), Family::Bert),
        (plain(&parameters, |name| format!("0.auto_model.{name}")), Family::Bert),
        (plain(&parameters, |name| format!("bert.{}", older(name))), Family::Bert),
        (plain(&parameters, |name| Family::DistilBert.spell(name)), Family::DistilBert),
        (
            plain(&parameters, |name| format!("distilbert.{}", Family::DistilBert.spell(name))),
            Family::DistilBert,
        ),
    ] {
        let weights = read_bytes(&bytes, &layout).unwrap();
        assert_eq!(weights.parameters.values(), parameters.values());
        assert_eq!((weights.family, weights.extras.len()), (family, 0));
    }
}

#[test]
fn every_width_of_numbers_becomes_f32() {
    let layout = layout(0);
    let parameters = counting(&layout);
    for (dtype, number) in [
        (Dtype::F64, (|value| f64::from(value).to_le_bytes().to_vec()) as fn(f32) -> Vec<u8>),
        (Dtype::F16, |value| f16::from_f32(value).to_le_bytes().to_vec()),
        (Dtype::BF16, |value| bf16::from_f32(value).to_le_bytes().to_vec()),
    ] {
        let bytes = file(&parameters, dtype, str::to_owned, number);
        let weights = read_bytes(&bytes, &layout).unwrap();
        assert_eq!(weights.parameters.values(), parameters.values(), "{dtype:?}");
    }
    let bytes = file(&parameters, Dtype::I32, str::to_owned, |value| value.to_le_bytes().to_vec());
    let message = message(&bytes, &layout);
    assert!(message.contains("embeddings.word_embeddings.weight is of type I32"), "{message}");
    assert!(message.contains("expected F32, F16, BF16 or F64"), "{message}");
}

#[test]
fn what_was_written_comes_back_with_its_pooler() {
    let layout = layout(2);
    let parameters = counting(&layout);
    let extra = |name: &str, dtype: Dtype, bytes: Vec<u8>| {
        let shape = vec![bytes.len() * 8 / dtype.bitsize()];
        Extra { name: name.to_owned(), dtype, shape, bytes }
    };
    let extras = [
        extra("pooler.dense.bias", Dtype::F16, vec![1, 2, 3, 4]),
        extra("pooler.dense.weight", Dtype::F64, (0..32).collect()),
    ];
    for family in [Family::Bert, Family::DistilBert] {
        let mut bytes = Vec::new();
        write_weights(&mut bytes, &parameters, family, &extras).unwrap();
        let weights = read_bytes(&bytes, &layout).unwrap();
        assert_eq!(weights.parameters.values(), parameters.values());
        assert_eq!(weights.family, family);
        assert_eq!(weights.extras, extras);
        let (_, metadata) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
        assert_eq!(metadata.metadata().as_ref().unwrap()["format"], "pt");
        let mut again = Vec::new();
        write_weights(&mut again, &weights.parameters, family, &weights.extras).unwrap();
        assert_eq!(again, bytes);
    }
}

#[test]
fn a_missing_tensor_is_named_with_what_is_there() {
    let layout = layout(2);
    let parameters = counting(&layout);
    let renamed = |name: &str| name.replace("layer.1.output.dense.bias", "layer.1.output.dense.b");
    let text = message(&plain(&parameters, renamed), &layout);
    assert!(text.contains("the tensor encoder.layer.1.output.dense.bias is missing"), "{text}");
    assert!(text.contains("the file has encoder.layer.1.output.dense.b"), "{text}");
    let text = message(&plain(&parameters, |name| format!("x{name}")), &layout);
    assert!(text.contains("embeddings.word_embeddings.weight is missing"), "{text}");
    assert!(text.contains("and 34 more"), "{text}");
    let empty = serialize(Vec::<(&str, TensorView<'_>)>::new(), None).unwrap();
    assert!(message(&empty, &layout).contains("no tensor at all"));
}

#[test]
fn other_shapes_and_broken_numbers_are_refused() {
    let ours = layout(2);
    let mut parameters = counting(&layout(1));
    let bytes = plain(&parameters, str::to_owned);
    let text = message(&bytes, &ours);
    let expected = "embeddings.token_type_embeddings.weight has the shape [1, 4], expected [2, 4]";
    assert!(text.contains(expected), "{text}");
    parameters.get_mut("encoder.layer.0.output.dense.bias").unwrap()[3] = f32::NAN;
    let text = message(&plain(&parameters, str::to_owned), parameters.layout());
    assert!(text.contains("encoder.layer.0.output.dense.bias holds NaN at position 3"), "{text}");
}

#[test]
fn two_encoders_in_one_file_are_told_apart_or_refused() {
    let layout = layout(0);
    let name = "embeddings.word_embeddings.weight";
    let bytes = [0; 80];
    let view = || TensorView::new(Dtype::F32, vec![5, 4], &bytes).unwrap();
    let names = [format!("query.{name}"), format!("passage.{name}")];
    let several = serialize(names.iter().map(|name| (name, view())), None).unwrap();
    let text = message(&several, &layout);
    assert!(text.contains("several encoders, under the names passage., query."), "{text}");
}

#[test]
fn damage_is_an_error_and_never_a_panic() {
    let layout = layout(2);
    let whole = plain(&counting(&layout), str::to_owned);
    for length in (0..whole.len()).step_by(7).chain([whole.len() - 1]) {
        let text = message(&whole[..length], &layout);
        assert!(text.starts_with("not a whole safetensors file"), "{length}: {text}");
    }
    // Headers that lie about their own length, and one whose sizes add up to more than 64 bits.
    for length in [u64::MAX, u64::MAX - 7, 1 << 40] {
        let bytes = [&length.to_le_bytes()[..], &whole[8..]].concat();
        assert!(message(&bytes, &layout).contains("a header of"), "{length}");
    }
    let eighth = usize::MAX / 8 + 1;
    let tensors: Vec<String> = (0..8)
        .map(|n: usize| {
            let (begin, end) = (n * (eighth - 1), (n + 1) * (eighth - 1));
            format!(
                r#""t{n}":{{"dtype":"U8","shape":[{}],"data_offsets":[{begin},{end}]}}"#,
                eighth - 1
            )
        })
        .collect();
    let header = format!("{{{}}}", tensors.join(","));
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat();
    assert!(message(&bytes, &layout).contains("0 bytes of tensors where the header says"));
}
