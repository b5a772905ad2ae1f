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

use crate::kernels::code_dots::code_dots;
use crate::kernels::code_product::{self, CODE_GROUP, OFFSET, QUERY_TILE, code_product};
use crate::kernels::{Level, kernel};
use crate::rows::Rows;

/// The largest code.
const MOST: f32 = 127.0;

/// The largest number of a query coded by itself, as far as sums of products fit 32 bits.
const MOST_OF_QUERY: f32 = 32_767.0;

/// The sum of a coded query's numbers, at most: times the largest code it still fits 32 bits.
const MOST_IN_ALL: f32 = 16_000_000.0;

/// The lanes of sums, as everywhere in the kernels.
const LANES: usize = 16;

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
    facts: Facts,
    columns: Vec<usize>, // Those that stand out.
}

/// What else is known of rows, a number of each.
#[derive(Clone, Debug, Default)]
struct Facts {
    /// What a code is worth.
    scales: Vec<f32>,
    /// The length of what the codes leave out.
    rests: Vec<f32>,
    /// The length of what they say.
    lengths: Vec<f32>,
    /// The codes added up.
    sums: Vec<i32>,
    /// The numbers in columns that stand out.
    outstanding: Vec<Vec<f32>>, // (columns that stand out, rows)
}

/// A query, coded.
#[derive(Clone, Debug)]
pub struct CodedQuery {
    numbers: Vec<i16>, // (width)
    facts: QueryFacts,
}

/// Queries, coded for being asked together: in fewer bits each, so their bounds are wider.
#[derive(Clone, Debug)]
pub struct CodedQueries {
    numbers: Vec<u8>, // (queries, width), larger by the offset, whole tiles of queries
    facts: Vec<QueryFacts>,
}

#[derive(Clone, Debug)]
struct QueryFacts {
    /// What one of its whole numbers is worth.
    scale: f32,
    /// Its length, without columns that stand out.
    length: f32,
    /// The length of what the numbers leave out.
    rest: f32,
    /// Its numbers in columns that stand out.
    outstanding: Vec<f32>,
}

/// Between which bounds the scores of some rows lie.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    /// No score is lower.
    pub low: Vec<f32>,
    /// None is higher.
    pub high: Vec<f32>,
    products: Vec<i32>,
}

impl CodedQueries {
    /// Queries that are multiplied together: whoever asks some of them begins with a multiple of this.
    pub const TILE: usize = QUERY_TILE;
}

impl Codes {
    /// Codes of some rows, made on all threads of the pool.
    pub fn new(rows: Rows<'_>, range: Range<usize>) -> Self {
        const TOGETHER: usize = 256;
        let level = Level::best();
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
        let parts: Vec<Facts> = codes
            .par_chunks_mut(TOGETHER * width)
            .enumerate()
            .map(|(part, codes)| {
                let (mut row, mut light) = (vec![0.0; dim], vec![0.0; n_light]);
                let mut facts = Facts::new(columns.len());
                for (id, codes) in ids(part).zip(codes.chunks_mut(width)) {
                    rows.gather(&[id as u32], &mut row);
                    copy_without(&columns, &row, &mut light);
                    facts.push_coded(level, &light, &mut codes[..n_light]);
                    for (kept, &column) in facts.outstanding.iter_mut().zip(&columns) {
                        kept.push(row[column]);
                    }
                }
                facts
            })
            .collect();
        let mut facts = Facts::new(columns.len());
        parts.into_iter().for_each(|part| facts.append(part));
        Self { dim, width, level, codes, facts, columns }
    }

    /// The rows.
    pub fn n_rows(&self) -> usize {
        self.facts.scales.len()
    }

    /// Whether this processor multiplies codes so fast that [`Self::bounds_of_many`] takes less time than
    /// a product of the rows themselves.
    pub fn suit_many() -> bool {
        code_product::is_fast(Level::best())
    }

