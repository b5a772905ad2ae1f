//! The inner loops, each written once and compiled for several instruction sets.
//!
//! A kernel is a plain loop over slices, shaped so that the compiler turns it into vector
//! instructions: fixed-length groups of lanes, no branches, polynomials for functions. The
//! [`kernel!`] macro compiles its body for AVX-512, for AVX2 and for the plain target, and the
//! function it makes takes the [`Level`] to run at. All levels run the same source; they differ only
//! in whether a multiplication and an addition are rounded once or twice. No other code in the crate
//! knows about processors.

pub(crate) mod code_dots;
pub(crate) mod code_product;
pub(crate) mod math;
pub(crate) mod panel;
pub(crate) mod prefetch;
pub(crate) mod row_dots;
pub(crate) mod small_product;
pub(crate) mod target;

/// An instruction set that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// What every processor of the target has.
    Plain,
    /// 256-bit vectors, fused multiply-add, conversion from f16.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// These, and products of bf16 and of whole numbers of 8 bits.
    #[cfg(target_arch = "x86_64")]
    Avx512Bf16,
}

impl Level {
    /// The best that this processor can do.
    pub(crate) fn best() -> Self {
        Self::available().last().copied().unwrap_or(Self::Plain)
    }

    /// All that this processor can do, from plain to best. The only source of levels: whoever holds
    /// one may run its kernels.
    pub(crate) fn available() -> &'static [Self] {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c");
            let avx512 = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            let bf16 = avx512
                && is_x86_feature_detected!("avx512bf16")
                && is_x86_feature_detected!("avx512vnni");
            let levels = &[Self::Plain, Self::Avx2, Self::Avx512, Self::Avx512Bf16];
            &levels[..1 + usize::from(avx2) + usize::from(avx512) + usize::from(bf16)]
        }
        #[cfg(not(target_arch = "x86_64"))]
        &[Self::Plain]
    }
}

/// How a kernel multiplies and adds.
pub(crate) trait Arithmetic {
    /// `a * b + c`.
    fn mul_add(a: f32, b: f32, c: f32) -> f32;
}

/// One instruction, rounded once.
pub(crate) struct Fused;

impl Arithmetic for Fused {
    #[inline(always)]
    fn mul_add(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
}

/// Two instructions: on processors without a fused one, `f32::mul_add` would be a slow call.
pub(crate) struct Separate;

impl Arithmetic for Separate {
    #[inline(always)]
    fn mul_add(a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }
}

/// The arithmetic of [`Level::Plain`].
#[cfg(any(target_arch = "aarch64", target_feature = "fma"))]
pub(crate) type PlainArithmetic = Fused;
/// The arithmetic of [`Level::Plain`].
#[cfg(not(any(target_arch = "aarch64", target_feature = "fma")))]
pub(crate) type PlainArithmetic = Separate;

/// Makes a function that runs its body at a given [`Level`]. The body may use the type `A`, an
/// [`Arithmetic`]; functions it calls must be `#[inline(always)]` to be compiled along.
macro_rules! kernel {
    ($(#[$meta:meta])* $vis:vis fn $name:ident<$A:ident>($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        $vis fn $name(level: $crate::kernels::Level, $($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn body<$A: $crate::kernels::Arithmetic>($($arg: $ty),*) $(-> $ret)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c")]
            fn avx2($($arg: $ty),*) $(-> $ret)? {
                body::<$crate::kernels::Fused>($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
            fn avx512($($arg: $ty),*) $(-> $ret)? {
                body::<$crate::kernels::Fused>($($arg),*)
            }

            match level {
                $crate::kernels::Level::Plain => body::<$crate::kernels::PlainArithmetic>($($arg),*),
                // SAFETY: a level is only made by `Level::available`, which asked the processor.
                #[cfg(target_arch = "x86_64")]
                $crate::kernels::Level::Avx2 => unsafe { avx2($($arg),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::kernels::Level::Avx512 | $crate::kernels::Level::Avx512Bf16 => unsafe {
                    avx512($($arg),*)
                },
            }
        }
    };
}

pub(crate) use kernel;
