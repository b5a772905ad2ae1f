//! Gradient boosting: many small trees, each grown on what those before it still get wrong.
//!
//! Friedman, "Greedy function approximation: a gradient boosting machine" (2001), with the second-order
//! leaves of XGBoost and the histograms of LightGBM. Trees are grown on all pairs and all features, so
//! nothing is random.

use std::sync::OnceLock;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::binned::{Binned, n_rows};
use super::flat_trees::FlatTrees;
use super::growth::grow;
use super::histogram::Member;
use super::objective::{Objective, Pairs};
use super::tree::{RegressionTree, TreeOptions};
use crate::progress::{Event, Observer};
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
    /// With held-out pairs, boosting ends after so many trees in a row that did not help.
    pub patience: usize,
}

impl Default for BoostingOptions {
    fn default() -> Self {
        Self { n_trees: 100, learning_rate: 0.1, tree: TreeOptions::default(), patience: 20 }
    }
}

/// Trees whose answers add up to a score.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoostedTrees {
    n_features: usize,
    base: f32,
    trees: Vec<RegressionTree>,
    /// The same trees, as [`Self::predict_many`] walks them.
    #[serde(skip)]
    flat: OnceLock<FlatTrees>,
}

impl PartialEq for BoostedTrees {
    /// How the trees are laid out does not matter.
    fn eq(&self, other: &Self) -> bool {
        self.n_features == other.n_features && self.base == other.base && self.trees == other.trees
    }
}

impl BoostedTrees {
    /// Trees that learn an objective from pairs.
    ///
    /// With held-out pairs, only as many trees are kept as had the lowest loss there: the mean
    /// log-loss, or for rankings the lack of nDCG@k. Without them all trees are kept. It ends early
    /// where no split helps any more.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if the observer asks to stop.
    ///
    /// # Panics
    /// If the parts of the pairs do not fit together, or an objective misses one (see [`Pairs`]).
    pub fn fit(
        pairs: &Pairs<'_>,
        held_out: Option<&Pairs<'_>>,
        objective: Objective,
        options: &BoostingOptions,
        observer: &dyn Observer,
    ) -> Result<Self> {
        pairs.assert_usable(objective);
        let binned = Binned::new(pairs.features, pairs.n_features);
        let base = objective.base(pairs);
        let mut boosted =
            Self { n_features: pairs.n_features, base, trees: Vec::new(), flat: OnceLock::new() };
        let mut held_out = held_out.map(|held_out| {
            held_out.assert_usable(objective);
            assert_eq!(held_out.n_features, pairs.n_features, "held-out pairs have these features");
            HeldOut::new(held_out, objective, base)
        });
        let mut scores = vec![f64::from(base); pairs.n_pairs()];
        let mut members = vec![Member::default(); pairs.n_pairs()];
        let mut spare = members.clone();
        let total = Some(options.n_trees as u64);
        observer.event(Event::Started { task: "boosting trees", total, unit: "trees" });
        for _ in 0..options.n_trees {
            if observer.cancelled() {
                return Err(Error::Cancelled);
            }
            objective.derive(pairs, &scores, &mut members);
            let rate = options.learning_rate;
            let grown = grow(&binned, &mut members, &mut spare, &options.tree, rate);
            if grown.leaves.len() == 1 {
                break; // One answer for all pairs ranks nothing.
            }
            for (value, range) in grown.leaves {
                for member in &members[range] {
                    scores[member.row as usize] += f64::from(value);
                }
            }
            boosted.trees.push(grown.tree);
            observer.event(Event::Advanced(1));
            if let Some(held_out) = &mut held_out
                && held_out.n_useless(&boosted.trees, objective) >= options.patience.max(1)
            {
                break;
            }
        }
        if let Some(held_out) = held_out {
            boosted.trees.truncate(held_out.best_n_trees);
        }
        observer.event(Event::Finished);
        Ok(boosted)
    }

    /// The score of one pair.
    ///
    /// # Panics
    /// If the row is shorter than the features the trees were grown on. Trees from a file must have
    /// passed [`BoostedTrees::check`].
    pub fn predict(&self, row: &[f32]) -> f32 {
        let answers = self.trees.iter().map(|tree| f64::from(tree.predict(row)));
        answers.fold(f64::from(self.base), |score, answer| score + answer) as f32
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
            let mut sums = [f64::from(self.base); ROWS];
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
        self.trees.iter().enumerate().try_for_each(|(number, tree)| {
            tree.check(n_features).map_err(|problem| format!("tree {number}, {problem}"))
        })
    }
}

/// Pairs that no tree is grown on, and how the trees so far do on them.
struct HeldOut<'a> {
    pairs: &'a Pairs<'a>,
    scores: Vec<f64>, // (pairs)
    best_loss: f64,
    best_n_trees: usize,
}

impl<'a> HeldOut<'a> {
    fn new(pairs: &'a Pairs<'a>, objective: Objective, base: f32) -> Self {
        let scores = vec![f64::from(base); pairs.n_pairs()];
        let best_loss = objective.loss(pairs, &scores);
        Self { pairs, scores, best_loss, best_n_trees: 0 }
    }

    /// Hears the answers of the last tree; says how many trees there are more than would be best.
    fn n_useless(&mut self, trees: &[RegressionTree], objective: Objective) -> usize {
        if let Some(tree) = trees.last() {
            let rows = self.pairs.features.par_chunks_exact(self.pairs.n_features);
            self.scores.par_iter_mut().zip(rows).with_min_len(ROWS).for_each(|(score, row)| {
                *score += f64::from(tree.predict(row));
            });
        }
        let loss = objective.loss(self.pairs, &self.scores);
        if loss < self.best_loss {
            self.best_loss = loss;
            self.best_n_trees = trees.len();
        }
        trees.len() - self.best_n_trees
    }
}
