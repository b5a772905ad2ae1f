//! The run of M1: epochs of batches, with mining before and validation after, and checkpoints on the
//! way.

use std::path::Path;
use std::time::{Duration, Instant};

use ngame_nn::{Decay, Schedule};
use serde::{Deserialize, Serialize};

use super::checkpoint::{self, Arrays, Checkpoint};
use super::classifier_stage::{JOINT, write_classifiers};
use super::config::{Embeddings, Mode, RateDecay};
use super::corpus::Corpus;
use super::encoder_step::{EncoderStep, StepAt, StepReport};
use super::metrics_log::MetricsLog;
use super::plan::TrainPlan;
use super::run_folder::{RunFolder, write_whole};
use super::validation::{Retrieval, label_vectors, validate};
use crate::array_file::damaged;
use crate::batching::{Batches, Clusters, Mined, NegativeLists, Sampler, Views, Wants};
use crate::classifier::Classifiers;
use crate::encoder::{
    Existing, Precision, TextEncoder, Vector, VectorFile, VectorMatrix, VectorType,
};
use crate::progress::{Event, Observer, StepProgress, StopOnly, ValidationProgress};
use crate::tokens::TokenStore;
use crate::{Error, Result};

/// A loss beyond this is no longer going anywhere.
const EXPLODED: f64 = 1e6;

/// What a finished training of an encoder leaves.
#[derive(Debug)]
pub(super) struct TrainedEncoder {
    /// The best encoder.
    pub encoder: TextEncoder,
    /// What is told of its training.
    pub summary: EncoderSummary,
}

/// What is told of an encoder's training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EncoderSummary {
    /// What the encoder reaches on the held-out points, if there are any.
    pub best: Option<Retrieval>,
    /// Seconds of training.
    pub seconds: f64,
    /// Seconds of mining.
    pub mining_seconds: f64,
}

/// Where a run stands, but for the arrays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    epoch: usize,
    /// The next batch of the epoch.
    batch: usize,
    /// Steps done.
    step: u64,
    seconds: f64,
    mining_seconds: f64,
    validation_seconds: f64,
    best: Option<Best>,
    mined: Option<MinedShape>,
    /// Whether captured vectors are those of a whole epoch.
    captured: bool,
    /// Whether the held-out points are still to be looked at after the last step.
    validation_due: bool,
    n_optimiser_steps: u64,
    n_classifier_steps: u64,
}

/// The best encoder so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Best {
    step: u64,
    value: f64,
    precision_1: f64,
    precision_5: f64,
    recall_100: f64,
}

/// What was mined, but for the arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MinedShape {
    n_clusters: usize,
    cluster_size: usize,
    negatives: Option<usize>,
}

/// A run under way.
struct Run<'a> {
    plan: &'a TrainPlan,
    corpus: &'a Corpus,
    folder: &'a RunFolder,
    observer: &'a dyn Observer,
    sampler: Box<dyn Sampler>,
    schedule: Schedule,
    /// What is trained.
    encoder: TextEncoder,
    /// What that is the upper layers of, if it is not the whole.
    whole: Option<TextEncoder>,
    step: EncoderStep,
    state: State,
    mined: Option<Mined>,
    captured: Option<VectorMatrix>, // (points, dim)
    log: MetricsLog,
    saved: Instant,
}

/// Trains the encoder of a plan, from the start or the last checkpoint, unless that is done already.
pub(super) fn train_encoder(
    plan: &TrainPlan,
    corpus: &Corpus,
    encoder: TextEncoder,
    folder: &RunFolder,
    observer: &dyn Observer,
) -> Result<TrainedEncoder> {
    if folder.encoder().exists() {
        let encoder = TextEncoder::load(&folder.encoder())?;
        return Ok(TrainedEncoder { encoder, summary: read_summary(&folder.trained())? });
    }
    match upper_layers(plan, corpus, &encoder, folder, observer)? {
        None => Run::new(plan, corpus, encoder, None, folder, observer)?.train(),
        Some((upper, corpus)) => {
            Run::new(plan, &corpus, upper, Some(encoder), folder, observer)?.train()
        }
    }
}

