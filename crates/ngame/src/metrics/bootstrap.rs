//! Confidence intervals by the bootstrap: how much would a metric differ on other points?
//!
//! Points are resampled with replacement and the metric computed again, a thousand times; the
//! middle 95 % of the values are the interval. Ratios of means resample both means together.
//!
//! This is the Poisson bootstrap (see [`super::poisson`]): every point has an independent
//! Poisson(1) weight in every resample, so rows stream by once, chunk after chunk, and a chunk's
//! part in all resamples is a product of two small matrices, weights (resamples × rows) times
//! contributions (rows × columns). The weights come from a generator keyed by seed and chunk, and
//! every resample adds up its chunks in order: any number of threads gives the same bytes.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::columns::{Contributions, Ratio, add, chunk_rows, waves};
use super::poisson::PoissonWeights;
use crate::error::{Error, Result};

/// How to resample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bootstrap {
    /// How often the points are resampled.
    pub resamples: u32,
    /// What share of the resampled values the interval holds.
    pub level: f64,
    /// Where the random numbers start. The same seed gives the same intervals.
    pub seed: u64,
}

impl Default for Bootstrap {
    /// 1000 resamples, 95 % intervals, seed 0.
    fn default() -> Self {
        Self { resamples: 1000, level: 0.95, seed: 0 }
    }
}

impl Bootstrap {
    /// Refuses numbers that give no intervals.
    pub fn validate(&self) -> Result<()> {
        if !(1..=1_000_000).contains(&self.resamples) {
            return Err(Error::Option {
                option: "bootstrap resamples",
                expected: "a whole number from 1 to 1000000, such as 1000".to_owned(),
                found: self.resamples.to_string(),
            });
        }
        if !(self.level > 0.0 && self.level < 1.0) {
            return Err(Error::Option {
                option: "confidence level",
                expected: "a number between 0 and 1, such as 0.95".to_owned(),
                found: self.level.to_string(),
            });
        }
        Ok(())
    }
}

/// A confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    /// The interval that holds the middle `level` of the values and the estimate itself. The
    /// estimate is included by force because rounding can put it a last digit outside where all
    /// values are the same, and luck can where there are only a few values.
    pub(super) fn of_values(mut values: Vec<f64>, level: f64, estimate: f64) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let tail = (1.0 - level) / 2.0;
        Self {
            low: quantile(&values, tail).map_or(estimate, |low| low.min(estimate)),
            high: quantile(&values, 1.0 - tail).map_or(estimate, |high| high.max(estimate)),
        }
    }
}

/// The value below which lies this share of the ascending values, interpolated between the two
/// nearest.
fn quantile(ascending: &[f64], share: f64) -> Option<f64> {
    let position = share * ascending.len().checked_sub(1)? as f64;
    let (below, above) = (position.floor() as usize, position.ceil() as usize);
    let fraction = position - position.floor();
    Some(ascending[below] + fraction * (ascending[above] - ascending[below]))
}

/// Column sums over the rows as they are, and over every resample of them.
pub(super) struct ResampledSums {
    /// The plain sums, bit for bit those of [`super::columns::column_sums`].
    pub(super) sums: Vec<f64>,
    /// The sums of every resample.
    pub(super) resampled: Vec<Vec<f64>>,
}

impl ResampledSums {
    /// The ratio's value in every resample that has one: those in which every row below the line
    /// has weight zero say nothing.
    pub(super) fn values(&self, ratio: Ratio) -> Vec<f64> {
        self.resampled.iter().filter_map(|sums| ratio.of(sums)).collect()
    }

    /// The ratio's confidence interval; a ratio without value counts as 0.
    pub(super) fn interval(&self, ratio: Ratio, level: f64) -> Interval {
        Interval::of_values(self.values(ratio), level, ratio.of(&self.sums).unwrap_or(0.0))
    }
}

/// Resamples are multiplied out in strips and columns in panels of this many: 4 × 4 sums fit the
/// registers of any machine.
const TILE: usize = 4;

/// So many strips are one task. They share the chunk of contributions in the cache.
const STRIPS_PER_GROUP: usize = 8;

/// The sums of a strip of resamples over a panel of columns.
type Tile = [[f64; TILE]; TILE];

/// A chunk of contributions, laid out panel by panel.
struct PackedChunk {
    n_rows: usize,
    /// For each panel, for each row, `TILE` neighbouring columns; zeros after the last column.
    panels: Vec<[f64; TILE]>,
    sums: Vec<f64>,
}

