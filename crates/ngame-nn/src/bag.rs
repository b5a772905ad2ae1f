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

use std::ops::Range;
use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rayon::prelude::*;

use crate::batch::Batch;
use crate::encoder::{Dropout, Encoder, Frozen, Precision};
use crate::kernels::math::{dot, exp};
use crate::kernels::{Level, kernel};
use crate::layers::blocks::{ROWS, partial_len};
use crate::layers::dropout::{Mask, Site};
use crate::layers::pooling::normalise;
use crate::layers::{gelu, linear};
use crate::panels::{Epilogue, PackedLinear};
use crate::parameters::{Gradients, Kind, Layout, Parameters};
use crate::random::fill_normal;

/// The tokens below which a batch is not split between threads any further.
const GRAIN: usize = 256;

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
        let weights = parameters.values();
        assert_eq!(weights.len(), self.layout.len(), "weights of another encoder");
        let (weight, bias) = (&weights[self.weight.clone()], &weights[self.bias.clone()]);
        Box::new(FrozenBag {
            level: self.level,
            dim: self.config.dim,
            vectors: weights[self.words.clone()].to_vec(),
            log_weights: weights[self.word_weights.clone()].to_vec(),
            residual: PackedLinear::new(self.level, weight, bias, precision),
        })
    }
}

/// A bag encoder for answering.
struct FrozenBag {
    level: Level,
    dim: usize,
    vectors: Vec<f32>,     // (vocabulary, dim)
    log_weights: Vec<f32>, // (vocabulary)
    residual: PackedLinear,
}

impl Frozen for FrozenBag {
    fn dim(&self) -> usize {
        self.dim
    }

    fn embed(&self, batch: Batch<'_>, workspace: &mut Vec<f32>, vectors: &mut [f32]) {
        let (texts, dim) = (batch.n_texts(), self.dim);
        let longest = batch.longest();
        let len = 2 * texts * dim + texts + longest;
        if workspace.len() < len {
            workspace.resize(len, 0.0);
        }
        let (units, rest) = workspace[..len].split_at_mut(texts * dim);
        let (activated, rest) = rest.split_at_mut(texts * dim);
        let (norms, counts) = rest.split_at_mut(texts);
        let words = Words { vectors: &self.vectors, log_weights: &self.log_weights, dim };
        for (text, unit) in units.chunks_exact_mut(dim).enumerate() {
            let ids = &batch.ids()[batch.rows(text)];
            sum_text(self.level, words, ids, &mut counts[..ids.len()], unit);
        }
        self.residual.forward(units, texts, Epilogue::BiasGelu, activated);
        if texts > 0 {
            add_and_normalise(self.level, units, activated, vectors, norms);
        }
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

/// The tables to look up.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    vectors: &'a [f32],     // (vocabulary, dim)
    log_weights: &'a [f32], // (vocabulary)
    dim: usize,
}

/// What comes of the first half.
struct Sums<'a> {
    units: &'a mut [f32],  // (texts, dim)
    norms: &'a mut [f32],  // (texts)
    counts: &'a mut [f32], // (tokens)
}

/// Sums the weighted vectors of every text and scales the sum to length sqrt(dim).
fn sum_texts(level: Level, words: Words<'_>, batch: Batch<'_>, sums: Sums<'_>) {
    let Sums { units, norms, counts } = sums;
    if let Some((left, right)) = batch.halves(GRAIN) {
        let (units_left, units_right) = units.split_at_mut(left.n_texts() * words.dim);
        let (norms_left, norms_right) = norms.split_at_mut(left.n_texts());
        let (counts_left, counts_right) = counts.split_at_mut(left.n_tokens());
        let sums_left = Sums { units: units_left, norms: norms_left, counts: counts_left };
        let sums_right = Sums { units: units_right, norms: norms_right, counts: counts_right };
        rayon::join(
            || sum_texts(level, words, left, sums_left),
            || sum_texts(level, words, right, sums_right),
        );
        return;
    }
    let ids = batch.ids();
    for (text, (unit, norm)) in units.chunks_exact_mut(words.dim).zip(norms).enumerate() {
        let rows = batch.rows(text);
        *norm = sum_text(level, words, &ids[rows.clone()], &mut counts[rows], unit);
    }
}

