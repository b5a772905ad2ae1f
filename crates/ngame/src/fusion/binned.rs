//! Features as bytes: every value becomes the number of its bin.
//!
//! Growing a tree asks for the best threshold of each feature again and again. On sorted bins that is
//! a sum over at most 256 numbers instead of a sort of all pairs, and a byte a value instead of four
//! keeps more of the pairs in the cache.
//!
//! A value that is "not a number" is missing: the view did not score that label. It behaves as minus
//! infinity, in bin 0, and so goes left at every split; a split right after bin 0 tells the labels a
//! view scored from those it did not.

use rayon::prelude::*;

/// The bins of a feature, that of missing values included: what a byte counts.
pub(super) const MOST_BINS: usize = 256;

/// Rows binned by one thread at a time.
const ROWS: usize = 4_096;

/// A matrix of features as bins, with the thresholds between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Binned {
    n_rows: usize,
    n_features: usize,
    bins: Vec<u8>, // (pairs, features)
    /// For every feature, ascending: a value is in bin `b` or below exactly if it is at most
    /// `thresholds[b]`. The first one is below all values that are not missing.
    thresholds: Vec<Vec<f32>>,
}

impl Binned {
    /// Bins of features given row by row.
    ///
    /// A feature with at most 255 distinct values has a bin for each, so a tree on it is as exact as
    /// one on the values; a feature with more is cut into 255 bins of about as many pairs each.
    /// Infinite values count as the largest finite ones, and the lowest finite number as missing.
    ///
    /// # Panics
    /// If the rows are not all of `n_features` values, or there are more than `u32` counts.
    pub fn new(features: &[f32], n_features: usize) -> Self {
        let n_rows = n_rows(features, n_features);
        assert!(u32::try_from(n_rows).is_ok(), "pairs are counted in u32");
        let thresholds: Vec<Vec<f32>> = (0..n_features)
            .into_par_iter()
            .map(|feature| {
                let column = features.iter().skip(feature).step_by(n_features);
                thresholds(column.copied().collect())
            })
            .collect();
        let mut bins = vec![0; features.len()];
        bins.par_chunks_mut(ROWS * n_features)
            .zip(features.par_chunks(ROWS * n_features))
            .for_each(|(bins, features)| {
                let rows = bins.chunks_exact_mut(n_features).zip(features.chunks_exact(n_features));
                for (bins, row) in rows {
                    for ((bin, &value), thresholds) in bins.iter_mut().zip(row).zip(&thresholds) {
                        *bin = bin_of(thresholds, value);
                    }
                }
            });
        Self { n_rows, n_features, bins, thresholds }
    }

    /// How many pairs there are.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// How many features describe a pair.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// The bins of a pair, one a feature; 0 where the value is missing.
    pub fn row(&self, row: usize) -> &[u8] {
        &self.bins[row * self.n_features..(row + 1) * self.n_features]
    }

    /// The thresholds of a feature, ascending: a value is in bin `b` or below exactly if it is at
    /// most the `b`-th of them, or missing.
    pub fn thresholds(&self, feature: usize) -> &[f32] {
        &self.thresholds[feature]
    }
}

/// How many rows of `n_features` values there are.
///
/// # Panics
/// If there are no features, or the rows are not whole.
pub(super) fn n_rows(features: &[f32], n_features: usize) -> usize {
    assert!(n_features > 0, "a pair has at least one feature");
    assert_eq!(features.len() % n_features, 0, "every pair has all its features");
    features.len() / n_features
}

/// The bin of a value: the first whose threshold is not below it.
fn bin_of(thresholds: &[f32], value: f32) -> u8 {
    // Nothing is below "not a number", so it stays in bin 0. There are at most 255 thresholds.
    thresholds.partition_point(|&threshold| threshold < value) as u8
}

/// The thresholds between the bins of a column.
fn thresholds(mut values: Vec<f32>) -> Vec<f32> {
    values.retain(|&value| value > f32::MIN); // Neither missing nor as good as that.
    for value in &mut values {
        *value = value.min(f32::MAX) + 0.0; // Adding zero turns -0.0 into 0.0: they are equal.
    }
    values.sort_unstable_by(f32::total_cmp);
    let groups = values.chunk_by(|a, b| a == b);
    let n_distinct = groups.clone().count();
    if n_distinct == 0 {
        return Vec::new();
    }
    // Between missing and present. It is not right below the least value seen: a lower one may come,
    // and it will not be missing.
    let mut thresholds = vec![f32::MIN];
    let mut bins_left = MOST_BINS - 1;
    let (mut n_in_bin, mut n_left, mut last) = (0, values.len(), f32::MIN);
    for group in groups {
        // A bin ends where it is nearer to its share of the values left than with one group more.
        let is_full = n_distinct < MOST_BINS
            || (2 * n_in_bin + group.len()) * bins_left > 2 * (n_left + n_in_bin);
        if n_in_bin > 0 && bins_left > 1 && is_full {
            thresholds.push(midpoint(last, group[0]));
            bins_left -= 1;
            n_in_bin = 0;
        }
        n_in_bin += group.len();
        n_left -= group.len();
        last = group[0];
    }
    thresholds
}