/// The upper layers of an encoder and a corpus of what the lower ones make of its texts, where a plan
/// trains those layers alone. Training does not touch the lower ones, so it is the same corpus before
/// and after.
pub(super) fn upper_layers(
    plan: &TrainPlan,
    corpus: &Corpus,
    encoder: &TextEncoder,
    folder: &RunFolder,
    observer: &dyn Observer,
) -> Result<Option<(TextEncoder, Corpus)>> {
    // Places of tokens have 32 bits; beyond, all layers are trained. A text without tokens has a place too.
    let n_places = corpus.tokens.n_tokens() + corpus.tokens.n_texts();
    let has_places = plan.n_epochs() > 0 && n_places <= u32::MAX as usize;
    let Some(first_layer) = plan.first_layer(encoder).filter(|_| has_places) else {
        return Ok(None);
    };
    let places = corpus.tokens.places();
    let states = lower_states(encoder, first_layer, (corpus, &places), folder, observer)?;
    Ok(Some((encoder.upper(first_layer, states), corpus.with_tokens(places))))
}

/// What the layers below `first_layer` make of all tokens, unless that is there already.
fn lower_states(
    encoder: &TextEncoder,
    first_layer: usize,
    (corpus, places): (&Corpus, &TokenStore),
    folder: &RunFolder,
    observer: &dyn Observer,
) -> Result<VectorMatrix> {
    let path = folder.states();
    let shape = |states: &VectorMatrix| (states.n_rows(), states.dim(), states.vector_type());
    let wanted = (places.n_tokens(), encoder.dim(), VectorType::F16);
    // The file got its name when it was complete, and all it depends on is fixed by the plan.
    if let Some(states) = VectorMatrix::open(&path).ok().filter(|found| shape(found) == wanted) {
        return Ok(states);
    }
    let mut file = VectorFile::create(&path, encoder.dim(), VectorType::F16)?;
    encoder.write_states(first_layer, &corpus.tokens, &mut file, observer)?;
    file.finish()
}

fn read_summary(path: &Path) -> Result<EncoderSummary> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::io("read", path, source))?;
    serde_json::from_str(&text)
        .map_err(|error| damaged(path, &error.to_string(), "begin anew with --force"))
}

impl<'a> Run<'a> {
    /// From the last checkpoint, or from the start.
    fn new(
        plan: &'a TrainPlan,
        corpus: &'a Corpus,
        encoder: TextEncoder,
        whole: Option<TextEncoder>,
        folder: &'a RunFolder,
        observer: &'a dyn Observer,
    ) -> Result<Self> {
        let config = &plan.config;
        let sampler = plan.sampler();
        let schedule = Schedule {
            peak: config.optimiser.learning_rate.unwrap_or(1e-4) as f32,
            n_warmup_steps: plan.n_warmup_steps,
            n_steps: plan.n_steps,
            decay: match config.optimiser.decay {
                RateDecay::Constant => Decay::Constant,
                RateDecay::Linear => Decay::Linear,
                RateDecay::Cosine => Decay::Cosine,
            },
        };
        let classifiers = match config.mode {
            Mode::Joint => {
                let labels =
                    label_vectors(corpus, &encoder.embedder(Precision::F32), &StopOnly(observer))?;
                Some(labels.all().to_vec())
            }
            Mode::Modular => None,
        };
        let step = EncoderStep::new(corpus, &encoder, config, classifiers);
        let looks_again = (1..plan.n_epochs()).any(|epoch| {
            matches!(sampler.wants(epoch), Some(Wants::Points | Wants::PointsAndLabels))
        });
        let captures = looks_again && config.batching.embeddings == Embeddings::Captured;
        let captured = captures
            .then(|| VectorMatrix::zeros(corpus.n_points(), encoder.dim(), VectorType::F16));
        let checkpoint = checkpoint::read_newest::<State>(folder)?;
        let (at, validated) = checkpoint
            .as_ref()
            .map_or((0, false), |(found, _)| (found.state.step, !found.state.validation_due));
        let mut run = Self {
            plan,
            corpus,
            folder,
            observer,
            sampler,
            schedule,
            encoder,
            whole,
            step,
            state: State::default(),
            mined: None,
            captured,
            log: MetricsLog::open(&folder.metrics(), at, validated)?,
            saved: Instant::now(),
        };
        if let Some((checkpoint, problem)) = checkpoint {
            if let Some(problem) = problem {
                let note = format!("going on from the checkpoint before, because {problem}");
                observer.event(Event::Note(&note));
            }
            run.restore(checkpoint)?;
        }
        Ok(run)
    }

    /// Trains to the end, or to a wish to stop.
    fn train(mut self) -> Result<TrainedEncoder> {
        let result = self.complete();
        self.observer.event(Event::Finished);
        match result {
            Err(Error::Cancelled) => {
                self.save()?;
                Err(Error::Cancelled)
            }
            result => result.and_then(|()| self.finish()),
        }
    }

