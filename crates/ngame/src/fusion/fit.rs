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

/// How trees are boosted: small steps and large leaves, as a few hundred points must be enough, and
/// every tree on other pairs and features, beginning with what a weighted sum gets wrong. Of at most so
/// many trees, the folds say how many help.
const BOOSTING: BoostingOptions = BoostingOptions {
    n_trees: 200,
    learning_rate: 0.1,
    tree: TreeOptions { depth: 5, min_leaf: 100, min_hessian: 1.0, lambda: 5.0 },
    pairs: 0.7,
    features: 0.5,
    seed: 0,
    linear: true,
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
    /// Where random choices come from.
    pub seed: u64,
}

/// Learns a fusion.
///
/// # Panics
/// If there are no columns, or the one way to choose from is a score that they lack.
pub fn fit(examples: &Examples, task: &FusionTask<'_>, observer: &dyn Observer) -> Result<Fusion> {
    let Places { embedding, classifier, .. } = Places::of(task.columns, task.logits);
    let has_scores = embedding.is_some() || classifier.is_some();
    let is_learnt = matches!(task.choice, MethodChoice::Best | MethodChoice::Tree);
    if examples.n_points() < FEW && is_learnt && has_scores {
        return Ok(untaught(task));
    }
    let kinds: &[Kind] = match task.choice {
        MethodChoice::Embedding => &[Kind::Embedding],
        MethodChoice::Classifier => &[Kind::Classifier],
        MethodChoice::Sum => &[Kind::Sum],
        MethodChoice::Tree => &[Kind::Embedding, Kind::Classifier, Kind::Sum, Kind::Tree],
        MethodChoice::Best => {
            let n_trees = BOOSTING.n_trees;
            &[Kind::Embedding, Kind::Classifier, Kind::Sum, Kind::Tree, Kind::Boosted { n_trees }]
        }
    };
    let is_possible = |kind: &&Kind| match kind {
        Kind::Embedding => embedding.is_some(),
        Kind::Classifier => classifier.is_some(),
        Kind::Sum => embedding.is_some() && classifier.is_some(),
        Kind::Tree | Kind::Boosted { .. } => true,
    };
    let kinds: Vec<&Kind> = kinds.iter().filter(is_possible).collect();
    let folds: Vec<Fold> = (0..FOLDS).map(|fold| Fold::new(examples, fold, task)).collect();
    let (mut ways, mut tried, mut all_scores) = (Vec::new(), Vec::new(), Vec::new());
    for kind in kinds {
        let (kind, methods) = kind.learn_folds(&folds, task, observer)?;
        let scores = cross_fitted(&methods, examples, task);
        tried.push(judge(kind.name(), examples, &scores, task.inverse_propensities));
        ways.push(kind);
        all_scores.push(scores);
    }
    let chosen = best(&tried, task.aim);
    tried[chosen].chosen = true;
    let (kind, scores) = (ways[chosen], &all_scores[chosen]);
    // Calibration is about the labels that will be shown: those that views propose.
    let shown = || (0..examples.n_pairs()).filter(|&pair| examples.found[pair]);
    let shown_scores: Vec<f32> = shown().map(|pair| scores[pair]).collect();
    let is_true: Vec<bool> = shown().map(|pair| examples.is_true[pair]).collect();
    Ok(Fusion {
        views: task.views.to_vec(),
        columns: task.columns.to_vec(),
        shortlists: task.shortlists,
        logits: task.logits,
        method: kind.learn(examples, task, observer)?,
        calibration: Isotonic::fit(&shown_scores, &is_true),
        tried,
    })
}

