//! Learning how to score candidates, from points that no view was trained on.
//!
//! Every way to score is tried on points it has not seen: the points are cut into folds, each is scored
//! by what was learnt from the others. The best way is then learnt from all of them. What it reached
//! on the folds is what calibration learns from, so that a probability says what will happen on points
//! nobody has seen, and the simple ways take part: fusion is never worse than the best of its parts.

use std::ops::Range;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::binned::Binned;
use super::boosting::{BoostedTrees, BoostingOptions};
use super::fused::{Fusion, Method, Places, Tried};
use super::isotonic::Isotonic;
use super::objective::{Objective, Pairs};
use super::tree::{RegressionTree, TreeOptions};
use crate::Result;
use crate::metrics::top_k;
use crate::progress::{Observer, StopOnly};
use crate::views::{Candidates, Column, Shortlists, View};

/// Folds that points are cut into.
const FOLDS: usize = 5;

/// With fewer points than this, whatever was learnt would be chance.
const FEW: usize = 20;

/// How deep the paper's tree is.
const TREE_DEPTH: usize = 7;

/// Of so many points, one watches when boosting should end.
const WATCHING: usize = 6;

/// How trees are boosted: small steps and large leaves, as a few hundred points must be enough.
const BOOSTING: BoostingOptions = BoostingOptions {
    n_trees: 300,
    learning_rate: 0.08,
    tree: TreeOptions { depth: 5, min_leaf: 50, min_hessian: 1.0, lambda: 5.0 },
    patience: 20,
};

/// What a way to score is chosen by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aim {
    /// Right labels at the top, however frequent they are.
    Precision,
    /// Both.
    #[default]
    Balanced,
    /// Rare labels count more.
    Tail,
}

/// Which ways to score are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MethodChoice {
    /// All of them; the best stays.
    #[default]
    Best,
    /// The paper's tree, or less where that is better.
    Tree,
    /// The embedding's score.
    Embedding,
    /// The classifier's score.
    Classifier,
    /// The two added up.
    Sum,
}

/// Candidates of points whose labels are known.
#[derive(Clone, Debug)]
pub struct Examples {
    labels: Vec<u32>,      // (pairs)
    descriptors: Vec<f32>, // (pairs, columns)
    is_true: Vec<bool>,    // (pairs)
    found: Vec<bool>,      // (pairs): whether a view proposed the label.
    offsets: Vec<usize>,   // (points + 1): where the pairs of each point begin.
}

impl Default for Examples {
    fn default() -> Self {
        Self {
            labels: Vec::new(),
            descriptors: Vec::new(),
            is_true: Vec::new(),
            found: Vec::new(),
            offsets: vec![0],
        }
    }
}

impl Examples {
    /// Adds a point: its candidates, among them all labels of its `own`.
    pub fn push(&mut self, candidates: &Candidates, own: &[u32]) {
        let is_own = |label: &u32| own.binary_search(label).is_ok();
        self.is_true.extend(candidates.labels.iter().map(is_own));
        self.labels.extend(&candidates.labels);
        self.found.extend(&candidates.found);
        self.descriptors.extend(&candidates.descriptors);
        self.offsets.push(self.labels.len());
    }

    /// How many points there are.
    pub fn n_points(&self) -> usize {
        self.offsets.len() - 1
    }

    /// How many pairs of a point and a candidate there are.
    pub fn n_pairs(&self) -> usize {
        self.labels.len()
    }

    fn pairs(&self, point: usize) -> Range<usize> {
        self.offsets[point]..self.offsets[point + 1]
    }

    /// As boosting takes them.
    fn weighted<'a>(&'a self, n_columns: usize, weights: &'a [f32]) -> Pairs<'a> {
        Pairs {
            features: &self.descriptors,
            n_features: n_columns,
            is_true: &self.is_true,
            weights: Some(weights),
            offsets: Some(&self.offsets),
        }
    }

    /// The candidates that views proposed, without the labels that are there because they are true.
    fn proposed(&self, n_columns: usize) -> Self {
        let mut some = Self::default();
        for point in 0..self.n_points() {
            for pair in self.pairs(point).filter(|&pair| self.found[pair]) {
                some.labels.push(self.labels[pair]);
                some.is_true.push(self.is_true[pair]);
                some.found.push(true);
                some.descriptors
                    .extend(&self.descriptors[pair * n_columns..(pair + 1) * n_columns]);
            }
            some.offsets.push(some.labels.len());
        }
        some
    }

    /// Some of the points.
    fn select(&self, n_columns: usize, keep: impl Fn(usize) -> bool) -> Self {
        let mut some = Self::default();
        for point in (0..self.n_points()).filter(|&point| keep(point)) {
            let range = self.pairs(point);
            some.labels.extend(&self.labels[range.clone()]);
            some.is_true.extend(&self.is_true[range.clone()]);
            some.found.extend(&self.found[range.clone()]);
            some.descriptors
                .extend(&self.descriptors[range.start * n_columns..range.end * n_columns]);
            some.offsets.push(some.labels.len());
        }
        some
    }
}

