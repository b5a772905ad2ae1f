//! Logistic regression: the few weights whose sum says best, as logarithms of odds, what is true.
//!
//! Whoever asks adds up the loss, its slope and its bend at some weights; [`lowest`] goes from there by
//! Newton's method to where the loss is least.

/// The most steps, of which about eight are taken.
const STEPS: usize = 50;

/// How often a step is halved before it is given up.
const HALVINGS: usize = 30;

/// The share by which a step has to lower the loss for another to follow.
const ENOUGH: f64 = 1e-9;

/// The share of a weight's bend that others have to leave for it to have one of its own.
const LEAST_BEND: f64 = 1e-12;

/// The chance that a logarithm of odds stands for.
pub(crate) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// log(1 + e^x), without overflow.
pub(crate) fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// The loss at some weights, and how it goes on from there.
pub(crate) struct Curve {
    loss: f64,
    slope: Vec<f64>, // (weights)
    bend: Vec<f64>,  // (weights, weights), the lower triangle
}

impl Curve {
    /// The loss of nothing.
    pub(crate) fn flat(n_weights: usize) -> Self {
        Self { loss: 0.0, slope: vec![0.0; n_weights], bend: vec![0.0; n_weights * n_weights] }
    }

    /// Adds what a case costs that has these odds, as a logarithm, and in them `values` times the weights.
    pub(crate) fn add_case(&mut self, odds: f64, values: &[f64], is_true: bool, weight: f64) {
        let chance = sigmoid(odds);
        self.loss += weight * softplus(if is_true { -odds } else { odds });
        let error = weight * (chance - f64::from(u8::from(is_true)));
        let bend = weight * chance * (1.0 - chance);
        for (row, &value) in values.iter().enumerate() {
            self.slope[row] += error * value;
            let bent = bend * value;
            for (sum, &other) in self.bend[row * values.len()..].iter_mut().zip(&values[..=row]) {
                *sum += bent * other;
            }
        }
    }

    /// Adds what keeps a weight near 0.
    pub(crate) fn add_ridge(&mut self, place: usize, weight: f64, strength: f64) {
        self.loss += 0.5 * strength * weight * weight;
        self.slope[place] += strength * weight;
        self.bend[place * self.slope.len() + place] += strength;
    }

    /// Adds what other cases cost.
    pub(crate) fn add(&mut self, other: &Self) {
        self.loss += other.loss;
        self.slope.iter_mut().zip(&other.slope).for_each(|(sum, part)| *sum += part);
        self.bend.iter_mut().zip(&other.bend).for_each(|(sum, part)| *sum += part);
    }

    /// What to take from the weights to come to the lowest point, were the loss a parabola: by the
    /// Cholesky factor of its bend. None where rounding has left no bend to divide by.
    fn newton_step(&self) -> Option<Vec<f64>> {
        let n = self.slope.len();
        let mut factor = self.bend.clone();
        for row in 0..n {
            for column in 0..=row {
                let known: f64 =
                    (0..column).map(|at| factor[row * n + at] * factor[column * n + at]).sum();
                let left = factor[row * n + column] - known;
                let enough = LEAST_BEND * factor[row * n + row].abs();
                factor[row * n + column] = match row == column {
                    true if left > enough => left.sqrt(),
                    true => return None,
                    false => left / factor[column * n + column],
                };
            }
        }
        let mut step = self.slope.clone();
        for row in 0..n {
            let known: f64 = (0..row).map(|at| factor[row * n + at] * step[at]).sum();
            step[row] = (step[row] - known) / factor[row * n + row];
        }
        for row in (0..n).rev() {
            let known: f64 = (row + 1..n).map(|at| factor[at * n + row] * step[at]).sum();
            step[row] = (step[row] - known) / factor[row * n + row];
        }
        Some(step)
    }
}

/// The weights at which the loss is least, on the way down from `at`.
pub(crate) fn lowest(mut at: Vec<f64>, curve_at: impl Fn(&[f64]) -> Curve) -> Vec<f64> {
    let mut here = curve_at(&at);
    for _ in 0..STEPS {
        let Some(mut step) = here.newton_step() else { break };
        // The loss is convex, so that a step which makes it higher is only too long.
        let next = (0..HALVINGS).find_map(|_| {
            let there: Vec<f64> = at.iter().zip(&step).map(|(at, step)| at - step).collect();
            let curve = curve_at(&there);
            step.iter_mut().for_each(|step| *step *= 0.5);
            (curve.loss < here.loss).then_some((there, curve))
        });
        let Some((there, curve)) = next else { break };
        let is_done = here.loss - curve.loss < ENOUGH * here.loss;
        (at, here) = (there, curve);
        if is_done {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases of a value and a constant, of which exactly the share is true that the weights say.
    fn curve_of(made_with: [f64; 2], at: &[f64]) -> Curve {
        let mut curve = Curve::flat(2);
        for value in (-20..=20).map(|value| f64::from(value) / 10.0) {
            let odds = |weights: &[f64]| weights[0] * value + weights[1];
            let chance = sigmoid(odds(&made_with));
            curve.add_case(odds(at), &[value, 1.0], true, chance);
            curve.add_case(odds(at), &[value, 1.0], false, 1.0 - chance);
        }
        curve
    }

    #[test]
    fn the_weights_that_cases_were_made_with_are_found_from_near_and_from_far() {
        let made_with = [3.0, -1.5];
        for start in [[0.0, 0.0], [2.9, -1.4], [-9.0, 8.0]] {
            let found = lowest(start.to_vec(), |at| curve_of(made_with, at));
            for (found, made) in found.iter().zip(made_with) {
                assert!((found - made).abs() < 1e-3, "{found} for {made} from {start:?}");
            }
        }
    }

    #[test]
    fn slope_and_bend_are_those_of_the_loss() {
        let (made_with, at, by) = ([1.0, 0.5], [0.3, -0.7], 1e-5);
        let curve = |first: f64, second: f64| curve_of(made_with, &[at[0] + first, at[1] + second]);
        let here = curve(0.0, 0.0);
        for (place, (up, down)) in
            [(curve(by, 0.0), curve(-by, 0.0)), (curve(0.0, by), curve(0.0, -by))]
                .iter()
                .enumerate()
        {
            let slope = (up.loss - down.loss) / (2.0 * by);
            assert!((slope - here.slope[place]).abs() < 1e-6, "{slope} {}", here.slope[place]);
            // The last row of the bend: how the slope by the second weight changes.
            let bend = (up.slope[1] - down.slope[1]) / (2.0 * by);
            assert!((bend - here.bend[2 + place]).abs() < 1e-6, "{bend} {}", here.bend[2 + place]);
        }
    }

    #[test]
    fn where_two_weights_say_the_same_they_stay() {
        let curve_at = |at: &[f64]| {
            let mut curve = Curve::flat(2);
            for (value, is_true) in [(1.0, true), (2.0, false), (-1.0, true), (0.5, false)] {
                curve.add_case((at[0] + at[1]) * value, &[value, value], is_true, 1.0);
            }
            curve
        };
        assert_eq!(lowest(vec![0.25, 0.5], curve_at), [0.25, 0.5]);
    }
}
