//! Propensities: how likely a true label was noticed by whoever labelled the data.
//!
//! Rare labels go missing from ground truth more often than frequent ones, so a rare hit is worth
//! more: the inverse of the propensity. The model is that of Jain, Prabhu and Varma, "Extreme
//! Multi-label Loss Functions for Recommendation, Tagging, Ranking & Other Missing Label
//! Applications" (KDD 2016); its two parameters were fitted to two data sets and are by convention
//! reused for their families.
//!
//! The propensity-scored metrics are ratios of means: what was gained over what could have been,
//!
//! ```text
//! PSP@k = Σ_rows Σ_{r ≤ k} gain(r) / Σ_rows Σ_{r ≤ k} best_gain(r)
//! ```
//!
//! where `gain(r)` is the inverse propensity of the label at rank `r` if it is true and 0 if not,
//! and `best_gain` lists the inverse propensities of the row's true labels in descending order.

use serde::Serialize;

use crate::error::{Error, Result};

/// The parameters of the propensity model: inverse propensity = 1 + C (n + B)^−A for a label of n
/// training points, with C = (ln N − 1)(B + 1)^A for N training points in all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PropensityModel {
    /// How fast the inverse propensity falls with the label's frequency.
    pub a: f64,
    /// From what frequency on it falls.
    pub b: f64,
}

const AMAZON: PropensityModel = PropensityModel { a: 0.6, b: 2.6 };
const WIKIPEDIA: PropensityModel = PropensityModel { a: 0.5, b: 0.4 };
const OTHERS: PropensityModel = PropensityModel { a: 0.55, b: 1.5 };

/// The short names of the families, then the data sets of each. AmazonCat, whose labels are
/// categories and not products, is by convention not of the Amazon family.
const KNOWN_DATASETS: &[(&str, PropensityModel)] = &[
    ("amazon", AMAZON),
    ("wikipedia", WIKIPEDIA),
    ("default", OTHERS),
    ("LF-AmazonTitles-131K", AMAZON),
    ("LF-Amazon-131K", AMAZON),
    ("LF-AmazonTitles-1.3M", AMAZON),
    ("AmazonTitles-670K", AMAZON),
    ("Amazon-670K", AMAZON),
    ("AmazonTitles-3M", AMAZON),
    ("Amazon-3M", AMAZON),
    ("LF-Wikipedia-500K", WIKIPEDIA),
    ("LF-WikiTitles-500K", WIKIPEDIA),
    ("Wiki-500K", WIKIPEDIA),
    ("WikipediaLarge-500K", WIKIPEDIA),
    ("WikiLSHTC-325K", WIKIPEDIA),
    ("LF-WikiSeeAlso-320K", OTHERS),
    ("LF-WikiSeeAlsoTitles-320K", OTHERS),
    ("WikiSeeAlso-350K", OTHERS),
    ("WikiSeeAlsoTitles-350K", OTHERS),
    ("AmazonCat-13K", OTHERS),
    ("AmazonCat-14K", OTHERS),
    ("EURLex-4K", OTHERS),
    ("Wiki10-31K", OTHERS),
    ("RCV1-2K", OTHERS),
    ("Delicious", OTHERS),
    ("Delicious-200K", OTHERS),
    ("Mediamill", OTHERS),
    ("Bibtex", OTHERS),
];

impl Default for PropensityModel {
    /// What is used for data sets that no other parameters were fitted to.
    fn default() -> Self {
        OTHERS
    }
}

impl PropensityModel {
    /// The customary parameters of a public data set or family of data sets. Case, `-`, `_`,
    /// spaces and a leading `LF-` make no difference. `None` for a data set unheard of.
    pub fn for_dataset(name: &str) -> Option<Self> {
        let name = normalised(name);
        KNOWN_DATASETS.iter().find(|(known, _)| normalised(known) == name).map(|&(_, model)| model)
    }

    /// The names [`PropensityModel::for_dataset`] knows, families first, with their parameters.
    pub fn known_datasets() -> &'static [(&'static str, Self)] {
        KNOWN_DATASETS
    }

    /// Refuses parameters that give no weights: the model divides by (n + B)^A, also for labels
    /// never seen in training.
    pub fn validate(&self) -> Result<()> {
        let refuse = |option, expected: &str, found: f64| {
            Err(Error::Option { option, expected: expected.to_owned(), found: found.to_string() })
        };
        if !(0.0..=10.0).contains(&self.a) {
            return refuse("propensity A", "a number from 0 to 10, such as 0.55", self.a);
        }
        if !(1e-3..=1e9).contains(&self.b) {
            return refuse("propensity B", "a number from 0.001 to 1e9, such as 1.5", self.b);
        }
        Ok(())
    }

    /// The inverse propensity of each label, given how many training points there are and how
    /// many of them each label has.
    ///
    /// No value is below 1, as no propensity, being a probability, is above 1. The formula itself
    /// keeps to that from 3 training points on; below, C is negative, and every label gets weight
    /// 1, which makes the propensity-scored metrics unweighted ones.
    ///
    /// # Panics
    /// If the parameters do not pass [`PropensityModel::validate`].
    pub fn inverse_propensities(&self, n_points: u64, label_counts: &[u32]) -> Vec<f64> {
        assert!(self.validate().is_ok(), "{self:?} is not a propensity model");
        let log_factor = (n_points.max(1) as f64).ln() - 1.0;
        label_counts
            .iter()
            .map(|&count| {
                // The powers of B + 1 and of n + B are taken together, which cannot overflow.
                let rarity = (self.b + 1.0) / (f64::from(count) + self.b);
                (1.0 + log_factor * rarity.powf(self.a)).max(1.0)
            })
            .collect()
    }
}

