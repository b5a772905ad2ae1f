//! Elementary functions and sums as branch-free arithmetic on lanes.

use super::Arithmetic;

/// The lanes of a sum: enough to fill two vectors of the widest kind, and the same at every level,
/// so that sums are taken in the same order everywhere.
const LANES: usize = 16;

/// e^x, within 2 units in the last place; 0 far below and the largest power far above the range of
/// f32.
///
/// x = n ln 2 + f with |f| at most ln 2 / 2; e^f is a polynomial and 2^n goes straight into the
/// exponent bits.
#[inline(always)]
pub(crate) fn exp<A: Arithmetic>(x: f32) -> f32 {
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    // Adding 1.5 * 2^23 leaves the nearest whole number in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.3, 88.3);
    let rounded = A::mul_add(x, std::f32::consts::LOG2_E, ROUND);
    let n = rounded - ROUND;
    let f = A::mul_add(n, -LN_2_HIGH, x);
    let f = A::mul_add(n, -LN_2_LOW, f);
    let mut p = 1.987_569_1e-4;
    p = A::mul_add(p, f, 1.398_199_9e-3);
    p = A::mul_add(p, f, 8.333_452e-3);
    p = A::mul_add(p, f, 4.166_579_6e-2);
    p = A::mul_add(p, f, 1.666_666_5e-1);
    p = A::mul_add(p, f, 0.5);
    let power = A::mul_add(p, f * f, f) + 1.0;
    f32::from_bits(power.to_bits().wrapping_add(rounded.to_bits() << 23))
}

/// The standard normal distribution Φ(x) and its density φ(x).
///
/// Φ by formula 7.1.26 of Abramowitz and Stegun, absolute error below 2e-7. The exponential it needs
/// is the density, so both cost one.
#[inline(always)]
pub(crate) fn normal<A: Arithmetic>(x: f32) -> (f32, f32) {
    const INVERSE_SQRT_TAU: f32 = 0.398_942_3;
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / A::mul_add(z, 0.327_591_1, 1.0);
    let mut p = 1.061_405_4;
    p = A::mul_add(p, t, -1.453_152);
    p = A::mul_add(p, t, 1.421_413_7);
    p = A::mul_add(p, t, -0.284_496_74);
    p = A::mul_add(p, t, 0.254_829_6);
    let e = exp::<A>(-z * z);
    let tail = 0.5 * p * t * e; // 1 - Φ(|x|)
    let cumulative = if x < 0.0 { tail } else { 1.0 - tail };
    (cumulative, e * INVERSE_SQRT_TAU)
}

/// `v Φ(v)`, where Φ is the distribution function of the standard normal distribution, as
/// `max(v, 0) - |v| Φ(-|v|)`. The error of Φ is below 1e-7, which is 2e-7 for the error function.
///
/// For answering: it takes no division. Training takes [`normal`], whose density the way back needs.
#[inline(always)]
pub(crate) fn gelu<A: Arithmetic>(v: f32) -> f32 {
    // The logarithm to base 2 of Φ(-a) for a >= 0 is -1 + a (LOG2[0] + a LOG2[1] + ...), fitted so
    // that the largest error of the power is smallest. It falls for all a.
    const LOG2: [f32; 8] = [
        -1.151_105_2,
        -4.592_082e-1,
        -5.249_618e-2,
        7.063_42e-3,
        -1.369_363_5e-4,
        -1.861_802_4e-4,
        3.937_769_4e-5,
        -2.834_912_7e-6,
    ];
    // 2^r = 1 + r (EXP2[0] + r EXP2[1] + ...) for |r| <= 1/2.
    const EXP2: [f32; 6] =
        [6.931_472e-1, 2.402_265e-1, 5.550_328e-2, 9.618_004e-3, 1.340_027e-3, 1.547_630_1e-4];
    const ROUND: f32 = 12_582_912.0; // 1.5 × 2^23: adding it leaves an integer in the low bits.

    // Polynomials are summed as trees, for a chain would have to wait for every step.
    let a = v.abs();
    let a2 = a * a;
    let low = A::mul_add(A::mul_add(LOG2[3], a, LOG2[2]), a2, A::mul_add(LOG2[1], a, LOG2[0]));
    let high = A::mul_add(A::mul_add(LOG2[7], a, LOG2[6]), a2, A::mul_add(LOG2[5], a, LOG2[4]));
    let log = A::mul_add(A::mul_add(high, a2 * a2, low), a, -1.0);
    let log = if log > -125.0 { log } else { -125.0 }; // The power stays a normal number.

    let rounded = log + ROUND;
    let r = log - (rounded - ROUND);
    let r2 = r * r;
    let low = A::mul_add(A::mul_add(EXP2[3], r, EXP2[2]), r2, A::mul_add(EXP2[1], r, EXP2[0]));
    let high = A::mul_add(EXP2[5], r, EXP2[4]);
    let power = A::mul_add(A::mul_add(high, r2 * r2, low), r, 1.0);
    let tail = f32::from_bits(power.to_bits().wrapping_add(rounded.to_bits() << 23));
    A::mul_add(-a, tail, if v > 0.0 { v } else { 0.0 })
}

