//! One step of Adam over plain slices, with moments of 32 or of 16 bits.
//!
//! [`AdamW`](crate::AdamW) walks the named tensors of an encoder; this is for those who keep their
//! numbers themselves and know which of them a step moves.

use crate::kernels::{Level, kernel};

/// The numbers of one step: no weight decays, no gradient is cut.
#[derive(Clone, Copy, Debug)]
pub struct AdamStep {
    beta1: f32,
    beta2: f32,
    rate: f32,
    inverse_deviation: f32,
    epsilon: f32,
    noise: u32,
    level: Level,
}

impl AdamStep {
    /// A step, counted from 1, with a learning rate. Like `torch.optim.SparseAdam`, it corrects the
    /// moments of all numbers by the steps of the run, also of those that few steps moved.
    pub fn new(learning_rate: f32, step: u64) -> Self {
        const BETAS: [f32; 2] = [0.9, 0.999];
        let correction = |beta: f32| 1.0 - f64::from(beta).powi(step.min(1 << 30) as i32);
        Self {
            beta1: BETAS[0],
            beta2: BETAS[1],
            rate: (f64::from(learning_rate) / correction(BETAS[0])) as f32,
            inverse_deviation: (1.0 / correction(BETAS[1]).sqrt()) as f32,
            epsilon: 1e-8,
            noise: (step as u32).wrapping_mul(0x9E37_79B9),
            level: Level::best(),
        }
    }

    /// Moves numbers against their gradient.
    ///
    /// # Panics
    /// If the slices have different lengths.
    pub fn apply(
        &self,
        values: &mut [f32],
        gradient: &[f32],
        first: &mut [f32],
        second: &mut [f32],
    ) {
        let n = values.len();
        assert!(gradient.len() == n && first.len() == n && second.len() == n, "slices of a length");
        adam(self.level, *self, values, gradient, first, second);
    }

    /// The same with moments as the upper halves of f32 (bf16). A second moment grows by a thousandth
    /// a step, which 8 bits of precision would never see; so moments are rounded up as often as they
    /// lie close to the upper number, and their means are right. `place` tells apart the numbers of
    /// several calls.
    ///
    /// # Panics
    /// If the slices have different lengths.
    pub fn apply_half(
        &self,
        place: u32,
        values: &mut [f32],
        gradient: &[f32],
        first: &mut [u16],
        second: &mut [u16],
    ) {
        let n = values.len();
        assert!(gradient.len() == n && first.len() == n && second.len() == n, "slices of a length");
        let key = self.noise ^ place.wrapping_mul(0x85EB_CA6B);
        adam_half(self.level, *self, key, values, gradient, first, second);
    }
}

kernel! {
    /// The step of one number, for many.
    fn adam<A>(
        step: AdamStep,
        values: &mut [f32],
        gradient: &[f32],
        first: &mut [f32],
        second: &mut [f32],
    ) {
        for (((w, &g), m), v) in values.iter_mut().zip(gradient).zip(first).zip(second) {
            *m = A::mul_add(*m, step.beta1, g * (1.0 - step.beta1));
            *v = A::mul_add(*v, step.beta2, g * g * (1.0 - step.beta2));
            let deviation = A::mul_add(v.sqrt(), step.inverse_deviation, step.epsilon);
            *w -= step.rate * *m / deviation;
        }
    }
}

kernel! {
    /// The same with moments of 16 bits.
    fn adam_half<A>(
        step: AdamStep,
        key: u32,
        values: &mut [f32],
        gradient: &[f32],
        first: &mut [u16],
        second: &mut [u16],
    ) {
        let numbers = values.iter_mut().zip(gradient).zip(first).zip(second);
        for (at, (((w, &g), first), second)) in numbers.enumerate() {
            let m = A::mul_add(wide(*first), step.beta1, g * (1.0 - step.beta1));
            let v = A::mul_add(wide(*second), step.beta2, g * g * (1.0 - step.beta2));
            let deviation = A::mul_add(v.sqrt(), step.inverse_deviation, step.epsilon);
            *w -= step.rate * m / deviation;
            let noise = spread((at as u32).wrapping_mul(0x9E37_79B9) ^ key);
            *first = narrow(m, noise & 0xFFFF);
            *second = narrow(v, noise >> 16);
        }
    }
}

