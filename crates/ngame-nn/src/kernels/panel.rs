//! The product of rows with a packed weight.
//!
//! A weight of shape (outputs, inputs) is cut into panels of [`GROUP`] outputs, or of several such
//! groups side by side where registers are wide. A panel holds for every input the weights of its
//! outputs, one after the other, so that a product reads it from front to back. A tile is a few rows
//! by one panel; its sums stay in registers while the inputs go by.
//!
//! The tile is plain Rust like every other kernel. It has its own dispatch because the shape of a
//! tile and the conversion from f16 depend on the level.

use super::{Arithmetic, Level, PlainArithmetic};

/// The outputs that lie side by side in memory.
pub(crate) const GROUP: usize = 16;

/// The inputs that are multiplied before a tile gives back its registers. A panel of so many inputs
/// stays in the nearest cache while all tiles of a row block use it.
const SLAB: usize = 256;

/// The values of a row block: it stays in the second cache while all panels pass by.
const BLOCK: usize = 64 * 1024;

/// Up to so many tiles, f16 weights are converted anew by each of them: that costs less than
/// writing the converted ones to memory.
const TILES_WORTH_CONVERTING: usize = 3;

/// The groups of 16 outputs that a panel has at this level.
pub(crate) fn groups(level: Level) -> usize {
    match level {
        Level::Plain => Plain::GROUPS,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => Avx2::GROUPS,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => Avx512::GROUPS,
    }
}

/// What happens to a product on its way to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Epilogue {
    /// `y = x Wᵀ + b`.
    Bias,
    /// `y = gelu(x Wᵀ + b)`, the exact one with the error function.
    BiasGelu,
    /// `y += x Wᵀ + b`: what was there before is the residual.
    BiasAdd,
}

/// The weights of one input for a group of outputs.
pub(crate) trait Group: Copy {
    /// Whether widening does anything.
    const NARROW: bool;
    /// As f32.
    fn widen<T: Target>(&self) -> [f32; GROUP];
}

/// A group in f32: one line of cache.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Singles(pub(crate) [f32; GROUP]);

impl Group for Singles {
    const NARROW: bool = false;

    #[inline(always)]
    fn widen<T: Target>(&self) -> [f32; GROUP] {
        self.0
    }
}

/// A group in f16, as bits: half a line of cache. Infinities and NaN do not occur.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct Halves(pub(crate) [u16; GROUP]);

impl Group for Halves {
    const NARROW: bool = true;

    #[inline(always)]
    fn widen<T: Target>(&self) -> [f32; GROUP] {
        T::widen(&self.0)
    }
}

/// A level, as far as tiles depend on it.
pub(crate) trait Target {
    type Arithmetic: Arithmetic;
    /// The rows of a tile at most, up to 6.
    const ROWS: usize;
    /// The groups of outputs of a tile.
    const GROUPS: usize;
    /// The f32 of the bits of finite f16.
    fn widen(halves: &[u16; GROUP]) -> [f32; GROUP];
}

/// [`Level::Plain`].
struct Plain;

impl Target for Plain {
    type Arithmetic = PlainArithmetic;
    // Four lanes a register: 16 registers hold a tile of two rows, the 32 of other processors one
    // of six.
    const ROWS: usize = if cfg!(target_arch = "x86_64") { 2 } else { 6 };
    const GROUPS: usize = 1;

    #[inline(always)]
    fn widen(halves: &[u16; GROUP]) -> [f32; GROUP] {
        // Moved to their places in an f32, exponent and fraction mean a value that is smaller by
        // the difference of the biases, 2^-112; this holds for subnormal values too.
        halves.map(|half| {
            let magnitude = f32::from_bits((u32::from(half) & 0x7fff) << 13) * 2.0f32.powi(112);
            f32::from_bits(magnitude.to_bits() | (u32::from(half) & 0x8000) << 16)
        })
    }
}

