//! A whole run: encoder, classifiers, fusion, index, evaluation, and the model folder at the end.
//!
//! ```text
//! encoder ──> vectors ──> classifiers, words ──> fusion ──> classifiers, words, on all points
//!                                                                          │
//!                                           model folder <── evaluation <── index
//! ```
//!
//! Each stage leaves its result in the run folder when it is done, so that a run that was stopped goes
//! on with the stage it was in. All stages are functions of the plan, the data and the stages before:
//! however often a run is stopped, it ends with the same bytes.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::classifier_stage::{
    ClassifierTask, JOINT, read_classifiers, start_vectors, train_classifiers,
};
use super::config::{Mode, Stage};
use super::corpus::Corpus;
use super::encoder_run::{EncoderSummary, TrainedEncoder, train_encoder, upper_layers};
use super::history::StageDone;
use super::lexical_stage::train_lexical;
use super::lost_labels::LostLabels;
use super::metrics_log::MetricsLog;
use super::model_config::IndexChoice;
use super::plan::TrainPlan;
use super::run_folder::{RunFolder, write_whole};
use super::vectors::Vectors;
use crate::classifier::{Classifiers, LogitStart, Objective};
use crate::data::{Csr, Dataset};
use crate::encoder::{Existing, TextEncoder, VectorMatrix};
use crate::evaluation::{Evaluation, EvaluationOptions, align, evaluate_model};
use crate::folder_aside::FolderAside;
use crate::fusion::{Examples, Fusion, FusionTask, fit};
use crate::index::{AnyIndex, ExactIndex, IndexFacts, IndexKind, choose, is_worth_its_width};
use crate::lexical::Lexical;
use crate::metrics::{Bootstrap, PropensityModel};
use crate::model::{Model, Points, Records};
use crate::prediction::Predictor;
use crate::progress::{Event, Observer, StopOnly};
use crate::random::mix;
use crate::views::{Column, Queries, View, Views, Votes, with_bias_unit};
use crate::{Error, Result};

/// Held-out points whose candidates are described in one go.
const WINDOW: usize = 1_024;

/// Held-out points that an index is tuned on.
const TUNED_ON: usize = 500;

/// Labels a query whose recall an index is tuned for.
const TUNED_FOR: usize = 100;

/// What a finished run tells.
#[derive(Debug)]
pub struct Trained {
    /// How the encoder's training went.
    pub encoder: EncoderSummary,
    /// How held-out points are scored, if the run went that far.
    pub fusion: Option<Fusion>,
    /// What the model reaches on the test points, if there are any.
    pub evaluation: Option<Evaluation>,
}

/// Begins the run of a plan, and does it to the end: the model folder is there when it returns.
pub fn train(
    plan: &TrainPlan,
    dataset: &Dataset,
    corpus: &Corpus,
    encoder: TextEncoder,
    model: &Path,
    existing: Existing,
    observer: &dyn Observer,
) -> Result<Trained> {
    // Asked before hours of work, and not after them.
    drop(Model::begin(model, existing)?);
    let folder = RunFolder::of(model);
    folder.begin(plan, &encoder)?;
    Run { plan, dataset, corpus, folder: &folder, observer }.complete(encoder, model, existing)
}

impl RunFolder {
    /// Goes on with the run that was begun here.
    pub fn resume(
        &self,
        dataset: &Dataset,
        model: &Path,
        existing: Existing,
        observer: &dyn Observer,
    ) -> Result<Trained> {
        let plan = &self.plan()?;
        let mut encoder = TextEncoder::load(&self.start_folder())?;
        if let Some(max_tokens) = plan.config.encoder.max_tokens {
            encoder = encoder.with_max_tokens(max_tokens)?;
        }
        let corpus = &plan.corpus(dataset, &encoder, observer)?;
        Run { plan, dataset, corpus, folder: self, observer }.complete(encoder, model, existing)
    }
}

/// What every stage needs.
struct Run<'a> {
    plan: &'a TrainPlan,
    dataset: &'a Dataset,
    corpus: &'a Corpus,
    folder: &'a RunFolder,
    observer: &'a dyn Observer,
}

/// All points that a model is made of: those trained on, then those held out of the training split.
struct AllPoints {
    positions: Vec<u32>,
    vectors: VectorMatrix, // (points, dim)
    truth: Csr,            // points × labels
}

