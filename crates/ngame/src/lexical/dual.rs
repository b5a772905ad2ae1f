//! A linear yes-or-no question by dual coordinate descent.
//!
//! Minimises `½ |w|² + Σ costᵢ · max(0, 1 - yᵢ w·xᵢ)²` over w, the bias being the weight of a feature
//! that every example has. In the dual every example has one number α ≥ 0, and w is the sum of the
//! examples times theirs; an example at a time, its α is set to the best value given the others, which
//! takes one pass over its features.
//!
//! Hsieh, Chang, Lin, Keerthi and Sundararajan, *A Dual Coordinate Descent Method for Large-scale
//! Linear SVM*, 2008. The features of a problem are numbered anew, so that w lies in the nearest cache
//! however many features there are in all. Examples do not: a frequent label has hundreds of thousands,
//! visited in a random order, so those to come are asked for ahead.

use ngame_nn::prefetch;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

use super::options::LexicalOptions;
use super::sparse::Row;

/// A yes-or-no question: examples and what they cost. Kept from question to question for its memory.
#[derive(Debug, Default)]
pub(super) struct Question {
    examples: Vec<Example>,
    /// What examples have of which feature of this question, example by example.
    entries: Vec<(u32, f32)>,
    /// By feature of this question, its number among all.
    features: Vec<u32>,
    /// By feature among all, its number in this question plus one; 0 if it is not in it.
    numbers: Vec<u32>,
    /// What is sought.
    weights: Vec<f32>, // (features of this question)
    bias: f32,
    order: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Example {
    /// Where its entries begin, and how many they are.
    begin: usize,
    n_entries: u32,
    /// 1 for yes, -1 for no.
    sign: f32,
    /// `1 / (2 cost)`: what squaring the loss adds to the diagonal of the dual.
    slack: f32,
    /// The squared length, the bias feature included, plus `slack`.
    curvature: f32,
    alpha: f32,
}

/// How many examples ahead their entries are asked for; the examples themselves are asked for twice as far
/// ahead, as they say where.
const AHEAD: usize = 20;

/// The entries of a question that lie in a near cache anyway, where asking for them would only take time.
const NEAR: usize = (512 << 10) / size_of::<(u32, f32)>();

/// When a question counts as solved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    /// The greatest difference between projected gradients.
    pub(super) tolerance: f32,
    /// The most passes over all examples.
    pub(super) most_passes: usize,
}

impl Stop {
    /// What the options say.
    pub(super) fn of(options: &LexicalOptions) -> Self {
        Self { tolerance: options.tolerance, most_passes: options.most_passes }
    }
}

impl Question {
    /// Room for questions over so many features.
    pub(super) fn new(n_features: usize) -> Self {
        Self { numbers: vec![0; n_features], ..Self::default() }
    }

    /// Forgets the examples.
    pub(super) fn clear(&mut self) {
        for feature in self.features.drain(..) {
            self.numbers[feature as usize] = 0;
        }
        self.entries.clear();
        self.examples.clear();
    }

    /// Adds an example of a cost.
    pub(super) fn push(&mut self, (columns, values): Row<'_>, is_yes: bool, cost: f32) {
        let begin = self.entries.len();
        let mut curvature = 1.0;
        for (&feature, &value) in columns.iter().zip(values) {
            let number = &mut self.numbers[feature as usize];
            if *number == 0 {
                self.features.push(feature);
                *number = self.features.len() as u32;
            }
            self.entries.push((*number - 1, value));
            curvature += value * value;
        }
        let n_entries = columns.len() as u32;
        let (sign, slack) = (if is_yes { 1.0 } else { -1.0 }, 0.5 / cost);
        let curvature = curvature + slack;
        self.examples.push(Example { begin, n_entries, sign, slack, curvature, alpha: 0.0 });
    }

    /// The features of all examples so far, and how many examples have each.
    pub(super) fn feature_counts(&self) -> Vec<(u32, u32)> {
        let mut counts: Vec<(u32, u32)> =
            self.features.iter().map(|&feature| (feature, 0)).collect();
        for &(feature, _) in &self.entries {
            counts[feature as usize].1 += 1;
        }
        counts
    }

