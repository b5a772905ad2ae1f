//! The bag encoder: a weighted sum of token vectors and one residual layer, trained from nothing in
//! seconds to minutes (the kind of Astec and SiameseXML).
//!
//! ```text
//! ids (tokens) ── sum of exp(weight) * vector over a text ── * sqrt(dim) / norm ── dropout ──> sums (texts, dim)
//! sums ── linear ── GELU ─┐
//!   └──────────────────── + ── / norm ──> vectors (texts, dim)
//! ```
//!
//! The order of tokens does not matter and no token sees another: that is what a transformer is for.

mod frozen;
mod words;

use std::ops::Range;
use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rayon::prelude::*;

use crate::batch::Batch;
use crate::encoder::{Dropout, Encoder, Frozen, Precision};
use crate::kernels::math::dot;
use crate::kernels::{Level, kernel};
use crate::layers::blocks::{ROWS, partial_len};
use crate::layers::dropout::{Mask, Site};
use crate::layers::pooling::normalise;
use crate::layers::{gelu, linear};
use crate::parameters::{Gradients, Kind, Layout, Parameters};
use crate::random::fill_normal;
use frozen::FrozenBag;
use words::{Sums, Words, drop_texts, share_out, sum_texts};

/// The shape of a bag encoder.
#[derive(Clone, Debug, PartialEq)]
pub struct BagConfig {
    /// The number of token ids.
    pub vocabulary_size: usize,
    /// The length of a vector.
    pub dim: usize,
    /// The share of the summed vector dropped in training.
    pub dropout: f32,
}

impl BagConfig {
    /// What makes this config impossible, if anything: a sentence with the names of its fields.
    pub fn problem(&self) -> Option<String> {
        let counts = [("vocabulary_size", self.vocabulary_size), ("dim", self.dim)];
        if let Some((name, count)) = counts.iter().find(|(_, count)| !(1..1 << 28).contains(count))
        {
            return Some(format!("{name} is {count}"));
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Some(format!("dropout is {}, not from 0 to below 1", self.dropout));
        }
        None
    }
}

/// A bag encoder: the architecture, without weights.
#[derive(Clone, Debug)]
pub struct Bag {
    config: BagConfig,
    layout: Arc<Layout>,
    words: Range<usize>,        // (vocabulary, dim)
    word_weights: Range<usize>, // (vocabulary), logarithms
    weight: Range<usize>,       // (dim, dim)
    bias: Range<usize>,         // (dim)
    level: Level,
}

impl Bag {
    /// The architecture that a config describes.
    ///
    /// # Panics
    /// If the config is impossible; [`BagConfig::problem`] says so before.
    pub fn new(config: BagConfig) -> Self {
        Self::at_level(config, Level::best())
    }

    /// The same at an instruction set of choice.
    pub(crate) fn at_level(config: BagConfig, level: Level) -> Self {
        assert_eq!(config.problem(), None);
        let BagConfig { vocabulary_size, dim, .. } = config;
        let mut layout = Layout::default();
        let mut add = |name: &str, shape: &[usize], kind| layout.add(name.to_owned(), shape, kind);
        let words = add("words.weight", &[vocabulary_size, dim], Kind::Table);
        let word_weights = add("words.log_weight", &[vocabulary_size], Kind::RowScalars);
        let weight = add("residual.weight", &[dim, dim], Kind::Matrix);
        let bias = add("residual.bias", &[dim], Kind::Vector);
        Self { config, layout: Arc::new(layout), words, word_weights, weight, bias, level }
    }

    /// Its shape.
    pub fn config(&self) -> &BagConfig {
        &self.config
    }

