//! Linear layers whose weights are packed once, for answering.

use std::array::from_fn;
use std::ops::Range;
use std::sync::Arc;

use half::f16;

use crate::encoder::Precision;
use crate::kernels::Level;
use crate::kernels::panel::{self, Group, Halves, Pairs, Product, Singles, pair, round_to_pairs};
use crate::kernels::target::GROUP;

use crate::memory;

pub(crate) use crate::kernels::panel::Epilogue;

/// The tiles of rows up to which threads share a product. Whoever has more gives each thread texts of
/// its own.
const FEW_TILES: usize = 8;

/// The multiplications that are worth asking another thread for help: some twenty microseconds' work.
const WORTH_SHARING: usize = 1 << 20;

/// The weight (outputs, inputs) and the bias of a linear layer, packed for products with few rows or
/// many. Of few rows, the threads of the pool take tiles each, so that one text is answered sooner.
pub(crate) struct PackedLinear {
    level: Level,
    inputs: usize,
    outputs: usize,
    panels: Panels,
    range: Range<usize>, // (panels, inputs or pairs of them, groups of the level), zero where there is no output
    bias: Vec<f32>,      // (panels × outputs of a panel), zero where there is no output
}

/// The panels of all layers that were packed together.
#[derive(Clone)]
enum Panels {
    F32(Arc<Vec<Singles>>),
    F16(Arc<Vec<Halves>>),
    Bf16(Arc<Vec<Pairs>>),
}

impl PackedLinear {
    /// Packs weights (outputs, inputs) with their biases (outputs), in the order they will be used and
    /// into one buffer: products with few rows are as fast as weights come from memory, and a long
    /// stretch of it comes fastest. In f16, weights beyond its range become the largest it has.
    pub(crate) fn pack(
        level: Level,
        layers: &[(&[f32], &[f32])],
        precision: Precision,
    ) -> Vec<Self> {
        let groups = panel::groups(level);
        let (panels, ranges) = match precision {
            Precision::F32 => {
                let (packed, ranges) = pack(layers, groups, |[group]| Singles(group));
                (Panels::F32(Arc::new(packed)), ranges)
            }
            Precision::F16 => {
                let (min, max) = (f16::MIN.to_f32(), f16::MAX.to_f32());
                let half = |value: f32| f16::from_f32(value.clamp(min, max)).to_bits();
                let (packed, ranges) = pack(layers, groups, |[group]| Halves(group.map(half)));
                (Panels::F16(Arc::new(packed)), ranges)
            }
            Precision::Bf16 => {
                let pairs =
                    |[low, high]: [[f32; GROUP]; 2]| Pairs(from_fn(|j| pair(low[j], high[j])));
                let (packed, ranges) = pack(layers, groups, pairs);
                (Panels::Bf16(Arc::new(packed)), ranges)
            }
        };
        let layer = |((weight, bias), range): (&(&[f32], &[f32]), Range<usize>)| {
            let outputs = bias.len();
            let mut padded = bias.to_vec();
            padded.resize(outputs.next_multiple_of(groups * GROUP), 0.0);
            let inputs = weight.len() / outputs.max(1);
            Self { level, inputs, outputs, panels: panels.clone(), range, bias: padded }
        };
        layers.iter().zip(ranges).map(layer).collect()
    }

    /// The numbers that [`PackedLinear::forward`] wants room for, a row.
    pub(crate) fn rounded_len(&self) -> usize {
        match self.panels {
            Panels::F32(_) | Panels::F16(_) => 0,
            Panels::Bf16(_) => self.inputs.div_ceil(2),
        }
    }

    /// `x Wᵀ + b` and what the epilogue makes of it. `y` is only read for a residual. Nothing is
    /// allocated: rows that have to be rounded are rounded in `rounded`.
    pub(crate) fn forward(
        &self,
        x: &[f32], // (rows, inputs)
        rows: usize,
        epilogue: Epilogue,
        rounded: &mut [u32], // (rows, rounded len)
        y: &mut [f32],       // (rows, outputs)
    ) {
        match &self.panels {
            Panels::F32(panels) => self.share(panels, x, rows, epilogue, y),
            Panels::F16(panels) => self.share(panels, x, rows, epilogue, y),
            Panels::Bf16(panels) => {
                let rounded = &mut rounded[..rows * self.rounded_len()];
                round_to_pairs(self.level, x, self.inputs, rounded);
                self.share(panels, rounded, rows, epilogue, y);
            }
        }
    }

    /// The product on as many threads as it is worth.
    fn share<G: Group + Sync>(
        &self,
        panels: &[G],
        x: &[G::Input], // (rows, steps)
        rows: usize,
        epilogue: Epilogue,
        y: &mut [f32], // (rows, outputs)
    ) {
        let Self { level, inputs, outputs, ref bias, .. } = *self;
        let steps = x.len() / rows.max(1);
        let n_tiles = rows.div_ceil(panel::rows(level));
        let few = (2..=FEW_TILES).contains(&n_tiles) && rows * inputs * outputs >= WORTH_SHARING;
        if few && rayon::current_num_threads() > 1 {
            // Cut between two tiles, so that every sum is the one that it would be on one thread.
            let first = rows * (n_tiles / 2) / n_tiles;
            let (x, others) = x.split_at(first * steps);
            let (y, their) = y.split_at_mut(first * outputs);
            rayon::join(
                || self.share(panels, x, first, epilogue, y),
                || self.share(panels, others, rows - first, epilogue, their),
            );
            return;
        }
        let panels = &panels[self.range.clone()];
        Product { panels, bias, steps, outputs, rows, epilogue }.run(level, x, y);
    }
}

