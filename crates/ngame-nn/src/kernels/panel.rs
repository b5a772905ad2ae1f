//! The product of rows with a packed weight.
//!
//! A weight of shape (outputs, inputs) is cut into panels of [`GROUP`] outputs, or of two such groups
//! side by side where registers are wide. A panel holds for every input the weights of its outputs,
//! one after the other, so that a product reads it from front to back. A tile is a few rows by one
//! panel; its sums stay in registers while the inputs go by.
//!
//! Weights in bf16 are of two inputs at once, and so are the rows that they are multiplied with: there are
//! instructions that multiply and add two such pairs as fast as others do one number.
//!
//! The tile is written once, like the other kernels, but over [`Target`], which spells out vectors.

use std::ops::Range;

use super::math::gelu;
#[cfg(target_arch = "x86_64")]
use super::target::{Avx2, Avx512, Avx512Bf16};
use super::target::{GROUP, Plain, Target};
use super::{Level, kernel};

/// The steps that pass by before a tile gives up its registers, at most. All tiles of a row block
/// then read the same slab of a panel from the nearest cache, of which it takes a half: with slabs twice as
/// long, embedding took 10 % longer.
const SLAB: usize = 256;

/// The values of x in a row block, at most: they stay in the second cache while all panels pass by.
const BLOCK: usize = 64 * 1024;

/// The rows from which on a slab of narrow weights is widened once, and not by every tile, though it is
/// cheap.
const MANY_ROWS: usize = 48;

/// The tiles that share the work of fetching the next slab, at most.
const FETCHING_TILES: usize = 8;

/// The rows of a tile at most, at any level.
const MAX_ROWS: usize = 6;

/// The groups of outputs that a panel has at this level.
pub(crate) fn groups(level: Level) -> usize {
    match level {
        Level::Plain => Plain::GROUPS,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => Avx2::GROUPS,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => Avx512::GROUPS,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512Bf16 => Avx512Bf16::GROUPS,
    }
}

/// The rows of a tile at this level.
pub(crate) fn rows(level: Level) -> usize {
    match level {
        Level::Plain => Plain::ROWS,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => Avx2::ROWS,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => Avx512::ROWS,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512Bf16 => Avx512Bf16::ROWS,
    }
}

/// What happens to a product on its way to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Epilogue {
    /// `y = x Wᵀ + b`.
    Bias,
    /// `y = gelu(x Wᵀ + b)`, the one with the error function.
    BiasGelu,
    /// `y += x Wᵀ + b`: what was there before is the residual.
    BiasAdd,
}

/// The weights of one step of the inputs for a group of outputs.
pub(crate) trait Group: Copy {
    /// What a step of a row is: an input, or two as one.
    type Input: Copy + Send + Sync;
    /// The same weights, where reading them takes no conversion.
    type Widened: Group<Input = Self::Input>;
    /// Whether it does.
    const NARROW: bool;
    const ZERO: Self;

    fn read<T: Target>(&self) -> T::Wide;
    fn widen<T: Target>(&self) -> Self::Widened;
    fn mul_add<T: Target>(input: Self::Input, weights: T::Wide, sums: T::Wide) -> T::Wide;
}

/// A group in f32: one line of cache.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Singles(pub(crate) [f32; GROUP]);

impl Group for Singles {
    type Input = f32;
    type Widened = Self;
    const NARROW: bool = false;
    const ZERO: Self = Self([0.0; GROUP]);

    #[inline(always)]
    fn read<T: Target>(&self) -> T::Wide {
        T::load(&self.0)
    }

    #[inline(always)]
    fn widen<T: Target>(&self) -> Self {
        *self
    }

    #[inline(always)]
    fn mul_add<T: Target>(input: f32, weights: T::Wide, sums: T::Wide) -> T::Wide {
        T::mul_add(input, weights, sums)
    }
}

