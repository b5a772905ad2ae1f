//! The inner products of rows of 8-bit numbers with one of 16-bit numbers, in whole numbers: exact, and
//! the same at every level.

use super::Level;

/// Rows are as long as a multiple of this.
const CODE_GROUP: usize = 32;

/// Writes the inner product of every row with the query, whose length is the rows'. No sum may be larger
/// than an `i32` holds.
pub(crate) fn code_dots(
    level: Level,
    codes: &[i8],    // (rows, width)
    query: &[i16],   // (width)
    out: &mut [i32], // (rows)
) {
    assert!(!query.is_empty() && query.len().is_multiple_of(CODE_GROUP), "whole groups");
    assert_eq!(codes.len(), out.len() * query.len(), "a product of every row");
    match level {
        Level::Plain => plain(codes, query, out),
        // SAFETY: a level is only made by `Level::available`, which asked the processor; AVX-512 comes
        // with AVX2. A scan waits for memory, so wider registers would not help it.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 | Level::Avx512 | Level::Avx512Bf16 => unsafe { avx2(codes, query, out) },
    }
}

fn plain(codes: &[i8], query: &[i16], out: &mut [i32]) {
    for (row, out) in codes.chunks_exact(query.len()).zip(out) {
        *out = row.iter().zip(query).map(|(&a, &b)| i32::from(a) * i32::from(b)).sum();
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(codes: &[i8], query: &[i16], out: &mut [i32]) {
    use std::arch::x86_64::*;

    let (factors, _) = query.as_chunks::<CODE_GROUP>();
    for (row, out) in codes.chunks_exact(query.len()).zip(out) {
        let (groups, _) = row.as_chunks::<CODE_GROUP>();
        let (mut low_sums, mut high_sums) = (_mm256_setzero_si256(), _mm256_setzero_si256());
        for (group, factors) in groups.iter().zip(factors) {
            let (from, by) = (group.as_ptr().cast::<__m128i>(), factors.as_ptr().cast::<__m256i>());
            // SAFETY: a group has 32 numbers of 8 bits, and of 16 bits, to read.
            let (low, high, low_by, high_by) = unsafe {
                (
                    _mm_loadu_si128(from),
                    _mm_loadu_si128(from.add(1)),
                    _mm256_loadu_si256(by),
                    _mm256_loadu_si256(by.add(1)),
                )
            };
            let low = _mm256_madd_epi16(_mm256_cvtepi8_epi16(low), low_by);
            let high = _mm256_madd_epi16(_mm256_cvtepi8_epi16(high), high_by);
            low_sums = _mm256_add_epi32(low_sums, low);
            high_sums = _mm256_add_epi32(high_sums, high);
        }
        let eight = _mm256_add_epi32(low_sums, high_sums);
        let four =
            _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256::<1>(eight));
        let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b_01_00_11_10>(four));
        let one = _mm_add_epi32(two, _mm_shuffle_epi32::<0b_00_00_00_01>(two));
        *out = _mm_cvtsi128_si32(one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_gives_the_plain_sum() {
        for width in [32usize, 64, 416] {
            for rows in [1usize, 3, 20] {
                let codes: Vec<i8> =
                    (0..rows * width).map(|i| ((i * 89 + 3) % 255) as u8 as i8).collect();
                let query: Vec<i16> =
                    (0..width).map(|i| (i as i32 * 7919 % 65_536 - 32_768) as i16).collect();
                let mut expected = vec![0; rows];
                for (row, expected) in expected.iter_mut().enumerate() {
                    for i in 0..width {
                        *expected += i32::from(codes[row * width + i]) * i32::from(query[i]);
                    }
                }
                for &level in Level::available() {
                    let mut out = vec![7; rows];
                    code_dots(level, &codes, &query, &mut out);
                    assert_eq!(out, expected, "{level:?} {rows} x {width}");
                }
            }
        }
    }
}