/// The panels of several weights, one after the other, and where each lies; a group has the weights of
/// `N` inputs, zero where there is none.
fn pack<G, const N: usize>(
    layers: &[(&[f32], &[f32])], // (outputs, inputs) and (outputs)
    groups: usize,
    group: impl Fn([[f32; GROUP]; N]) -> G,
) -> (Vec<G>, Vec<Range<usize>>) {
    let sizes = layers.iter().map(|(weight, bias)| {
        let (outputs, inputs) = (bias.len(), weight.len() / bias.len().max(1));
        assert_eq!(weight.len(), outputs * inputs, "a row of weights for every output");
        outputs.div_ceil(groups * GROUP) * inputs.div_ceil(N) * groups
    });
    let mut packed = memory::with_capacity(sizes.sum());
    let mut ranges = Vec::with_capacity(layers.len());
    for (weight, bias) in layers {
        let start = packed.len();
        let inputs = weight.len() / bias.len().max(1);
        for rows in weight.chunks((inputs * groups * GROUP).max(1)) {
            let weight = |output: usize, k: usize| match rows.get(output * inputs + k) {
                Some(&weight) if k < inputs => weight,
                _ => 0.0,
            };
            for step in 0..inputs.div_ceil(N) {
                for g in 0..groups {
                    let of_input = |n| from_fn(|j| weight(g * GROUP + j, step * N + n));
                    packed.push(group(from_fn(of_input)));
                }
            }
        }
        ranges.push(start..packed.len());
    }
    (packed, ranges)
}

#[cfg(test)]
mod tests {
    use half::bf16;
    use proptest::prelude::*;
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    const PRECISIONS: [Precision; 3] = [Precision::F32, Precision::F16, Precision::Bf16];

    fn forward(layer: &PackedLinear, x: &[f32], rows: usize, epilogue: Epilogue, y: &mut [f32]) {
        let mut rounded = vec![u32::MAX; rows * layer.rounded_len()];
        layer.forward(x, rows, epilogue, &mut rounded, y);
    }

    fn one(level: Level, weight: &[f32], bias: &[f32], precision: Precision) -> PackedLinear {
        // It lies behind another one, which must not matter.
        PackedLinear::pack(level, &[(&[1.0; 6], &[0.5; 3]), (weight, bias)], precision).remove(1)
    }

    /// The product in f64, with the weight as it is stored and rows as they are rounded.
    fn expected(
        weight: &[f32], // (outputs, inputs)
        bias: &[f32],
        precision: Precision,
        x: &[f32], // (rows, inputs)
        rows: usize,
        epilogue: Epilogue,
        y: &[f32], // (rows, outputs)
    ) -> Vec<f64> {
        let outputs = bias.len();
        let inputs = weight.len() / outputs;
        let mut expected = Vec::new();
        for r in 0..rows {
            for o in 0..outputs {
                let mut sum = f64::from(bias[o]);
                for k in 0..inputs {
                    let (weight, x) = (weight[o * inputs + k], x[r * inputs + k]);
                    sum += match precision {
                        Precision::F32 => f64::from(weight) * f64::from(x),
                        Precision::F16 => f16::from_f32(weight).to_f64() * f64::from(x),
                        Precision::Bf16 => {
                            bf16::from_f32(weight).to_f64() * bf16::from_f32(x).to_f64()
                        }
                    };
                }
                expected.push(match epilogue {
                    Epilogue::Bias => sum,
                    Epilogue::BiasGelu => sum * normal_cdf(sum),
                    Epilogue::BiasAdd => sum + f64::from(y[r * outputs + o]),
                });
            }
        }
        expected
    }