/// The number whose upper half this is.
#[inline(always)]
fn wide(half: u16) -> f32 {
    f32::from_bits(u32::from(half) << 16)
}

/// The upper half of a number, one larger as often as the lower half is larger than the noise.
#[inline(always)]
fn narrow(value: f32, noise: u32) -> u16 {
    (value.to_bits().wrapping_add(noise) >> 16) as u16
}

/// Spreads 32 bits (the finaliser of MurmurHash3).
#[inline(always)]
fn spread(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x85EB_CA6B);
    x ^= x >> 13;
    x = x.wrapping_mul(0xC2B2_AE35);
    x ^ (x >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradcheck::noise;

    #[test]
    fn steps_are_those_of_the_formula_at_every_level() {
        let n = 37;
        for &level in Level::available() {
            let (mut values, mut first, mut second) = (noise(1, n), vec![0.0; n], vec![0.0; n]);
            let mut exact: Vec<[f64; 3]> =
                values.iter().map(|&value| [f64::from(value), 0.0, 0.0]).collect();
            for step in 1..=5 {
                let gradient = noise(10 + step, n);
                let adam = AdamStep { level, ..AdamStep::new(0.01, step) };
                adam.apply(&mut values, &gradient, &mut first, &mut second);
                let (one, two) = (1.0 - 0.9f64.powi(step as i32), 1.0 - 0.999f64.powi(step as i32));
                for ([w, m, v], &g) in exact.iter_mut().zip(&gradient) {
                    let g = f64::from(g);
                    *m = 0.9 * *m + 0.1 * g;
                    *v = 0.999 * *v + 0.001 * g * g;
                    *w -= 0.01 * (*m / one) / ((*v / two).sqrt() + 1e-8);
                }
            }
            for (&found, exact) in values.iter().zip(&exact) {
                assert!((f64::from(found) - exact[0]).abs() < 1e-5, "{found} and {}", exact[0]);
            }
        }
    }

    #[test]
    fn moments_of_16_bits_have_the_right_means() {
        // Ten thousand numbers with one gradient: their moments scatter around that of 32 bits.
        let n = 10_000;
        for &level in Level::available() {
            let (mut values, mut first, mut second) = (vec![0.0; n], vec![0u16; n], vec![0u16; n]);
            let mut exact = (vec![0.0], vec![0.0], vec![0.0]);
            for step in 1..=300 {
                let gradient = 1.0 + (step as f32).sin();
                let adam = AdamStep { level, ..AdamStep::new(0.001, step) };
                adam.apply_half(7, &mut values, &vec![gradient; n], &mut first, &mut second);
                adam.apply(&mut exact.0, &[gradient], &mut exact.1, &mut exact.2);
            }
            let mean = |halves: &[u16]| {
                halves.iter().map(|&half| f64::from(wide(half))).sum::<f64>() / n as f64
            };
            assert!((mean(&first) / f64::from(exact.1[0]) - 1.0).abs() < 1e-3);
            assert!((mean(&second) / f64::from(exact.2[0]) - 1.0).abs() < 1e-3);
            let mean = values.iter().map(|&value| f64::from(value)).sum::<f64>() / n as f64;
            assert!((mean / f64::from(exact.0[0]) - 1.0).abs() < 1e-3);
        }
    }

    #[test]
    fn levels_agree_to_the_bit_on_16_bits_but_for_rounding_once_or_twice() {
        let n = 50;
        let gradient = noise(3, n);
        let run = |level| {
            let (mut values, mut first, mut second) = (noise(1, n), vec![0u16; n], vec![0u16; n]);
            let adam = AdamStep { level, ..AdamStep::new(0.01, 1) };
            adam.apply_half(1, &mut values, &gradient, &mut first, &mut second);
            values
        };
        for &level in Level::available() {
            for (a, b) in run(level).iter().zip(run(Level::Plain)) {
                assert!((a - b).abs() < 1e-6);
            }
        }
    }
}
