//! Sums over rows, the same to the last bit on any number of threads.
//!
//! Every metric here is a ratio of two sums over rows: precision is hits over rows, click-through
//! rate is clicks over ads. What a row adds to each of those sums is written as one line of
//! columns. Rows are added up in chunks of a fixed size and the chunks in order, so the order of
//! the additions, and with it the rounding, never depends on how the work was shared out.

use std::ops::Range;

use rayon::prelude::*;

/// How many rows are added up before their sum joins the others. A chunk of 45 columns fits a
/// second-level cache, and one panel of it the first-level cache (see [`super::bootstrap`]).
pub(super) const ROWS_PER_CHUNK: usize = 256;

/// Chunks are worked on together as long as what they hold takes no more than this many bytes.
/// Tests have few rows and should still see more than one wave.
const BYTES_PER_WAVE: usize = if cfg!(test) { 1 << 18 } else { 32 << 20 };

/// Rows of numbers to be added up column by column.
pub(super) trait Contributions: Sync {
    /// How many rows there are.
    fn n_rows(&self) -> usize;

    /// How many columns a row has.
    fn n_columns(&self) -> usize;

    /// Calls `visit` with the columns of each of these rows, in order.
    fn visit_rows(&self, rows: Range<usize>, visit: &mut dyn FnMut(&[f64]));
}

/// A metric as a ratio of the sums of two columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ratio {
    /// The column above the line.
    pub(super) numerator: usize,
    /// The column below the line.
    pub(super) denominator: usize,
    /// What the denominator is multiplied by, such as the k of precision.
    pub(super) multiplier: f64,
}

impl Ratio {
    /// The ratio of one column to another.
    pub(super) const fn new(numerator: usize, denominator: usize) -> Self {
        Self { numerator, denominator, multiplier: 1.0 }
    }

    /// The metric's value, or `None` where nothing is below the line.
    pub(super) fn of(self, sums: &[f64]) -> Option<f64> {
        let denominator = sums[self.denominator] * self.multiplier;
        (denominator != 0.0).then(|| sums[self.numerator] / denominator)
    }
}

/// The sum of every column.
pub(super) fn column_sums(contributions: &impl Contributions) -> Vec<f64> {
    let n_columns = contributions.n_columns();
    let mut sums = vec![0.0; n_columns];
    for wave in waves(contributions, n_columns) {
        let chunk_sums: Vec<Vec<f64>> = wave
            .into_par_iter()
            .map(|chunk| {
                let mut sums = vec![0.0; n_columns];
                contributions
                    .visit_rows(chunk_rows(contributions, chunk), &mut |row| add(&mut sums, row));
                sums
            })
            .collect();
        for chunk in &chunk_sums {
            add(&mut sums, chunk);
        }
    }
    sums
}

/// Adds each element of `addend` to the element beside it.
pub(super) fn add(sums: &mut [f64], addend: &[f64]) {
    for (sum, value) in sums.iter_mut().zip(addend) {
        *sum += value;
    }
}

/// The rows of a chunk; the last chunk may be shorter than the others.
pub(super) fn chunk_rows(contributions: &impl Contributions, chunk: usize) -> Range<usize> {
    let begin = chunk * ROWS_PER_CHUNK;
    begin..contributions.n_rows().min(begin + ROWS_PER_CHUNK)
}

/// All chunks in order, cut into waves that hold so many numbers a chunk without taking too much
/// memory. Waves only bound memory: results do not depend on where they are cut.
pub(super) fn waves(
    contributions: &impl Contributions,
    numbers_per_chunk: usize,
) -> impl Iterator<Item = Range<usize>> {
    let n_chunks = contributions.n_rows().div_ceil(ROWS_PER_CHUNK);
    let bytes_per_chunk = numbers_per_chunk.max(1) * size_of::<f64>();
    let chunks_per_wave = (BYTES_PER_WAVE / bytes_per_chunk).max(1);
    (0..n_chunks)
        .step_by(chunks_per_wave)
        .map(move |begin| begin..n_chunks.min(begin.saturating_add(chunks_per_wave)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Rows computed by a function of their index.
    pub(in crate::metrics) struct Computed<F> {
        pub(in crate::metrics) n_rows: usize,
        pub(in crate::metrics) n_columns: usize,
        pub(in crate::metrics) row: F,
    }

    impl<F: Fn(usize) -> Vec<f64> + Sync> Contributions for Computed<F> {
        fn n_rows(&self) -> usize {
            self.n_rows
        }

        fn n_columns(&self) -> usize {
            self.n_columns
        }

        fn visit_rows(&self, rows: Range<usize>, visit: &mut dyn FnMut(&[f64])) {
            rows.for_each(|row| visit(&(self.row)(row)));
        }
    }

    #[test]
    fn every_row_is_added_once() {
        for n_rows in [0, 1, 255, 256, 257, 5000] {
            let rows = Computed { n_rows, n_columns: 2, row: |row| vec![1.0, row as f64] };
            let n = n_rows as f64;
            assert_eq!(column_sums(&rows), [n, n * (n - 1.0) / 2.0]);
        }
    }

    #[test]
    fn waves_cover_all_chunks_in_order() {
        let rows = Computed { n_rows: 10_000, n_columns: 1, row: |_| vec![0.0] };
        for numbers_per_chunk in [0, 1, 1 << 20, usize::MAX >> 4] {
            let chunks: Vec<usize> = waves(&rows, numbers_per_chunk).flatten().collect();
            assert_eq!(chunks, (0..40).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_ratio_over_nothing_has_no_value() {
        assert_eq!(Ratio::new(0, 1).of(&[3.0, 4.0]), Some(0.75));
        assert_eq!(Ratio { multiplier: 3.0, ..Ratio::new(0, 1) }.of(&[3.0, 4.0]), Some(0.25));
        assert_eq!(Ratio::new(0, 1).of(&[3.0, 0.0]), None);
    }
}