    /// A query as [`Self::bounds`] takes it.
    ///
    /// # Panics
    /// If it is not as long as the rows.
    pub fn query(&self, query: &[f32]) -> CodedQuery {
        let light = self.light(query);
        let in_all: f32 = light.iter().map(|value| value.abs()).sum();
        let scale = (largest(self.level, &light) / MOST_OF_QUERY).max(in_all / MOST_IN_ALL);
        let mut numbers = vec![0; self.width];
        let facts = self.code_query(query, &light, scale, |place, number| {
            numbers[place] = number as i16;
            f32::from(numbers[place])
        });
        CodedQuery { numbers, facts }
    }

    /// Queries as [`Self::bounds_of_many`] takes them, made on all threads of the pool.
    ///
    /// # Panics
    /// If they are not as long as the rows.
    pub fn queries(&self, queries: &[f32]) -> CodedQueries {
        assert!(queries.len().is_multiple_of(self.dim), "queries are as long as the rows");
        let n_tiles = (queries.len() / self.dim).div_ceil(QUERY_TILE);
        let mut numbers = vec![OFFSET as u8; n_tiles * QUERY_TILE * self.width];
        let facts = queries
            .par_chunks_exact(self.dim)
            .zip(numbers.par_chunks_exact_mut(self.width))
            .map(|(query, numbers)| {
                let light = self.light(query);
                let scale = largest(self.level, &light) / MOST;
                self.code_query(query, &light, scale, |place, number| {
                    let number = number as i8;
                    numbers[place] = (i32::from(number) + OFFSET) as u8;
                    f32::from(number)
                })
            })
            .collect();
        CodedQueries { numbers, facts }
    }

    /// A query without columns that stand out.
    fn light(&self, query: &[f32]) -> Vec<f32> {
        assert_eq!(query.len(), self.dim, "a query is as long as the rows");
        let mut light = vec![0.0; self.dim - self.columns.len()];
        copy_without(&self.columns, query, &mut light);
        light
    }

    /// Codes a query; `write` is given every place and its rounded number, and says what was written.
    fn code_query(
        &self,
        query: &[f32],
        light: &[f32],
        scale: f32,
        mut write: impl FnMut(usize, f32) -> f32,
    ) -> QueryFacts {
        let factor = if scale > 0.0 && scale.is_finite() { 1.0 / scale } else { 0.0 };
        let (mut length, mut rest) = (0.0f64, 0.0f64);
        for (place, &value) in light.iter().enumerate() {
            let number = write(place, (value * factor).round_ties_even());
            length += f64::from(value).powi(2);
            rest += (f64::from(value) - f64::from(number) * f64::from(scale)).powi(2);
        }
        let finite = |value: f64| if value.is_nan() { f32::INFINITY } else { value.sqrt() as f32 };
        let outstanding = self.columns.iter().map(|&column| query[column]).collect();
        QueryFacts { scale, length: finite(length), rest: finite(rest), outstanding }
    }

    /// Between which bounds the inner products of some rows with a query lie.
    ///
    /// # Panics
    /// If there are no such rows, or the query is one of other codes.
    pub fn bounds(&self, query: &CodedQuery, rows: Range<usize>, bounds: &mut Bounds) {
        assert_eq!(query.numbers.len(), self.width, "a query of these codes");
        bounds.products.resize(rows.len(), 0);
        let codes = &self.codes[rows.start * self.width..rows.end * self.width];
        code_dots(self.level, codes, &query.numbers, &mut bounds.products);
        let Bounds { low, high, products } = bounds;
        self.around(&query.facts, products, rows, low, high);
    }