/// A group in f16, as bits: half a line of cache. There are no infinities and no NaN.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct Halves(pub(crate) [u16; GROUP]);

impl Group for Halves {
    type Input = f32;
    type Widened = Singles;
    const NARROW: bool = true;
    const ZERO: Self = Self([0; GROUP]);

    #[inline(always)]
    fn read<T: Target>(&self) -> T::Wide {
        T::widen(&self.0)
    }

    #[inline(always)]
    fn widen<T: Target>(&self) -> Singles {
        Singles(T::store(self.read::<T>()))
    }

    #[inline(always)]
    fn mul_add<T: Target>(input: f32, weights: T::Wide, sums: T::Wide) -> T::Wide {
        T::mul_add(input, weights, sums)
    }
}

/// A group in bf16 of two inputs, the first in the lower bits: one line of cache.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Pairs(pub(crate) [u32; GROUP]);

impl Group for Pairs {
    type Input = u32;
    type Widened = Self;
    const NARROW: bool = false;
    const ZERO: Self = Self([0; GROUP]);

    #[inline(always)]
    fn read<T: Target>(&self) -> T::Wide {
        T::load(bytemuck::cast_ref(&self.0))
    }

    #[inline(always)]
    fn widen<T: Target>(&self) -> Self {
        *self
    }

    #[inline(always)]
    fn mul_add<T: Target>(input: u32, weights: T::Wide, sums: T::Wide) -> T::Wide {
        T::mul_add_pairs(input, weights, sums)
    }
}

/// Two numbers as bf16, the first in the lower bits, each the nearest there is. They are finite.
#[inline(always)]
pub(crate) fn pair(low: f32, high: f32) -> u32 {
    round(low) >> 16 | round(high) & 0xffff_0000
}

/// The bits of a number whose upper half is the nearest bf16, the even one of two.
#[inline(always)]
fn round(value: f32) -> u32 {
    let bits = value.to_bits();
    bits.wrapping_add(0x7fff + (bits >> 16 & 1))
}

kernel! {
    /// Rows of inputs as pairs; an odd last one has a zero beside it.
    pub(crate) fn round_to_pairs<A>(
        x: &[f32], // (rows, inputs)
        inputs: usize,
        pairs: &mut [u32], // (rows, pairs of inputs)
    ) {
        let rows = x.chunks_exact(inputs.max(1));
        for (row, pairs) in rows.zip(pairs.chunks_exact_mut(inputs.div_ceil(2).max(1))) {
            let (both, last) = row.as_chunks();
            for (to, &[low, high]) in pairs.iter_mut().zip(both) {
                *to = pair(low, high);
            }
            if let (Some(to), &[last]) = (pairs.last_mut(), last) {
                *to = pair(last, 0.0);
            }
        }
    }
}

/// A product with a weight in panels.
#[derive(Clone, Copy)]
pub(crate) struct Product<'a, G> {
    /// (panels, steps, groups of the level)
    pub(crate) panels: &'a [G],
    /// (panels × groups × 16), zero where there is no output
    pub(crate) bias: &'a [f32],
    /// The inputs, or pairs of them.
    pub(crate) steps: usize,
    pub(crate) outputs: usize,
    pub(crate) rows: usize,
    pub(crate) epilogue: Epilogue,
}