impl Run<'_> {
    fn complete(&self, encoder: TextEncoder, model: &Path, existing: Existing) -> Result<Trained> {
        let TrainedEncoder { encoder, summary } =
            train_encoder(self.plan, self.corpus, encoder, self.folder, self.observer)?;
        if self.plan.config.run.only == Some(Stage::Encoder) {
            self.write_encoder(&encoder, model, existing)?;
            return Ok(Trained { encoder: summary, fusion: None, evaluation: None });
        }
        let mut log = MetricsLog::append(&self.folder.metrics())?;
        let mut began = Instant::now();
        let mut done = |stage: &'static str| {
            let seconds = began.elapsed().as_secs_f64();
            began = Instant::now();
            log.add("stage", &StageDone { stage: stage.to_owned(), seconds })
        };
        let vectors = self.vectors(&encoder)?;
        done("vectors")?;
        let truth = self.dataset.train.by_point.select(&self.corpus.trained);
        let start = self.start(&vectors, &truth);
        let objective = self.objective(&vectors.points, &truth, &start);
        let classifiers = self.classifiers(&vectors.points, &truth, &start, &objective)?;
        done("classifiers")?;
        let lexical = self.lexical("held-out", &self.corpus.trained, &truth)?;
        done("words")?;
        let fusion = self.fusion(&vectors, classifiers.with_biases().to_f16(), &truth, lexical)?;
        done("fusion")?;
        let all = self.all_points(&vectors, truth);
        let classifiers = self.refitted(classifiers, &all, &start, &objective)?;
        done("classifiers on all points")?;
        let lexical = self.lexical("all", &all.positions, &all.truth)?;
        done("words on all points")?;
        let model_made = self.model(encoder, &vectors, classifiers, &fusion, all, lexical)?;
        done("index")?;
        let (mut finished, evaluation) = self.evaluate(model_made)?;
        done("evaluation")?;
        let metrics = self.folder.metrics();
        finished.records.metrics = std::fs::read_to_string(&metrics)
            .map_err(|source| Error::io("read", metrics, source))?;
        finished.save(model, existing)?;
        self.folder.remove()?;
        Ok(Trained { encoder: summary, fusion: Some(fusion), evaluation })
    }

    /// A folder with the encoder alone.
    fn write_encoder(&self, encoder: &TextEncoder, model: &Path, existing: Existing) -> Result<()> {
        use std::io::Write;
        let aside: FolderAside = Model::begin(model, existing)?;
        encoder.write(&aside, "encoder/")?;
        if self.folder.last_encoder().exists() {
            TextEncoder::load(&self.folder.last_encoder())?.write(&aside, "encoder-last/")?;
        }
        aside.write("plan.toml", |out| out.write_all(self.plan.to_toml().as_bytes()))?;
        let metrics = self.folder.metrics();
        let lines = std::fs::read(&metrics).map_err(|source| Error::io("read", metrics, source))?;
        aside.write("metrics.jsonl", |out| out.write_all(&lines))?;
        aside.finish()?;
        self.folder.remove()
    }

    /// All texts as the trained encoder sees them. What its lower layers make of them is known where
    /// these were not trained.
    fn vectors(&self, encoder: &TextEncoder) -> Result<Vectors> {
        let Self { plan, corpus, folder, observer, .. } = *self;
        match upper_layers(plan, corpus, encoder, folder, observer)? {
            None => Vectors::new(corpus, encoder, observer),
            Some((upper, corpus)) => Vectors::new(&corpus, &upper, observer),
        }
    }

    /// What classifiers start from.
    fn start(&self, vectors: &Vectors, truth: &Csr) -> VectorMatrix {
        let texts = &self.dataset.labels.texts;
        let has_text: Vec<bool> = texts.iter().map(|text| !text.trim().is_empty()).collect();
        start_vectors(vectors, &has_text, truth)
    }

    /// What classifiers are asked for. Those of all points begin where those of the fusion began: it
    /// has to know their scores again.
    fn objective(&self, points: &VectorMatrix, truth: &Csr, start: &VectorMatrix) -> Objective {
        let not_negative = self.dataset.train.filter.select(&self.corpus.trained);
        let seed = mix(self.plan.config.run.seed, &[9]);
        let logits = LogitStart::fit(points, truth, Some(&not_negative), start, seed);
        self.plan.objective().starting_at(logits)
    }

    /// Classifiers that have not seen the held-out points.
    fn classifiers(
        &self,
        points: &VectorMatrix,
        truth: &Csr,
        start: &VectorMatrix,
        objective: &Objective,
    ) -> Result<Classifiers> {
        if self.plan.config.mode == Mode::Joint {
            return read_classifiers(&self.folder.classifiers(JOINT));
        }
        let not_negative = &self.dataset.train.filter.select(&self.corpus.trained);
        let task = ClassifierTask { points, truth, not_negative, start };
        let minutes = self.plan.config.run.checkpoint;
        train_classifiers("held-out", task, objective, minutes, self.folder, self.observer)
    }

    /// Classifiers that have seen all points, or those given where there are no others to see.
    fn refitted(
        &self,
        classifiers: Classifiers,
        all: &AllPoints,
        start: &VectorMatrix,
        objective: &Objective,
    ) -> Result<Classifiers> {
        let seen = self.corpus.trained.len() == all.positions.len();
        let config = &self.plan.config;
        if seen || !config.classifier.refit || config.mode == Mode::Joint {
            return Ok(classifiers);
        }
        drop(classifiers);
        let not_negative = &self.dataset.train.filter.select(&all.positions);
        let task = ClassifierTask { points: &all.vectors, truth: &all.truth, not_negative, start };
        train_classifiers("all", task, objective, config.run.checkpoint, self.folder, self.observer)
    }

    /// What words say, learnt from these points, if words are asked.
    fn lexical(&self, which: &str, points: &[u32], truth: &Csr) -> Result<Option<Lexical>> {
        if !self.plan.config.fusion.views.views().contains(&View::Lexical) {
            return Ok(None);
        }
        let seed = mix(self.plan.config.run.seed, &[7]);
        let Self { dataset, folder, observer, .. } = *self;
        train_lexical(which, dataset, points, truth, seed, folder, observer).map(Some)
    }

    /// Learns from the held-out points how scores become one.
    fn fusion(
        &self,
        vectors: &Vectors,
        classifiers: VectorMatrix,
        truth: &Csr,
        lexical: Option<Lexical>,
    ) -> Result<Fusion> {
        let done = self.folder.fusion();
        if let Ok(text) = std::fs::read_to_string(&done)
            && let Ok(fusion) = serde_json::from_str::<Fusion>(&text)
            && fusion.check().is_ok()
        {
            return Ok(fusion);
        }
        let config = &self.plan.config.fusion;
        let chosen = config.views.views();
        let columns: Vec<Column> = chosen.iter().flat_map(|view| view.columns()).copied().collect();
        let classifiers = Arc::new(classifiers);
        let votes = chosen.contains(&View::Votes).then(|| {
            let points = Arc::new(vectors.points.to_f16());
            let index = AnyIndex::Exact(ExactIndex::new(Arc::clone(&points)));
            Votes::new(index, points, truth.clone())
        });
        let views = Views {
            embeddings: vectors.labels.to_f16(),
            index: AnyIndex::Exact(ExactIndex::new(Arc::clone(&classifiers))),
            classifiers,
            counts: truth.column_counts(),
            votes,
            lexical,
        };
        let held_out = &self.corpus.held_out;
        let texts = match (&held_out.points, &self.dataset.valid) {
            (None, Some(valid)) => valid.texts.clone(),
            (points, _) => self.dataset.train.texts.select(points.as_deref().unwrap_or(&[])),
        };
        let of_all = self.dataset.train.by_point.column_counts();
        let lost = LostLabels::of(&self.corpus.held_out, &views.counts, &of_all);
        let n = vectors.held_out.n_rows();
        let mut examples = Examples::default();
        let quiet = StopOnly(self.observer);
        let total = Some(n as u64);
        self.observer.event(Event::Started {
            task: "describing candidates",
            total,
            unit: "points",
        });
        for begin in (0..n).step_by(WINDOW) {
            let rows: Vec<u32> = (begin as u32..n.min(begin + WINDOW) as u32).collect();
            let window = vectors.held_out.rows(begin..begin + rows.len()).to_vec();
            let (own, excluded) = (held_out.truth.select(&rows), held_out.filter.select(&rows));
            let queries = Queries {
                texts: &texts.select(&rows),
                vectors: &VectorMatrix::from_f32(window, vectors.held_out.dim()),
                extra: Some(&own),
                excluded: Some(&excluded),
                absent: lost.as_ref().map(LostLabels::as_slice),
            };
            let described = views.candidates(queries, config.shortlists(), &columns, &quiet)?;
            for (found, own) in described.iter().zip(own.rows()) {
                if lost.as_ref().is_none_or(|lost| lost.leave_some(own)) {
                    examples.push(found, own);
                }
            }
            self.observer.event(Event::Advanced(rows.len() as u64));
        }
        self.observer.event(Event::Finished);
        let task = FusionTask {
            views: &chosen,
            columns: &columns,
            shortlists: config.shortlists(),
            logits: self.logits(),
            inverse_propensities: &PropensityModel::default()
                .inverse_propensities(self.plan.data.n_train, &views.counts),
            aim: config.aim,
            choice: config.method,
            seed: mix(self.plan.config.run.seed, &[8]),
        };
        let fusion = fit(&examples, &task, self.observer)?;
        let text = serde_json::to_string(&fusion).expect("a fusion is names and numbers");
        write_whole(&done, text.as_bytes())?;
        Ok(fusion)
    }

    /// Whether classifiers' scores are logits of probabilities.
    fn logits(&self) -> bool {
        let is_triplet = matches!(self.plan.objective(), Objective::Triplet(_));
        !is_triplet && self.plan.config.mode == Mode::Modular
    }

    fn all_points(&self, vectors: &Vectors, truth: Csr) -> AllPoints {
        let mut positions = self.corpus.trained.clone();
        let Some(held_out) = &self.corpus.held_out.points else {
            let vectors = vectors.points.to_f16();
            return AllPoints { positions, vectors, truth };
        };
        positions.extend(held_out);
        let dim = vectors.points.dim();
        let mut all = VectorMatrix::zeros(positions.len(), dim, Default::default());
        let (first, rest) = (&vectors.points, &vectors.held_out);
        for row in 0..positions.len() {
            let from = match row.checked_sub(first.n_rows()) {
                None => first.row(row),
                Some(row) => rest.row(row),
            };
            all.set(row, &from.to_vec());
        }
        let truth = self.dataset.train.by_point.select(&positions);
        AllPoints { positions, vectors: all, truth }
    }

    /// Puts everything together.
    fn model(
        &self,
        encoder: TextEncoder,
        vectors: &Vectors,
        classifiers: Classifiers,
        fusion: &Fusion,
        all: AllPoints,
        lexical: Option<Lexical>,
    ) -> Result<Model> {
        let classifiers = Arc::new(classifiers.with_biases().to_f16());
        let n = vectors.held_out.n_rows().min(TUNED_ON);
        let dim = vectors.held_out.dim();
        let some = VectorMatrix::from_f32(vectors.held_out.rows(0..n).to_vec(), dim);
        let index = self.index(&classifiers, &with_bias_unit(&some))?;
        let (mut votes, mut points) = (None, None);
        if fusion.views.contains(&View::Votes) {
            let of_points = Arc::new(all.vectors.to_f16());
            let index = self.index(&of_points, &some)?;
            votes = Some(Votes::new(index, of_points, all.truth.clone()));
            let texts = self.dataset.train.texts.select(&all.positions);
            points = Some(Points::new(&texts, all.truth));
        }
        Ok(Model {
            encoder,
            labels: self.dataset.labels.clone(),
            views: Views {
                embeddings: vectors.labels.to_f16(),
                classifiers,
                index,
                counts: self.dataset.train.by_point.column_counts(),
                votes,
                lexical,
            },
            fusion: fusion.clone(),
            points,
            records: Records { plan: self.plan.to_toml(), ..Default::default() },
        })
    }

    /// An index of these vectors, tuned on these queries.
    fn index(&self, vectors: &Arc<VectorMatrix>, queries: &VectorMatrix) -> Result<AnyIndex> {
        let config = &self.plan.config.index;
        let kind = match config.kind {
            IndexChoice::BySize => choose(vectors.n_rows(), vectors.dim(), vectors.vector_type()),
            IndexChoice::Exact => IndexKind::Exact,
            IndexChoice::Hnsw => IndexKind::Hnsw,
        };
        let built =
            AnyIndex::build(kind, vectors, queries, TUNED_FOR, config.recall, self.observer)?;
        let IndexFacts { exact, search_width, .. } = built.facts();
        let by_size = config.kind == IndexChoice::BySize;
        if by_size && !exact && !is_worth_its_width(vectors.n_rows(), search_width) {
            return Ok(AnyIndex::Exact(ExactIndex::new(Arc::clone(vectors))));
        }
        Ok(built)
    }

    /// Tries the model on the test points.
    fn evaluate(&self, model: Model) -> Result<(Model, Option<Evaluation>)> {
        let Some(test) = &self.dataset.test else { return Ok((model, None)) };
        let points = align(&model.labels, &self.dataset.labels, test);
        let options = EvaluationOptions {
            k: 5,
            bootstrap: Some(Bootstrap::default()),
            propensities: PropensityModel::default(),
            n_train: self.plan.data.n_train,
        };
        let predictor = Predictor::new(model);
        let evaluation = evaluate_model(&predictor, &points, &options, self.observer)?;
        let mut model = predictor.into_model();
        // How long it took is no property of the model.
        let kept = Evaluation { milliseconds: None, ..evaluation.clone() };
        model.records.evaluation =
            serde_json::to_string_pretty(&kept).expect("an evaluation is names and numbers");
        Ok((model, Some(evaluation)))
    }
}