    /// The same of each of some queries: `look` is given the query's number and its bounds.
    ///
    /// # Panics
    /// If there are no such rows or queries, the first query is no multiple of
    /// [`CodedQueries::TILE`], or they are of other codes.
    pub fn bounds_of_many(
        &self,
        queries: &CodedQueries,
        asked: Range<usize>,
        rows: Range<usize>,
        bounds: &mut Bounds,
        mut look: impl FnMut(usize, &[f32], &[f32]),
    ) {
        let (width, n_rows) = (self.width, rows.len());
        assert!(asked.start.is_multiple_of(QUERY_TILE), "whole tiles of queries");
        let facts = &queries.facts[asked.clone()];
        let tiles = asked.start..asked.end.next_multiple_of(QUERY_TILE);
        let Bounds { low, high, products } = bounds;
        products.resize(tiles.len() * n_rows, 0);
        code_product(
            self.level,
            &self.codes[rows.start * width..rows.end * width],
            &self.facts.sums[rows.clone()],
            &queries.numbers[tiles.start * width..tiles.end * width],
            width,
            products,
        );
        for (number, (query, products)) in
            facts.iter().zip(products.chunks_exact(n_rows.max(1))).enumerate()
        {
            self.around(query, products, rows.clone(), low, high);
            look(asked.start + number, low, high);
        }
    }

    /// Bounds around the products of codes.
    fn around(
        &self,
        query: &QueryFacts,
        products: &[i32],
        rows: Range<usize>,
        low: &mut Vec<f32>,
        high: &mut Vec<f32>,
    ) {
        low.resize(rows.len(), 0.0);
        high.resize(rows.len(), 0.0);
        let Facts { scales, rests, lengths, outstanding, .. } = &self.facts;
        let facts = [scales, rests, lengths].map(|numbers| &numbers[rows.clone()]);
        // What a row's codes leave out, and what a query's do, by the length of the other.
        let of_rest = query.length * (1.0 + ROUNDING);
        let of_length = query.rest + ROUNDING * query.length;
        around(self.level, products, facts, [query.scale, of_rest, of_length], low, high);
        for (column, &value) in outstanding.iter().zip(&query.outstanding) {
            for ((low, high), kept) in
                low.iter_mut().zip(high.iter_mut()).zip(&column[rows.clone()])
            {
                let apart = kept * value;
                let off = ROUNDING * apart.abs();
                (*low, *high) = (*low + (apart - off), *high + (apart + off));
            }
        }
    }
}

impl Facts {
    fn new(n_columns: usize) -> Self {
        Self { outstanding: vec![Vec::new(); n_columns], ..Self::default() }
    }

    /// Codes one more row.
    fn push_coded(&mut self, level: Level, row: &[f32], codes: &mut [i8]) {
        let largest = largest(level, row);
        let scale = if largest.is_finite() { largest / MOST } else { 0.0 };
        let factor = if scale > 0.0 { 1.0 / scale } else { 0.0 };
        let ([rest, length], sum) = code(level, row, factor, scale, codes);
        // A row that is not of finite numbers may score anything.
        let rest = if rest.is_finite() { rest.sqrt() as f32 } else { f32::INFINITY };
        self.scales.push(scale);
        self.rests.push(rest);
        self.lengths.push(length.sqrt() as f32);
        self.sums.push(sum);
    }

    fn append(&mut self, mut other: Self) {
        self.scales.append(&mut other.scales);
        self.rests.append(&mut other.rests);
        self.lengths.append(&mut other.lengths);
        self.sums.append(&mut other.sums);
        for (to, mut from) in self.outstanding.iter_mut().zip(other.outstanding) {
            to.append(&mut from);
        }
    }
}

kernel! {
    /// Bounds around products, by what rows leave out.
    fn around<A>(
        products: &[i32], // (rows), as all that follow
        facts: [&[f32]; 3], // What a code is worth, the length of what codes leave out, and of what they say.
        factors: [f32; 3], // What each of these is to be multiplied by.
        low: &mut [f32],
        high: &mut [f32],
    ) {
        let [scales, rests, lengths] = facts;
        let [by_scale, by_rest, by_length] = factors;
        let facts = scales.iter().zip(rests.iter().zip(lengths));
        let bounds = low.iter_mut().zip(high);
        for ((&product, (&scale, (&rest, &length))), (low, high)) in
            products.iter().zip(facts).zip(bounds)
        {
            let score = product as f32 * (scale * by_scale);
            let off = by_rest * rest + by_length * length;
            (*low, *high) = (score - off, score + off);
        }
    }
}