/// What a fusion is learnt for.
#[derive(Clone, Debug)]
pub struct FusionTask<'a> {
    /// The views that take part.
    pub views: &'a [View],
    /// What candidates are described by.
    pub columns: &'a [Column],
    /// How they were found.
    pub shortlists: Shortlists,
    /// Whether a classifier's score is the logit of a probability.
    pub logits: bool,
    /// How much a label counts where rare ones count more.
    pub inverse_propensities: &'a [f64],
    /// What to choose by.
    pub aim: Aim,
    /// What to choose from.
    pub choice: MethodChoice,
}

/// Learns a fusion.
///
/// # Panics
/// If the columns lack the embedding's score or the classifier's.
pub fn fit(examples: &Examples, task: &FusionTask<'_>, observer: &dyn Observer) -> Result<Fusion> {
    if examples.n_points() < FEW && matches!(task.choice, MethodChoice::Best | MethodChoice::Tree) {
        return Ok(untaught(task));
    }
    let kinds: &[Kind] = match task.choice {
        MethodChoice::Embedding => &[Kind::Embedding],
        MethodChoice::Classifier => &[Kind::Classifier],
        MethodChoice::Sum => &[Kind::Sum],
        MethodChoice::Tree => &[Kind::Embedding, Kind::Classifier, Kind::Sum, Kind::Tree],
        MethodChoice::Best => {
            &[Kind::Embedding, Kind::Classifier, Kind::Sum, Kind::Tree, Kind::Boosted]
        }
    };
    let folds: Vec<Examples> = (0..FOLDS)
        .map(|fold| examples.select(task.columns.len(), |point| point % FOLDS != fold))
        .collect();
    let mut tried = Vec::new();
    let mut best: Option<(f64, usize, Vec<f32>)> = None;
    for (at, &kind) in kinds.iter().enumerate() {
        let scores = cross_fitted(kind, examples, &folds, task, observer)?;
        let reached = judge(kind.name(), examples, &scores, task.inverse_propensities);
        let value = reached.value(task.aim);
        // A later one is more complicated, so it has to be better, not as good.
        if best.as_ref().is_none_or(|(most, ..)| value > *most) {
            best = Some((value, at, scores));
        }
        tried.push(reached);
    }
    let (_, chosen, scores) = best.expect("at least one way is tried");
    tried[chosen].chosen = true;
    // Calibration is about the labels that will be shown: those that views propose.
    let shown = || (0..examples.n_pairs()).filter(|&pair| examples.found[pair]);
    let shown_scores: Vec<f32> = shown().map(|pair| scores[pair]).collect();
    let is_true: Vec<bool> = shown().map(|pair| examples.is_true[pair]).collect();
    Ok(Fusion {
        views: task.views.to_vec(),
        columns: task.columns.to_vec(),
        shortlists: task.shortlists,
        logits: task.logits,
        method: kinds[chosen].learn(examples, task, observer)?,
        calibration: Isotonic::fit(&shown_scores, &is_true),
        tried,
    })
}

/// A fusion for data with too few points to learn one from: both scores added up, and a probability
/// that rises evenly from none to both.
fn untaught(task: &FusionTask<'_>) -> Fusion {
    Fusion {
        views: task.views.to_vec(),
        columns: task.columns.to_vec(),
        shortlists: task.shortlists,
        logits: task.logits,
        method: Method::Sum,
        calibration: Isotonic::fit(&[0.0, 2.0], &[false, true]),
        tried: Vec::new(),
    }
}

/// The score of every pair by what was learnt from points of the other folds.
fn cross_fitted(
    kind: Kind,
    examples: &Examples,
    folds: &[Examples],
    task: &FusionTask<'_>,
    observer: &dyn Observer,
) -> Result<Vec<f32>> {
    let places = Places::of(task.columns, task.logits).expect("columns with the two scores");
    let n_columns = task.columns.len();
    let mut scores = vec![0.0; examples.n_pairs()];
    for (fold, others) in folds.iter().enumerate() {
        let method = kind.learn(others, task, observer)?;
        for point in (fold..examples.n_points()).step_by(FOLDS) {
            let range = examples.pairs(point);
            let numbers = range.start * n_columns..range.end * n_columns;
            method.scores(&examples.descriptors[numbers], places, &mut scores[range]);
        }
    }
    Ok(scores)
}