/// [`Level::Avx2`].
#[cfg(target_arch = "x86_64")]
struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Target for Avx2 {
    type Arithmetic = super::Fused;
    const ROWS: usize = 6;
    const GROUPS: usize = 1;

    #[inline(always)]
    fn widen(halves: &[u16; GROUP]) -> [f32; GROUP] {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm256_cvtph_ps, _mm256_storeu_ps};
        let mut singles = [0.0; GROUP];
        // SAFETY: `product_avx2` and `product_avx512`, which alone use this target, have f16c; the
        // two loads and stores of eight values each lie within the 16 of the arrays.
        unsafe {
            let from = halves.as_ptr().cast::<__m128i>();
            let low = _mm256_cvtph_ps(_mm_loadu_si128(from));
            let high = _mm256_cvtph_ps(_mm_loadu_si128(from.add(1)));
            _mm256_storeu_ps(singles.as_mut_ptr(), low);
            _mm256_storeu_ps(singles.as_mut_ptr().add(8), high);
        }
        singles
    }
}

/// [`Level::Avx512`].
#[cfg(target_arch = "x86_64")]
struct Avx512;

#[cfg(target_arch = "x86_64")]
impl Target for Avx512 {
    type Arithmetic = super::Fused;
    const ROWS: usize = 6;
    // A group fills one register, and hiding the latency of a multiplication takes eight.
    const GROUPS: usize = 2;

    #[inline(always)]
    fn widen(halves: &[u16; GROUP]) -> [f32; GROUP] {
        Avx2::widen(halves)
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
    pub(crate) epilogue: Epilogue,
    pub(crate) slab: usize,
    pub(crate) block: usize,
    pub(crate) worth: usize,
    pub(crate) spread: usize,
}

/// Writes the product of rows with the transposed weight. `panels` must have been packed for the
/// same level.
pub(crate) fn product<G: Group>(
    level: Level,
    product: Product<'_, G>,
    x: &[f32],     // (rows, inputs)
    y: &mut [f32], // (rows, outputs)
) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    fn avx2<G: Group>(product: Product<'_, G>, x: &[f32], y: &mut [f32]) {
        product.run::<Avx2>(x, y);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
    fn avx512<G: Group>(product: Product<'_, G>, x: &[f32], y: &mut [f32]) {
        product.run::<Avx512>(x, y);
    }

    match level {
        Level::Plain => product.run::<Plain>(x, y),
        // SAFETY: a level is only made by `Level::available`, which asked the processor.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { avx2(product, x, y) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512(product, x, y) },
    }
}

impl<G: Group> Product<'_, G> {
    #[inline(always)]
    fn run<T: Target>(self, x: &[f32], y: &mut [f32]) {
        match T::GROUPS {
            1 => self.run_groups::<T, 1>(x, y),
            _ => self.run_groups::<T, 2>(x, y),
        }
    }

    #[inline(always)]
    fn run_groups<T: Target, const P: usize>(self, x: &[f32], y: &mut [f32]) {
        let rows = y.len().checked_div(self.outputs).unwrap_or(0);
        assert_eq!(x.len(), rows * self.inputs);
        assert_eq!(y.len(), rows * self.outputs);
        let n_tiles = rows.div_ceil(T::ROWS);
        let tiles_a_block = (self.block / (T::ROWS * self.inputs).max(1)).max(1);
        let n_blocks = n_tiles.div_ceil(tiles_a_block);
        if G::NARROW && n_tiles >= self.worth * n_blocks {
            let mut converted = [[Singles([0.0; GROUP]); P]; 512];
            self.run_blocks::<T, P>(x, rows, y, n_tiles, n_blocks, Some(&mut converted));
        } else {
            self.run_blocks::<T, P>(x, rows, y, n_tiles, n_blocks, None);
        }
    }

