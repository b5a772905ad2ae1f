//! Rows in 8 bits a number, for a first look at which of them score high with a query.
//!
//! A row is its largest number times whole numbers from -127 to 127, and a rest whose length is known. So a
//! product of codes says between which bounds the true one lies, and whoever wants the best rows has
//! to look at few of them again: a scan reads a half of what rows of 16 bits are, and misses nothing.
//!
//! Columns that stand out, such as a bias beside weights, would leave the others a few whole numbers only.
//! They are kept as they are.

use std::ops::Range;

use rayon::prelude::*;

use crate::kernels::Level;
use crate::kernels::code_dots::{CODE_GROUP, code_dots};
use crate::rows::Rows;

/// The largest code.
const MOST: f32 = 127.0;

/// The largest number of a coded query, as far as sums of products fit 32 bits.
const MOST_OF_QUERY: f32 = 32_767.0;

/// The sum of a coded query's numbers, at most: times the largest code it still fits 32 bits.
const MOST_IN_ALL: f32 = 16_000_000.0;

/// A column stands out if its numbers are so many times as large as those of the middle one.
const OUTSTANDING: f32 = 6.0;

/// Columns that may stand out.
const MOST_OUTSTANDING: usize = 4;

/// What sums of rounded numbers may be off by, as a share of the lengths that are multiplied.
const ROUNDING: f32 = 1e-5;

/// Rows of codes.
#[derive(Clone, Debug)]
pub struct Codes {
    dim: usize,
    width: usize,
    level: Level,
    codes: Vec<i8>, // (rows, width), without columns that stand out, zero behind the numbers
    facts: Vec<RowFacts>, // (rows)
    columns: Vec<usize>, // Those that stand out.
    outstanding: Vec<f32>, // (rows, columns that stand out)
}

/// What else is known of a row.
#[derive(Clone, Copy, Debug)]
struct RowFacts {
    /// What a code is worth.
    scale: f32,
    /// The length of what the codes leave out.
    rest: f32,
    /// The length of what they say.
    length: f32,
}

/// A query, coded.
#[derive(Clone, Debug)]
pub struct CodedQuery {
    numbers: Vec<i16>, // (width)
    /// What one of its whole numbers is worth.
    scale: f32,
    /// Its length, without columns that stand out.
    length: f32,
    /// The length of what the numbers leave out.
    rest: f32,
    /// Its numbers in columns that stand out.
    outstanding: Vec<f32>,
}

impl Codes {
    /// Codes of some rows, made on all threads of the pool.
    pub fn new(rows: Rows<'_>, range: Range<usize>) -> Self {
        const TOGETHER: usize = 256;
        let (dim, n_rows) = (rows.dim(), range.len());
        let first = |part: usize| range.start + part * TOGETHER;
        let ids = |part: usize| first(part)..range.end.min(first(part + 1));
        let largest = (0..n_rows.div_ceil(TOGETHER))
            .into_par_iter()
            .map(|part| {
                let (mut row, mut largest) = (vec![0.0; dim], vec![0.0f32; dim]);
                for id in ids(part) {
                    rows.gather(&[id as u32], &mut row);
                    let both = largest.iter_mut().zip(&row);
                    both.for_each(|(largest, value)| *largest = largest.max(value.abs()));
                }
                largest
            })
            .reduce(|| vec![0.0; dim], |a, b| a.iter().zip(&b).map(|(a, b)| a.max(*b)).collect());
        let columns = outstanding(&largest);
        let n_light = dim - columns.len();
        let width = n_light.next_multiple_of(CODE_GROUP).max(CODE_GROUP);
        let mut codes = vec![0; n_rows * width];
        let parts: Vec<(Vec<RowFacts>, Vec<f32>)> = codes
            .par_chunks_mut(TOGETHER * width)
            .enumerate()
            .map(|(part, codes)| {
                let (mut row, mut light) = (vec![0.0; dim], vec![0.0; n_light]);
                let (mut facts, mut kept) = (Vec::new(), Vec::new());
                for (id, codes) in ids(part).zip(codes.chunks_mut(width)) {
                    rows.gather(&[id as u32], &mut row);
                    kept.extend(columns.iter().map(|&column| row[column]));
                    copy_without(&columns, &row, &mut light);
                    facts.push(code(&light, &mut codes[..n_light]));
                }
                (facts, kept)
            })
            .collect();
        let (facts, kept): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        Self {
            dim,
            width,
            level: Level::best(),
            codes,
            facts: facts.concat(),
            columns,
            outstanding: kept.concat(),
        }
    }

