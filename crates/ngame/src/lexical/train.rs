//! From texts and labels to a sparse weight vector for every label.
//!
//! ```text
//! texts ──> vectors ──> mean of every label ──> hard negatives ──> weights ──> hard negatives ──> …
//! ```
//!
//! A label's question is: its points, yes; points that were found close to it, no. All points would be
//! the whole question (DiSMEC), which few can pay for. What the found ones leave out is summed up feature
//! by feature: the points that have a feature stand as one example of that feature alone, which costs as
//! much as all of them. So a word that many points share gets little weight, at the price of one number.

use super::blocks::in_blocks;
use super::clusters::Clusters;
use super::dual::{Question, Stop};
use super::features::Features;
use super::neighbours::Neighbours;
use super::options::LexicalOptions;
use super::postings::{LexicalRoom, Postings};
use super::sparse::{SparseRows, merge, normalise, prune};
use crate::Result;
use crate::data::{Csr, Texts};
use crate::progress::Observer;
use crate::random::generator;

/// Points or labels of a piece of parallel work.
const BLOCK: usize = 64;

/// What the order of examples is drawn for.
const ORDER: u64 = 21;

/// The most features of a label's mean text. They are the heaviest, and the rest finds nothing.
const MOST_OF_MEAN: usize = 200;

/// By how many of its features a point looks for labels it is close to. Long texts have hundreds, most
/// of them so light that they change no shortlist.
pub(super) const MOST_OF_POINT: usize = 64;

/// What is trained: features, weights by feature, a bias for every label, clusters of labels; and texts to
/// compare with.
pub(super) type Trained = (Features, Postings, Vec<f32>, Clusters, Neighbours);

/// Trains the weights of all labels.
pub(super) fn train(
    texts: &Texts,
    truth: &Csr,
    label_texts: &Texts,
    not_negative: Option<&Csr>,
    options: &LexicalOptions,
    observer: &dyn Observer,
) -> Result<Trained> {
    options.check()?;
    let with_labels = options.label_text > 0.0;
    let collections = if with_labels { vec![texts, label_texts] } else { vec![texts] };
    let features = Features::collect(&collections, options, observer)?;
    let points = features.vectors(texts, observer)?;
    let of_labels = features.vectors(label_texts, observer)?;
    let neighbours = Neighbours::new(&of_labels, &points, truth, features.len());
    let task = Task {
        spreads: Spread::of(&points, features.len()),
        points,
        labels: with_labels.then_some(of_labels),
        truth,
        by_label: truth.transpose(),
        not_negative,
        n_features: features.len(),
        options,
        observer,
    };
    let means = task.means()?;
    let (points, by_label) = (&task.points, &task.by_label);
    let clusters = Clusters::train(points, &means, by_label, features.len(), options, observer)?;
    let mut postings = Postings::new(&means, features.len());
    let mut biases = vec![0.0; task.by_label.n_rows()];
    let mut negatives = Csr::empty(truth.n_rows(), truth.n_columns());
    for _ in 0..options.rounds {
        let heaviest = postings.heaviest(options.most_labels);
        negatives = task.shortlists(&heaviest, &biases, &negatives)?;
        let (weights, new_biases) = task.weights(&negatives.transpose(), &means)?;
        postings = Postings::new(&weights, features.len());
        biases = new_biases;
    }
    Ok((features, postings, biases, clusters, neighbours))
}

/// How a feature lies among the points.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    /// The points that have it.
    n_points: u32,
    /// Its root mean square value there.
    value: f32,
}

impl Spread {
    /// How every feature lies.
    fn of(points: &SparseRows, n_features: usize) -> Vec<Self> {
        let mut spreads = vec![Self::default(); n_features];
        for (feature, value) in (0..points.n_rows()).flat_map(|point| points.entries(point)) {
            let spread = &mut spreads[feature as usize];
            spread.n_points += 1;
            spread.value += value * value;
        }
        for spread in &mut spreads {
            spread.value = (spread.value / spread.n_points.max(1) as f32).sqrt();
        }
        spreads
    }
}

/// What all steps share.
struct Task<'a> {
    points: SparseRows,         // (points, features)
    spreads: Vec<Spread>,       // (features)
    labels: Option<SparseRows>, // (labels, features)
    truth: &'a Csr,
    by_label: Csr,
    not_negative: Option<&'a Csr>,
    n_features: usize,
    options: &'a LexicalOptions,
    observer: &'a dyn Observer,
}

