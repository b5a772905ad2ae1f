//! The inner products of many rows of 8-bit numbers with many others, in whole numbers: exact, and the same
//! at every level.
//!
//! Both lie in memory row by row, so nothing has to be packed first. Processors that multiply bytes
//! take one side without a sign; its numbers are 128 too large, and what that adds is taken off again.

use super::Level;

/// Rows are as long as a multiple of this.
pub(crate) const CODE_GROUP: usize = 64;

/// Queries that are multiplied together, of which there have to be whole numbers.
pub(crate) const QUERY_TILE: usize = 4;

/// What a query's numbers are too large by.
pub(crate) const OFFSET: i32 = 128;

/// Whether products of this level are faster than those of the rows' own numbers would be.
pub(crate) fn is_fast(level: Level) -> bool {
    match level {
        Level::Plain => false,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 | Level::Avx512 => false,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512Bf16 => true,
    }
}

/// Writes the inner product of every row with every query, each number of which is larger by [`OFFSET`]
/// than it is meant. No sum may be larger than an `i32` holds.
pub(crate) fn code_product(
    level: Level,
    codes: &[i8],   // (rows, width)
    sums: &[i32],   // (rows): of their numbers
    queries: &[u8], // (queries, width)
    width: usize,
    out: &mut [i32], // (queries, rows)
) {
    let n_rows = sums.len();
    assert!(width > 0 && width.is_multiple_of(CODE_GROUP), "whole groups");
    assert!(queries.len().is_multiple_of(QUERY_TILE * width), "whole tiles");
    assert_eq!(codes.len(), n_rows * width, "a sum of every row");
    assert_eq!(out.len(), queries.len() / width * n_rows, "a product of every row and query");
    match level {
        Level::Plain => plain(codes, sums, queries, width, 0, out),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 | Level::Avx512 => plain(codes, sums, queries, width, 0, out),
        #[cfg(target_arch = "x86_64")]
        Level::Avx512Bf16 => {
            // SAFETY: a level is only made by `Level::available`, which asked the processor.
            unsafe { x86::avx512_vnni(codes, sums, queries, width, out) };
            plain(codes, sums, queries, width, n_rows - n_rows % x86::ROW_TILE, out);
        }
    }
}

