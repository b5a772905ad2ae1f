//! Scores to probabilities, in place, row by row: what a loss over very many labels spends its time on
//! besides products.

use crate::kernels::math::{exp, sum};
use crate::kernels::{Level, kernel};

/// Turns every score of some rows into `factor / (1 + exp(-(scale · score + bias)))` and adds each
/// column to its sum.
///
/// # Panics
/// If rows are not as long as there are biases and sums.
pub fn sigmoids(
    scale: f32,
    factor: f32,
    biases: &[f32],     // (columns)
    scores: &mut [f32], // (rows, columns)
    sums: &mut [f32],   // (columns)
) {
    assert_eq!(biases.len(), sums.len(), "a sum for every bias");
    assert!(scores.len().is_multiple_of(biases.len().max(1)), "a bias for every score");
    sigmoid_rows(Level::best(), scale, factor, biases, scores, sums);
}

kernel! {
    fn sigmoid_rows<A>(
        scale: f32,
        factor: f32,
        biases: &[f32],
        scores: &mut [f32],
        sums: &mut [f32],
    ) {
        for row in scores.chunks_exact_mut(biases.len().max(1)) {
            for ((score, &bias), sum) in row.iter_mut().zip(biases).zip(&mut *sums) {
                let power = exp::<A>(-A::mul_add(scale, *score, bias));
                *score = factor / (1.0 + power);
                *sum += *score;
            }
        }
    }
}

/// Turns the scores of one row into `scale · score + bias` and returns the highest.
///
/// # Panics
/// If there is not one bias for every score.
pub fn logits(scale: f32, biases: &[f32], scores: &mut [f32]) -> f32 {
    assert_eq!(biases.len(), scores.len(), "a bias for every score");
    logit_row(Level::best(), scale, biases, scores)
}

kernel! {
    fn logit_row<A>(scale: f32, biases: &[f32], scores: &mut [f32]) -> f32 {
        let mut highest = f32::NEG_INFINITY;
        for (score, &bias) in scores.iter_mut().zip(biases) {
            *score = A::mul_add(scale, *score, bias);
            highest = if *score > highest { *score } else { highest };
        }
        highest
    }
}

/// Turns numbers into `exp(number - shift)`, which is next to nothing for minus infinity, and returns
/// their sum.
pub fn powers(shift: f32, values: &mut [f32]) -> f32 {
    power_row(Level::best(), shift, values)
}

kernel! {
    fn power_row<A>(shift: f32, values: &mut [f32]) -> f32 {
        for value in values.iter_mut() {
            *value = exp::<A>(*value - shift);
        }
        sum(values.len(), |i| values[i])
    }
}

/// Adds `factor` times a row to another.
///
/// # Panics
/// If they have different lengths.
pub fn add_scaled(factor: f32, row: &[f32], sum: &mut [f32]) {
    assert_eq!(row.len(), sum.len(), "rows of one length");
    add_scaled_row(Level::best(), factor, row, sum);
}

kernel! {
    fn add_scaled_row<A>(factor: f32, row: &[f32], sum: &mut [f32]) {
        for (sum, &value) in sum.iter_mut().zip(row) {
            *sum = A::mul_add(factor, value, *sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradcheck::noise;

    #[test]
    fn probabilities_and_their_sums_are_those_of_plain_loops_at_every_level() {
        for columns in [1, 7, 16, 45] {
            let (scores, biases) = (noise(1, 5 * columns), noise(2, columns));
            let exact: Vec<f64> = scores
                .iter()
                .enumerate()
                .map(|(at, &score)| {
                    let logit = 20.0 * f64::from(score) + f64::from(biases[at % columns]);
                    0.25 / (1.0 + (-logit).exp())
                })
                .collect();
            for &level in Level::available() {
                let (mut found, mut sums) = (scores.clone(), vec![0.0; columns]);
                sigmoid_rows(level, 20.0, 0.25, &biases, &mut found, &mut sums);
                for (found, exact) in found.iter().zip(&exact) {
                    assert!((f64::from(*found) - exact).abs() < 1e-6, "{found} and {exact}");
                }
                for (column, &sum) in sums.iter().enumerate() {
                    let exact: f64 = exact.iter().skip(column).step_by(columns).sum();
                    assert!((f64::from(sum) - exact).abs() < 1e-5);
                }
            }
        }
    }

    #[test]
    fn powers_are_those_of_plain_loops_at_every_level() {
        let (scores, biases) = (noise(1, 45), noise(2, 45));
        for &level in Level::available() {
            let mut found = scores.clone();
            let highest = logit_row(level, 3.0, &biases, &mut found);
            let exact: Vec<f32> = scores.iter().zip(&biases).map(|(s, b)| 3.0 * s + b).collect();
            assert!((highest - exact.iter().copied().fold(f32::MIN, f32::max)).abs() < 1e-6);
            found[3] = f32::NEG_INFINITY;
            let total = power_row(level, highest, &mut found);
            assert!(found[3] < 1e-30);
            let mut sum = 0.0;
            for at in (0..45).filter(|&at| at != 3) {
                let exact = f64::from(exact[at] - highest).exp();
                assert!((f64::from(found[at]) - exact).abs() < 1e-6);
                sum += exact;
            }
            assert!((f64::from(total) - sum).abs() < 1e-4);
        }
    }

    #[test]
    fn rows_add_up_at_every_level() {
        for &level in Level::available() {
            let mut sum = vec![1.0; 21];
            add_scaled_row(level, 2.0, &[3.0; 21], &mut sum);
            assert_eq!(sum, [7.0; 21]);
        }
    }
}