/// Adds up the columns over all rows and over resamples of them. `stream` sets apart sets of rows
/// that share a seed but must be resampled independently.
///
/// # Panics
/// If the bootstrap does not pass [`Bootstrap::validate`].
pub(super) fn resample(
    contributions: &impl Contributions,
    bootstrap: &Bootstrap,
    stream: u32,
) -> ResampledSums {
    assert!(bootstrap.validate().is_ok(), "{bootstrap:?} is not a bootstrap");
    let n_columns = contributions.n_columns();
    let n_panels = n_columns.div_ceil(TILE);
    let n_groups = bootstrap.resamples.div_ceil((TILE * STRIPS_PER_GROUP) as u32);
    let mut sums = vec![0.0; n_columns];
    // (groups, strips × panels)
    let mut groups: Vec<Vec<Tile>> =
        vec![vec![Tile::default(); STRIPS_PER_GROUP * n_panels]; n_groups as usize];

    let numbers_per_chunk = n_panels * TILE * super::columns::ROWS_PER_CHUNK;
    for wave in waves(contributions, numbers_per_chunk) {
        let chunks: Vec<PackedChunk> =
            wave.clone().into_par_iter().map(|chunk| pack(contributions, chunk)).collect();
        for chunk in &chunks {
            add(&mut sums, &chunk.sums);
        }
        groups.par_iter_mut().zip(0..n_groups).for_each(|(tiles, group)| {
            for (chunk, index) in chunks.iter().zip(wave.clone()) {
                let weights = PoissonWeights::new(bootstrap.seed, stream, group, index as u64);
                add_chunk(chunk, weights, n_panels, tiles);
            }
        });
    }
    let resampled = (0..bootstrap.resamples as usize)
        .map(|resample| {
            let (strip, lane) = (resample / TILE, resample % TILE);
            let first_panel = strip % STRIPS_PER_GROUP * n_panels;
            let tiles = &groups[strip / STRIPS_PER_GROUP][first_panel..first_panel + n_panels];
            tiles.iter().flat_map(|tile| tile[lane]).take(n_columns).collect()
        })
        .collect();
    ResampledSums { sums, resampled }
}

/// Computes a chunk's contributions and lays them out for [`add_chunk`].
fn pack(contributions: &impl Contributions, chunk: usize) -> PackedChunk {
    let rows = chunk_rows(contributions, chunk);
    let (n_rows, n_columns) = (rows.len(), contributions.n_columns());
    let mut panels = vec![[0.0; TILE]; n_columns.div_ceil(TILE) * n_rows];
    let mut sums = vec![0.0; n_columns];
    let mut row_index = 0;
    contributions.visit_rows(rows, &mut |row| {
        add(&mut sums, row);
        for (panel, columns) in row.chunks(TILE).enumerate() {
            panels[panel * n_rows + row_index][..columns.len()].copy_from_slice(columns);
        }
        row_index += 1;
    });
    assert_eq!(row_index, n_rows, "every row is visited");
    PackedChunk { n_rows, panels, sums }
}

/// Adds a chunk to the sums of a group of resamples.
fn add_chunk(
    chunk: &PackedChunk,
    mut weights: PoissonWeights,
    n_panels: usize,
    tiles: &mut [Tile],
) {
    // (rows, resamples of the strip)
    let mut strip_weights = vec![0.0; chunk.n_rows * TILE];
    for strip in tiles.chunks_mut(n_panels.max(1)) {
        weights.fill(&mut strip_weights);
        let strip_weights = strip_weights.as_chunks::<TILE>().0;
        for (tile, panel) in strip.iter_mut().zip(chunk.panels.chunks(chunk.n_rows)) {
            let product = weigh(strip_weights, panel);
            for (sums, products) in tile.iter_mut().zip(&product) {
                add(sums, products);
            }
        }
    }
}