/// The largest of values that are no NaN, in lanes. `values` are whole groups of lanes.
#[inline(always)]
pub(crate) fn largest(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for group in values.as_chunks::<LANES>().0 {
        for (most, &value) in lanes.iter_mut().zip(group) {
            *most = if value > *most { value } else { *most };
        }
    }
    let mut most = lanes[0];
    for value in lanes {
        most = if value > most { value } else { most };
    }
    most
}

/// The sum of `term(i)` over `0..n`, in lanes.
#[inline(always)]
pub(crate) fn sum(n: usize, term: impl Fn(usize) -> f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let whole = n - n % LANES;
    let mut start = 0;
    while start < whole {
        for (lane, total) in lanes.iter_mut().enumerate() {
            *total += term(start + lane);
        }
        start += LANES;
    }
    for i in whole..n {
        lanes[i - whole] += term(i);
    }
    // Halving keeps the order of additions the same whatever the width of the vectors.
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// The inner product of two rows.
#[inline(always)]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let n = a.len();
    let b = &b[..n];
    sum(n, |i| a[i] * b[i])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{Fused, Separate};

    #[test]
    fn exp_is_the_exponential() {
        for i in -8700..8800 {
            let x = i as f32 * 0.01;
            let exact = f64::from(x).exp();
            for found in [exp::<Fused>(x), exp::<Separate>(x)] {
                let error = (f64::from(found) - exact).abs() / exact;
                assert!(error < 3e-7, "exp({x}) = {found}, off by {error}");
            }
        }
        assert!(exp::<Fused>(-1e30) < 2e-38);
        assert!(exp::<Fused>(1e30).is_finite());
    }

    #[test]
    fn normal_is_the_distribution_and_its_density() {
        // Simpson's rule from 0 outwards gives Φ to far beyond f32.
        let density = |x: f64| (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let (mut exact, step) = (0.5, 0.01);
        for i in 0..800 {
            let x = f64::from(i) * step;
            for sign in [1.0, -1.0] {
                let (cumulative, found) = normal::<Fused>((sign * x) as f32);
                let expected = if sign > 0.0 { exact } else { 1.0 - exact };
                assert!((f64::from(cumulative) - expected).abs() < 2e-7, "Φ({x}) = {cumulative}");
                assert!((f64::from(found) - density(x)).abs() < 1e-7, "φ({x}) = {found}");
            }
            exact += step / 6.0 * (density(x) + 4.0 * density(x + step / 2.0) + density(x + step));
        }
    }

    #[test]
    fn sums_take_every_term_once() {
        for n in 0..70 {
            assert_eq!(sum(n, |i| i as f32), (n * n.saturating_sub(1) / 2) as f32);
        }
    }
}
