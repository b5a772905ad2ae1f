//! Labels that come and go after training.
//!
//! Labels that were trained stand first, those that were added stand behind them. Of an added label
//! there is its text alone: its embedding is its classifier too, scaled as those of the labels that
//! training knows least of, and its words weigh as theirs do. The index does not know it; added labels
//! are searched by themselves, exactly, and those that would have had a place in the shortlist of the
//! trained ones are candidates beside them. So the candidates among the trained ones, and all that is said
//! of them, are to the last bit what they were before.

use std::sync::Arc;

use super::candidates::{Views, with_bias_unit};
use super::votes::Votes;
use crate::Result;
use crate::data::Texts;
use crate::encoder::VectorMatrix;
use crate::index::{ExactIndex, Index};
use crate::progress::Observer;

/// Vectors that a new index is tuned on.
const TUNED_ON: usize = 500;

/// Labels a query that it is tuned for.
const TUNED_FOR: usize = 100;

impl Views {
    /// How many labels there are.
    pub fn n_labels(&self) -> usize {
        self.counts.len()
    }

    /// How many of them were there when the model was trained; they come first.
    pub fn n_trained(&self) -> usize {
        self.index.n_vectors()
    }

    /// The training points that a label is described with. One that was added has none, and is described
    /// as the rarest that were trained: with one. What the fusion knows of labels without any point it
    /// learnt from labels all of whose points were held out, and of those it is true far too often that
    /// a held-out point has them.
    pub(super) fn seen_as(&self, label: u32) -> u32 {
        let count = self.counts[label as usize];
        if (label as usize) < self.n_trained() { count } else { count.max(1) }
    }

    /// The index of the labels that were added, if there are any.
    pub(super) fn added(&self) -> Option<ExactIndex> {
        let added = self.n_trained()..self.n_labels();
        let index = || ExactIndex::of_rows(Arc::clone(&self.classifiers), added.clone());
        (!added.is_empty()).then(index)
    }

    /// The same views with more labels behind those there are, known by their texts and the vectors of
    /// these alone; `texts` are those of the labels there are.
    ///
    /// # Panics
    /// If there is not a vector of the right length for every new label.
    pub fn with_labels(self, texts: &Texts, new: &Texts, vectors: &VectorMatrix) -> Self {
        assert_eq!(new.len(), vectors.n_rows(), "a vector for every label");
        let like = self.least_known(texts);
        let classifiers =
            Arc::new(self.classifiers.extended(&self.classifiers_like(&like, vectors)));
        let mut counts = self.counts;
        counts.resize(counts.len() + new.len(), 0);
        let n_labels = counts.len() as u32;
        Self {
            embeddings: self.embeddings.extended(vectors),
            index: self.index.with_longer(Arc::clone(&classifiers)),
            classifiers,
            votes: self.votes.map(|votes| {
                let mut labels = votes.labels().clone();
                labels.widen(n_labels);
                votes.with_labels(labels)
            }),
            lexical: self.lexical.map(|lexical| lexical.with_labels(new, &like)),
            counts,
        }
    }

    /// The labels that training knows least of: those with a text and the fewest points.
    fn least_known(&self, texts: &Texts) -> Vec<u32> {
        let n_trained = if self.n_trained() > 0 { self.n_trained() } else { self.n_labels() };
        let has_text = |&label: &u32| !texts.get(label as usize).trim().is_empty();
        let with_text: Vec<u32> = (0..n_trained as u32).filter(has_text).collect();
        let count = |label: &u32| self.counts[*label as usize];
        let fewest = with_text.iter().map(count).min();
        with_text.into_iter().filter(|label| Some(count(label)) == fewest).collect()
    }

    /// Classifiers of new labels with these vectors: as long as those of some labels are, and with
    /// their bias, by the median of each.
    fn classifiers_like(&self, like: &[u32], vectors: &VectorMatrix) -> VectorMatrix {
        let dim = vectors.dim();
        let (mut lengths, mut biases) = (Vec::new(), Vec::new());
        for &label in like {
            let classifier = self.classifiers.row(label as usize).to_vec();
            let (vector, bias) = classifier.split_at(dim);
            lengths.push(ngame_nn::dot(vector, vector).sqrt());
            biases.push(bias[0]);
        }
        let middle = |mut numbers: Vec<f32>, otherwise: f32| {
            numbers.sort_unstable_by(f32::total_cmp);
            numbers.get(numbers.len() / 2).copied().unwrap_or(otherwise)
        };
        let (length, bias) = (middle(lengths, 1.0), middle(biases, 0.0));
        let mut numbers = Vec::with_capacity(vectors.n_rows() * (dim + 1));
        for row in 0..vectors.n_rows() {
            numbers.extend(vectors.row(row).to_vec().iter().map(|number| length * number));
            numbers.push(bias);
        }
        VectorMatrix::from_f32(numbers, dim + 1)
    }

    /// The same views of some of the labels, which ascend; they are numbered anew from 0. An index that
    /// loses labels is built again.
    ///
    /// # Panics
    /// If there is no such label.
    pub fn select(self, labels: &[u32], observer: &dyn Observer) -> Result<Self> {
        let n_trained = labels.partition_point(|&label| (label as usize) < self.n_trained());
        let embeddings = self.embeddings.select(labels);
        let classifiers = Arc::new(self.classifiers.select(labels));
        let index = if n_trained == self.n_trained() {
            self.index.with_longer(Arc::clone(&classifiers))
        } else {
            let like_queries = self.votes.as_ref().map_or(&embeddings, Votes::vectors);
            let queries = some_of(like_queries);
            let queries = with_bias_unit(&queries);
            self.index.rebuilt(&classifiers, n_trained, &queries, TUNED_FOR, observer)?
        };
        Ok(Self {
            embeddings,
            classifiers,
            index,
            counts: labels.iter().map(|&label| self.counts[label as usize]).collect(),
            votes: self.votes.map(|votes| {
                let fewer = votes.labels().select_columns(labels);
                votes.with_labels(fewer)
            }),
            lexical: self.lexical.map(|lexical| lexical.select(labels)),
        })
    }
}

/// Some rows, evenly spread.
fn some_of(vectors: &VectorMatrix) -> VectorMatrix {
    let n = vectors.n_rows().min(TUNED_ON);
    let rows: Vec<u32> = (0..n).map(|at| (at * vectors.n_rows() / n) as u32).collect();
    vectors.select(&rows)
}
