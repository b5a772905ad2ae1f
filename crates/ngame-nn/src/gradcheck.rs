//! Gradient checks by finite differences: does a backward pass belong to its forward pass?
//!
//! A loss is taken at a point moved a little forth and back along a random direction; the difference
//! has to be what the gradient says about that direction. Directions of one tensor at a time find
//! out which gradient is wrong.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::kernels::Level;
use crate::layers::attention::{self, Attention};
use crate::layers::blocks::{ROWS, add_column_sums, partial_len};
use crate::layers::dropout::{Mask, Site};
use crate::layers::embedding::{self, Tables};
use crate::layers::layer_norm::{self, Gradient, Norm, Sum};
use crate::layers::pooling::{self, Pooling};
use crate::layers::{gelu, linear};
use crate::random::fill_normal;
use crate::{
    Bag, BagConfig, Batch, Dropout, Encoder, Gradients, Parameters, Precision, Transformer,
    TransformerConfig,
};

/// Normal numbers of deviation 1.
pub(crate) fn noise(seed: u64, n: usize) -> Vec<f32> {
    let mut values = vec![0.0; n];
    fill_normal(&mut ChaCha8Rng::seed_from_u64(seed), 1.0, &mut values);
    values
}

/// The inner product, in f64.
pub(crate) fn inner(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// Asserts that `gradient` is that of `loss` at `point`, along five random directions.
///
/// The difference is taken at two widths and extrapolated, which leaves an error of the fourth
/// order; what remains is the rounding of f32.
pub(crate) fn assert_gradient(
    what: &str,
    point: &[f32],
    gradient: &[f32],
    mut loss: impl FnMut(&[f32]) -> f64,
) {
    for seed in 0..5 {
        let direction = noise(1000 + seed, point.len());
        let mut slope = |width: f32| {
            let at = |sign: f32| -> Vec<f32> {
                point.iter().zip(&direction).map(|(p, d)| p + sign * width * d).collect()
            };
            let (forth, back) = (at(1.0), at(-1.0));
            // The step that was really taken, after rounding.
            let taken = forth.iter().zip(&back).zip(&direction);
            let taken: f64 = taken.map(|((f, b), d)| f64::from(f - b) * f64::from(*d)).sum();
            (loss(&forth) - loss(&back)) / taken * inner(&direction, &direction)
        };
        let (wide, narrow) = (slope(8e-3), slope(4e-3));
        let found = (4.0 * narrow - wide) / 3.0;
        let expected = inner(gradient, &direction);
        // Below a length of 0.05, rounding of the loss is all there is to see.
        let scale = inner(gradient, gradient).sqrt().max(0.05);
        assert!(
            (found - expected).abs() < 4e-3 * scale,
            "{what}: the loss changes by {found} along direction {seed}, the gradient says {expected} \
             (gradient of length {scale})"
        );
    }
}

/// Texts of one token, of all the tokens there can be, and some between, with repeated ids.
pub(crate) fn ragged(vocabulary: u32, longest: usize) -> (Vec<u32>, Vec<usize>) {
    let mut offsets = vec![0];
    for length in [1, longest, 3, 2, 5, 1] {
        offsets.push(offsets[offsets.len() - 1] + length);
    }
    let ids = (0..offsets[6] as u32).map(|i| (i * i + 3 * i) % vocabulary).collect();
    (ids, offsets)
}

#[test]
fn linear_layers() {
    let sizes @ [rows, inputs, outputs] = [5, 7, 4];
    let (x, weight) = (noise(1, rows * inputs), noise(2, outputs * inputs));
    let d_y = noise(3, rows * outputs);
    let mut y = vec![0.0; rows * outputs];
    // What was there before stays in a sum and goes in a product.
    let (mut d_x, mut d_sum) = (vec![f32::NAN; x.len()], vec![1.0; x.len()]);
    let mut d_weight = vec![0.0; weight.len()];
    linear::backward_input(&d_y, &weight, &mut d_x, sizes);
    linear::backward_input_add(&d_y, &weight, &mut d_sum, sizes);
    assert!(d_x.iter().zip(&d_sum).all(|(d, sum)| (d + 1.0 - sum).abs() < 1e-5));
    linear::backward_weight(&d_y, &x, &mut d_weight, sizes);
    assert_gradient("input", &x, &d_x, |x| {
        linear::forward(x, &weight, &mut y, sizes);
        inner(&y, &d_y)
    });
    assert_gradient("weight", &weight, &d_weight, |weight| {
        linear::forward(&x, weight, &mut y, sizes);
        inner(&y, &d_y)
    });
}

#[test]
fn layer_norms() {
    // Rows enough for several blocks, the last one not full.
    let (rows, dim, first_row) = (2 * ROWS + 3, 21, 5);
    let (branch, residual) = (noise(1, rows * dim), noise(2, rows * dim));
    let (scale, shift, bias) = (noise(3, dim), noise(4, dim), noise(5, dim));
    let d_y = noise(6, rows * dim);
    for &level in Level::available() {
        for mask in [None, Mask::new(Dropout::Seed(3), 0.4, Site::Output { layer: 0 })] {
            let mut y = vec![0.0; rows * dim];
            let mut run =
                |branch: &[f32], residual: &[f32], scale: &[f32], shift: &[f32], bias: &[f32]| {
                    let (mut x_hat, mut deviation) = (branch.to_vec(), vec![0.0; rows]);
                    let norm = Norm { scale, shift, epsilon: 1e-5 };
                    let sum = Sum { bias, residual, mask, first_row };
                    layer_norm::forward_sum(level, norm, sum, &mut x_hat, &mut deviation, &mut y);
                    (inner(&y, &d_y), x_hat, deviation)
                };
            let (_, x_hat, deviation) = run(&branch, &residual, &scale, &shift, &bias);
            let (mut d_residual, mut d_branch) = (d_y.clone(), vec![0.0; rows * dim]);
            let (mut d_scale, mut d_shift, mut d_bias) =
                (vec![0.0; dim], vec![0.0; dim], vec![0.0; dim]);
            layer_norm::backward(
                level,
                &scale,
                (mask, first_row),
                &x_hat,
                &deviation,
                &mut d_residual,
                &mut d_branch,
                Gradient {
                    d_scale: &mut d_scale,
                    d_shift: &mut d_shift,
                    d_bias: Some(&mut d_bias),
                },
                &mut vec![f32::NAN; partial_len(rows, 3 * dim)],
            );
            let d_branch = if mask.is_some() { &d_branch } else { &d_residual };
            assert_gradient("branch", &branch, d_branch, |x| {
                run(x, &residual, &scale, &shift, &bias).0
            });
            assert_gradient("residual", &residual, &d_residual, |x| {
                run(&branch, x, &scale, &shift, &bias).0
            });
            assert_gradient("scale", &scale, &d_scale, |x| {
                run(&branch, &residual, x, &shift, &bias).0
            });
            assert_gradient("shift", &shift, &d_shift, |x| {
                run(&branch, &residual, &scale, x, &bias).0
            });
            assert_gradient("bias", &bias, &d_bias, |x| {
                run(&branch, &residual, &scale, &shift, x).0
            });
        }
    }
}

#[test]
fn gelus() {
    let (rows, dim) = (ROWS + 2, 19);
    let (x, bias, d_y) = (noise(1, rows * dim), noise(2, dim), noise(3, rows * dim));
    for &level in Level::available() {
        let mut y = vec![0.0; rows * dim];
        let mut run = |x: &[f32], bias: &[f32]| {
            let mut sum = x.to_vec();
            gelu::forward(level, bias, &mut sum, &mut y);
            (inner(&y, &d_y), sum, y.clone())
        };
        let (_, sum, activated) = run(&x, &bias);
        let (mut d_x, mut again) = (d_y.clone(), vec![f32::NAN; rows * dim]);
        let mut d_bias = vec![0.0; dim];
        let partials = &mut vec![f32::NAN; partial_len(rows, dim)];
        gelu::backward(level, &sum, &mut d_x, &mut again, &mut d_bias, partials);
        assert_eq!(activated, again);
        assert_gradient("input", &x, &d_x, |x| run(x, &bias).0);
        assert_gradient("bias", &bias, &d_bias, |bias| run(&x, bias).0);
    }
}

#[test]
fn attentions() {
    // Heads of 3 numbers go through padded copies, heads of 16 do not; 17 tokens need two blocks.
    for (dim, n_heads) in [(6, 2), (32, 2)] {
        let (ids, offsets) = ragged(11, 17);
        let batch = Batch::new(&ids, &offsets);
        let tokens = batch.n_tokens();
        let (qkv, bias) = (noise(1, tokens * 3 * dim), noise(2, 3 * dim));
        let d_context = noise(3, tokens * dim);
        for &level in Level::available() {
            for dropout in [Dropout::Off, Dropout::Seed(4)] {
                let attention = Attention { dim, n_heads, layer: 1, dropout, rate: 0.3 };
                let mut context = vec![0.0; tokens * dim];
                let mut run = |qkv: &[f32], bias: &[f32]| {
                    let mut sum = qkv.to_vec();
                    attention::forward(level, attention, batch, bias, &mut sum, &mut context);
                    (inner(&context, &d_context), sum)
                };
                let (_, sum) = run(&qkv, &bias);
                let mut d_qkv = vec![f32::NAN; qkv.len()];
                attention::backward(level, attention, batch, &sum, &d_context, &mut d_qkv);
                let mut d_bias = vec![0.0; 3 * dim];
                let partials = &mut vec![0.0; partial_len(tokens, 3 * dim)];
                add_column_sums(level, &d_qkv, &mut d_bias, partials);
                assert_gradient("qkv", &qkv, &d_qkv, |qkv| run(qkv, &bias).0);
                assert_gradient("bias", &bias, &d_bias, |bias| run(&qkv, bias).0);
            }
        }
    }
}

#[test]
fn embeddings() {
    let (vocabulary, positions, dim) = (11, 17, 5);
    let (ids, offsets) = ragged(vocabulary as u32, positions);
    let batch = Batch::new(&ids, &offsets);
    let (words, places) = (noise(1, vocabulary * dim), noise(2, positions * dim));
    let first_type = noise(3, dim);
    let d_out = noise(4, batch.n_tokens() * dim);
    let mut out = vec![0.0; d_out.len()];
    let mut run = |words: &[f32], positions: &[f32]| {
        let tables = Tables { words, positions, first_type: &first_type };
        embedding::forward(tables, dim, batch, &mut out);
        inner(&out, &d_out)
    };
    let mut d_places = vec![0.0; places.len()];
    embedding::backward_positions(dim, batch, &d_out, &mut d_places);
    let mut sorted: Vec<(u32, u32)> = ids.iter().zip(0..).map(|(&id, row)| (id, row)).collect();
    sorted.sort_unstable();
    let mut d_words = vec![0.0; words.len()];
    embedding::scatter_add(dim, &sorted, &d_out, &mut d_words, 0);
    assert_gradient("words", &words, &d_words, |words| run(words, &places));
    assert_gradient("positions", &places, &d_places, |places| run(&words, places));
}

#[test]
fn poolings() {
    let dim = 18;
    let (ids, offsets) = ragged(11, 9);
    let batch = Batch::new(&ids, &offsets);
    let hidden = noise(1, batch.n_tokens() * dim);
    let d_vectors = noise(2, batch.n_texts() * dim);
    for &level in Level::available() {
        for pooling in [Pooling::Mean, Pooling::Cls] {
            let mut vectors = vec![0.0; d_vectors.len()];
            let mut norms = vec![0.0; batch.n_texts()];
            let mut d_hidden = vec![f32::NAN; hidden.len()];
            pooling::forward(level, pooling, batch, &hidden, &mut vectors, &mut norms);
            pooling::backward(level, pooling, batch, &vectors, &norms, &d_vectors, &mut d_hidden);
            assert_gradient("tokens", &hidden, &d_hidden, |hidden| {
                pooling::forward(level, pooling, batch, hidden, &mut vectors, &mut norms);
                inner(&vectors, &d_vectors)
            });
        }
    }
}

/// Checks an encoder end to end: the loss is the inner product of its vectors with fixed noise.
fn check_encoder(what: &str, encoder: &dyn Encoder, weights: &Parameters, dropout: Dropout) {
    let (ids, offsets) = ragged(encoder.vocabulary_size() as u32, encoder.max_tokens().min(9));
    let batch = Batch::new(&ids, &offsets);
    let (texts, tokens) = (batch.n_texts(), batch.n_tokens());
    let mut activations = vec![0.0; encoder.activation_len(texts, tokens)];
    let mut scratch = vec![0.0; encoder.scratch_len(texts, tokens)];
    let mut vectors = vec![0.0; texts * encoder.dim()];
    let d_vectors = noise(77, vectors.len());
    let mut gradients = Gradients::zeros(encoder.layout());
    encoder.forward(weights.values(), batch, dropout, &mut activations, &mut scratch, &mut vectors);
    for vector in vectors.chunks_exact(encoder.dim()) {
        assert!((inner(vector, vector) - 1.0).abs() < 1e-5, "{what}: a vector is not of length 1");
    }
    encoder.backward(
        weights.values(),
        batch,
        dropout,
        &mut activations,
        &mut scratch,
        &d_vectors,
        &mut gradients,
    );
    for tensor in encoder.layout().tensors() {
        let mut moved = weights.values().to_vec();
        let what = format!("{what}, {}", tensor.name);
        let gradient = &gradients.values()[tensor.range()];
        assert_gradient(&what, &weights.values()[tensor.range()], gradient, |values| {
            moved[tensor.range()].copy_from_slice(values);
            encoder.forward(&moved, batch, dropout, &mut activations, &mut scratch, &mut vectors);
            inner(&vectors, &d_vectors)
        });
    }
}

#[test]
fn the_transformer_end_to_end() {
    for (pooling, n_token_types, n_heads) in
        [(Pooling::Mean, 2, 2), (Pooling::Cls, 0, 1), (Pooling::Mean, 0, 4)]
    {
        let transformer = Transformer::new(TransformerConfig {
            vocabulary_size: 23,
            dim: 12,
            n_layers: 2,
            n_heads,
            feed_forward_dim: 20,
            max_positions: 9,
            n_token_types,
            layer_norm_epsilon: 1e-5,
            dropout: 0.2,
            attention_dropout: 0.3,
            pooling,
        });
        let mut weights = transformer.initial_weights(5);
        // Larger weights and biases than a fresh encoder has: every part must matter.
        for (weight, noise) in
            weights.values_mut().iter_mut().zip(noise(6, transformer.layout().len()))
        {
            *weight += 0.3 * noise;
        }
        for dropout in [Dropout::Off, Dropout::Seed(9)] {
            let what = format!("{pooling:?}, {dropout:?}");
            check_encoder(&what, &transformer, &weights, dropout);
        }
        check_frozen(&transformer, &weights);
    }
}

#[test]
fn the_bag_end_to_end() {
    let bag = Bag::new(BagConfig { vocabulary_size: 23, dim: 12, dropout: 0.2 });
    let token_weights: Vec<f32> = (0..23).map(|id| 0.5 + id as f32 * 0.1).collect();
    let mut weights = bag.initial_weights(5, &token_weights);
    for (weight, noise) in weights.values_mut().iter_mut().zip(noise(6, bag.layout().len())) {
        *weight += 0.2 * noise;
    }
    for dropout in [Dropout::Off, Dropout::Seed(9)] {
        check_encoder(&format!("{dropout:?}"), &bag, &weights, dropout);
    }
    check_frozen(&bag, &weights);
}

/// A frozen encoder must give the vectors of the training pass.
fn check_frozen(encoder: &dyn Encoder, weights: &Parameters) {
    let (ids, offsets) = ragged(encoder.vocabulary_size() as u32, encoder.max_tokens().min(9));
    let batch = Batch::new(&ids, &offsets);
    let (texts, tokens, dim) = (batch.n_texts(), batch.n_tokens(), encoder.dim());
    let mut expected = vec![0.0; texts * dim];
    encoder.forward(
        weights.values(),
        batch,
        Dropout::Off,
        &mut vec![0.0; encoder.activation_len(texts, tokens)],
        &mut vec![0.0; encoder.scratch_len(texts, tokens)],
        &mut expected,
    );
    let least = [(Precision::F32, 0.999_999), (Precision::F16, 0.9999), (Precision::Bf16, 0.999)];
    for (precision, least) in least {
        let frozen = encoder.freeze(weights, precision);
        let mut workspace = vec![f32::NAN; 7];
        for part in [0..texts, 0..0, 1..3, 0..1] {
            let mut vectors = vec![f32::NAN; part.len() * dim];
            frozen.embed(batch.part(part.clone()), &mut workspace, &mut vectors);
            let expected = &expected[part.start * dim..part.end * dim];
            for (found, expected) in vectors.chunks_exact(dim).zip(expected.chunks_exact(dim)) {
                assert!(
                    inner(found, expected) > least,
                    "{precision:?}: {}",
                    inner(found, expected)
                );
            }
        }
    }
}