/// The products of all rows from `first` on.
fn plain(codes: &[i8], sums: &[i32], queries: &[u8], width: usize, first: usize, out: &mut [i32]) {
    let n_rows = sums.len();
    let rows = || codes.chunks_exact(width).zip(sums).enumerate().skip(first);
    for (query, out) in queries.chunks_exact(width).zip(out.chunks_exact_mut(n_rows.max(1))) {
        for (row, (codes, sum)) in rows() {
            let products = codes.iter().zip(query).map(|(&a, &b)| i32::from(a) * i32::from(b));
            out[row] = products.sum::<i32>() - OFFSET * sum;
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{CODE_GROUP, OFFSET, QUERY_TILE};

    /// Rows that are multiplied together. With four queries that is sixteen registers of sums.
    pub(super) const ROW_TILE: usize = 4;

    /// The products of all whole tiles of rows.
    #[target_feature(enable = "avx512vnni,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
    pub(super) fn avx512_vnni(
        codes: &[i8],   // (rows, width)
        sums: &[i32],   // (rows)
        queries: &[u8], // (queries, width)
        width: usize,
        out: &mut [i32], // (queries, rows)
    ) {
        let n_rows = sums.len();
        let tiles = codes.chunks_exact(ROW_TILE * width).zip(sums.chunks_exact(ROW_TILE));
        for (tile, (codes, sums)) in tiles.enumerate() {
            // SAFETY: there are four sums to read.
            let four = unsafe { _mm_loadu_si128(sums.as_ptr().cast()) };
            let too_much = _mm_mullo_epi32(four, _mm_set1_epi32(OFFSET));
            for (part, queries) in queries.chunks_exact(QUERY_TILE * width).enumerate() {
                let products = tile_product(codes, queries, width);
                for (query, product) in products.into_iter().enumerate() {
                    let begin = (part * QUERY_TILE + query) * n_rows + tile * ROW_TILE;
                    let to = &mut out[begin..begin + ROW_TILE];
                    // SAFETY: there is room for four products.
                    unsafe {
                        _mm_storeu_si128(to.as_mut_ptr().cast(), _mm_sub_epi32(product, too_much));
                    }
                }
            }
        }
    }

    /// Of each query, its products with the four rows.
    #[target_feature(enable = "avx512vnni,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
    #[inline]
    fn tile_product(
        codes: &[i8],   // (ROW_TILE, width)
        queries: &[u8], // (QUERY_TILE, width)
        width: usize,
    ) -> [__m128i; QUERY_TILE] {
        assert!(codes.len() == ROW_TILE * width && queries.len() == QUERY_TILE * width);
        let mut sums = [[_mm512_setzero_si512(); ROW_TILE]; QUERY_TILE];
        for begin in (0..width).step_by(CODE_GROUP) {
            let mut rows = [_mm512_setzero_si512(); ROW_TILE];
            for (row, numbers) in rows.iter_mut().enumerate() {
                // SAFETY: `width` is a multiple of a group's, so 64 numbers of the row follow.
                *numbers =
                    unsafe { _mm512_loadu_si512(codes.as_ptr().add(row * width + begin).cast()) };
            }
            for (query, sums) in sums.iter_mut().enumerate() {
                // SAFETY: as above.
                let numbers = unsafe {
                    _mm512_loadu_si512(queries.as_ptr().add(query * width + begin).cast())
                };
                for (sum, row) in sums.iter_mut().zip(rows) {
                    *sum = _mm512_dpbusd_epi32(*sum, numbers, row);
                }
            }
        }
        add_up(sums)
    }

    /// The sums of the sixteen lanes of every register, those of a query side by side.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn add_up(sums: [[__m512i; ROW_TILE]; QUERY_TILE]) -> [__m128i; QUERY_TILE] {
        let mut quarters = [_mm512_setzero_si512(); QUERY_TILE];
        for (quarters, [a, b, c, d]) in quarters.iter_mut().zip(sums) {
            let ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
            let cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
            // Every 128 bits hold a sum of four lanes of a, b, c and d.
            *quarters =
                _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
        }
        let halves = |a, b| {
            let (low, high) =
                (_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0xee>(a, b));
            _mm512_add_epi32(low, high)
        };
        let [a, b, c, d] = quarters;
        let (ab, cd) = (halves(a, b), halves(c, d));
        let even = _mm512_shuffle_i32x4::<0x88>(ab, cd);
        let odd = _mm512_shuffle_i32x4::<0xdd>(ab, cd);
        let all = _mm512_add_epi32(even, odd);
        [
            _mm512_extracti32x4_epi32::<0>(all),
            _mm512_extracti32x4_epi32::<1>(all),
            _mm512_extracti32x4_epi32::<2>(all),
            _mm512_extracti32x4_epi32::<3>(all),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_gives_the_plain_sums() {
        for width in [64usize, 128, 448] {
            for n_rows in [0usize, 1, 3, 4, 7, 21] {
                for n_queries in [0, QUERY_TILE, 3 * QUERY_TILE] {
                    let codes: Vec<i8> =
                        (0..n_rows * width).map(|i| ((i * 89 + i / 7) % 255) as u8 as i8).collect();
                    let queries: Vec<u8> = (0..n_queries * width)
                        .map(|i| ((i * 53 + i / 3 + 1) % 256) as u8)
                        .collect();
                    let number = |row: usize, i: usize| i32::from(codes[row * width + i]);
                    let sums: Vec<i32> =
                        (0..n_rows).map(|row| (0..width).map(|i| number(row, i)).sum()).collect();
                    let mut expected = Vec::new();
                    for query in 0..n_queries {
                        for row in 0..n_rows {
                            let meant = |i: usize| i32::from(queries[query * width + i]) - 128;
                            expected
                                .push((0..width).map(|i| meant(i) * number(row, i)).sum::<i32>());
                        }
                    }
                    for &level in Level::available() {
                        let mut out = vec![7; n_queries * n_rows];
                        code_product(level, &codes, &sums, &queries, width, &mut out);
                        assert_eq!(out, expected, "{level:?} {n_queries} x {n_rows} x {width}");
                    }
                }
            }
        }
    }
}