    fn complete(&mut self) -> Result<()> {
        while self.state.epoch < self.plan.n_epochs() {
            if self.state.batch == 0 {
                self.mine()?;
            }
            self.epoch()?;
            self.state.epoch += 1;
            self.state.batch = 0;
            self.state.captured = self.captured.is_some();
        }
        Ok(())
    }

    /// The batches of an epoch that are still to be done.
    fn epoch(&mut self) -> Result<()> {
        let mined = self.mined.as_ref().expect("an epoch is mined for");
        let (size, seed) = (mined.cluster_size, self.plan.config.run.seed);
        let batches =
            Batches::draw(&mined.clusters, size, self.plan.batch_size(), seed, self.state.epoch);
        loop {
            // Before a step and not after one: a look that a stop cut short is made up for.
            if self.state.validation_due {
                self.validate()?;
            }
            let interval = Duration::from_secs_f64(60.0 * self.plan.config.run.checkpoint);
            if self.state.batch > 0 && self.saved.elapsed() >= interval {
                self.save()?;
            }
            if self.state.batch == batches.len() {
                return Ok(());
            }
            if self.observer.cancelled() {
                return Err(Error::Cancelled);
            }
            let points = batches.get(self.state.batch);
            let learning_rate = self.schedule.rate(self.state.step);
            let at = StepAt { epoch: self.state.epoch, step: self.state.step, learning_rate };
            let negatives = self.mined.as_ref().and_then(|mined| mined.negatives.as_ref());
            let began = Instant::now();
            let report = self.step.run(self.corpus, &mut self.encoder, points, negatives, at);
            self.check(&report)?;
            if let Some(captured) = &mut self.captured {
                let vectors = self.step.point_vectors().chunks_exact(self.encoder.dim());
                for (&point, vector) in points.iter().zip(vectors) {
                    captured.set(point as usize, vector);
                }
            }
            let seconds = began.elapsed().as_secs_f64();
            self.state.seconds += seconds;
            self.state.batch += 1;
            self.state.step += 1;
            self.state.validation_due = self.is_validation_due(batches.len());
            self.tell(&report, learning_rate, seconds)?;
        }
    }

    /// Whether the step just done reached the next look at the held-out points, or the end.
    fn is_validation_due(&self, n_batches: usize) -> bool {
        let State { epoch, batch, .. } = self.state;
        let looks = |batch: usize| {
            let epochs = epoch as f64 + batch as f64 / n_batches as f64;
            (epochs / self.plan.config.validation.every) as u64
        };
        let is_end = epoch + 1 == self.plan.n_epochs() && batch == n_batches;
        !self.corpus.held_out.text.is_empty() && (is_end || looks(batch) > looks(batch - 1))
    }

    /// Lets the sampler look, where it wants to.
    fn mine(&mut self) -> Result<()> {
        let epoch = self.state.epoch;
        let Some(wants) = self.sampler.wants(epoch) else { return Ok(()) };
        let began = Instant::now();
        let quiet = StopOnly(self.observer);
        let fresh = match wants {
            Wants::Nothing => None,
            _ if self.state.captured => None,
            _ => Some(self.encoder.embedder(Precision::F32).embed_some(
                &self.corpus.tokens,
                &self.corpus.point_text,
                VectorType::F16,
                &quiet,
            )?),
        };
        let labels = match wants {
            Wants::PointsAndLabels => {
                let embedder = self.encoder.embedder(Precision::F32);
                let texts = self.corpus.target_texts();
                Some(embedder.embed_some(&self.corpus.tokens, &texts, VectorType::F32, &quiet)?)
            }
            _ => None,
        };
        let views = Views {
            n_points: self.corpus.n_points(),
            points: fresh.as_ref().or(self.captured.as_ref()),
            labels: labels.as_ref(),
            not_negative: &self.corpus.not_negative,
        };
        self.mined = Some(self.sampler.mine(epoch, &views)?);
        self.state.mining_seconds += began.elapsed().as_secs_f64();
        Ok(())
    }