    /// Fresh weights: random unit-sized vectors, and for every token how much it counts at first,
    /// such as its inverse document frequency.
    ///
    /// # Panics
    /// If there is not one weight a token, or one that is not positive and finite.
    pub fn initial_weights(&self, seed: u64, token_weights: &[f32]) -> Parameters {
        assert_eq!(token_weights.len(), self.config.vocabulary_size, "one weight a token");
        assert!(token_weights.iter().all(|weight| *weight > 0.0 && weight.is_finite()));
        let mut parameters = Parameters::zeros(&self.layout);
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let values = parameters.values_mut();
        let deviation = 1.0 / (self.config.dim as f32).sqrt();
        fill_normal(&mut random, deviation, &mut values[self.words.clone()]);
        fill_normal(&mut random, 0.02, &mut values[self.weight.clone()]);
        for (value, weight) in values[self.word_weights.clone()].iter_mut().zip(token_weights) {
            *value = weight.ln();
        }
        parameters
    }

    fn words<'a>(&self, weights: &'a [f32]) -> Words<'a> {
        Words {
            vectors: &weights[self.words.clone()],
            log_weights: &weights[self.word_weights.clone()],
            dim: self.config.dim,
        }
    }

    fn mask(&self, dropout: Dropout) -> Option<Mask> {
        Mask::new(dropout, self.config.dropout, Site::Embedding)
    }
}

impl Encoder for Bag {
    fn dim(&self) -> usize {
        self.config.dim
    }

    fn max_tokens(&self) -> usize {
        usize::MAX
    }

    fn vocabulary_size(&self) -> usize {
        self.config.vocabulary_size
    }

    fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    fn activation_len(&self, n_texts: usize, n_tokens: usize) -> usize {
        n_tokens + n_texts * (3 * self.config.dim + 2)
    }

    fn scratch_len(&self, n_texts: usize, n_tokens: usize) -> usize {
        let dim = self.config.dim;
        n_tokens * (dim + 1) + 3 * n_texts * dim + partial_len(n_texts, dim)
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
        let (texts, dim) = (batch.n_texts(), self.config.dim);
        let kept = Activations::new(texts, batch.n_tokens(), dim, activations);
        let activated = &mut scratch[..texts * dim];
        let sums = Sums { units: kept.units, norms: kept.norms, counts: kept.counts };
        sum_texts(self.level, self.words(weights), batch, sums);
        // A dropped number is 0 in `units` from here on; the backward pass knows.
        if let Some(mask) = self.mask(dropout) {
            drop_texts(self.level, mask, batch, dim, kept.units);
        }
        let weight = &weights[self.weight.clone()];
        linear::forward(kept.units, weight, kept.expanded, [texts, dim, dim]);
        gelu::forward(self.level, &weights[self.bias.clone()], kept.expanded, activated);
        let block = ROWS * dim;
        (
            kept.vectors.par_chunks_mut(block),
            kept.units.par_chunks(block),
            activated.par_chunks(block),
            kept.vector_norms.par_chunks_mut(ROWS),
        )
            .into_par_iter()
            .for_each(|(vectors, units, activated, norms)| {
                add_and_normalise(self.level, units, activated, vectors, norms);
            });
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
        let (texts, tokens, dim) = (batch.n_texts(), batch.n_tokens(), self.config.dim);
        let kept = Activations::new(texts, tokens, dim, activations);
        let (d_units, rest) = scratch.split_at_mut(texts * dim);
        let (d_expanded, rest) = rest.split_at_mut(texts * dim);
        let (activated, rest) = rest.split_at_mut(texts * dim);
        let (d_rows, rest) = rest.split_at_mut(tokens * dim);
        let (d_log_weights, partials) = rest.split_at_mut(tokens);

        let block = ROWS * dim;
        (
            d_units.par_chunks_mut(block),
            kept.vectors.par_chunks(block),
            d_vectors.par_chunks(block),
            kept.vector_norms.par_chunks(ROWS),
        )
            .into_par_iter()
            .for_each(|(d_units, vectors, d_vectors, norms)| {
                units_backward(self.level, 1.0, vectors, norms, d_vectors, d_units);
            });
        d_expanded.copy_from_slice(d_units);
        let d_bias = &mut gradients.values[self.bias.clone()];
        gelu::backward(self.level, kept.expanded, d_expanded, activated, d_bias, partials);
        let sizes = [texts, dim, dim];
        let d_weight = &mut gradients.values[self.weight.clone()];
        linear::backward_weight(d_expanded, kept.units, d_weight, sizes);
        linear::backward_input_add(d_expanded, &weights[self.weight.clone()], d_units, sizes);

        // Back through dropout and the norm. The sums are made again, since dropout took some.
        if let Some(mask) = self.mask(dropout) {
            drop_texts(self.level, mask, batch, dim, d_units);
            let sums = Sums { units: kept.units, norms: kept.norms, counts: kept.counts };
            sum_texts(self.level, self.words(weights), batch, sums);
        }
        let d_sums = d_expanded;
        let length = (dim as f32).sqrt();
        (
            d_sums.par_chunks_mut(block),
            kept.units.par_chunks(block),
            d_units.par_chunks(block),
            kept.norms.par_chunks(ROWS),
        )
            .into_par_iter()
            .for_each(|(d_sums, units, d_units, norms)| {
                units_backward(self.level, length, units, norms, d_units, d_sums);
            });
        let words = self.words(weights);
        share_out(self.level, words, batch, kept.counts, d_sums, d_rows, d_log_weights);
        gradients.scatter_rows(0, batch.ids(), d_rows);
        gradients.scatter_rows(1, batch.ids(), d_log_weights);
    }