kernel! {
    /// Codes a row. Gives the squares of what is left out and of what is said, added up, and the sum of codes.
    fn code<A>(
        row: &[f32],
        factor: f32,
        scale: f32,
        codes: &mut [i8], // As many as the row's numbers.
    ) -> ([f64; 2], i32) {
        let (mut rests, mut lengths, mut sums) = ([0.0; LANES], [0.0; LANES], [0; LANES]);
        for (row, codes) in row.chunks(LANES).zip(codes.chunks_mut(LANES)) {
            // Zeros where the row has ended say nothing and leave nothing out.
            let mut values = [0.0f32; LANES];
            values[..row.len()].copy_from_slice(row);
            let mut numbers = [0i8; LANES];
            for lane in 0..LANES {
                let number = (values[lane] * factor).clamp(-MOST, MOST).round_ties_even() as i32;
                let said = f64::from(number) * f64::from(scale);
                let rest = f64::from(values[lane]) - said;
                rests[lane] += rest * rest;
                lengths[lane] += said * said;
                sums[lane] += number;
                numbers[lane] = number as i8;
            }
            codes.copy_from_slice(&numbers[..codes.len()]);
        }
        ([rests.iter().sum(), lengths.iter().sum()], sums.iter().sum())
    }
}

kernel! {
    /// The largest number, whatever its sign.
    fn largest<A>(numbers: &[f32]) -> f32 {
        let mut lanes = [0.0f32; LANES];
        let (groups, rest) = numbers.as_chunks::<LANES>();
        for group in groups {
            for (most, value) in lanes.iter_mut().zip(group) {
                *most = most.max(value.abs());
            }
        }
        rest.iter().chain(&lanes).fold(0.0, |largest, value| largest.max(value.abs()))
    }
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

    /// The width of the widest bounds, whether the query is asked alone or among others.
    fn check(dim: usize, numbers: &[f32], query: &[f32]) -> f32 {
        let n = numbers.len() / dim;
        let codes = Codes::new(Rows::f32(numbers, dim), 0..n);
        let mut bounds = Bounds::default();
        codes.bounds(&codes.query(query), 0..n, &mut bounds);
        let alone = between(numbers, query, &bounds.low, &bounds.high);
        // The same query, fifth of several.
        let others = noise(9, 4 * dim);
        let together = codes.queries(&[&others[..], query].concat());
        let mut among = None;
        codes.bounds_of_many(&together, 4..5, 0..n, &mut bounds, |number, low, high| {
            assert_eq!(number, 4);
            among = Some(between(numbers, query, low, high));
        });
        among.expect("bounds of one query").max(alone)
    }

    /// How far bounds are apart that hold every score.
    fn between(numbers: &[f32], query: &[f32], low: &[f32], high: &[f32]) -> f32 {
        assert_eq!((low.len(), high.len()), (numbers.len() / query.len(), low.len()));
        let mut widest = 0.0f32;
        for (row, (&low, &high)) in numbers.chunks(query.len()).zip(low.iter().zip(high)) {
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
        assert!(plain < 0.05 * longest, "{plain} of {longest}");
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
        // Nobody may leave such a row out.
        let is_unknown = |high: &f32| *high == f32::INFINITY || high.is_nan();
        let mut bounds = Bounds::default();
        codes.bounds(&codes.query(&[1.0, 1.0]), 0..2, &mut bounds);
        assert!(bounds.high.iter().all(is_unknown), "{bounds:?}");
        let queries = codes.queries(&[1.0, 1.0]);
        let mut n_looked = 0;
        codes.bounds_of_many(&queries, 0..1, 0..2, &mut bounds, |_, _, high| {
            assert!(high.iter().all(is_unknown), "{high:?}");
            n_looked += 1;
        });
        assert_eq!(n_looked, 1);
    }
}