impl Task<'_> {
    /// Whether a point may be a negative of a label.
    fn may_be_negative(&self, point: u32, label: u32) -> bool {
        !self.truth.contains(point as usize, label)
            && !self.not_negative.is_some_and(|pairs| pairs.contains(point as usize, label))
    }

    /// The mean text of every label, scaled by how much it is to count.
    fn means(&self) -> Result<SparseRows> {
        let mean = |label: usize| {
            let points = self.by_label.row(label);
            let mut sum: Vec<(u32, f32)> =
                points.iter().flat_map(|&point| self.points.entries(point as usize)).collect();
            if let Some(labels) = &self.labels {
                let own = labels.entries(label);
                sum.extend(own.map(|(feature, value)| (feature, value * self.options.label_text)));
            }
            merge(&mut sum);
            prune(&mut sum, MOST_OF_MEAN, 0.0);
            normalise(&mut sum);
            let scale = (points.len().max(1) as f32).powf(self.options.mean_power);
            sum.iter_mut().for_each(|(_, value)| *value *= scale);
            sum
        };
        let rows = |range: std::ops::Range<usize>, (): &mut ()| {
            let mut rows = SparseRows::new();
            range.for_each(|label| rows.push(&mean(label)));
            rows
        };
        let what = ("averaging the texts of labels", "labels");
        let n_labels = self.by_label.n_rows();
        Ok(SparseRows::join(in_blocks(what, n_labels, BLOCK, || (), rows, self.observer)?))
    }

    /// For every point the labels it is close to and does not have, added to those known before.
    fn shortlists(&self, postings: &Postings, biases: &[f32], before: &Csr) -> Result<Csr> {
        let find = |range: std::ops::Range<usize>, room: &mut LexicalRoom| {
            let mut rows = Csr::new(self.truth.n_columns());
            for point in range {
                let mut vector: Vec<(u32, f32)> = self.points.entries(point).collect();
                prune(&mut vector, MOST_OF_POINT, 0.0);
                let skip = |label| !self.may_be_negative(point as u32, label);
                let (n_labels, bias) = (biases.len(), |label: u32| biases[label as usize]);
                let n_hard = self.options.n_hard;
                let best = postings.search(&vector, n_labels, bias, skip, n_hard, room);
                let mut labels = before.row(point).to_vec();
                labels.extend(best.into_iter().map(|(label, _)| label));
                rows.push_row(&labels);
            }
            rows
        };
        let what = ("finding hard negatives", "points");
        let n_points = self.truth.n_rows();
        let room = LexicalRoom::default;
        let mut all = Csr::new(self.truth.n_columns());
        for part in in_blocks(what, n_points, BLOCK, room, find, self.observer)? {
            all.append(&part);
        }
        Ok(all)
    }

    /// The weights and biases of all labels, given the negatives of each.
    fn weights(&self, negatives: &Csr, means: &SparseRows) -> Result<(SparseRows, Vec<f32>)> {
        let solve = |range: std::ops::Range<usize>, question: &mut Question| {
            let (mut rows, mut biases) = (SparseRows::new(), Vec::new());
            for label in range {
                let (mut weights, bias) = self.answer(label, negatives.row(label), question);
                let mean = means.entries(label);
                weights.extend(mean.map(|(feature, value)| (feature, value * self.options.mean)));
                merge(&mut weights);
                prune(&mut weights, self.options.most_weights, self.options.least_weight);
                rows.push(&weights);
                biases.push(bias);
            }
            (rows, biases)
        };
        let what = ("training the sparse view", "labels");
        let room = || Question::new(self.n_features);
        let n_labels = self.by_label.n_rows();
        // A frequent label takes as long as thousands of rare ones: each is a piece of work of its own.
        let parts = in_blocks(what, n_labels, 1, room, solve, self.observer)?;
        let (rows, biases): (Vec<SparseRows>, Vec<Vec<f32>>) = parts.into_iter().unzip();
        Ok((SparseRows::join(rows), biases.concat()))
    }

    /// Adds what stands for all points, given a question that has a label's own points only.
    fn add_background(&self, question: &mut Question) {
        let cost = self.options.cost * self.options.background;
        for (feature, n_own) in question.feature_counts() {
            let Spread { n_points, value } = self.spreads[feature as usize];
            let n_others = n_points.saturating_sub(n_own);
            if n_others > 0 {
                question.push((&[feature], &[value]), false, cost * n_others as f32);
            }
        }
        question.push((&[], &[]), false, cost * self.truth.n_rows() as f32);
    }

    /// The weights and the bias of a label.
    fn answer(
        &self,
        label: usize,
        negatives: &[u32],
        question: &mut Question,
    ) -> (Vec<(u32, f32)>, f32) {
        let options = self.options;
        if self.by_label.row(label).is_empty() && self.labels.is_none() {
            // Nothing says yes, and every no is met by this.
            return (Vec::new(), -1.0);
        }
        question.clear();
        for &point in self.by_label.row(label) {
            question.push(self.points.row(point as usize), true, options.cost);
        }
        if let Some(labels) = &self.labels {
            question.push(labels.row(label), true, options.cost * options.label_text);
        }
        if options.background > 0.0 {
            self.add_background(question);
        }
        for &point in negatives {
            question.push(self.points.row(point as usize), false, options.cost);
        }
        let mut random = generator(options.seed, &[ORDER, label as u64]);
        question.solve(Stop::of(options), &mut random)
    }
}