    /// By the series of the integral of the density, term for term.
    fn normal_cdf(v: f64) -> f64 {
        if v.abs() > 9.0 {
            return if v > 0.0 { 1.0 } else { 0.0 };
        }
        let mut term = v;
        let mut sum = v;
        for i in 1..200 {
            term *= v * v / f64::from(2 * i + 1);
            sum += term;
        }
        0.5 + sum * (-v * v / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
    }

    fn check(rows: usize, inputs: usize, outputs: usize, seed: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut random =
            |n: usize| -> Vec<f32> { (0..n).map(|_| rng.random_range(-1.0..1.0)).collect() };
        let (weight, bias) = (random(outputs * inputs), random(outputs));
        let (x, residual) = (random(rows * inputs), random(rows * outputs));
        for &level in Level::available() {
            for precision in PRECISIONS {
                let layer = one(level, &weight, &bias, precision);
                for epilogue in [Epilogue::Bias, Epilogue::BiasGelu, Epilogue::BiasAdd] {
                    let mut y = residual.clone();
                    forward(&layer, &x, rows, epilogue, &mut y);
                    let expected =
                        expected(&weight, &bias, precision, &x, rows, epilogue, &residual);
                    let allowed = 1e-6 * (inputs as f64).sqrt().max(1.0);
                    for (i, (&y, expected)) in y.iter().zip(expected).enumerate() {
                        let error = (f64::from(y) - expected).abs();
                        assert!(
                            error <= allowed * expected.abs().max(1.0),
                            "{level:?} {precision:?} {epilogue:?} {rows}x{inputs}x{outputs} \
                             at {i}: {y} for {expected}"
                        );
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn products_of_all_sizes_are_right(
            rows in 0usize..14,
            inputs in 1usize..70,
            outputs in 1usize..40,
            seed: u64,
        ) {
            check(rows, inputs, outputs, seed);
        }
    }

    #[test]
    fn every_count_of_rows_and_every_remainder_of_outputs_is_right() {
        for rows in 1..14 {
            check(rows, 19, 33, rows as u64);
        }
        for outputs in 1..66 {
            check(7, 5, outputs, outputs as u64);
        }
    }

    #[test]
    fn several_slabs_and_row_blocks_are_right() {
        check(25, 1030, 33, 1);
        check(61, 1536, 18, 2);
    }

    #[test]
    fn threads_that_share_a_product_change_no_bit() {
        let (inputs, outputs) = (384, 420);
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut random =
            |n: usize| -> Vec<f32> { (0..n).map(|_| rng.random_range(-1.0..1.0)).collect() };
        let (weight, bias) = (random(outputs * inputs), random(outputs));
        let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        let (alone, three) = (pool(1), pool(3));
        for &level in Level::available() {
            for (rows, precision) in
                [1, 7, 10, 13, 32, 50].into_iter().flat_map(|rows| PRECISIONS.map(|p| (rows, p)))
            {
                let layer = one(level, &weight, &bias, precision);
                let (x, residual) = (random(rows * inputs), random(rows * outputs));
                let run = |pool: &rayon::ThreadPool| {
                    let mut y = residual.clone();
                    pool.install(|| forward(&layer, &x, rows, Epilogue::BiasAdd, &mut y));
                    y
                };
                assert_eq!(run(&alone), run(&three), "{level:?} {rows}");
            }
        }
    }

    #[test]
    fn without_inputs_there_is_the_bias() {
        for &level in Level::available() {
            let layer = one(level, &[], &[1.0, 2.0, 3.0], Precision::F32);
            let mut y = [9.0; 6];
            forward(&layer, &[], 2, Epilogue::Bias, &mut y);
            assert_eq!(y, [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
        }
    }

    #[test]
    fn gelu_is_exact_enough_everywhere() {
        // A layer of one input and weight 1 shows its epilogue.
        let x: Vec<f32> = (-160_000..=160_000).map(|i| i as f32 / 20_000.0).collect();
        for &level in Level::available() {
            let layer = one(level, &[1.0], &[0.0], Precision::F32);
            let mut y = vec![0.0; x.len()];
            forward(&layer, &x, x.len(), Epilogue::BiasGelu, &mut y);
            for (&x, &y) in x.iter().zip(&y) {
                let exact = f64::from(x) * normal_cdf(f64::from(x));
                let error = (f64::from(y) - exact).abs();
                assert!(error <= 1e-7 * f64::from(x.abs()).max(1.0), "{level:?} {x}: {y}");
            }
            let far = [-1e20, -1e9, -40.0, -12.0, 12.0, 40.0, 1e9, 1e20];
            let mut y = [0.0; 8];
            forward(&layer, &far, 8, Epilogue::BiasGelu, &mut y);
            for (x, y) in far.into_iter().zip(y) {
                let expected = x.max(0.0);
                assert!((y - expected).abs() <= 1e-7, "{level:?} {x}: {y}");
            }
        }
    }

    #[test]
    fn all_finite_halves_are_read_as_they_are() {
        // Zero, subnormal and extreme values of both signs: every finite f16 once, as a weight.
        let weight: Vec<f32> =
            (0..=u16::MAX).map(f16::from_bits).filter(|h| h.is_finite()).map(f16::to_f32).collect();
        let bias = vec![0.0; weight.len()];
        for &level in Level::available() {
            let layer = one(level, &weight, &bias, Precision::F16);
            let mut y = vec![9.0; weight.len()];
            forward(&layer, &[1.0], 1, Epilogue::Bias, &mut y);
            assert_eq!(y, weight, "{level:?}");
        }
    }

    #[test]
    fn weights_beyond_f16_become_its_largest() {
        for &level in Level::available() {
            let layer = one(level, &[1e9, -1e9], &[0.0; 2], Precision::F16);
            let mut y = [0.0; 2];
            forward(&layer, &[1.0], 1, Epilogue::Bias, &mut y);
            assert_eq!(y, [65504.0, -65504.0]);
        }
    }
}
