//! A test split drawn from the training rows.

use std::path::Path;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

use super::dataset::Dataset;
use super::options::SplitRequest;
use crate::error::{InputError, InputErrorKind, Place, Result};

/// Moves a random share of the training points into a test split; the same seed moves the same
/// points. At least one point goes and at least one stays.
pub(crate) fn split_test(dataset: &mut Dataset, request: SplitRequest, path: &Path) -> Result<()> {
    let n_points = dataset.train.n_points();
    if dataset.test.is_some() || n_points < 2 {
        let found = match n_points {
            _ if dataset.test.is_some() => "a data set that has its own test rows",
            _ => "one row",
        };
        return Err(InputError::new(InputErrorKind::CountMismatch, Place::file(path))
            .expected("two or more training rows and no test file, to make a test split of")
            .found(found)
            .help("leave out --split")
            .into());
    }
    let n_test = ((n_points as f64 * request.share).round() as usize).clamp(1, n_points - 1);
    let mut points: Vec<u32> = (0..n_points as u32).collect();
    points.shuffle(&mut ChaCha8Rng::seed_from_u64(request.seed));
    let (test, train) = points.split_at_mut(n_test);
    // Both splits keep the order of the file.
    test.sort_unstable();
    train.sort_unstable();
    dataset.test = Some(dataset.train.select(test));
    dataset.train = dataset.train.select(train);
    Ok(())
}