impl<G: Group> Product<'_, G> {
    /// Computes it at the level that the panels were packed for.
    pub(crate) fn run(
        self,
        level: Level,
        x: &[G::Input], // (rows, steps)
        y: &mut [f32],  // (rows, outputs)
    ) {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c")]
        fn avx2<G: Group>(product: Product<'_, G>, x: &[G::Input], y: &mut [f32]) {
            product.run_at::<Avx2, { Avx2::GROUPS }>(x, y);
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
        fn avx512<G: Group>(product: Product<'_, G>, x: &[G::Input], y: &mut [f32]) {
            product.run_at::<Avx512, { Avx512::GROUPS }>(x, y);
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512bf16,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
        fn avx512_bf16<G: Group>(product: Product<'_, G>, x: &[G::Input], y: &mut [f32]) {
            product.run_at::<Avx512Bf16, { Avx512Bf16::GROUPS }>(x, y);
        }

        match level {
            Level::Plain => self.run_at::<Plain, { Plain::GROUPS }>(x, y),
            // SAFETY: a level is only made by `Level::available`, which asked the processor.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { avx2(self, x, y) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { avx512(self, x, y) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512Bf16 => unsafe { avx512_bf16(self, x, y) },
        }
    }

    // From here on there are no closures: one that is not inlined is compiled without the level's
    // instructions.

    #[inline(always)]
    fn run_at<T: Target, const P: usize>(self, x: &[G::Input], y: &mut [f32]) {
        assert_eq!(x.len(), self.rows * self.steps);
        assert_eq!(y.len(), self.rows * self.outputs);
        let many = if T::SLOW_WIDEN { T::ROWS } else { MANY_ROWS };
        if G::NARROW && self.rows > many {
            let mut widened = [[G::Widened::ZERO; P]; SLAB];
            self.blocks::<T, P>(x, y, Some(&mut widened));
        } else {
            self.blocks::<T, P>(x, y, None);
        }
    }

    /// All row blocks, and of each all slabs of all panels.
    #[inline(always)]
    fn blocks<T: Target, const P: usize>(
        &self,
        x: &[G::Input], // (rows, steps)
        y: &mut [f32],  // (rows, outputs)
        mut widened: Option<&mut [[G::Widened; P]; SLAB]>,
    ) {
        let (panels, _) = self.panels.as_chunks::<P>();
        let n_panels = self.outputs.div_ceil(P * GROUP);
        let n_slabs = self.steps.div_ceil(SLAB).max(1); // Without inputs there still is a bias.
        let n_tiles = self.rows.div_ceil(T::ROWS);
        let tiles_a_block = (BLOCK / (T::ROWS * self.steps.max(1))).max(1);
        let n_blocks = n_tiles.div_ceil(tiles_a_block);
        for block in 0..n_blocks {
            let tiles = part(n_tiles, n_blocks, block);
            for panel in 0..n_panels {
                let panel_weights = &panels[panel * self.steps..][..self.steps];
                for slab in 0..n_slabs {
                    let steps = part(self.steps, n_slabs, slab);
                    let weights = &panel_weights[steps.clone()];
                    let place = Place {
                        steps,
                        column: panel * P * GROUP,
                        is_first: slab == 0,
                        is_last: slab + 1 == n_slabs,
                        next: weights.as_ptr_range().end.cast(),
                        next_len: size_of_val(weights),
                    };
                    if let Some(widened) = &mut widened {
                        let widened = &mut widened[..weights.len()];
                        for (to, from) in widened.iter_mut().zip(weights) {
                            for (to, from) in to.iter_mut().zip(from) {
                                *to = from.widen::<T>();
                            }
                        }
                        self.tiles::<T, _, P>(n_tiles, tiles.clone(), &place, widened, x, y);
                    } else {
                        self.tiles::<T, _, P>(n_tiles, tiles.clone(), &place, weights, x, y);
                    }
                }
            }
        }
    }

    /// All tiles of a row block with one slab.
    #[inline(always)]
    fn tiles<T: Target, W: Group<Input = G::Input>, const P: usize>(
        &self,
        n_tiles: usize,
        tiles: Range<usize>,
        place: &Place,
        weights: &[[W; P]], // (steps of the slab, groups)
        x: &[W::Input],     // (rows, steps)
        y: &mut [f32],      // (rows, outputs)
    ) {
        // With few rows, fetching the weights takes as long as multiplying, and processors do not
        // look ahead far enough by themselves. So each tile fetches a part of the next slab.
        let fetching = tiles.len().min(FETCHING_TILES);
        let step = place.next_len / (fetching * weights.len()).max(1);
        for (i, tile) in tiles.enumerate() {
            // Rows are dealt out evenly, 10 as 5 + 5 and not 6 + 4: a tile of few rows has too few
            // sums to keep the multipliers busy.
            let rows = part(self.rows, n_tiles, tile);
            let x = &x[rows.start * self.steps..rows.end * self.steps];
            let y = &mut y[rows.start * self.outputs..rows.end * self.outputs];
            let ahead = if i < fetching {
                Ahead { from: place.next.wrapping_add(i * step * weights.len()), step }
            } else {
                Ahead { from: x.as_ptr().cast(), step: 0 } // Which is near anyway.
            };
            const { assert!(T::ROWS <= MAX_ROWS) };
            match rows.len() {
                1 => self.tile::<T, W, 1, P>(place, ahead, weights, x, y),
                2 => self.tile::<T, W, 2, P>(place, ahead, weights, x, y),
                3 if T::ROWS >= 3 => self.tile::<T, W, 3, P>(place, ahead, weights, x, y),
                4 if T::ROWS >= 4 => self.tile::<T, W, 4, P>(place, ahead, weights, x, y),
                5 if T::ROWS >= 5 => self.tile::<T, W, 5, P>(place, ahead, weights, x, y),
                6 if T::ROWS >= 6 => self.tile::<T, W, 6, P>(place, ahead, weights, x, y),
                n => unreachable!("a tile of {n} rows"),
            }
        }
    }

    /// One tile, from x to y.
    #[inline(always)]
    fn tile<T: Target, W: Group<Input = G::Input>, const M: usize, const P: usize>(
        &self,
        place: &Place,
        ahead: Ahead,
        weights: &[[W; P]], // (steps of the slab, groups)
        x: &[W::Input],     // (M, steps)
        y: &mut [f32],      // (M, outputs)
    ) {
        let mut start = [[0.0; GROUP]; P];
        if place.is_first {
            start.as_flattened_mut().copy_from_slice(&self.bias[place.column..][..P * GROUP]);
        }
        let mut sums =
            multiply::<T, W, M, P>(&start, weights, &x[place.steps.start..], self.steps, ahead);

        let columns = place.column..self.outputs.min(place.column + P * GROUP);
        if !place.is_first || self.epilogue == Epilogue::BiasAdd {
            for (m, sums) in sums.iter_mut().enumerate() {
                let y = &y[m * self.outputs..][columns.clone()];
                for (sum, y) in sums.as_flattened_mut().iter_mut().zip(y) {
                    *sum += y;
                }
            }
        }
        if place.is_last && self.epilogue == Epilogue::BiasGelu {
            for sum in sums.as_flattened_mut().as_flattened_mut() {
                *sum = gelu::<T::Arithmetic>(*sum);
            }
        }
        for (m, sums) in sums.iter().enumerate() {
            let y = &mut y[m * self.outputs..][columns.clone()];
            if y.len() == P * GROUP {
                y.copy_from_slice(sums.as_flattened()); // The usual case, of a known length.
            } else {
                y.copy_from_slice(&sums.as_flattened()[..y.len()]);
            }
        }
    }
}

/// A slab of a panel, and where its products belong.
struct Place {
    steps: Range<usize>,
    /// The first output.
    column: usize,
    /// Whether no inputs were multiplied before.
    is_first: bool,
    /// Whether none are left.
    is_last: bool,
    /// The bytes that will be read next.
    next: *const u8,
    next_len: usize,
}

/// What to bring near while a tile is at work: `step` more bytes with every step.
#[derive(Clone, Copy)]
struct Ahead {
    from: *const u8,
    step: usize,
}

/// The sums of a tile over the steps of a slab.
#[inline(always)]
fn multiply<T: Target, W: Group, const M: usize, const P: usize>(
    start: &[[f32; GROUP]; P],
    weights: &[[W; P]], // (steps of the slab, groups)
    x: &[W::Input],     // (M, stride), of which the first steps count
    stride: usize,
    ahead: Ahead,
) -> [[[f32; GROUP]; P]; M] {
    let mut rows = [x; M];
    for (m, row) in rows.iter_mut().enumerate() {
        *row = &x[m * stride..][..weights.len()];
    }
    let mut first = [T::load(&start[0]); P];
    for (first, start) in first.iter_mut().zip(start) {
        *first = T::load(start);
    }
    let mut sums = [first; M];
    for (k, weights) in weights.iter().enumerate() {
        prefetch(ahead.from.wrapping_add(k * ahead.step));
        let mut wide = first;
        for (wide, weights) in wide.iter_mut().zip(weights) {
            *wide = weights.read::<T>();
        }
        for (row, sums) in rows.iter().zip(&mut sums) {
            // SAFETY: every row was cut to the length of `weights`, and `k` is below it. With
            // checks the loop ran at less than half its speed.
            let value = unsafe { *row.get_unchecked(k) };
            for (sum, wide) in sums.iter_mut().zip(wide) {
                *sum = W::mul_add::<T>(value, wide, *sum);
            }
        }
    }
    let mut values = [[[0.0; GROUP]; P]; M];
    for (values, sums) in values.iter_mut().zip(sums) {
        for (values, sum) in values.iter_mut().zip(sums) {
            *values = T::store(sum);
        }
    }
    values
}

/// Begins to bring a line into the second cache, if processors of this kind can be told. Any address
/// will do: a wrong one does nothing.
#[inline(always)]
fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has SSE, and a prefetch never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// The range of one of `n` nearly equal parts of `0..len`.
#[inline(always)]
fn part(len: usize, n: usize, i: usize) -> Range<usize> {
    len * i / n..len * (i + 1) / n
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Panels of so many groups of a weight that is a simple function of its place.
    fn pack(inputs: usize, outputs: usize, groups: usize) -> Vec<Singles> {
        let weight = |o: usize, k: usize| ((o * 31 + k * 17) % 23) as f32 - 11.0;
        let value = |o, k| if o < outputs { weight(o, k) } else { 0.0 };
        let n_groups = outputs.next_multiple_of(groups * GROUP) / GROUP;
        let mut packed = Vec::new();
        for panel in 0..n_groups / groups {
            for k in 0..inputs {
                for g in panel * groups..(panel + 1) * groups {
                    packed.push(Singles(std::array::from_fn(|j| value(g * GROUP + j, k))));
                }
            }
        }
        packed
    }

    #[test]
    fn panels_of_two_groups_give_the_same_as_panels_of_one() {
        // Only the AVX-512 level has panels of two groups, and few machines that test have AVX-512.
        let bias: Vec<f32> = (0..96).map(|o| o as f32).collect();
        for epilogue in [Epilogue::Bias, Epilogue::BiasGelu, Epilogue::BiasAdd] {
            for (rows, inputs) in [(1, 1), (3, 40), (5, 1200)] {
                let x: Vec<f32> = (0..rows * inputs).map(|i| (i % 7) as f32 - 3.0).collect();
                for outputs in 1..80 {
                    let run = |groups: usize| {
                        let panels = pack(inputs, outputs, groups);
                        let (panels, bias) = (&panels[..], &bias[..]);
                        let product =
                            Product { panels, bias, steps: inputs, outputs, rows, epilogue };
                        let mut y = vec![0.5; rows * outputs];
                        match groups {
                            1 => product.run_at::<Plain, 1>(&x, &mut y),
                            _ => product.run_at::<Plain, 2>(&x, &mut y),
                        }
                        y
                    };
                    assert_eq!(run(1), run(2), "{epilogue:?} {rows}x{inputs}x{outputs}");
                }
            }
        }
    }
}