    #[inline(always)]
    fn run_blocks<T: Target, const P: usize>(
        &self,
        x: &[f32],
        rows: usize,
        y: &mut [f32],
        n_tiles: usize,
        n_blocks: usize,
        mut converted: Option<&mut [[Singles; P]; 512]>,
    ) {
        let (panels, _) = self.panels.as_chunks::<P>();
        let n_slabs = self.inputs.div_ceil(self.slab).max(1);
        let n_panels = self.outputs.div_ceil(P * GROUP);
        for block in 0..n_blocks {
            let tiles = part(n_tiles, n_blocks, block);
            for panel in 0..n_panels {
                let panel_weights = &panels[panel * self.inputs..][..self.inputs];
                for slab in 0..n_slabs {
                    let range = part(self.inputs, n_slabs, slab);
                    let weights = &panel_weights[range.clone()];
                    let place = Place {
                        rows,
                        n_tiles,
                        column: panel * P * GROUP,
                        first_input: range.start,
                        first: slab == 0,
                        last: slab + 1 == n_slabs,
                        next: weights.as_ptr_range().end.cast(),
                        next_bytes: size_of_val(weights),
                    };
                    if let Some(converted) = &mut converted {
                        let converted = &mut converted[..weights.len()];
                        for (to, from) in converted.iter_mut().zip(weights) {
                            for p in 0..P {
                                to[p] = Singles(from[p].widen::<T>());
                            }
                        }
                        self.tiles::<T, _, P>(converted, &place, x, tiles.clone(), y);
                    } else {
                        self.tiles::<T, _, P>(weights, &place, x, tiles.clone(), y);
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn tiles<T: Target, B: Group, const P: usize>(
        &self,
        weights: &[[B; P]],
        place: &Place,
        x: &[f32],
        tiles: std::ops::Range<usize>,
        y: &mut [f32],
    ) {
        let spread = tiles.len().min(self.spread).max(1);
        let step = place.next_bytes / spread / weights.len().max(1);
        for (i, tile) in tiles.enumerate() {
            let rows = part(place.rows, place.n_tiles, tile);
            let x = &x[rows.start * self.inputs + place.first_input..];
            let y = &mut y[rows.start * self.outputs..rows.end * self.outputs];
            let ahead = if i < spread && self.spread > 0 {
                Ahead { from: place.next.wrapping_byte_add(i * step * weights.len()), step }
            } else {
                Ahead { from: x.as_ptr().cast(), step: 0 }
            };
            match rows.len() {
                1 => self.tile::<T, B, 1, P>(weights, place, ahead, x, y),
                2 => self.tile::<T, B, 2, P>(weights, place, ahead, x, y),
                3 if T::ROWS >= 3 => self.tile::<T, B, 3, P>(weights, place, ahead, x, y),
                4 if T::ROWS >= 4 => self.tile::<T, B, 4, P>(weights, place, ahead, x, y),
                5 if T::ROWS >= 5 => self.tile::<T, B, 5, P>(weights, place, ahead, x, y),
                6 if T::ROWS >= 6 => self.tile::<T, B, 6, P>(weights, place, ahead, x, y),
                _ => unreachable!("tiles have at most six rows"),
            }
        }
    }

    /// One tile, from x to y.
    #[inline(always)]
    fn tile<T: Target, B: Group, const M: usize, const P: usize>(
        &self,
        weights: &[[B; P]], // (inputs of the slab, groups)
        place: &Place,
        ahead: Ahead,
        x: &[f32],
        y: &mut [f32],
    ) {
        let mut start = [[0.0; GROUP]; P];
        if place.first {
            let bias = &self.bias[place.column..][..P * GROUP];
            for (start, bias) in start.iter_mut().zip(bias.as_chunks::<GROUP>().0) {
                *start = *bias;
            }
        }
        let mut sums = multiply::<T, B, M, P>(start, weights, x, self.inputs, ahead);
        let columns = place.column..self.outputs.min(place.column + P * GROUP);
        if !place.first || self.epilogue == Epilogue::BiasAdd {
            for (m, sums) in sums.iter_mut().enumerate() {
                let y = &y[m * self.outputs..][columns.clone()];
                add(sums.as_flattened_mut(), y);
            }
        }
        if place.last && self.epilogue == Epilogue::BiasGelu {
            for sum in sums.as_flattened_mut().as_flattened_mut() {
                *sum = gelu::<T::Arithmetic>(*sum);
            }
        }
        for (m, sums) in sums.iter().enumerate() {
            let y = &mut y[m * self.outputs..][columns.clone()];
            let sums = sums.as_flattened();
            if y.len() == P * GROUP {
                y.copy_from_slice(sums);
            } else {
                y.copy_from_slice(&sums[..y.len()]);
            }
        }
    }
}

/// Where a tile lies.
struct Place {
    rows: usize,
    n_tiles: usize,
    column: usize,
    first_input: usize,
    first: bool,
    last: bool,
    next: *const u8,
    next_bytes: usize,
}

/// What to bring near while a tile is at work.
#[derive(Clone, Copy)]
struct Ahead {
    from: *const u8,
    step: usize,
}

/// Sums over the inputs of a slab.
#[inline(always)]
fn multiply<T: Target, B: Group, const M: usize, const P: usize>(
    start: [[f32; GROUP]; P],
    weights: &[[B; P]], // (inputs of the slab, groups)
    x: &[f32],          // (M, stride), of which the first inputs count
    stride: usize,
    ahead: Ahead,
) -> [[[f32; GROUP]; P]; M] {
    let mut rows = [x; M];
    for (m, row) in rows.iter_mut().enumerate() {
        *row = &x[m * stride..][..weights.len()];
    }
    let mut sums = [start; M];
    for (k, weights) in weights.iter().enumerate() {
        let mut wide = [[0.0; GROUP]; P];
        for (wide, group) in wide.iter_mut().zip(weights) {
            *wide = group.widen::<T>();
        }
        prefetch(ahead.from.wrapping_add(k * ahead.step));
        for m in 0..M {
            // SAFETY: every row was cut to the length of `weights`, which `k` stays below. With a
            // check here, the compiler reads the weights once a row instead of once.
            let value = unsafe { *rows[m].get_unchecked(k) };
            for p in 0..P {
                for j in 0..GROUP {
                    sums[m][p][j] = T::Arithmetic::mul_add(value, wide[p][j], sums[m][p][j]);
                }
            }
        }
    }
    sums
}

#[inline(always)]
fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has SSE.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Adds what there is to the sums. The usual length is a constant to the compiler.
#[inline(always)]
fn add(sums: &mut [f32], values: &[f32]) {
    if values.len() == sums.len() {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += value;
        }
    } else {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += value;
        }
    }
}

/// The range of one of `n` nearly equal parts of `0..len`.
#[inline(always)]
fn part(len: usize, n: usize, i: usize) -> std::ops::Range<usize> {
    len * i / n..len * (i + 1) / n
}

/// `v Φ(v)`, where Φ is the distribution function of the standard normal distribution, as
/// `max(v, 0) - |v| Φ(-|v|)`. The error of Φ is below 1e-7.
#[inline(always)]
fn gelu<A: Arithmetic>(v: f32) -> f32 {
    // The logarithm to base 2 of Φ(-a) for a >= 0, fitted so that the error of the power is
    // smallest. It falls for all a.
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
    // 2^r - 1 by r, for |r| <= 1/2.
    const EXP2: [f32; 6] =
        [6.931_472e-1, 2.402_265_1e-1, 5.550_328e-2, 9.618_004e-3, 1.340_027e-3, 1.547_630_1e-4];
    const ROUND: f32 = 12_582_912.0; // 1.5 × 2^23: adding it rounds to an integer in the low bits.

    let a = v.abs();
    let a2 = a * a;
    let low = A::mul_add(A::mul_add(LOG2[3], a, LOG2[2]), a2, A::mul_add(LOG2[1], a, LOG2[0]));
    let high = A::mul_add(A::mul_add(LOG2[7], a, LOG2[6]), a2, A::mul_add(LOG2[5], a, LOG2[4]));
    let log = A::mul_add(A::mul_add(high, a2 * a2, low), a, -1.0);
    let log = if log > -125.0 { log } else { -125.0 };
    let rounded = log + ROUND;
    let r = log - (rounded - ROUND);
    let r2 = r * r;
    let low = A::mul_add(A::mul_add(EXP2[3], r, EXP2[2]), r2, A::mul_add(EXP2[1], r, EXP2[0]));
    let high = A::mul_add(EXP2[5], r, EXP2[4]);
    let power = A::mul_add(A::mul_add(high, r2 * r2, low), r, 1.0);
    let tail = f32::from_bits(power.to_bits().wrapping_add(rounded.to_bits() << 23));
    A::mul_add(-a, tail, if v > 0.0 { v } else { 0.0 })
}