    /// The rows.
    pub fn n_rows(&self) -> usize {
        self.facts.len()
    }

    /// A query as [`Self::bounds`] takes it.
    ///
    /// # Panics
    /// If it is not as long as the rows.
    pub fn query(&self, query: &[f32]) -> CodedQuery {
        assert_eq!(query.len(), self.dim, "a query is as long as the rows");
        let mut light = vec![0.0; self.dim - self.columns.len()];
        copy_without(&self.columns, query, &mut light);
        let outstanding = self.columns.iter().map(|&column| query[column]).collect();
        let largest = light.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
        let in_all: f32 = light.iter().map(|value| value.abs()).sum();
        let scale = (largest / MOST_OF_QUERY).max(in_all / MOST_IN_ALL);
        let factor = if scale > 0.0 && scale.is_finite() { 1.0 / scale } else { 0.0 };
        let mut numbers = vec![0; self.width];
        let (mut length, mut rest) = (0.0f64, 0.0f64);
        for (number, &value) in numbers.iter_mut().zip(&light) {
            *number = (value * factor).round_ties_even() as i16;
            length += f64::from(value).powi(2);
            rest += (f64::from(value) - f64::from(*number) * f64::from(scale)).powi(2);
        }
        let finite = |value: f64| if value.is_nan() { f32::INFINITY } else { value.sqrt() as f32 };
        CodedQuery { numbers, scale, length: finite(length), rest: finite(rest), outstanding }
    }

    /// Between which bounds the inner products of some rows with a query lie.
    ///
    /// # Panics
    /// If there is not one pair of bounds a row, or the query is one of other codes.
    pub fn bounds(&self, query: &CodedQuery, rows: Range<usize>, out: &mut [(f32, f32)]) {
        const TOGETHER: usize = 64;
        assert_eq!(
            (out.len(), query.numbers.len()),
            (rows.len(), self.width),
            "bounds of every row"
        );
        let n_columns = self.columns.len();
        let mut products = [0; TOGETHER];
        for (rows, out) in rows.clone().step_by(TOGETHER).zip(out.chunks_mut(TOGETHER)) {
            let products = &mut products[..out.len()];
            let codes = &self.codes[rows * self.width..(rows + out.len()) * self.width];
            code_dots(self.level, codes, &query.numbers, products);
            let facts = &self.facts[rows..rows + out.len()];
            for (i, (out, (product, facts))) in
                out.iter_mut().zip(products.iter().zip(facts)).enumerate()
            {
                let begin = (rows + i) * n_columns;
                let kept = &self.outstanding[begin..begin + n_columns];
                let apart: f32 = kept.iter().zip(&query.outstanding).map(|(a, b)| a * b).sum();
                let score = *product as f32 * (facts.scale * query.scale) + apart;
                let off = query.length * facts.rest
                    + query.rest * facts.length
                    + ROUNDING * (query.length * (facts.length + facts.rest) + apart.abs());
                *out = (score - off, score + off);
            }
        }
    }
}

/// Codes a row.
fn code(row: &[f32], codes: &mut [i8]) -> RowFacts {
    let largest = row.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
    let scale = if largest.is_finite() { largest / MOST } else { 0.0 };
    let factor = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    let (mut rest, mut length) = (0.0f64, 0.0f64);
    for (code, &value) in codes.iter_mut().zip(row) {
        *code = (value * factor).round_ties_even() as i8;
        let said = f64::from(*code) * f64::from(scale);
        rest += (f64::from(value) - said).powi(2);
        length += said * said;
    }
    // A row that is not of finite numbers may score anything.
    let rest = if rest.is_finite() { rest.sqrt() as f32 } else { f32::INFINITY };
    RowFacts { scale, rest, length: length.sqrt() as f32 }
}

