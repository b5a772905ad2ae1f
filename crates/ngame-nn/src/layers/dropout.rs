//! Dropout: numbers fall out at random, and the backward pass drops the same ones.
//!
//! No mask is stored. Whether a number stays is a hash of the seed, the place in the network, its
//! row in the whole batch and its column; the backward pass asks again. Cutting a batch into chunks
//! or running it on other threads changes nothing.

use rayon::prelude::*;

use super::blocks::ROWS;
use crate::encoder::Dropout;
use crate::kernels::{Level, kernel};

/// The places of a network that drop numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Site {
    Embedding,
    Attention { layer: usize, head: usize },
    AttentionOutput { layer: usize },
    Output { layer: usize },
}

impl Site {
    fn number(self) -> u64 {
        match self {
            Self::Embedding => 0,
            Self::AttentionOutput { layer } => 4 * layer as u64 + 1,
            Self::Output { layer } => 4 * layer as u64 + 2,
            Self::Attention { layer, head } => 4 * layer as u64 + 3 + ((head as u64) << 32),
        }
    }
}

/// Drops a share of the numbers of some rows at random and makes the others larger, so that the mean
/// stays.
pub fn drop_numbers(seed: u64, rate: f32, dim: usize, rows: &mut [f32]) {
    if let Some(mask) = Mask::new(Dropout::Seed(seed), rate, Site::Embedding) {
        mask.apply_rows(Level::best(), 0, dim, rows);
    }
}

/// Which numbers of one place stay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mask {
    key: u64,
    threshold: u32, // A hash below it drops the number.
    scale: f32,     // What stays grows, so that the mean stays too.
}

impl Mask {
    /// The mask of a place, or none where nothing is dropped.
    pub(crate) fn new(dropout: Dropout, rate: f32, site: Site) -> Option<Self> {
        match dropout {
            Dropout::Seed(seed) if rate > 0.0 => Some(Self {
                key: mix(seed ^ mix(site.number())),
                threshold: (f64::from(rate) * (u64::from(u32::MAX) + 1) as f64) as u32,
                scale: 1.0 / (1.0 - rate),
            }),
            _ => None,
        }
    }

    /// Drops numbers of a whole matrix, whose first row is row `first_row` of the batch.
    pub(crate) fn apply_rows(
        self,
        level: Level,
        first_row: usize,
        dim: usize,
        matrix: &mut [f32], // (rows, dim)
    ) {
        matrix.par_chunks_mut(ROWS * dim).enumerate().for_each(|(n, rows)| {
            drop_block(level, self, first_row + n * ROWS, dim, rows);
        });
    }

    /// Multiplies the numbers of one row by 0 or by the scale.
    #[inline(always)]
    pub(crate) fn apply(&self, row: usize, values: &mut [f32]) {
        let key = mix(self.key ^ (row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (low, high) = (key as u32, (key >> 32) as u32);
        for (column, value) in values.iter_mut().enumerate() {
            let stays = hash((column as u32).wrapping_mul(0x9E37_79B9) ^ low, high);
            *value *= if stays >= self.threshold { self.scale } else { 0.0 };
        }
    }
}

kernel! {
    /// One block of [`Mask::apply_rows`].
    fn drop_block<A>(mask: Mask, first_row: usize, dim: usize, rows: &mut [f32]) {
        for (row, values) in rows.chunks_exact_mut(dim).enumerate() {
            mask.apply(first_row + row, values);
        }
    }
}

/// Spreads 64 bits (the finaliser of SplitMix64).
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Spreads 32 bits (the finaliser of MurmurHash3), which vectors can do.
#[inline(always)]
fn hash(mut x: u32, key: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x85EB_CA6B);
    x ^= (x >> 13) ^ key;
    x = x.wrapping_mul(0xC2B2_AE35);
    x ^ (x >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_kept_in_rows_and_columns() {
        let mask = Mask::new(Dropout::Seed(7), 0.1, Site::Output { layer: 3 }).expect("a rate");
        let (rows, columns) = (400, 500);
        let mut by_column = vec![0; columns];
        for row in 0..rows {
            let mut values = vec![1.0; columns];
            mask.apply(row, &mut values);
            assert!(values.iter().all(|&value| value == 0.0 || value == 1.0 / 0.9));
            let dropped = values.iter().filter(|&&value| value == 0.0).count();
            // Mean 50, deviation 6.7.
            assert!((15..90).contains(&dropped), "{dropped} of {columns} dropped");
            for (count, value) in by_column.iter_mut().zip(&values) {
                *count += usize::from(*value == 0.0);
            }
        }
        // Mean 40, deviation 6.
        assert!(by_column.iter().all(|dropped| (10..75).contains(dropped)), "{by_column:?}");
        let all: usize = by_column.iter().sum();
        assert!((19_300..20_700).contains(&all), "{all} of 200,000 dropped");
    }

    #[test]
    fn sites_rows_and_seeds_differ() {
        let pattern = |seed, site, row| {
            let mut values = vec![1.0; 64];
            Mask::new(Dropout::Seed(seed), 0.5, site).expect("a rate").apply(row, &mut values);
            values
        };
        let site = Site::Attention { layer: 1, head: 2 };
        let first = pattern(1, site, 5);
        assert_eq!(first, pattern(1, site, 5));
        assert_ne!(first, pattern(2, site, 5));
        assert_ne!(first, pattern(1, site, 6));
        assert_ne!(first, pattern(1, Site::Attention { layer: 1, head: 3 }, 5));
        assert_ne!(first, pattern(1, Site::Embedding, 5));
    }

    #[test]
    fn off_and_rate_zero_drop_nothing() {
        assert!(Mask::new(Dropout::Off, 0.5, Site::Embedding).is_none());
        assert!(Mask::new(Dropout::Seed(1), 0.0, Site::Embedding).is_none());
    }
}