    /// Answers the question: weights by feature, ascending, and the bias.
    pub(super) fn solve(&mut self, stop: Stop, random: &mut ChaCha8Rng) -> (Vec<(u32, f32)>, f32) {
        self.weights.clear();
        self.weights.resize(self.features.len(), 0.0);
        self.bias = 0.0;
        self.order.clear();
        self.order.extend(0..self.examples.len() as u32);
        let is_far = self.entries.len() > NEAR;
        // Examples whose α is 0 and whose gradient says it should stay so are left out of passes
        // (shrinking), until the rest is solved; then all are tried once more.
        let mut n_active = self.order.len();
        let mut highest = f32::INFINITY;
        for _ in 0..stop.most_passes {
            self.order[..n_active].shuffle(random);
            let (mut most, mut least) = (f32::NEG_INFINITY, f32::INFINITY);
            let mut at = 0;
            while at < n_active {
                if is_far {
                    self.prefetch(&self.order[at..n_active]);
                }
                let index = self.order[at] as usize;
                let (gradient, alpha) = self.gradient(index);
                let projected = if alpha > 0.0 { gradient } else { gradient.min(0.0) };
                if alpha == 0.0 && gradient > highest {
                    n_active -= 1;
                    self.order.swap(at, n_active);
                    continue;
                }
                most = most.max(projected);
                least = least.min(projected);
                if projected.abs() > 1e-12 {
                    self.update(index, gradient);
                }
                at += 1;
            }
            if most - least <= stop.tolerance {
                if n_active == self.order.len() {
                    break;
                }
                n_active = self.order.len();
                highest = f32::INFINITY;
            } else {
                highest = if most > 0.0 { most } else { f32::INFINITY };
            }
        }
        let mut answer: Vec<(u32, f32)> =
            self.features.iter().copied().zip(self.weights.iter().copied()).collect();
        answer.sort_unstable_by_key(|&(feature, _)| feature);
        (answer, self.bias)
    }

    /// Asks for what the examples to come will need.
    fn prefetch(&self, order: &[u32]) {
        if let Some(&example) = order.get(2 * AHEAD) {
            prefetch(std::slice::from_ref(&self.examples[example as usize]));
        }
        if let Some(&example) = order.get(AHEAD) {
            prefetch(self.examples[example as usize].entries(&self.entries));
        }
    }

    /// The gradient of the dual in an example's α, and that α.
    fn gradient(&self, index: usize) -> (f32, f32) {
        let example = &self.examples[index];
        let mut product = self.bias;
        for &(feature, value) in example.entries(&self.entries) {
            product += self.weights[feature as usize] * value;
        }
        (example.sign * product - 1.0 + example.slack * example.alpha, example.alpha)
    }

    /// Sets an example's α to its best value given the others.
    fn update(&mut self, index: usize, gradient: f32) {
        let example = &mut self.examples[index];
        let alpha = (example.alpha - gradient / example.curvature).max(0.0);
        let change = (alpha - example.alpha) * example.sign;
        example.alpha = alpha;
        self.bias += change;
        for &(feature, value) in example.entries(&self.entries) {
            self.weights[feature as usize] += change * value;
        }
    }
}

impl Example {
    /// Its own of the entries of all examples.
    fn entries<'a>(&self, all: &'a [(u32, f32)]) -> &'a [(u32, f32)] {
        &all[self.begin..self.begin + self.n_entries as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::generator;
    use serde::Deserialize;

    #[derive(Deserialize)]
    struct Golden {
        examples: Vec<GoldenExample>,
        weights: Vec<f32>,
        bias: f32,
    }

    #[derive(Deserialize)]
    struct GoldenExample {
        columns: Vec<u32>,
        values: Vec<f32>,
        is_yes: bool,
        cost: f32,
    }

    #[test]
    fn the_answer_is_that_of_scikit_learn() {
        let golden = include_str!("../../../../fixtures/lexical/golden.json");
        let golden: Golden = serde_json::from_str(golden).unwrap();
        // A question asked before leaves nothing behind.
        let mut question = Question::new(golden.weights.len());
        question.push((&[3, 14], &[5.0, 5.0]), true, 1.0);
        let stop = Stop { tolerance: 1e-6, most_passes: 10_000 };
        question.solve(stop, &mut generator(1, &[]));
        for seed in 0..3 {
            question.clear();
            for example in &golden.examples {
                let row = (&example.columns[..], &example.values[..]);
                question.push(row, example.is_yes, example.cost);
            }
            let (weights, bias) = question.solve(stop, &mut generator(seed, &[]));
            assert!((bias - golden.bias).abs() < 1e-4, "{bias} for {}", golden.bias);
            assert_eq!(weights.len(), golden.weights.len());
            for (feature, weight) in weights {
                let expected = golden.weights[feature as usize];
                assert!((weight - expected).abs() < 1e-4, "{feature}: {weight} for {expected}");
            }
        }
    }
}
