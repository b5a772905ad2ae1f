//! One step: encode the texts of a batch, compare points with targets, go back, and move the weights.

use std::time::Instant;

use ngame_nn::{AdamW, AdamWConfig, Dropout, Gradients, TrainingPass, VectorTable};

use super::batch_texts::BatchTexts;
use super::calibration::activation_budget;
use super::config::{LossConfig, LossKind, Negatives, TrainConfig};
use super::corpus::Corpus;
use crate::batching::NegativeLists;
use crate::encoder::TextEncoder;
use crate::loss::{
    BatchLoss, BatchReport, CrossEntropy, HardNegatives, Loss, Softmax, Triplet, TripletShape,
    Weighting,
};
use crate::random::mix;

/// Classifiers learn so many times as fast as the encoder: as the paper's second module against its
/// first.
const CLASSIFIER_RATE: f32 = 10.0;

/// What the numbers that a step drops are drawn for.
const DROPOUT: u64 = 4;

/// All that steps need beside the encoder: buffers, the optimiser, and the loss.
#[derive(Debug)]
pub(super) struct EncoderStep {
    loss: Box<dyn Loss>,
    hardest: f64,
    seed: u64,
    texts: BatchTexts,
    pass: TrainingPass,
    batch_loss: BatchLoss,
    gradients: Gradients,
    pub(super) optimiser: AdamW,
    /// One classifier a target, where they are trained along.
    pub(super) classifiers: Option<VectorTable>,
    vectors: Vec<f32>,   // (texts, dim)
    d_vectors: Vec<f32>, // (texts, dim)
    points: Vec<f32>,    // (points, dim)
    d_points: Vec<f32>,  // (points, dim)
    targets: Vec<f32>,   // (targets, dim)
    d_targets: Vec<f32>, // (targets, dim)
}

/// What a step did.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepReport {
    pub(super) loss: BatchReport,
    pub(super) n_tokens: usize,
    /// The length of the gradient; not finite where nothing was moved.
    pub(super) gradient: f32,
    /// Seconds of the encoder's passes and of moving its weights: all else is the loop's own.
    pub(super) encoder_seconds: f64,
}

/// Which step it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepAt {
    pub(super) epoch: usize,
    pub(super) step: u64,
    pub(super) learning_rate: f32,
}

impl EncoderStep {
    pub(super) fn new(
        corpus: &Corpus,
        encoder: &TextEncoder,
        config: &TrainConfig,
        classifiers: Option<Vec<f32>>,
    ) -> Self {
        let adamw = AdamWConfig {
            epsilon: config.optimiser.epsilon as f32,
            weight_decay: config.optimiser.weight_decay as f32,
            max_norm: Some(config.optimiser.max_norm as f32),
            ..AdamWConfig::default()
        };
        let layout = encoder.encoder().layout();
        let classifiers = classifiers.map(|start| {
            let config = AdamWConfig { weight_decay: 0.0, max_norm: None, ..adamw };
            VectorTable::new(&start, encoder.dim(), config)
        });
        Self {
            loss: make_loss(&config.loss),
            hardest: config.batching.hardest,
            seed: config.run.seed,
            texts: BatchTexts::new(corpus, config),
            pass: TrainingPass::new(activation_budget(config)),
            batch_loss: BatchLoss::default(),
            gradients: Gradients::zeros(layout),
            optimiser: AdamW::new(adamw, layout),
            classifiers,
            vectors: Vec::new(),
            d_vectors: Vec::new(),
            points: Vec::new(),
            d_points: Vec::new(),
            targets: Vec::new(),
            d_targets: Vec::new(),
        }
    }