/// Gives every token its part of the gradient by its text's sum.
fn share_out(
    level: Level,
    words: Words<'_>,
    batch: Batch<'_>,
    counts: &[f32],            // (tokens)
    d_sums: &[f32],            // (texts, dim)
    d_rows: &mut [f32],        // (tokens, dim)
    d_log_weights: &mut [f32], // (tokens)
) {
    let dim = words.dim;
    if let Some((left, right)) = batch.halves(GRAIN) {
        let (counts_left, counts_right) = counts.split_at(left.n_tokens());
        let (d_sums_left, d_sums_right) = d_sums.split_at(left.n_texts() * dim);
        let (rows_left, rows_right) = d_rows.split_at_mut(left.n_tokens() * dim);
        let (logs_left, logs_right) = d_log_weights.split_at_mut(left.n_tokens());
        rayon::join(
            || share_out(level, words, left, counts_left, d_sums_left, rows_left, logs_left),
            || share_out(level, words, right, counts_right, d_sums_right, rows_right, logs_right),
        );
        return;
    }
    let ids = batch.ids();
    for (text, d_sum) in d_sums.chunks_exact(dim).enumerate() {
        let rows = batch.rows(text);
        let d_rows = &mut d_rows[rows.start * dim..rows.end * dim];
        let d_logs = &mut d_log_weights[rows.clone()];
        share_text(level, words, &ids[rows.clone()], &counts[rows], d_sum, d_rows, d_logs);
    }
}

/// Drops numbers of vectors of texts; a text is known by where it begins in the whole batch.
fn drop_texts(
    level: Level,
    mask: Mask,
    batch: Batch<'_>,
    dim: usize,
    matrix: &mut [f32], // (texts, dim)
) {
    let blocks = matrix.par_chunks_mut(ROWS * dim).zip(batch.starts().par_chunks(ROWS));
    blocks.for_each(|(rows, starts)| drop_block(level, mask, starts, dim, rows));
}

kernel! {
    /// One block of [`drop_texts`].
    fn drop_block<A>(mask: Mask, starts: &[usize], dim: usize, rows: &mut [f32]) {
        for (start, row) in starts.iter().zip(rows.chunks_exact_mut(dim)) {
            mask.apply(*start, row);
        }
    }
}

kernel! {
    /// The sum of one text, of length sqrt(dim); returns the length it had, in that unit.
    fn sum_text<A>(words: Words<'_>, ids: &[u32], counts: &mut [f32], unit: &mut [f32]) -> f32 {
        unit.fill(0.0);
        for (&id, count) in ids.iter().zip(counts) {
            *count = exp::<A>(words.log_weights[id as usize]);
            let start = id as usize * words.dim;
            for (total, value) in unit.iter_mut().zip(&words.vectors[start..start + words.dim]) {
                *total = A::mul_add(*count, *value, *total);
            }
        }
        let norm = normalise(unit);
        let length = (words.dim as f32).sqrt();
        for value in unit.iter_mut() {
            *value *= length;
        }
        norm
    }
}

kernel! {
    /// The gradients of the tokens of one text.
    fn share_text<A>(
        words: Words<'_>,
        ids: &[u32],
        counts: &[f32],
        d_sum: &[f32],
        d_rows: &mut [f32],
        d_log_weights: &mut [f32],
    ) {
        let tokens = ids.iter().zip(counts).zip(d_rows.chunks_exact_mut(words.dim));
        for (((&id, count), d_row), d_log_weight) in tokens.zip(d_log_weights) {
            let start = id as usize * words.dim;
            *d_log_weight = count * dot(&words.vectors[start..start + words.dim], d_sum);
            for (d, value) in d_row.iter_mut().zip(d_sum) {
                *d = count * value;
            }
        }
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
