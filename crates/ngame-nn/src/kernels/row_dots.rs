//! The inner products of rows, wherever they lie, with one direction.
//!
//! Most of the time goes by while memory is fetched. So the rows to come are asked for while the ones
//! before them are multiplied, four rows are read at once, and rows of 16 bits, which are half as much to
//! fetch, are widened in registers. Written over [`Target`] for the reason given there.

use half::f16;

use super::Level;
use super::prefetch::prefetch;
#[cfg(target_arch = "x86_64")]
use super::target::{Avx2, Avx512};
use super::target::{GROUP, Plain, Target};

/// A number as rows store it.
pub(crate) trait Stored: Copy + Default {
    /// A group of them in registers.
    fn read<T: Target>(group: &[Self; GROUP]) -> T::Wide;
}

impl Stored for f32 {
    #[inline(always)]
    fn read<T: Target>(group: &[Self; GROUP]) -> T::Wide {
        T::load(group)
    }
}

/// Infinities may be read as large numbers.
impl Stored for f16 {
    #[inline(always)]
    fn read<T: Target>(group: &[Self; GROUP]) -> T::Wide {
        T::widen(bytemuck::cast_ref(group))
    }
}

/// Writes the inner products of the rows `ids` with a direction, whose length is the rows'.
pub(crate) fn row_dots<S: Stored>(
    level: Level,
    numbers: &[S], // (rows, dim)
    ids: &[u32],
    direction: &[f32],
    out: &mut [f32],
) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c")]
    fn avx2<S: Stored>(numbers: &[S], ids: &[u32], direction: &[f32], out: &mut [f32]) {
        dots::<Avx2, S>(numbers, ids, direction, out);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
    fn avx512<S: Stored>(numbers: &[S], ids: &[u32], direction: &[f32], out: &mut [f32]) {
        dots::<Avx512, S>(numbers, ids, direction, out);
    }

    match level {
        Level::Plain => dots::<Plain, S>(numbers, ids, direction, out),
        // SAFETY: a level is only made by `Level::available`, which asked the processor.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { avx2(numbers, ids, direction, out) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 | Level::Avx512Bf16 => unsafe { avx512(numbers, ids, direction, out) },
    }
}

// From here on there are no closures: one that is not inlined is compiled without the level's
// instructions.

#[inline(always)]
fn dots<T: Target, S: Stored>(numbers: &[S], ids: &[u32], direction: &[f32], out: &mut [f32]) {
    let Some(last) = ids.len().checked_sub(1) else { return };
    let dim = direction.len();
    for &id in &ids[..ids.len().min(4)] {
        prefetch(row(numbers, id, dim));
    }
    for begin in (0..ids.len()).step_by(4) {
        for &id in &ids[ids.len().min(begin + 4)..ids.len().min(begin + 8)] {
            prefetch(row(numbers, id, dim));
        }
        // Where fewer than four are left, the last stands in for the missing: four products take
        // hardly longer than one, because they do not wait for each other.
        let rows = [
            row(numbers, ids[begin], dim),
            row(numbers, ids[(begin + 1).min(last)], dim),
            row(numbers, ids[(begin + 2).min(last)], dim),
            row(numbers, ids[(begin + 3).min(last)], dim),
        ];
        let found = four_dots::<T, S>(rows, direction);
        let out = &mut out[begin..ids.len().min(begin + 4)];
        out.copy_from_slice(&found[..out.len()]);
    }
}

/// One row of many.
#[inline(always)]
fn row<S>(numbers: &[S], id: u32, dim: usize) -> &[S] {
    &numbers[id as usize * dim..(id as usize + 1) * dim]
}

/// The inner products of four rows with a direction, whose numbers are loaded once for all of them.
#[inline(always)]
fn four_dots<T: Target, S: Stored>(rows: [&[S]; 4], direction: &[f32]) -> [f32; 4] {
    let (factors, last_factors) = direction.as_chunks::<GROUP>();
    let n = factors.len();
    let (a, a_rest) = rows[0].as_chunks::<GROUP>();
    let (b, b_rest) = rows[1].as_chunks::<GROUP>();
    let (c, c_rest) = rows[2].as_chunks::<GROUP>();
    let (d, d_rest) = rows[3].as_chunks::<GROUP>();
    let (a, b, c, d) = (&a[..n], &b[..n], &c[..n], &d[..n]);
    let zero = T::load(&[0.0; GROUP]);
    let (mut a_sum, mut b_sum, mut c_sum, mut d_sum) = (zero, zero, zero, zero);
    for i in 0..n {
        let factor = T::load(&factors[i]);
        a_sum = T::mul_add_wide(S::read::<T>(&a[i]), factor, a_sum);
        b_sum = T::mul_add_wide(S::read::<T>(&b[i]), factor, b_sum);
        c_sum = T::mul_add_wide(S::read::<T>(&c[i]), factor, c_sum);
        d_sum = T::mul_add_wide(S::read::<T>(&d[i]), factor, d_sum);
    }
    if !last_factors.is_empty() {
        let factor = T::load(&padded(last_factors));
        a_sum = T::mul_add_wide(S::read::<T>(&padded(a_rest)), factor, a_sum);
        b_sum = T::mul_add_wide(S::read::<T>(&padded(b_rest)), factor, b_sum);
        c_sum = T::mul_add_wide(S::read::<T>(&padded(c_rest)), factor, c_sum);
        d_sum = T::mul_add_wide(S::read::<T>(&padded(d_rest)), factor, d_sum);
    }
    [total(T::store(a_sum)), total(T::store(b_sum)), total(T::store(c_sum)), total(T::store(d_sum))]
}

/// A group that ends early, filled up with zeros.
#[inline(always)]
fn padded<N: Copy + Default>(rest: &[N]) -> [N; GROUP] {
    let mut group = [N::default(); GROUP];
    group[..rest.len()].copy_from_slice(rest);
    group
}

/// The sum of all lanes, halves first, so that it is the same whatever the width of the vectors.
#[inline(always)]
pub(crate) fn total(mut lanes: [f32; GROUP]) -> f32 {
    let mut width = GROUP / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}