    /// Trains on a batch of points.
    pub(super) fn run(
        &mut self,
        corpus: &Corpus,
        encoder: &mut TextEncoder,
        points: &[u32],
        negatives: Option<&NegativeLists>,
        at: StepAt,
    ) -> StepReport {
        let dim = encoder.dim();
        let (model, parameters) = encoder.parts_mut();
        self.texts.fill(corpus, points, negatives, self.seed, at.epoch);
        let batch = self.texts.batch();
        let dropout = Dropout::Seed(mix(self.seed, &[DROPOUT, at.step]));
        self.vectors.resize(batch.n_texts() * dim, 0.0);
        let began = Instant::now();
        self.pass.forward(model, parameters.values(), batch, dropout, &mut self.vectors);
        let mut encoder_seconds = began.elapsed().as_secs_f64();

        gather(&self.vectors, dim, &self.texts.point_rows, &mut self.points);
        match &self.classifiers {
            None => gather(&self.vectors, dim, &self.texts.target_rows, &mut self.targets),
            Some(table) => {
                self.targets.resize(self.texts.targets().len() * dim, 0.0);
                table.gather(self.texts.targets(), &mut self.targets);
            }
        }
        self.d_points.resize(self.points.len(), 0.0);
        self.d_targets.resize(self.targets.len(), 0.0);
        let hardest = (self.hardest < 1.0)
            .then(|| ((points.len() as f64 * self.hardest).round() as usize).max(1));
        let loss = self.batch_loss.run(
            &*self.loss,
            dim,
            &self.points,
            &self.targets,
            &self.texts.roles,
            hardest,
            &mut self.d_points,
            &mut self.d_targets,
        );

        self.d_vectors.clear();
        self.d_vectors.resize(self.vectors.len(), 0.0);
        scatter(&self.d_points, dim, &self.texts.point_rows, &mut self.d_vectors);
        scatter(&self.d_targets, dim, &self.texts.target_rows, &mut self.d_vectors);
        let began = Instant::now();
        let (weights, d_vectors) = (parameters.values(), &self.d_vectors);
        self.pass.backward(model, weights, batch, dropout, d_vectors, &mut self.gradients);
        let n_tokens = batch.n_tokens();
        let gradient = self.optimiser.step(at.learning_rate, parameters, &mut self.gradients);
        encoder_seconds += began.elapsed().as_secs_f64();
        if let Some(table) = self.classifiers.as_mut().filter(|_| gradient.is_finite()) {
            let rate = CLASSIFIER_RATE * at.learning_rate;
            table.step(rate, self.texts.targets(), &self.d_targets);
        }
        StepReport { loss, n_tokens, gradient, encoder_seconds }
    }

    /// The vectors of the last batch's points.
    pub(super) fn point_vectors(&self) -> &[f32] {
        &self.points
    }
}

/// The loss of a config.
pub(super) fn make_loss(config: &LossConfig) -> Box<dyn Loss> {
    let negatives = match config.negatives {
        Negatives::Top => HardNegatives::Top(config.top),
        Negatives::Radius => HardNegatives::Radius(config.radius),
        Negatives::All => HardNegatives::All,
    };
    let temperature = config.temperature;
    let weighting = match config.softmax_weights {
        true => Weighting::Softmax { temperature },
        false => Weighting::Mean,
    };
    let triplet = |shape| Triplet { margin: config.margin, negatives, shape, weighting };
    match config.kind {
        LossKind::Triplet => Box::new(triplet(TripletShape::Hinge)),
        LossKind::SquaredTriplet => Box::new(triplet(TripletShape::Squared)),
        LossKind::LogisticTriplet => {
            Box::new(triplet(TripletShape::Logistic { scale: config.scale }))
        }
        LossKind::Softmax => {
            Box::new(Softmax { temperature, negatives, every_positive: config.every_positive })
        }
        LossKind::CrossEntropy => {
            Box::new(CrossEntropy { scale: config.scale, bias: config.bias, negatives })
        }
    }
}

/// Copies rows.
fn gather(vectors: &[f32], dim: usize, rows: &[u32], out: &mut Vec<f32>) {
    out.clear();
    for &row in rows {
        out.extend_from_slice(&vectors[row as usize * dim..(row as usize + 1) * dim]);
    }
}

/// Adds rows to the places they were copied from.
fn scatter(d_rows: &[f32], dim: usize, rows: &[u32], d_vectors: &mut [f32]) {
    for (d_row, &row) in d_rows.chunks_exact(dim).zip(rows) {
        let place = &mut d_vectors[row as usize * dim..(row as usize + 1) * dim];
        place.iter_mut().zip(d_row).for_each(|(sum, value)| *sum += value);
    }
}