/// Copies all numbers but those of some columns, which are given in ascending order.
fn copy_without(columns: &[usize], row: &[f32], out: &mut [f32]) {
    let (mut begin, mut to) = (0, 0);
    for &end in columns.iter().chain([&row.len()]) {
        out[to..to + end - begin].copy_from_slice(&row[begin..end]);
        (begin, to) = (end + 1, to + end - begin);
    }
}

/// The columns whose numbers are much larger than those of others, a few at most.
fn outstanding(largest: &[f32]) -> Vec<usize> {
    let mut ascending = largest.to_vec();
    ascending.sort_unstable_by(f32::total_cmp);
    let Some(&middle) = ascending.get(ascending.len() / 2) else { return Vec::new() };
    let stands_out = |column: &usize| largest[*column] > OUTSTANDING * middle;
    let found: Vec<usize> = (0..largest.len()).filter(stands_out).collect();
    if found.len() <= MOST_OUTSTANDING { found } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::gradcheck::noise;

    fn check(dim: usize, numbers: &[f32], query: &[f32]) -> f32 {
        let n = numbers.len() / dim;
        let codes = Codes::new(Rows::f32(numbers, dim), 0..n);
        let mut bounds = vec![(0.0, 0.0); n];
        codes.bounds(&codes.query(query), 0..n, &mut bounds);
        let mut widest = 0.0f32;
        for (row, (low, high)) in numbers.chunks(dim).zip(bounds) {
            let exact: f64 =
                row.iter().zip(query).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
            assert!(f64::from(low) <= exact && exact <= f64::from(high), "{low} {exact} {high}");
            widest = widest.max(high - low);
        }
        widest
    }

    proptest! {
        #[test]
        fn products_lie_between_their_bounds(
            dim in 1usize..70, n in 1usize..100, scale in 1e-6f32..1e6, seed: u64,
        ) {
            let numbers: Vec<f32> = noise(seed, dim * n).iter().map(|v| v * scale).collect();
            check(dim, &numbers, &noise(seed ^ 1, dim));
        }
    }

    #[test]
    fn bounds_are_narrow_and_a_bias_does_not_widen_them() {
        let (dim, n) = (385, 200);
        let mut numbers = noise(1, dim * n);
        let mut query = noise(2, dim);
        let length = query.iter().map(|v| v * v).sum::<f32>().sqrt();
        query.iter_mut().for_each(|v| *v /= length);
        let plain = check(dim, &numbers, &query);
        let longest = numbers
            .chunks(dim)
            .map(|row| row.iter().map(|v| v * v).sum::<f32>().sqrt())
            .fold(0.0, f32::max);
        assert!(plain < 0.03 * longest, "{plain} of {longest}");
        numbers.chunks_mut(dim).enumerate().for_each(|(i, row)| row[dim - 1] = 50.0 + i as f32);
        query[dim - 1] = 1.0;
        let with_bias = check(dim, &numbers, &query);
        assert!(with_bias < 1.5 * plain + 0.01, "{with_bias} for {plain}");
    }

    #[test]
    fn zeros_extremes_and_what_is_no_number_are_no_trouble() {
        check(3, &[0.0; 9], &[0.0; 3]);
        check(2, &[1e30, -1e30, 1e-30, 0.0], &[1e-3, 1.0]);
        let rows = [f32::NAN, 1.0, f32::INFINITY, 2.0];
        let codes = Codes::new(Rows::f32(&rows, 2), 0..2);
        let mut bounds = [(0.0, 0.0); 2];
        codes.bounds(&codes.query(&[1.0, 1.0]), 0..2, &mut bounds);
        // Nobody may leave such a row out.
        assert!(
            bounds.iter().all(|(_, high)| *high == f32::INFINITY || high.is_nan()),
            "{bounds:?}"
        );
    }
}