/// A name without what people spell differently.
fn normalised(name: &str) -> String {
    let bare: String = name
        .chars()
        .filter(|c| !matches!(c, '-' | '_') && !c.is_whitespace())
        .flat_map(char::to_lowercase)
        .collect();
    match bare.strip_prefix("lf") {
        Some(rest) => rest.to_owned(),
        None => bare,
    }
}

/// Writes the gains of the best ranking possible into `gains`: the largest inverse propensities
/// among the true labels, descending, then zeros. `weights` is working memory.
pub(super) fn best_gains(
    true_labels: &[u32],
    inverse_propensities: &[f64],
    weights: &mut Vec<f64>,
    gains: &mut [f64],
) {
    let k = gains.len();
    weights.clear();
    weights.extend(true_labels.iter().map(|&label| inverse_propensities[label as usize]));
    if k > 0 && weights.len() > k {
        weights.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
        weights.truncate(k);
    }
    weights.sort_unstable_by(|a, b| b.total_cmp(a));
    gains.fill(0.0);
    for (gain, weight) in gains.iter_mut().zip(weights) {
        *gain = *weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_leniently() {
        for name in ["LF-AmazonTitles-131K", "AmazonTitles-131K", "lf_amazontitles_131k", "Amazon"]
        {
            assert_eq!(PropensityModel::for_dataset(name), Some(AMAZON), "{name}");
        }
        for name in ["Wikipedia-500K", "LF-Wikipedia-500K", "wiki lshtc 325k"] {
            assert_eq!(PropensityModel::for_dataset(name), Some(WIKIPEDIA), "{name}");
        }
        for name in ["LF-WikiSeeAlso-320K", "eurlex4k", "AmazonCat-13K", "default"] {
            assert_eq!(PropensityModel::for_dataset(name), Some(OTHERS), "{name}");
        }
        for name in ["", "lf", "Amazon-131", "debian-small"] {
            assert_eq!(PropensityModel::for_dataset(name), None, "{name}");
        }
    }

    #[test]
    fn every_known_name_is_found_and_only_once() {
        let mut names: Vec<String> =
            KNOWN_DATASETS.iter().map(|(name, _)| normalised(name)).collect();
        names.sort();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        for &(name, model) in PropensityModel::known_datasets() {
            assert_eq!(PropensityModel::for_dataset(name), Some(model));
        }
    }

    #[test]
    fn inverse_propensities_follow_the_formula() {
        // N = 1000: C = (ln 1000 - 1) 2.5^0.55 = 5.907755 * 1.655263 = 9.778889.
        let weights = PropensityModel::default().inverse_propensities(1000, &[0, 1, 100]);
        for (weight, expected) in weights.iter().zip([8.824_189, 6.907_755, 1.770_430]) {
            assert!((weight - expected).abs() < 1e-5, "{weight} is not {expected}");
        }
    }

    #[test]
    fn no_weight_is_below_one_however_few_points() {
        for n_points in 0..5 {
            let weights = PropensityModel::default().inverse_propensities(n_points, &[0, 1, 4]);
            if n_points < 3 {
                assert_eq!(weights, [1.0; 3]);
            } else {
                assert!(weights.iter().all(|&weight| weight > 1.0 && weight.is_finite()));
            }
        }
    }

    #[test]
    fn senseless_parameters_are_refused() {
        for (a, b) in [(0.5, 0.0), (-1.0, 1.5), (f64::NAN, 1.5), (0.5, f64::INFINITY)] {
            assert!(PropensityModel { a, b }.validate().is_err(), "{a} {b}");
        }
        assert!(KNOWN_DATASETS.iter().all(|(_, model)| model.validate().is_ok()));
    }

    #[test]
    fn the_best_gains_are_the_largest_descending() {
        let mut gains = [9.0; 3];
        let inverse_propensities = [1.0, 5.0, 3.0, 4.0, 2.0];
        best_gains(&[0, 1, 3, 4], &inverse_propensities, &mut Vec::new(), &mut gains);
        assert_eq!(gains, [5.0, 4.0, 2.0]);
        best_gains(&[2], &inverse_propensities, &mut Vec::new(), &mut gains);
        assert_eq!(gains, [3.0, 0.0, 0.0]);
    }
}