/// The panel's columns added up under each resample's weights: a matrix product whose result
/// stays in registers from the first row to the last.
fn weigh(weights: &[[f64; TILE]], panel: &[[f64; TILE]]) -> Tile {
    let mut product = Tile::default();
    for (row_weights, columns) in weights.iter().zip(panel) {
        for (sums, weight) in product.iter_mut().zip(row_weights) {
            for (sum, value) in sums.iter_mut().zip(columns) {
                *sum += weight * value;
            }
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::super::columns::{column_sums, tests::Computed};
    use super::*;

    /// A fixed pseudo-random order of rows, to spread hits over chunks.
    fn scattered(row: usize) -> usize {
        row.wrapping_mul(7919) % 10_007
    }

    #[test]
    fn quantiles_interpolate() {
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.5), Some(3.0));
        assert_eq!(quantile(&[1.0, 2.0, 3.0], 0.25), Some(1.5));
        assert_eq!(quantile(&[7.0], 0.975), Some(7.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn the_matrix_product_is_what_it_says() {
        // Five columns take two panels, 70 resamples three groups, 4200 rows 17 chunks, and these
        // two waves.
        let row = |row: usize| (0..5).map(|column| ((row * 31 + column) % 17) as f64).collect();
        let rows = Computed { n_rows: 4200, n_columns: 5, row };
        let bootstrap = Bootstrap { resamples: 70, ..Bootstrap::default() };
        let sums = resample(&rows, &bootstrap, 3);
        assert_eq!(sums.sums, column_sums(&rows));
        assert_eq!(sums.resampled.len(), 70);

        let mut expected = vec![vec![0.0; 5]; 96];
        for group in 0..3 {
            for chunk in 0..17 {
                let mut weights = PoissonWeights::new(0, 3, group as u32, chunk as u64);
                for strip in 0..STRIPS_PER_GROUP {
                    let begin = chunk * 256;
                    let end = (begin + 256).min(4200);
                    let mut drawn = vec![0.0; (end - begin) * TILE];
                    weights.fill(&mut drawn);
                    for (index, weight) in drawn.iter().enumerate() {
                        let resample = (group * STRIPS_PER_GROUP + strip) * TILE + index % TILE;
                        let contributions: Vec<f64> = row(begin + index / TILE);
                        for (sum, value) in expected[resample].iter_mut().zip(contributions) {
                            *sum += weight * value;
                        }
                    }
                }
            }
        }
        assert_eq!(sums.resampled, expected[..70]);
    }

    #[test]
    fn the_interval_of_a_proportion_is_as_wide_as_theory_says() {
        for (n_rows, n_hits) in [(10_007, 3000), (10_007, 200), (400, 12)] {
            let hit = |row| f64::from(scattered(row) % n_rows < n_hits);
            let rows = Computed { n_rows, n_columns: 2, row: |row| vec![1.0, hit(row)] };
            let bootstrap = Bootstrap { resamples: 4000, level: 0.95, seed: 5 };
            let sums = resample(&rows, &bootstrap, 0);
            let interval = sums.interval(Ratio::new(1, 0), 0.95);
            let share = sums.sums[1] / n_rows as f64;
            let deviation = (share * (1.0 - share) / n_rows as f64).sqrt();
            let width = (interval.high - interval.low) / (2.0 * 1.959_964 * deviation);
            assert!((width - 1.0).abs() < 0.06, "{width} times the normal width at {share}");
            let centre = (interval.high + interval.low) / 2.0;
            assert!((centre - share).abs() < 0.25 * deviation, "{centre} is off {share}");
        }
    }

    #[test]
    fn the_interval_of_a_ratio_resamples_both_sides_together() {
        // The numerator is half the denominator in every row: whatever is drawn, so is the ratio.
        let value = |row| (scattered(row) % 10) as f64;
        let rows =
            Computed { n_rows: 1000, n_columns: 2, row: |row| vec![value(row), 2.0 * value(row)] };
        let sums = resample(&rows, &Bootstrap::default(), 0);
        let interval = sums.interval(Ratio::new(0, 1), 0.95);
        assert_eq!(interval, Interval { low: 0.5, high: 0.5 });
    }

    #[test]
    fn nothing_to_resample_is_no_panic() {
        for (n_rows, n_columns) in [(0, 2), (0, 0), (3, 0)] {
            let rows = Computed { n_rows, n_columns, row: |_| Vec::new() };
            let sums = resample(&rows, &Bootstrap::default(), 0);
            if n_columns > 0 {
                let interval = sums.interval(Ratio::new(0, 1), 0.95);
                assert_eq!(interval, Interval { low: 0.0, high: 0.0 });
            }
        }
    }

    #[test]
    fn senseless_options_are_refused() {
        for (resamples, level) in [(0, 0.95), (10, 0.0), (10, 1.0), (10, f64::NAN)] {
            assert!(Bootstrap { resamples, level, seed: 0 }.validate().is_err());
        }
    }
}
