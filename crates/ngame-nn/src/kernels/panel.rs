//! The product of rows with a packed weight.
//!
//! A weight of shape (outputs, inputs) is cut into panels of [`GROUP`] outputs, or of two such groups
//! side by side where registers are wide. A panel holds for every input the weights of its outputs,
//! one after the other, so that a product reads it from front to back. A tile is a few rows by one
//! panel; its sums stay in registers while the inputs go by.
//!
//! The tile is written once, like the other kernels, but over [`Target`], which spells out vectors
//! where a level has them: left to itself, the compiler finds them in one version of the loop and
//! misses them in the next.

use std::ops::Range;

use super::math::gelu;
use super::{Arithmetic, Level, PlainArithmetic};

/// The outputs that lie side by side in memory.
pub(crate) const GROUP: usize = 16;

/// The inputs that pass by before a tile gives up its registers, at most. All tiles of a row block
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

/// The weights of one input for a group of outputs.
pub(crate) trait Group: Copy {
    /// Whether reading takes a conversion.
    const NARROW: bool;

    fn read<T: Target>(&self) -> T::Wide;
}

/// A group in f32: one line of cache.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Singles(pub(crate) [f32; GROUP]);

impl Group for Singles {
    const NARROW: bool = false;

    #[inline(always)]
    fn read<T: Target>(&self) -> T::Wide {
        T::load(&self.0)
    }
}

/// A group in f16, as bits: half a line of cache. There are no infinities and no NaN.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct Halves(pub(crate) [u16; GROUP]);

impl Group for Halves {
    const NARROW: bool = true;

    #[inline(always)]
    fn read<T: Target>(&self) -> T::Wide {
        T::widen(&self.0)
    }
}

/// A level, as far as tiles depend on it.
pub(crate) trait Target {
    type Arithmetic: Arithmetic;
    /// A group in registers.
    type Wide: Copy;
    /// The rows of a tile, at most [`MAX_ROWS`].
    const ROWS: usize;
    /// The groups of a tile: 1 or 2.
    const GROUPS: usize;
    /// Whether [`Target::widen`] costs so much that many tiles should not each do it.
    const SLOW_WIDEN: bool;

    fn load(values: &[f32; GROUP]) -> Self::Wide;
    /// The values of the bits of finite f16.
    fn widen(halves: &[u16; GROUP]) -> Self::Wide;
    /// `a * b + c`.
    fn mul_add(a: f32, b: Self::Wide, c: Self::Wide) -> Self::Wide;
    /// The same, lane by lane.
    fn mul_add_wide(a: Self::Wide, b: Self::Wide, c: Self::Wide) -> Self::Wide;
    /// Asks for the line of cache that a value lies in, where there is an instruction for it.
    #[inline(always)]
    fn prefetch<V>(_: &V) {}
    fn store(wide: Self::Wide) -> [f32; GROUP];
}

/// [`Level::Plain`].
pub(crate) struct Plain;

impl Target for Plain {
    type Arithmetic = PlainArithmetic;
    type Wide = [f32; GROUP];
    // With four lanes a register, the 16 registers of SSE hold the sums of two rows, the 32 of other
    // processors those of six.
    const ROWS: usize = if cfg!(target_arch = "x86_64") { 2 } else { 6 };
    const GROUPS: usize = 1;
    const SLOW_WIDEN: bool = true;

    #[inline(always)]
    fn load(values: &[f32; GROUP]) -> Self::Wide {
        *values
    }

    #[inline(always)]
    fn widen(halves: &[u16; GROUP]) -> Self::Wide {
        // Exponent and fraction, moved to their places in an f32, mean a value that is smaller by
        // the difference of the biases, 2^112. That holds for subnormal values too.
        let scale = f32::from_bits((127 + 112) << 23);
        let mut wide = [0.0; GROUP];
        for (wide, &half) in wide.iter_mut().zip(halves) {
            let half = u32::from(half);
            let magnitude = f32::from_bits((half & 0x7fff) << 13) * scale;
            *wide = f32::from_bits(magnitude.to_bits() | (half & 0x8000) << 16);
        }
        wide
    }

    #[inline(always)]
    fn mul_add(a: f32, b: Self::Wide, mut c: Self::Wide) -> Self::Wide {
        for (c, b) in c.iter_mut().zip(b) {
            *c = PlainArithmetic::mul_add(a, b, *c);
        }
        c
    }

    #[inline(always)]
    fn mul_add_wide(a: Self::Wide, b: Self::Wide, mut c: Self::Wide) -> Self::Wide {
        for (c, (a, b)) in c.iter_mut().zip(a.into_iter().zip(b)) {
            *c = PlainArithmetic::mul_add(a, b, *c);
        }
        c
    }

