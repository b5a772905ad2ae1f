//! Vector registers, as far as a level has them: what kernels use where the compiler, left to itself,
//! finds vectors in one version of a loop and misses them in the next.

use super::{Arithmetic, PlainArithmetic};

/// The numbers that lie side by side in memory and are computed with together.
pub(crate) const GROUP: usize = 16;

/// A level, as far as such kernels depend on it.
pub(crate) trait Target {
    type Arithmetic: Arithmetic;
    /// A group in registers.
    type Wide: Copy;
    /// The rows of a tile of a product.
    const ROWS: usize;
    /// The groups of such a tile: 1 or 2.
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
    /// `a₁ b₁ + a₂ b₂ + c` with two bf16 in every lane of a and b, the first in the lower bits.
    fn mul_add_pairs(a: u32, b: Self::Wide, c: Self::Wide) -> Self::Wide;
    fn store(wide: Self::Wide) -> [f32; GROUP];
}

/// [`Level::Plain`](super::Level::Plain).
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
    fn mul_add_pairs(a: u32, b: Self::Wide, c: Self::Wide) -> Self::Wide {
        let [mut low, mut high] = [b; 2];
        for (low, high) in low.iter_mut().zip(&mut high) {
            [*low, *high] = widen_pair(low.to_bits());
        }
        let [a_low, a_high] = widen_pair(a);
        Self::mul_add(a_high, high, Self::mul_add(a_low, low, c))
    }

    #[inline(always)]
    fn store(wide: Self::Wide) -> [f32; GROUP] {
        wide
    }
}

/// The two bf16 that lie in these bits.
#[inline(always)]
fn widen_pair(bits: u32) -> [f32; 2] {
    [f32::from_bits(bits << 16), f32::from_bits(bits & 0xffff_0000)]
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512, Avx512Bf16};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use std::mem::transmute;

    use super::{GROUP, Target, widen_pair};
    use crate::kernels::Fused;

    /// [`Level::Avx2`](super::super::Level::Avx2). Only code compiled for that level may use it.
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
        fn mul_add_pairs(a: u32, b: Self::Wide, c: Self::Wide) -> Self::Wide {
            let [a_low, a_high] = widen_pair(a);
            let [mut low, mut high] = [b; 2];
            for (low, high) in low.iter_mut().zip(&mut high) {
                // SAFETY: the target has AVX2.
                unsafe {
                    let bits = _mm256_castps_si256(*low);
                    let upper = _mm256_set1_epi32(0xffff_0000_u32.cast_signed());
                    *low = _mm256_castsi256_ps(_mm256_slli_epi32::<16>(bits));
                    *high = _mm256_castsi256_ps(_mm256_and_si256(bits, upper));
                }
            }
            Self::mul_add(a_high, high, Self::mul_add(a_low, low, c))
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

    /// [`Level::Avx512`](super::super::Level::Avx512). Only code compiled for that level may use it.
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
        fn mul_add_pairs(a: u32, b: Self::Wide, c: Self::Wide) -> Self::Wide {
            let [a_low, a_high] = widen_pair(a);
            // SAFETY: the target has AVX-512.
            let [low, high] = unsafe {
                let bits = _mm512_castps_si512(b);
                let upper = _mm512_set1_epi32(0xffff_0000_u32.cast_signed());
                [
                    _mm512_castsi512_ps(_mm512_slli_epi32::<16>(bits)),
                    _mm512_castsi512_ps(_mm512_and_si512(bits, upper)),
                ]
            };
            Self::mul_add(a_high, high, Self::mul_add(a_low, low, c))
        }

        #[inline(always)]
        fn store(wide: Self::Wide) -> [f32; GROUP] {
            let mut values = [0.0; GROUP];
            // SAFETY: the target has AVX-512, and there is room for 16 values.
            unsafe { _mm512_storeu_ps(values.as_mut_ptr(), wide) };
            values
        }
    }

    /// [`Level::Avx512Bf16`](super::super::Level::Avx512Bf16): as [`Avx512`] but for pairs. Only code
    /// compiled for that level may use it.
    pub(crate) struct Avx512Bf16;

    impl Target for Avx512Bf16 {
        type Arithmetic = Fused;
        type Wide = __m512;
        const ROWS: usize = Avx512::ROWS;
        const GROUPS: usize = Avx512::GROUPS;
        const SLOW_WIDEN: bool = Avx512::SLOW_WIDEN;

        #[inline(always)]
        fn load(values: &[f32; GROUP]) -> Self::Wide {
            Avx512::load(values)
        }

        #[inline(always)]
        fn widen(halves: &[u16; GROUP]) -> Self::Wide {
            Avx512::widen(halves)
        }

        #[inline(always)]
        fn mul_add(a: f32, b: Self::Wide, c: Self::Wide) -> Self::Wide {
            Avx512::mul_add(a, b, c)
        }

        #[inline(always)]
        fn mul_add_wide(a: Self::Wide, b: Self::Wide, c: Self::Wide) -> Self::Wide {
            Avx512::mul_add_wide(a, b, c)
        }

        #[inline(always)]
        fn mul_add_pairs(a: u32, b: Self::Wide, c: Self::Wide) -> Self::Wide {
            // SAFETY: the target has AVX-512 with bf16; a vector of bf16 is 512 bits of any kind.
            unsafe {
                let a = transmute::<__m512i, __m512bh>(_mm512_set1_epi32(a.cast_signed()));
                _mm512_dpbf16_ps(c, a, transmute::<__m512, __m512bh>(b))
            }
        }

        #[inline(always)]
        fn store(wide: Self::Wide) -> [f32; GROUP] {
            Avx512::store(wide)
        }
    }
}
