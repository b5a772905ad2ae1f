//! A model that answers.

use rayon::prelude::*;

use super::ranking::{AddedTexts, rank};
use crate::data::{Csr, ScoredCsr, Texts};
use crate::encoder::{Embedder, Precision, VectorMatrix, VectorType};
use crate::model::Model;
use crate::progress::{Event, Observer, Silent, StopOnly};
use crate::views::{Candidates, Queries};
use crate::{Error, Result};

/// Texts that are worked on together: their candidates are in memory at once.
const WINDOW: usize = 1_024;

/// A model ready to answer, from any number of threads at once.
pub struct Predictor {
    model: Model,
    embedder: Embedder,
    added: AddedTexts,
}

/// What is wanted of an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictionOptions {
    /// The most labels.
    pub top: usize,
    /// The least probability of a label.
    pub threshold: f32,
}

impl Default for PredictionOptions {
    fn default() -> Self {
        Self { top: 5, threshold: 0.0 }
    }
}

/// A label that was predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// The label.
    pub label: u32,
    /// The probability that it is right.
    pub score: f32,
}

impl std::fmt::Debug for Predictor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Predictor").field("model", &self.model).finish_non_exhaustive()
    }
}

impl Predictor {
    /// Packs a model for answering.
    pub fn new(model: Model) -> Self {
        // One text is answered as fast as weights come from memory, and half of them come in half the time.
        let embedder = model.encoder.embedder(Precision::fastest());
        model.views.prepare();
        let added = AddedTexts::new(&model);
        Self { model, embedder, added }
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The model, given back.
    pub fn into_model(self) -> Model {
        self.model
    }

    /// What turns texts into vectors.
    pub fn embedder(&self) -> &Embedder {
        &self.embedder
    }

    /// The labels of one text, best first, without those `excluded`, which ascend.
    pub fn predict_one(
        &self,
        text: &str,
        options: PredictionOptions,
        excluded: &[u32],
    ) -> Result<Vec<Predicted>> {
        let vector = self.embedder.embed_one(text)?;
        let candidates = self.candidates_of_one(text, vector, excluded)?;
        Ok(candidates.first().map_or(Vec::new(), |found| self.rank(text, found, options)))
    }

    /// The labels of many texts, best first, without the pairs `excluded`.
    pub fn predict(
        &self,
        texts: &Texts,
        options: PredictionOptions,
        excluded: Option<&Csr>,
        observer: &dyn Observer,
    ) -> Result<Vec<Vec<Predicted>>> {
        self.predict_seeing(texts, options, excluded, observer, &mut |_| ())
    }

    /// The same, and every window's vectors are shown.
    fn predict_seeing(
        &self,
        texts: &Texts,
        options: PredictionOptions,
        excluded: Option<&Csr>,
        observer: &dyn Observer,
        see: &mut dyn FnMut(&VectorMatrix),
    ) -> Result<Vec<Vec<Predicted>>> {
        let mut predictions = Vec::with_capacity(texts.len());
        self.for_each_window(texts, excluded, observer, &mut |vectors, candidates| {
            see(vectors);
            let begin = predictions.len();
            predictions.par_extend(
                candidates
                    .par_iter()
                    .enumerate()
                    .map(|(at, found)| self.rank(texts.get(begin + at), found, options)),
            );
            Ok(())
        })?;
        Ok(predictions)
    }

    /// The same as a matrix of texts × labels.
    pub fn predict_matrix(
        &self,
        texts: &Texts,
        options: PredictionOptions,
        excluded: Option<&Csr>,
        observer: &dyn Observer,
    ) -> Result<ScoredCsr> {
        Ok(self.matrix(self.predict(texts, options, excluded, observer)?))
    }

    /// The same with the texts' vectors, for those who need both.
    pub(crate) fn predict_matrix_with_vectors(
        &self,
        texts: &Texts,
        options: PredictionOptions,
        excluded: Option<&Csr>,
        observer: &dyn Observer,
    ) -> Result<(ScoredCsr, VectorMatrix)> {
        let mut numbers = Vec::with_capacity(texts.len() * self.embedder.dim());
        let mut see = |vectors: &VectorMatrix| numbers.extend(vectors.all().to_vec());
        let predictions = self.predict_seeing(texts, options, excluded, observer, &mut see)?;
        Ok((self.matrix(predictions), VectorMatrix::from_f32(numbers, self.embedder.dim())))
    }

    fn matrix(&self, predictions: Vec<Vec<Predicted>>) -> ScoredCsr {
        let mut matrix = ScoredCsr::new(self.model.labels.texts.len() as u32);
        for row in predictions {
            matrix.push_row(&mut row.iter().map(|found| (found.label, found.score)).collect());
        }
        matrix
    }

    /// Embeds texts window by window and hands over each window's vectors and candidates.
    pub(crate) fn for_each_window(
        &self,
        texts: &Texts,
        excluded: Option<&Csr>,
        observer: &dyn Observer,
        each: &mut dyn FnMut(&VectorMatrix, &[Candidates]) -> Result<()>,
    ) -> Result<()> {
        let total = Some(texts.len() as u64);
        observer.event(Event::Started { task: "predicting", total, unit: "texts" });
        let quiet = StopOnly(observer);
        for begin in (0..texts.len()).step_by(WINDOW) {
            if observer.cancelled() {
                return Err(Error::Cancelled);
            }
            let rows: Vec<u32> = (begin as u32..texts.len().min(begin + WINDOW) as u32).collect();
            let window = texts.select(&rows);
            let vectors = self.embedder.embed_texts(&window, VectorType::F32, &quiet)?;
            let excluded = excluded.map(|pairs| pairs.select(&rows));
            let candidates = self.candidates(&window, &vectors, excluded.as_ref(), &quiet)?;
            each(&vectors, &candidates)?;
            observer.event(Event::Advanced(rows.len() as u64));
        }
        observer.event(Event::Finished);
        Ok(())
    }

    /// The candidates of one text with this vector.
    pub(super) fn candidates_of_one(
        &self,
        text: &str,
        vector: Vec<f32>,
        excluded: &[u32],
    ) -> Result<Vec<Candidates>> {
        let vectors = VectorMatrix::from_f32(vector, self.embedder.dim());
        let mut pairs = Csr::new(self.model.labels.texts.len() as u32);
        pairs.push_row(excluded);
        self.candidates(&[text].into_iter().collect(), &vectors, Some(&pairs), &Silent)
    }

    /// The candidates of texts with these vectors.
    fn candidates(
        &self,
        texts: &Texts,
        vectors: &VectorMatrix,
        excluded: Option<&Csr>,
        observer: &dyn Observer,
    ) -> Result<Vec<Candidates>> {
        let Model { views, fusion, .. } = &self.model;
        let queries = Queries { texts, vectors, extra: None, excluded, absent: None };
        views.candidates(queries, fusion.shortlists, &fusion.columns, observer)
    }

    /// The best candidates of a text, best first.
    pub(crate) fn rank(
        &self,
        text: &str,
        candidates: &Candidates,
        options: PredictionOptions,
    ) -> Vec<Predicted> {
        let Model { views, fusion, .. } = &self.model;
        rank(fusion, candidates, views.n_trained(), self.added.of(text), options)
    }
}