    #[inline(always)]
    fn store(wide: Self::Wide) -> [f32; GROUP] {
        wide
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{GROUP, Target};
    use crate::kernels::Fused;

    #[inline(always)]
    fn prefetch<V>(value: &V) {
        // SAFETY: every x86-64 processor has the instruction, and it changes nothing but the cache.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) }
    }

    /// [`Level::Avx2`](super::Level::Avx2). Only code compiled for that level may use it.
    pub(crate) struct Avx2;

    impl Target for Avx2 {
        type Arithmetic = Fused;
        type Wide = [__m256; 2];
        const ROWS: usize = 6; // 12 registers of sums, 2 of weights and 1 of x, of 16.
        const GROUPS: usize = 1;
        const SLOW_WIDEN: bool = false;

        #[inline(always)]
        fn load(values: &[f32; GROUP]) -> Self::Wide {
            let from = values.as_ptr();
            // SAFETY: the target has AVX2 (see there), and 2 times 8 values are there to read.
            unsafe { [_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))] }
        }

        #[inline(always)]
        fn widen(halves: &[u16; GROUP]) -> Self::Wide {
            let from = halves.as_ptr().cast::<__m128i>();
            // SAFETY: the target has F16C, and 2 times 8 values are there to read.
            unsafe {
                let [low, high] = [_mm_loadu_si128(from), _mm_loadu_si128(from.add(1))];
                [_mm256_cvtph_ps(low), _mm256_cvtph_ps(high)]
            }
        }

        #[inline(always)]
        fn mul_add(a: f32, b: Self::Wide, c: Self::Wide) -> Self::Wide {
            // SAFETY: the target has FMA.
            unsafe {
                let a = _mm256_set1_ps(a);
                [_mm256_fmadd_ps(a, b[0], c[0]), _mm256_fmadd_ps(a, b[1], c[1])]
            }
        }

        #[inline(always)]
        fn mul_add_wide(a: Self::Wide, b: Self::Wide, c: Self::Wide) -> Self::Wide {
            // SAFETY: the target has FMA.
            unsafe { [_mm256_fmadd_ps(a[0], b[0], c[0]), _mm256_fmadd_ps(a[1], b[1], c[1])] }
        }

        #[inline(always)]
        fn prefetch<V>(value: &V) {
            prefetch(value);
        }

        #[inline(always)]
        fn store(wide: Self::Wide) -> [f32; GROUP] {
            let mut values = [0.0; GROUP];
            let to = values.as_mut_ptr();
            // SAFETY: the target has AVX2, and there is room for 2 times 8 values.
            unsafe {
                _mm256_storeu_ps(to, wide[0]);
                _mm256_storeu_ps(to.add(8), wide[1]);
            }
            values
        }
    }

    /// [`Level::Avx512`](super::Level::Avx512). Only code compiled for that level may use it.
    pub(crate) struct Avx512;

    impl Target for Avx512 {
        type Arithmetic = Fused;
        type Wide = __m512;
        const ROWS: usize = 6;
        // A group is one register, and it takes sums in eight or more to keep both multipliers busy.
        const GROUPS: usize = 2;
        const SLOW_WIDEN: bool = false;

        #[inline(always)]
        fn load(values: &[f32; GROUP]) -> Self::Wide {
            // SAFETY: the target has AVX-512, and 16 values are there to read.
            unsafe { _mm512_loadu_ps(values.as_ptr()) }
        }

        #[inline(always)]
        fn widen(halves: &[u16; GROUP]) -> Self::Wide {
            // SAFETY: the target has AVX-512, and 16 values are there to read.
            unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(halves.as_ptr().cast())) }
        }

        #[inline(always)]
        fn mul_add(a: f32, b: Self::Wide, c: Self::Wide) -> Self::Wide {
            // SAFETY: the target has AVX-512.
            unsafe { _mm512_fmadd_ps(_mm512_set1_ps(a), b, c) }
        }

        #[inline(always)]
        fn mul_add_wide(a: Self::Wide, b: Self::Wide, c: Self::Wide) -> Self::Wide {
            // SAFETY: the target has AVX-512.
            unsafe { _mm512_fmadd_ps(a, b, c) }
        }

        #[inline(always)]
        fn prefetch<V>(value: &V) {
            prefetch(value);
        }

        #[inline(always)]
        fn store(wide: Self::Wide) -> [f32; GROUP] {
            let mut values = [0.0; GROUP];
            // SAFETY: the target has AVX-512, and there is room for 16 values.
            unsafe { _mm512_storeu_ps(values.as_mut_ptr(), wide) };
            values
        }
    }
}

