//! A weighted sum of features, by logistic regression: what boosted trees start from.
//!
//! Trees answer in steps, and the same for all that lies beyond what they saw. A sum tells pairs apart
//! within a step and goes on where the points it was learnt from end; trees grown on what it gets
//! wrong add what no sum can say.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::objective::Pairs;
use crate::logistic::{Curve, lowest};

/// Pairs handled by one thread at a time. Fixed, as sums depend on how they are cut.
const CHUNK: usize = 8_192;

/// What keeps weights of features that say the same from growing against each other. It is weak: a few
/// pairs outweigh it.
const RIDGE: f64 = 1.0;

/// The weights of features, and what counts in the place of those that are missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearModel {
    bias: f32,
    weights: Vec<f32>, // (features)
    means: Vec<f32>,   // (features)
}

impl LinearModel {
    /// The sum that makes the pairs likeliest, as logarithms of odds; none where all are true or none.
    pub fn fit(pairs: &Pairs<'_>) -> Option<Self> {
        let weight_of = |is_true: bool| -> f64 {
            let counted = (0..pairs.n_pairs()).filter(|&pair| pairs.is_true[pair] == is_true);
            counted.map(|pair| pairs.weight(pair)).sum()
        };
        let (right, wrong) = (weight_of(true), weight_of(false));
        if right <= 0.0 || wrong <= 0.0 {
            return None;
        }
        let scales: Vec<Scale> =
            (0..pairs.n_features).map(|feature| Scale::of(pairs, feature)).collect();
        let mut at = vec![0.0; scales.len() + 1]; // Of scaled features, and the bias behind them.
        at[scales.len()] = (right / wrong).ln();
        let at = lowest(at, |at| curve_at(at, pairs, &scales));
        let weights = || at.iter().zip(&scales).map(|(at, scale)| at * scale.inverse);
        let shift: f64 = weights().zip(&scales).map(|(weight, scale)| weight * scale.mean).sum();
        Some(Self {
            bias: (at[scales.len()] - shift) as f32,
            weights: weights().map(|weight| weight as f32).collect(),
            means: scales.iter().map(|scale| scale.mean as f32).collect(),
        })
    }

    /// The sum for one pair.
    pub fn predict(&self, row: &[f32]) -> f64 {
        let terms =
            row.iter().zip(&self.weights).zip(&self.means).map(|((&value, &weight), &mean)| {
                f64::from(weight) * f64::from(if value.is_finite() { value } else { mean })
            });
        f64::from(self.bias) + terms.sum::<f64>()
    }

    /// Whether a sum that was loaded can be used with `n_features` features. Else says what is wrong.
    pub fn check(&self, n_features: usize) -> Result<(), String> {
        if self.weights.len() != n_features || self.means.len() != n_features {
            let (weights, means) = (self.weights.len(), self.means.len());
            return Err(format!("{weights} weights and {means} means for {n_features} features"));
        }
        let mut numbers =
            [self.bias].into_iter().chain(self.weights.iter().chain(&self.means).copied());
        match numbers.find(|number| !number.is_finite()) {
            Some(number) => Err(format!("the weight {number} is not finite")),
            None => Ok(()),
        }
    }
}

/// Where the values of a feature lie, as far as there are any.
struct Scale {
    mean: f64,
    /// One over their deviation; 0 where they are all the same, and say nothing.
    inverse: f64,
}

impl Scale {
    fn of(pairs: &Pairs<'_>, feature: usize) -> Self {
        let values = || {
            let column = pairs.features[feature..].iter().step_by(pairs.n_features);
            column.filter(|value| value.is_finite()).map(|&value| f64::from(value))
        };
        let n = values().count().max(1) as f64;
        let mean = values().sum::<f64>() / n;
        let deviation = (values().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt();
        let is_constant = deviation <= 1e-6 * mean.abs().max(1e-6);
        Self { mean, inverse: if is_constant { 0.0 } else { 1.0 / deviation } }
    }

    /// A value on this scale; in the middle where it is missing.
    fn scaled(&self, value: f32) -> f64 {
        if value.is_finite() { (f64::from(value) - self.mean) * self.inverse } else { 0.0 }
    }
}

/// What the pairs cost at these weights of scaled features and of the bias behind them.
fn curve_at(at: &[f64], pairs: &Pairs<'_>, scales: &[Scale]) -> Curve {
    let n = at.len();
    let of_chunk = |chunk: usize| {
        let mut sum = Curve::flat(n);
        let mut values = vec![1.0; n];
        for pair in chunk * CHUNK..pairs.n_pairs().min((chunk + 1) * CHUNK) {
            let row = &pairs.features[pair * pairs.n_features..][..pairs.n_features];
            for ((value, &raw), scale) in values.iter_mut().zip(row).zip(scales) {
                *value = scale.scaled(raw);
            }
            let odds = at.iter().zip(&values).map(|(at, value)| at * value).sum();
            sum.add_case(odds, &values, pairs.is_true[pair], pairs.weight(pair));
        }
        sum
    };
    let chunks = (0..pairs.n_pairs().div_ceil(CHUNK)).into_par_iter().map(of_chunk);
    let chunks: Vec<Curve> = chunks.collect();
    let mut all = Curve::flat(n);
    chunks.iter().for_each(|chunk| all.add(chunk));
    for (place, &weight) in at[..n - 1].iter().enumerate() {
        all.add_ridge(place, weight, RIDGE);
    }
    all
}
