//! How long a run will take and how much memory, from a step or two on this machine.

use std::time::Instant;

use ngame_nn::{Dropout, Gradients, TrainingPass};
use serde::{Deserialize, Serialize};

use super::batch_texts::BatchTexts;
use super::config::{Embeddings, SamplerKind, TrainConfig};
use super::corpus::Corpus;
use super::cost::LaterStages;
use crate::batching::{Batches, Clusters};
use crate::encoder::TextEncoder;

/// The points of the batch that is timed.
const TIMED_POINTS: usize = 128;

/// Batches whose tokens are counted.
const COUNTED_BATCHES: usize = 4;

/// What a run will take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// Seconds of what is done once before the first epoch.
    #[serde(default)]
    pub seconds_before: f64,
    /// Seconds of an epoch, validation included.
    pub seconds_per_epoch: f64,
    /// Seconds of the encoder.
    pub seconds: f64,
    /// Tokens that an epoch trains on.
    pub tokens_per_epoch: u64,
    /// The most memory it takes, in bytes.
    pub memory: u64,
    /// Seconds of what comes after the encoder.
    #[serde(default)]
    pub later: LaterStages,
}

/// Bytes for activations.
pub(super) fn activation_budget(config: &TrainConfig) -> usize {
    (config.run.memory * f64::from(1u32 << 30)) as usize
}

impl Estimate {
    /// The same where some of the layers are trained. `forward` is what going through all texts once
    /// takes all layers.
    pub(super) fn of_layers(self, trained: usize, all: usize, forward: f64) -> Self {
        let share = trained as f64 / all as f64;
        Self {
            seconds_before: forward * (1.0 - share),
            seconds_per_epoch: self.seconds_per_epoch * share,
            later: LaterStages { vectors: self.later.vectors * share, ..self.later },
            ..self
        }
    }

    /// The same with texts cut so that this share of their tokens is left.
    pub(super) fn of_texts(self, share: f64) -> Self {
        Self {
            seconds_per_epoch: self.seconds_per_epoch * share,
            later: LaterStages { vectors: self.later.vectors * share, ..self.later },
            ..self
        }
    }

    /// How many epochs there is time for.
    pub(super) fn epochs_in(&self, seconds: f64) -> usize {
        let left = seconds - self.seconds_before - self.later.sum();
        (left / self.seconds_per_epoch.max(1e-9)).max(0.0) as usize
    }

    /// Seconds of the whole run.
    pub fn total_seconds(&self) -> f64 {
        self.seconds + self.later.sum()
    }
}

/// Times a step and counts tokens and bytes: what it takes to train all layers, and the seconds of going
/// through all texts once.
pub(super) fn calibrate(
    corpus: &Corpus,
    encoder: &TextEncoder,
    config: &TrainConfig,
) -> (Estimate, f64) {
    let n_points = corpus.n_points();
    // Points from all over the data, as a random batch has them.
    let every = n_points.div_ceil(TIMED_POINTS).max(1);
    let points: Vec<u32> = (0..n_points as u32).step_by(every).collect();
    let mut texts = BatchTexts::new(corpus, config);
    texts.fill(corpus, &points, None, config.run.seed, 0);
    let batch = texts.batch();
    let model = encoder.encoder();
    let mut gradients = Gradients::zeros(model.layout());
    let mut pass = TrainingPass::new(activation_budget(config));
    let mut vectors = vec![0.0; batch.n_texts() * model.dim()];
    let mut seconds = f64::INFINITY;
    for _ in 0..2 {
        // The first pass also finds memory for its buffers.
        let began = Instant::now();
        let weights = encoder.parameters().values();
        pass.forward(model, weights, batch, Dropout::Seed(1), &mut vectors);
        pass.backward(model, weights, batch, Dropout::Seed(1), &vectors, &mut gradients);
        seconds = began.elapsed().as_secs_f64().min(seconds);
    }
    let seconds_per_token = seconds / batch.n_tokens() as f64;
    // A batch encodes a text once, however often it comes, so tokens are counted in batches.
    let batch_size = config.batching.batch_size.unwrap_or(TIMED_POINTS).min(n_points);
    let clusters = Clusters::singletons(n_points);
    let batches = Batches::draw(&clusters, 1, batch_size, config.run.seed, 0);
    let n_counted = batches.len().min(COUNTED_BATCHES);
    let (mut n_tokens, mut n_seen) = (0, 0);
    for batch in 0..n_counted {
        texts.fill(corpus, batches.get(batch), None, config.run.seed, 0);
        n_tokens += texts.batch().n_tokens() as u64;
        n_seen += batches.get(batch).len() as u64;
    }
    let mut tokens_per_epoch = n_tokens * n_points as u64 / n_seen.max(1);
    if config.batching.sampler == SamplerKind::Ann {
        let mean = tokens_per_epoch / (2 * n_points as u64).max(1);
        tokens_per_epoch += mean * (n_points * config.batching.ann_negatives) as u64;
    }
    // Going forward alone takes about a third of going there and back.
    let label_tokens: u64 =
        (0..corpus.n_label_texts as u32).map(|text| corpus.n_tokens(text) as u64).sum();
    let held_out: u64 = corpus.held_out.text.iter().map(|&text| corpus.n_tokens(text) as u64).sum();
    let mut forward_tokens = (label_tokens + held_out) as f64 / config.validation.every;
    if config.batching.embeddings == Embeddings::Recomputed {
        forward_tokens += tokens_per_epoch as f64 / 2.0 / config.batching.refresh as f64;
    }
    let seconds_per_epoch = seconds_per_token * (tokens_per_epoch as f64 + forward_tokens / 3.0);
    // A batch takes what it needs of the budget, if it needs less.
    let (batch_texts, batch_tokens) =
        (2 * batch_size, (tokens_per_epoch as usize).div_ceil(batches.len().max(1)));
    let needed = model.activation_len(batch_texts, batch_tokens)
        + model.scratch_len(batch_texts, batch_tokens);
    let activations = (needed * size_of::<f32>()).min(activation_budget(config)) as u64;
    let n_parameters = model.layout().len() as u64;
    let captured = (n_points * model.dim() * 2) as u64;
    let labels = ((corpus.n_label_texts + corpus.label_text.len()) * model.dim() * 4) as u64;
    // Weights, their gradients and two moments; the packed weights of a validation.
    let memory = 20 * n_parameters + activations + captured + labels + corpus.tokens.memory();
    let estimate = Estimate { seconds_per_epoch, tokens_per_epoch, memory, ..Default::default() };
    (estimate, seconds_per_token * corpus.tokens.n_tokens() as f64 / 3.0)
}