    /// Tries the encoder on held-out points and keeps it if it is the best so far.
    fn validate(&mut self) -> Result<()> {
        let began = Instant::now();
        let quiet = StopOnly(self.observer);
        let embedder = self.encoder.embedder(Precision::F32);
        let labels = match &self.step.classifiers {
            None => label_vectors(self.corpus, &embedder, &quiet)?,
            Some(table) => VectorMatrix::from_f32(table.values().to_vec(), self.encoder.dim()),
        };
        let found = validate(self.corpus, &embedder, &labels, &quiet)?;
        let value = found.get(self.plan.config.validation.metric);
        // Of encoders that do equally well, the one that has learnt more.
        let is_best = self.state.best.is_none_or(|best| value >= best.value);
        let Retrieval { precision_1, precision_5, recall_100 } = found;
        if is_best {
            let step = self.state.step;
            let weights = bytemuck::cast_slice(self.encoder.parameters().values());
            checkpoint::write(&self.folder.best(), &step, &vec![("parameters", weights)])?;
            self.state.best = Some(Best { step, value, precision_1, precision_5, recall_100 });
        }
        self.state.validation_due = false;
        self.state.validation_seconds += began.elapsed().as_secs_f64();
        let progress = ValidationProgress {
            epoch: self.state.epoch + 1,
            step: self.state.step,
            precision_1,
            precision_5,
            recall_100,
            is_best,
            seconds: self.state.seconds,
        };
        self.log.add("validation", &progress)?;
        self.observer.event(Event::Validated(&progress));
        Ok(())
    }

    /// Stops where the loss or the gradient is no longer a number.
    fn check(&self, report: &StepReport) -> Result<()> {
        let loss = report.loss.loss;
        let found = if !loss.is_finite() || loss > EXPLODED {
            format!("the loss is {loss}")
        } else if !report.gradient.is_finite() {
            format!("the gradient's length is {}", report.gradient)
        } else {
            return Ok(());
        };
        Err(Error::Diverged { epoch: self.state.epoch + 1, step: self.state.step + 1, found })
    }

    fn tell(&mut self, report: &StepReport, learning_rate: f32, seconds: f64) -> Result<()> {
        let StepReport { loss, n_tokens, gradient, encoder_seconds } = *report;
        let State { step, epoch, .. } = self.state;
        let spent = self.state.seconds + self.state.mining_seconds + self.state.validation_seconds;
        let share = |part: f64| part / loss.n_negatives.max(1) as f64;
        let progress = StepProgress {
            epoch: epoch + 1,
            n_epochs: self.plan.n_epochs(),
            step,
            n_steps: self.plan.n_steps,
            loss: loss.loss,
            active: share(loss.n_active as f64),
            hardness: share(loss.negative_scores),
            cluster_size: self.mined.as_ref().map_or(1, |mined| mined.cluster_size),
            learning_rate: learning_rate.into(),
            gradient: gradient.into(),
            tokens_per_second: n_tokens as f64 / seconds.max(1e-9),
            encoder_seconds,
            step_seconds: seconds,
            seconds: self.state.seconds,
            mining_seconds: self.state.mining_seconds,
            seconds_left: spent / step as f64
                * (self.plan.n_steps - step.min(self.plan.n_steps)) as f64,
        };
        self.log.add("step", &progress)?;
        self.observer.event(Event::Step(&progress));
        Ok(())
    }