/// A number in the middle of two: not below the lower, and below the upper.
fn midpoint(lower: f32, upper: f32) -> f32 {
    let middle = ((f64::from(lower) + f64::from(upper)) / 2.0) as f32;
    if middle < upper { middle } else { lower }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_values_have_a_bin_each_and_missing_ones_the_first() {
        let values = [2.0, f32::NAN, -1.0, 0.0, -0.0, 2.0, f32::NEG_INFINITY, f32::INFINITY];
        let binned = Binned::new(&values, 1);
        let bins: Vec<u8> = (0..values.len()).map(|row| binned.row(row)[0]).collect();
        assert_eq!(bins, [3, 0, 1, 2, 2, 3, 0, 4]);
        assert_eq!(binned.thresholds(0)[..3], [f32::MIN, -0.5, 1.0]);
        assert!(binned.thresholds(0).iter().all(|threshold| threshold.is_finite()));
    }

    #[test]
    fn as_many_values_as_bins_are_told_apart() {
        let values: Vec<f32> = (0..255).map(|n| n as f32).collect();
        let binned = Binned::new(&values, 1);
        assert!((0..255).all(|row| usize::from(binned.row(row)[0]) == row + 1));
    }

    #[test]
    fn many_values_share_bins_of_about_the_same_size() {
        // A third of all values is the same: it should have a bin for itself.
        let values: Vec<f32> =
            (0..30_000).map(|n| if n % 3 == 0 { 7_000.5 } else { n as f32 }).collect();
        let binned = Binned::new(&values, 1);
        let mut counts = [0; MOST_BINS];
        (0..values.len()).for_each(|row| counts[usize::from(binned.row(row)[0])] += 1);
        let heavy = usize::from(binned.row(0)[0]);
        assert_eq!((counts[0], counts[heavy]), (0, 10_000));
        for (bin, &count) in counts.iter().enumerate().skip(1).filter(|&(bin, _)| bin != heavy) {
            assert!((40..160).contains(&count), "bin {bin} has {count}");
        }
    }

    #[test]
    fn a_column_without_values_has_no_thresholds() {
        let binned = Binned::new(&[f32::NAN, 1.0, f32::NAN, 1.0], 2);
        assert_eq!((binned.thresholds(0), binned.thresholds(1)), (&[][..], &[f32::MIN][..]));
        assert_eq!((binned.row(0), binned.n_rows()), (&[0, 1][..], 2));
        assert_eq!(Binned::new(&[], 3).n_rows(), 0);
    }

    #[test]
    fn neighbouring_numbers_are_told_apart() {
        let values = [1.0, 1.0f32.next_up(), f32::MAX.next_down(), f32::MAX, -1.0, 1e-45, 0.0];
        let binned = Binned::new(&values, 1);
        let bins: Vec<u8> = (0..values.len()).map(|row| binned.row(row)[0]).collect();
        assert_eq!(bins, [4, 5, 6, 7, 1, 3, 2]);
    }

    proptest! {
        #[test]
        fn bins_are_what_thresholds_say(
            values in prop::collection::vec(any::<f32>(), 1..600),
            others in prop::collection::vec(any::<f32>(), 1..20),
        ) {
            let binned = Binned::new(&values, 1);
            let thresholds = binned.thresholds(0);
            prop_assert!(thresholds.is_sorted_by(|a, b| a < b) && thresholds.len() < MOST_BINS);
            for (row, value) in values.iter().enumerate() {
                for (bin, &threshold) in thresholds.iter().enumerate() {
                    let goes_left = value.is_nan() || *value <= threshold;
                    prop_assert_eq!(usize::from(binned.row(row)[0]) <= bin, goes_left);
                }
            }
            for other in others {
                let bin = usize::from(bin_of(thresholds, other));
                prop_assert!(thresholds.get(bin).is_none_or(|&t| other.is_nan() || other <= t));
                prop_assert!(bin == 0 || thresholds[bin - 1] < other);
            }
        }
    }
}