/// The way that the aim asks for, of those that put at least as many right labels at the top as either
/// score alone. Fewer would be too high a price for rare labels, unless these are all that is asked for.
fn best(tried: &[Tried], aim: Aim) -> usize {
    let is_part = |way: &&Tried| {
        [Kind::Embedding, Kind::Classifier].iter().any(|part| part.name() == way.method)
    };
    let floor = match aim {
        Aim::Tail => f64::NEG_INFINITY,
        Aim::Precision | Aim::Balanced => {
            tried.iter().filter(is_part).map(Tried::plain).fold(f64::NEG_INFINITY, f64::max)
        }
    };
    let mut best = None;
    for (at, way) in tried.iter().enumerate().filter(|(_, way)| way.plain() >= floor) {
        let value = way.value(aim);
        // A later one is more complicated, so it has to be better, not as good.
        if best.is_none_or(|(_, most)| value > most) {
            best = Some((at, value));
        }
    }
    best.expect("the part that is the floor is one").0
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

/// The points of a fold, and all the others.
struct Fold {
    others: Examples,
    own: Examples,
}

impl Fold {
    fn new(examples: &Examples, fold: usize, task: &FusionTask<'_>) -> Self {
        let n_columns = task.columns.len();
        Self {
            others: examples.select(n_columns, |point| point % FOLDS != fold),
            own: examples.select(n_columns, |point| point % FOLDS == fold),
        }
    }
}

/// The score of every pair by what was learnt from points of the other folds.
fn cross_fitted(methods: &[Method], examples: &Examples, task: &FusionTask<'_>) -> Vec<f32> {
    let places = Places::of(task.columns, task.logits);
    let n_columns = task.columns.len();
    let mut scores = vec![0.0; examples.n_pairs()];
    for (fold, method) in methods.iter().enumerate() {
        for point in (fold..examples.n_points()).step_by(FOLDS) {
            let range = examples.pairs(point);
            let numbers = range.start * n_columns..range.end * n_columns;
            method.scores(&examples.descriptors[numbers], places, &mut scores[range]);
        }
    }
    scores
}

/// A way to score that is to be learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Embedding,
    Classifier,
    Sum,
    Tree,
    Boosted { n_trees: usize },
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Embedding => "embedding",
            Self::Classifier => "classifier",
            Self::Sum => "sum",
            Self::Tree => "tree",
            Self::Boosted { .. } => "boosted",
        }
    }

    /// Learns from all points but those of each fold in turn. The folds also say how many trees help,
    /// and the kind that comes back has as many.
    fn learn_folds(
        self,
        folds: &[Fold],
        task: &FusionTask<'_>,
        observer: &dyn Observer,
    ) -> Result<(Self, Vec<Method>)> {
        let Self::Boosted { n_trees } = self else {
            let methods = folds.iter().map(|fold| self.learn(&fold.others, task, observer));
            return Ok((self, methods.collect::<Result<_>>()?));
        };
        let mut boosted = Vec::new();
        let mut losses = vec![0.0; n_trees + 1];
        for fold in folds {
            let trees = boost(&fold.others, n_trees, task, observer)?;
            let own = Weighted::new(&fold.own, task);
            let of_fold = trees.losses(&own.pairs(), OBJECTIVE);
            // Where trees came to an end, more of them would change nothing.
            let last = of_fold[of_fold.len() - 1];
            for (n, loss) in losses.iter_mut().enumerate() {
                *loss += of_fold.get(n).unwrap_or(&last) * fold.own.n_points() as f64;
            }
            boosted.push(trees);
        }
        let fewest = |&(_, a): &(usize, &f64), &(_, b): &(usize, &f64)| a.total_cmp(b);
        let n_trees = losses.iter().enumerate().min_by(fewest).map_or(0, |(n, _)| n);
        boosted.iter_mut().for_each(|trees| trees.truncate(n_trees));
        Ok((Self::Boosted { n_trees }, boosted.into_iter().map(Method::Boosted).collect()))
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
            Self::Boosted { n_trees } => Method::Boosted(boost(examples, n_trees, task, observer)?),
        })
    }
}

/// What boosted trees learn: how likely a pair is true.
const OBJECTIVE: Objective = Objective::Logistic;

/// What views proposed, with rare labels counting as the aim says. True labels that no view proposed
/// are left out, unlike in the paper's tree: they would teach that what is low in every view is right.
struct Weighted {
    examples: Examples,
    weights: Vec<f32>, // (pairs)
    n_columns: usize,
}

impl Weighted {
    fn new(examples: &Examples, task: &FusionTask<'_>) -> Self {
        let power = match task.aim {
            Aim::Precision => 0.0,
            Aim::Balanced => 0.25,
            Aim::Tail => 1.0,
        };
        let weight = |(&label, &is_true): (&u32, &bool)| match is_true {
            true => task.inverse_propensities[label as usize].powf(power) as f32,
            false => 1.0,
        };
        let n_columns = task.columns.len();
        let examples = examples.proposed(n_columns);
        let weights = examples.labels.iter().zip(&examples.is_true).map(weight).collect();
        Self { examples, weights, n_columns }
    }

    fn pairs(&self) -> Pairs<'_> {
        Pairs {
            features: &self.examples.descriptors,
            n_features: self.n_columns,
            is_true: &self.examples.is_true,
            weights: Some(&self.weights),
            offsets: Some(&self.examples.offsets),
        }
    }
}

/// Boosted trees.
fn boost(
    examples: &Examples,
    n_trees: usize,
    task: &FusionTask<'_>,
    observer: &dyn Observer,
) -> Result<BoostedTrees> {
    let weighted = Weighted::new(examples, task);
    let options = BoostingOptions { n_trees, seed: task.seed, ..BOOSTING };
    BoostedTrees::fit(&weighted.pairs(), OBJECTIVE, &options, &StopOnly(observer))
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
        let weighted = self.psprecision_1 + self.psprecision_5;
        match aim {
            Aim::Precision => self.plain(),
            Aim::Balanced => self.plain() + weighted,
            Aim::Tail => weighted,
        }
    }

    /// How many right labels are at the top.
    fn plain(&self) -> f64 {
        self.precision_1 + self.precision_5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(method: &str, plain: f64, weighted: f64) -> Tried {
        Tried {
            method: method.to_owned(),
            precision_1: plain,
            precision_5: 0.0,
            psprecision_1: weighted,
            psprecision_5: 0.0,
            chosen: false,
        }
    }

    #[test]
    fn a_fusion_behind_one_of_its_parts_is_chosen_for_rare_labels_only() {
        let mut tried =
            [way("embedding", 0.2, 0.4), way("classifier", 0.5, 0.2), way("boosted", 0.4, 0.5)];
        assert_eq!(best(&tried, Aim::Balanced), 1, "0.9 in all, but 0.4 is below 0.5");
        assert_eq!(best(&tried, Aim::Precision), 1);
        assert_eq!(best(&tried, Aim::Tail), 2);
        tried[2] = way("boosted", 0.5, 0.5);
        assert_eq!(best(&tried, Aim::Balanced), 2);
        assert_eq!(best(&tried, Aim::Precision), 1, "no better, and more complicated");
    }

    #[test]
    fn what_has_no_parts_is_chosen_by_what_it_reaches() {
        assert_eq!(best(&[way("tree", 0.3, 0.3), way("boosted", 0.2, 0.5)], Aim::Balanced), 1);
    }
}
