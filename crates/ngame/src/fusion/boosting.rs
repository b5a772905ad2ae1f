//! Gradient boosting: many small trees, each grown on what those before it still get wrong.
//!
//! Friedman, "Greedy function approximation: a gradient boosting machine" (2001), with the second-order
//! leaves of XGBoost and the histograms of LightGBM. Each tree may be grown on some of the pairs and
//! features only ("Stochastic gradient boosting", 2002): trees that know different things err less
//! together. What is drawn follows from the seed, the tree and the pair alone.

use std::sync::OnceLock;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::binned::{Binned, n_rows};
use super::flat_trees::FlatTrees;
use super::growth::grow;
use super::histogram::Member;
use super::linear::LinearModel;
use super::objective::{Objective, Pairs};
use super::tree::{RegressionTree, TreeOptions};
use crate::progress::{Event, Observer};
use crate::random::{generator, mix};
use crate::{Error, Result};

/// Rows that pass all trees before the next rows come: they stay in the cache.
const ROWS: usize = 256;

/// How trees are boosted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoostingOptions {
    /// The most trees.
    pub n_trees: usize,
    /// The share of its answer by which each tree moves the scores.
    pub learning_rate: f64,
    /// How each tree is grown.
    pub tree: TreeOptions,
    /// The share of the pairs that a tree is grown on.
    pub pairs: f64,
    /// The share of the features that a tree may ask for; at least one.
    pub features: f64,
    /// Where the choice of both comes from.
    pub seed: u64,
    /// Whether the first tree corrects a weighted sum of the features; else it corrects one score for
    /// all pairs.
    pub linear: bool,
}

impl Default for BoostingOptions {
    fn default() -> Self {
        Self {
            n_trees: 100,
            learning_rate: 0.1,
            tree: TreeOptions::default(),
            pairs: 1.0,
            features: 1.0,
            seed: 0,
            linear: false,
        }
    }
}

/// What a tree's pairs are drawn for.
const PAIRS: u64 = 31;

/// What a tree's features are drawn for.
const FEATURES: u64 = 32;

impl BoostingOptions {
    /// Whether a tree is grown on a pair.
    fn takes(&self, tree: usize, pair: u32) -> bool {
        // The highest 53 bits are a number from 0 to below 1.
        let drawn = mix(self.seed, &[PAIRS, tree as u64, u64::from(pair)]) >> 11;
        (drawn as f64) < self.pairs * (1u64 << 53) as f64
    }

    /// The features that a tree may ask for, ascending.
    fn features_of(&self, tree: usize, n_features: usize) -> Vec<usize> {
        let n = ((self.features * n_features as f64).round() as usize).clamp(1, n_features);
        let mut random = generator(self.seed, &[FEATURES, tree as u64]);
        let mut chosen = rand::seq::index::sample(&mut random, n_features, n).into_vec();
        chosen.sort_unstable();
        chosen
    }
}

/// Trees whose answers add up to a score.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoostedTrees {
    n_features: usize,
    base: f32,
    /// What stands in the place of the base, if trees began with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    linear: Option<LinearModel>,
    trees: Vec<RegressionTree>,
    /// The same trees, as [`Self::predict_many`] walks them.
    #[serde(skip)]
    flat: OnceLock<FlatTrees>,
}

impl PartialEq for BoostedTrees {
    /// How the trees are laid out does not matter.
    fn eq(&self, other: &Self) -> bool {
        let start = |it: &Self| (it.n_features, it.base);
        start(self) == start(other) && self.linear == other.linear && self.trees == other.trees
    }
}

impl BoostedTrees {
    /// Trees that learn an objective from pairs. It ends early where no split helps any more.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if the observer asks to stop.
    ///
    /// # Panics
    /// If the parts of the pairs do not fit together, or an objective misses one (see [`Pairs`]).
    pub fn fit(
        pairs: &Pairs<'_>,
        objective: Objective,
        options: &BoostingOptions,
        observer: &dyn Observer,
    ) -> Result<Self> {
        pairs.assert_usable(objective);
        let binned = Binned::new(pairs.features, pairs.n_features);
        let mut boosted = Self {
            n_features: pairs.n_features,
            base: objective.base(pairs),
            linear: options.linear.then(|| LinearModel::fit(pairs)).flatten(),
            trees: Vec::new(),
            flat: OnceLock::new(),
        };
        let mut scores = boosted.starts(pairs);
        let mut derived = vec![Member::default(); pairs.n_pairs()];
        let (mut members, mut spare) = (Vec::new(), derived.clone());
        let total = Some(options.n_trees as u64);
        observer.event(Event::Started { task: "boosting trees", total, unit: "trees" });
        // A number stands for what is drawn; some draws find no split, and others take their place.
        for number in 0..2 * options.n_trees {
            if boosted.trees.len() == options.n_trees {
                break;
            }
            if observer.cancelled() {
                return Err(Error::Cancelled);
            }
            objective.derive(pairs, &scores, &mut derived);
            members.clear();
            members.extend(derived.iter().filter(|member| options.takes(number, member.row)));
            let features = options.features_of(number, pairs.n_features);
            let spare = &mut spare[..members.len()];
            let rate = options.learning_rate;
            let tree = grow(&binned, &features, &mut members, spare, &options.tree, rate);
            // One answer for all pairs ranks nothing; other features may yet.
            if tree.n_leaves() == 1 && options.features < 1.0 {
                continue;
            } else if tree.n_leaves() == 1 {
                break;
            }
            tree.add_answers(pairs, &mut scores);
            boosted.trees.push(tree);
            observer.event(Event::Advanced(1));
        }
        observer.event(Event::Finished);
        Ok(boosted)
    }