/// A way to score that is to be learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Embedding,
    Classifier,
    Sum,
    Tree,
    Boosted,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Embedding => "embedding",
            Self::Classifier => "classifier",
            Self::Sum => "sum",
            Self::Tree => "tree",
            Self::Boosted => "boosted",
        }
    }

    fn learn(
        self,
        examples: &Examples,
        task: &FusionTask<'_>,
        observer: &dyn Observer,
    ) -> Result<Method> {
        Ok(match self {
            Self::Embedding => Method::Embedding,
            Self::Classifier => Method::Classifier,
            Self::Sum => Method::Sum,
            Self::Tree => {
                let binned = Binned::new(&examples.descriptors, task.columns.len());
                let targets: Vec<f32> =
                    examples.is_true.iter().map(|&is_true| f32::from(u8::from(is_true))).collect();
                let options = TreeOptions { depth: TREE_DEPTH, ..Default::default() };
                Method::Tree(RegressionTree::fit(&binned, &targets, &options))
            }
            Self::Boosted => Method::Boosted(boost(examples, task, observer)?),
        })
    }
}

/// Boosted trees on what views proposed, with rare labels counting as the aim says. True labels that no
/// view proposed are left out, unlike in the paper's tree: they would teach that what is low in every
/// view is right.
fn boost(
    examples: &Examples,
    task: &FusionTask<'_>,
    observer: &dyn Observer,
) -> Result<BoostedTrees> {
    let power = match task.aim {
        Aim::Precision => 0.0,
        Aim::Balanced => 0.25,
        Aim::Tail => 1.0,
    };
    let weight = |(&label, &is_true): (&u32, &bool)| match is_true {
        true => task.inverse_propensities[label as usize].powf(power) as f32,
        false => 1.0,
    };
    let weigh = |examples: &Examples| -> Vec<f32> {
        examples.labels.iter().zip(&examples.is_true).map(weight).collect()
    };
    // Some points say when more trees do not help any more.
    let (n_columns, watch) = (task.columns.len(), examples.n_points() / WATCHING);
    let examples = examples.proposed(n_columns);
    let grown = examples.select(n_columns, |point| point >= watch);
    let watching = examples.select(n_columns, |point| point < watch);
    let (grown_weights, watching_weights) = (weigh(&grown), weigh(&watching));
    let grown = grown.weighted(n_columns, &grown_weights);
    let watching = watching.weighted(n_columns, &watching_weights);
    let held_out = (watch > 0).then_some(&watching);
    BoostedTrees::fit(&grown, held_out, Objective::Logistic, &BOOSTING, &StopOnly(observer))
}

/// What scores reach among the labels that views proposed.
fn judge(method: &str, examples: &Examples, scores: &[f32], weights: &[f64]) -> Tried {
    const K: usize = 5;
    // Hits, weighted hits, and the most that weighted hits could be, at 1 and at 5.
    let judged = (0..examples.n_points()).into_par_iter().map(|point| {
        let own = || examples.pairs(point).filter(|&pair| examples.is_true[pair]);
        let mut most: Vec<f64> =
            own().map(|pair| weights[examples.labels[pair] as usize]).collect();
        most.sort_unstable_by(|a, b| b.total_cmp(a));
        let found = || examples.pairs(point).filter(|&pair| examples.found[pair]);
        let labels: Vec<u32> = found().map(|pair| examples.labels[pair]).collect();
        let scores: Vec<f32> = found().map(|pair| scores[pair]).collect();
        let mut best = Vec::new();
        top_k(&labels, &scores, &[], K, &mut best);
        let hit = |label: u32| own().any(|pair| examples.labels[pair] == label);
        [1, K].map(|k| {
            let hits = best.iter().take(k).filter(|&&(label, _)| hit(label));
            let weighted: f64 = hits.clone().map(|&(label, _)| weights[label as usize]).sum();
            [hits.count() as f64, weighted, most.iter().take(k).sum()].map(|sum| sum / k as f64)
        })
    });
    let rows: Vec<[[f64; 3]; 2]> = judged.collect();
    let total = |k: usize, column: usize| rows.iter().map(|row| row[k][column]).sum::<f64>();
    let n = examples.n_points().max(1) as f64;
    Tried {
        method: method.to_owned(),
        precision_1: total(0, 0) / n,
        precision_5: total(1, 0) / n,
        psprecision_1: total(0, 1) / total(0, 2).max(1e-12),
        psprecision_5: total(1, 1) / total(1, 2).max(1e-12),
        chosen: false,
    }
}

impl Tried {
    /// What is to be as high as possible.
    fn value(&self, aim: Aim) -> f64 {
        let plain = self.precision_1 + self.precision_5;
        let weighted = self.psprecision_1 + self.psprecision_5;
        match aim {
            Aim::Precision => plain,
            Aim::Balanced => plain + weighted,
            Aim::Tail => weighted,
        }
    }
}