    fn freeze(&self, parameters: &Parameters, precision: Precision) -> Box<dyn Frozen> {
        Box::new(FrozenBag::new(self, parameters, precision))
    }
}

/// What a forward pass keeps.
struct Activations<'a> {
    counts: &'a mut [f32],       // (tokens): exp of the token's weight
    units: &'a mut [f32],        // (texts, dim): sums of length sqrt(dim), after dropout
    norms: &'a mut [f32],        // (texts): their length before
    expanded: &'a mut [f32],     // (texts, dim): before GELU
    vectors: &'a mut [f32],      // (texts, dim)
    vector_norms: &'a mut [f32], // (texts)
}

impl<'a> Activations<'a> {
    fn new(texts: usize, tokens: usize, dim: usize, buffer: &'a mut [f32]) -> Self {
        let (counts, rest) = buffer.split_at_mut(tokens);
        let (units, rest) = rest.split_at_mut(texts * dim);
        let (norms, rest) = rest.split_at_mut(texts);
        let (expanded, rest) = rest.split_at_mut(texts * dim);
        let (vectors, rest) = rest.split_at_mut(texts * dim);
        let vector_norms = &mut rest[..texts];
        Self { counts, units, norms, expanded, vectors, vector_norms }
    }
}

kernel! {
    /// Unit vectors of the sums of two matrices.
    fn add_and_normalise<A>(
        units: &[f32],       // (rows, dim)
        activated: &[f32],   // (rows, dim)
        vectors: &mut [f32], // (rows, dim)
        norms: &mut [f32],   // (rows)
    ) {
        let dim = vectors.len() / norms.len();
        for ((vector, unit), (activated, norm)) in vectors
            .chunks_exact_mut(dim)
            .zip(units.chunks_exact(dim))
            .zip(activated.chunks_exact(dim).zip(norms))
        {
            for ((value, unit), activated) in vector.iter_mut().zip(unit).zip(activated) {
                *value = unit + activated;
            }
            *norm = normalise(vector);
        }
    }
}

kernel! {
    /// The gradient by vectors that were scaled to a given length.
    fn units_backward<A>(
        length: f32,
        units: &[f32],         // (rows, dim), of that length
        norms: &[f32],         // (rows): the length they had
        d_units: &[f32],       // (rows, dim)
        d_vectors: &mut [f32], // (rows, dim)
    ) {
        let dim = units.len() / norms.len();
        let rows = units.chunks_exact(dim).zip(d_units.chunks_exact(dim)).zip(norms);
        for (((unit, d_unit), norm), d_vector) in rows.zip(d_vectors.chunks_exact_mut(dim)) {
            // A vector of length l is l times a unit vector u: d_v = l (d - u (u . d)) / norm.
            let along = dot(unit, d_unit) / (length * length);
            for ((d, unit), d_unit) in d_vector.iter_mut().zip(unit).zip(d_unit) {
                *d = length * (d_unit - unit * along) / norm;
            }
        }
    }
}