    /// Writes a checkpoint.
    fn save(&mut self) -> Result<()> {
        let mut state = self.state.clone();
        state.n_optimiser_steps = self.step.optimiser.n_steps();
        state.mined = self.mined.as_ref().map(|mined| MinedShape {
            n_clusters: mined.clusters.n_clusters(),
            cluster_size: mined.cluster_size,
            negatives: mined.negatives.as_ref().map(NegativeLists::each),
        });
        let (first, second) = self.step.optimiser.moments();
        let mut arrays: Arrays<'_> = vec![
            ("parameters", bytemuck::cast_slice(self.encoder.parameters().values())),
            ("first_moments", bytemuck::cast_slice(first)),
            ("second_moments", bytemuck::cast_slice(second)),
        ];
        if let Some(mined) = &self.mined {
            arrays.push(("clusters", bytemuck::cast_slice(mined.clusters.order())));
            if let Some(negatives) = &mined.negatives {
                arrays.push(("negatives", bytemuck::cast_slice(negatives.labels())));
            }
        }
        if let Some(Vector::F16(numbers)) = self.captured.as_ref().map(VectorMatrix::all) {
            arrays.push(("captured", bytemuck::cast_slice(numbers)));
        }
        if let Some(table) = &self.step.classifiers {
            state.n_classifier_steps = table.optimiser().n_steps();
            let (first, second) = table.optimiser().moments();
            arrays.push(("classifiers", bytemuck::cast_slice(table.values())));
            arrays.push(("classifiers_first_moments", bytemuck::cast_slice(first)));
            arrays.push(("classifiers_second_moments", bytemuck::cast_slice(second)));
        }
        checkpoint::write_newest(self.folder, &state, &arrays)?;
        self.saved = Instant::now();
        Ok(())
    }

    /// Takes up a checkpoint.
    fn restore(&mut self, checkpoint: Checkpoint<State>) -> Result<()> {
        let state = checkpoint.state.clone();
        let (_, parameters) = self.encoder.parts_mut();
        let len = parameters.values().len();
        let floats = |name: &str, len: usize| {
            checkpoint.array::<f32>(name).filter(|found| found.len() == len).ok_or_else(other_plan)
        };
        parameters.values_mut().copy_from_slice(floats("parameters", len)?);
        self.step.optimiser.restore(
            state.n_optimiser_steps,
            floats("first_moments", len)?,
            floats("second_moments", len)?,
        );
        if let Some(table) = &mut self.step.classifiers {
            let len = table.values().len();
            table.values_mut().copy_from_slice(floats("classifiers", len)?);
            table.restore(
                state.n_classifier_steps,
                floats("classifiers_first_moments", len)?,
                floats("classifiers_second_moments", len)?,
            );
        }
        if let Some(shape) = state.mined {
            let n_points = self.corpus.n_points();
            let order = checkpoint.array::<u32>("clusters").ok_or_else(other_plan)?;
            let clusters = Clusters::checked(order.to_vec(), shape.n_clusters)
                .filter(|clusters| clusters.n_points() == n_points)
                .ok_or_else(other_plan)?;
            let n_targets = self.corpus.n_targets() as u32;
            let is_target = |&label: &u32| label < n_targets || label == u32::MAX;
            let negatives = match shape.negatives {
                None => None,
                Some(each) => checkpoint
                    .array::<u32>("negatives")
                    .filter(|all| each > 0 && Some(all.len()) == n_points.checked_mul(each))
                    .filter(|all| all.iter().all(is_target))
                    .map(|all| Some(NegativeLists::new(all.to_vec(), each)))
                    .ok_or_else(other_plan)?,
            };
            let cluster_size = shape.cluster_size.max(1);
            self.mined = Some(Mined { clusters, cluster_size, negatives });
        }
        if self.mined.is_none() && (state.epoch > 0 || state.batch > 0) {
            return Err(other_plan());
        }
        if let Some(captured) = &mut self.captured {
            let (rows, dim) = (captured.n_rows(), captured.dim());
            let numbers =
                checkpoint.array("captured").filter(|numbers| numbers.len() == rows * dim);
            *captured = VectorMatrix::from_f16(numbers.ok_or_else(other_plan)?.to_vec(), dim);
        }
        self.state = state;
        Ok(())
    }

    /// Keeps the best encoder and the last in the run folder, for what comes after.
    fn finish(mut self) -> Result<TrainedEncoder> {
        let best = self.state.best;
        if best.is_some_and(|best| best.step != self.state.step) {
            let last = self.folder.last_encoder();
            self.complete_encoder().save(&last, Existing::Replace)?;
            let found = checkpoint::read::<u64>(&self.folder.best())?;
            let (_, parameters) = self.encoder.parts_mut();
            let weights = found.array::<f32>("parameters").unwrap_or_default();
            if Some(found.state) != best.map(|best| best.step)
                || weights.len() != parameters.values().len()
            {
                return Err(other_plan());
            }
            parameters.values_mut().copy_from_slice(weights);
        }
        if let Some(table) = &self.step.classifiers {
            let vectors = VectorMatrix::from_f32(table.values().to_vec(), self.encoder.dim());
            let biases = vec![0.0; vectors.n_rows()];
            let classifiers = Classifiers::new(vectors.all().to_vec(), biases, 1.0);
            write_classifiers(&self.folder.classifiers(JOINT), &classifiers)?;
        }
        let summary = EncoderSummary {
            best: best.map(|best| Retrieval {
                precision_1: best.precision_1,
                precision_5: best.precision_5,
                recall_100: best.recall_100,
            }),
            seconds: self.state.seconds,
            mining_seconds: self.state.mining_seconds,
        };
        let text = serde_json::to_string(&summary).expect("a summary is numbers");
        write_whole(&self.folder.trained(), text.as_bytes())?;
        // Last: it says that the stage is done.
        let done = self.folder.encoder();
        self.complete_encoder().save(&done, Existing::Replace)?;
        Ok(TrainedEncoder { encoder: self.whole.unwrap_or(self.encoder), summary })
    }

    /// What is trained, with all layers.
    fn complete_encoder(&mut self) -> &TextEncoder {
        match &mut self.whole {
            None => &self.encoder,
            Some(whole) => {
                whole.set_upper(&self.encoder);
                whole
            }
        }
    }
}

/// A checkpoint, or the best weights, of some other run.
fn other_plan() -> Error {
    Error::Setting {
        setting: "--resume".to_owned(),
        problem: "the checkpoint belongs to another plan; begin anew with --force".to_owned(),
    }
}