/// A product with a weight in panels.
#[derive(Clone, Copy)]
pub(crate) struct Product<'a, G> {
    /// (panels, inputs, groups of the level)
    pub(crate) panels: &'a [G],
    /// (panels × groups × 16), zero where there is no output
    pub(crate) bias: &'a [f32],
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    pub(crate) rows: usize,
    pub(crate) epilogue: Epilogue,
}

impl<G: Group> Product<'_, G> {
    /// Computes it at the level that the panels were packed for.
    pub(crate) fn run(
        self,
        level: Level,
        x: &[f32],     // (rows, inputs)
        y: &mut [f32], // (rows, outputs)
    ) {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c")]
        fn avx2<G: Group>(product: Product<'_, G>, x: &[f32], y: &mut [f32]) {
            product.run_at::<Avx2, { Avx2::GROUPS }>(x, y);
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
        fn avx512<G: Group>(product: Product<'_, G>, x: &[f32], y: &mut [f32]) {
            product.run_at::<Avx512, { Avx512::GROUPS }>(x, y);
        }

        match level {
            Level::Plain => self.run_at::<Plain, { Plain::GROUPS }>(x, y),
            // SAFETY: a level is only made by `Level::available`, which asked the processor.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { avx2(self, x, y) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { avx512(self, x, y) },
        }
    }

    // From here on there are no closures: one that is not inlined is compiled without the level's
    // instructions.

    #[inline(always)]
    fn run_at<T: Target, const P: usize>(self, x: &[f32], y: &mut [f32]) {
        assert_eq!(x.len(), self.rows * self.inputs);
        assert_eq!(y.len(), self.rows * self.outputs);
        let many = if T::SLOW_WIDEN { T::ROWS } else { MANY_ROWS };
        if G::NARROW && self.rows > many {
            let mut widened = [[Singles([0.0; GROUP]); P]; SLAB];
            self.blocks::<T, P>(x, y, Some(&mut widened));
        } else {
            self.blocks::<T, P>(x, y, None);
        }
    }

    /// All row blocks, and of each all slabs of all panels.
    #[inline(always)]
    fn blocks<T: Target, const P: usize>(
        &self,
        x: &[f32],     // (rows, inputs)
        y: &mut [f32], // (rows, outputs)
        mut widened: Option<&mut [[Singles; P]; SLAB]>,
    ) {
        let (panels, _) = self.panels.as_chunks::<P>();
        let n_panels = self.outputs.div_ceil(P * GROUP);
        let n_slabs = self.inputs.div_ceil(SLAB).max(1); // Without inputs there still is a bias.
        let n_tiles = self.rows.div_ceil(T::ROWS);
        let tiles_a_block = (BLOCK / (T::ROWS * self.inputs.max(1))).max(1);
        let n_blocks = n_tiles.div_ceil(tiles_a_block);
        for block in 0..n_blocks {
            let tiles = part(n_tiles, n_blocks, block);
            for panel in 0..n_panels {
                let panel_weights = &panels[panel * self.inputs..][..self.inputs];
                for slab in 0..n_slabs {
                    let inputs = part(self.inputs, n_slabs, slab);
                    let weights = &panel_weights[inputs.clone()];
                    let place = Place {
                        inputs,
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
                                *to = Singles(T::store(from.read::<T>()));
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
    fn tiles<T: Target, W: Group, const P: usize>(
        &self,
        n_tiles: usize,
        tiles: Range<usize>,
        place: &Place,
        weights: &[[W; P]], // (inputs of the slab, groups)
        x: &[f32],          // (rows, inputs)
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
            let x = &x[rows.start * self.inputs..rows.end * self.inputs];
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
    fn tile<T: Target, W: Group, const M: usize, const P: usize>(
        &self,
        place: &Place,
        ahead: Ahead,
        weights: &[[W; P]], // (inputs of the slab, groups)
        x: &[f32],          // (M, inputs)
        y: &mut [f32],      // (M, outputs)
    ) {
        let mut start = [[0.0; GROUP]; P];
        if place.is_first {
            start.as_flattened_mut().copy_from_slice(&self.bias[place.column..][..P * GROUP]);
        }
        let mut sums =
            multiply::<T, W, M, P>(&start, weights, &x[place.inputs.start..], self.inputs, ahead);

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
    inputs: Range<usize>,
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

/// What to bring near while a tile is at work: one more step with every input.
#[derive(Clone, Copy)]
struct Ahead {
    from: *const u8,
    step: usize,
}

/// The sums of a tile over the inputs of a slab.
#[inline(always)]
fn multiply<T: Target, W: Group, const M: usize, const P: usize>(
    start: &[[f32; GROUP]; P],
    weights: &[[W; P]], // (inputs of the slab, groups)
    x: &[f32],          // (M, stride), of which the first inputs count
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
                *sum = T::mul_add(value, wide, *sum);
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
                        let product = Product { panels, bias, inputs, outputs, rows, epilogue };
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
