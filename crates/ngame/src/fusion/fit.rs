//! Learning how to score candidates, from points that no view was trained on.
//!
//! Every way to score is tried on points it has not seen: the points are cut into folds, each is scored
//! by what was learnt from the others. The best way is then learnt from all of them. What it reached
//! on the folds is what calibration learns from, so that a probability says what will happen on points
//! nobody has seen, and the simple ways take part: fusion is never worse than the best of its parts.

use serde::{Deserialize, Serialize};

use super::binned::Binned;
use super::boosting::{BoostedTrees, BoostingOptions};
use super::examples::Examples;
use super::fused::{Fusion, Method, Places};
use super::isotonic::Isotonic;
use super::judged::{Aim, CLASSIFIER, EMBEDDING, best, judge};
use super::objective::{Objective, Pairs};
use super::tree::{RegressionTree, TreeOptions};
use crate::Result;
use crate::progress::{Observer, StopOnly};
use crate::views::{Column, Shortlists, View};

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
            Self::Embedding => EMBEDDING,
            Self::Classifier => CLASSIFIER,
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