    /// The loss on some pairs with no tree, with the first one, and so on to all of them: the mean
    /// log-loss, or for rankings the lack of nDCG@k.
    ///
    /// # Panics
    /// As [`BoostedTrees::fit`], or if the pairs have other features.
    pub fn losses(&self, pairs: &Pairs<'_>, objective: Objective) -> Vec<f64> {
        pairs.assert_usable(objective);
        assert_eq!(pairs.n_features, self.n_features, "pairs have the features of the trees");
        let mut scores = self.starts(pairs);
        let mut losses = vec![objective.loss(pairs, &scores)];
        for tree in &self.trees {
            tree.add_answers(pairs, &mut scores);
            losses.push(objective.loss(pairs, &scores));
        }
        losses
    }

    /// The score of a pair before the first tree.
    fn start(&self, row: &[f32]) -> f64 {
        self.linear.as_ref().map_or(f64::from(self.base), |linear| linear.predict(row))
    }

    fn starts(&self, pairs: &Pairs<'_>) -> Vec<f64> {
        let rows = pairs.features.par_chunks_exact(pairs.n_features);
        rows.with_min_len(ROWS).map(|row| self.start(row)).collect()
    }

    /// Leaves the first trees only.
    pub fn truncate(&mut self, n_trees: usize) {
        self.trees.truncate(n_trees);
        self.flat = OnceLock::new();
    }

    /// The score of one pair.
    ///
    /// # Panics
    /// If the row is shorter than the features the trees were grown on. Trees from a file must have
    /// passed [`BoostedTrees::check`].
    pub fn predict(&self, row: &[f32]) -> f32 {
        let answers = self.trees.iter().map(|tree| f64::from(tree.predict(row)));
        answers.fold(self.start(row), |score, answer| score + answer) as f32
    }

    /// Writes the scores of many pairs, given row by row: the same as of each by itself, but faster.
    ///
    /// # Panics
    /// If there is not exactly one score to a row.
    pub fn predict_many(&self, features: &[f32], scores: &mut [f32]) {
        assert_eq!(n_rows(features, self.n_features), scores.len(), "every pair gets a score");
        let flat = self.flat.get_or_init(|| FlatTrees::new(&self.trees));
        let rows = features.par_chunks(ROWS * self.n_features);
        scores.par_chunks_mut(ROWS).zip(rows).for_each(|(scores, rows)| {
            let mut sums = [0.0; ROWS];
            for (sum, row) in sums.iter_mut().zip(rows.chunks_exact(self.n_features)) {
                *sum = self.start(row);
            }
            flat.add_answers(rows, self.n_features, &mut sums[..scores.len()]);
            for (score, sum) in scores.iter_mut().zip(sums) {
                *score = sum as f32;
            }
        });
    }

    /// How many trees there are.
    pub fn n_trees(&self) -> usize {
        self.trees.len()
    }

    /// How many features a pair has.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// Whether trees that were loaded can be used with `n_features` features. Else says what is wrong.
    pub fn check(&self, n_features: usize) -> Result<(), String> {
        if self.n_features != n_features || n_features == 0 {
            return Err(format!(
                "trees for {} features, but there are {n_features}",
                self.n_features
            ));
        }
        if !self.base.is_finite() {
            return Err(format!("the base {} is not finite", self.base));
        }
        self.linear.as_ref().map_or(Ok(()), |linear| linear.check(n_features))?;
        self.trees.iter().enumerate().try_for_each(|(number, tree)| {
            tree.check(n_features).map_err(|problem| format!("tree {number}, {problem}"))
        })
    }
}

impl RegressionTree {
    /// Adds its answers to the scores of pairs.
    fn add_answers(&self, pairs: &Pairs<'_>, scores: &mut [f64]) {
        let rows = pairs.features.par_chunks_exact(pairs.n_features);
        scores.par_iter_mut().zip(rows).with_min_len(ROWS).for_each(|(score, row)| {
            *score += f64::from(self.predict(row));
        });
    }
}
