//! Metrics of a live A/B test: what users saw and clicked, arm by arm.
//!
//! The definitions are those of the NGAME paper's appendix "Metrics for Live A/B Testing", per
//! search results page viewed (SRPV, a search here), and the click-through rate:
//!
//! ```text
//! impression yield   = ads / searches
//! click yield        = clicks / searches
//! query coverage     = searches with at least one ad / searches
//! click-through rate = clicks / ads
//! ```

use std::ops::Range;

use rayon::prelude::*;
use serde::Serialize;

use super::bootstrap::{Bootstrap, Interval, ResampledSums, resample};
use super::columns::{Contributions, Ratio};
use crate::error::{Error, Result};

/// The searches of an A/B test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchLog {
    /// The names of the arms: the systems tested against each other.
    pub arms: Vec<String>,
    /// The searches in any order.
    pub searches: Vec<Search>,
}

/// One search and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// The arm that answered, as an index into [`SearchLog::arms`].
    pub arm: u32,
    /// How many ads were shown.
    pub ads: u32,
    /// How many clicks these got.
    pub clicks: u32,
}

/// One thing, such as an estimate, for every online metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OnlineMetrics<T> {
    /// Ads per search.
    pub impression_yield: T,
    /// Clicks per search.
    pub click_yield: T,
    /// The share of searches with at least one ad.
    pub query_coverage: T,
    /// Clicks per ad.
    pub click_through_rate: T,
}

/// A value with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end of its interval.
    pub high: f64,
}

/// What one arm achieved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmMetrics {
    /// The arm's name.
    pub name: String,
    /// How many searches it answered.
    pub n_searches: u64,
    /// How many ads it showed.
    pub n_ads: u64,
    /// How many clicks it got.
    pub n_clicks: u64,
    /// Its metrics; one without a denominator, such as the click-through rate of no ads, is 0.
    pub metrics: OnlineMetrics<Estimate>,
    /// How much higher than the baseline's they are, in percent of the baseline's; `None` for the
    /// baseline itself and for metrics that the baseline has no value of, or the value 0.
    pub lift_percent: Option<OnlineMetrics<Option<Estimate>>>,
}

/// The result of an A/B test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OnlineReport {
    /// The name of the arm that the others are compared with.
    pub baseline: String,
    /// How the intervals were computed.
    pub bootstrap: Bootstrap,
    /// The arms in the order of the log.
    pub arms: Vec<ArmMetrics>,
}

/// The metrics of every arm, and the lift of every other arm over the `baseline`. Intervals are by
/// a bootstrap over searches; for a lift, both arms are resampled, independently.
///
/// # Errors
/// If no arm has the baseline's name, or if the bootstrap makes no sense.
///
/// # Panics
/// If a search names an arm that is not in the log.
pub fn evaluate_online(
    log: &SearchLog,
    baseline: &str,
    bootstrap: &Bootstrap,
) -> Result<OnlineReport> {
    bootstrap.validate()?;
    let baseline_arm =
        log.arms.iter().position(|name| name == baseline).ok_or_else(|| Error::Option {
            option: "baseline",
            expected: format!("one of the arms {}", log.arms.join(", ")),
            found: baseline.to_owned(),
        })?;
    let mut searches: Vec<ArmSearches> = vec![ArmSearches(Vec::new()); log.arms.len()];
    for &search in &log.searches {
        searches[search.arm as usize].0.push(search);
    }
    let sums: Vec<ResampledSums> = searches
        .par_iter()
        .enumerate()
        .map(|(arm, searches)| resample(searches, bootstrap, arm as u32))
        .collect();
    let arms = log.arms.iter().zip(&sums).enumerate().map(|(arm, (name, arm_sums))| ArmMetrics {
        name: name.clone(),
        n_searches: arm_sums.sums[SEARCHES] as u64,
        n_ads: arm_sums.sums[ADS] as u64,
        n_clicks: arm_sums.sums[CLICKS] as u64,
        metrics: METRICS.map(|ratio| estimate(arm_sums, ratio, bootstrap.level)),
        lift_percent: (arm != baseline_arm).then(|| {
            METRICS.map(|ratio| lift(arm_sums, &sums[baseline_arm], ratio, bootstrap.level))
        }),
    });
    Ok(OnlineReport { baseline: baseline.to_owned(), bootstrap: *bootstrap, arms: arms.collect() })
}

/// The value of a metric in one arm.
fn estimate(sums: &ResampledSums, ratio: Ratio, level: f64) -> Estimate {
    let Interval { low, high } = sums.interval(ratio, level);
    Estimate { value: ratio.of(&sums.sums).unwrap_or(0.0), low, high }
}

/// How much higher a metric is in one arm than in the other, in percent.
fn lift(
    sums: &ResampledSums,
    baseline: &ResampledSums,
    ratio: Ratio,
    level: f64,
) -> Option<Estimate> {
    let percent = |sums: &[f64], baseline: &[f64]| {
        let baseline = ratio.of(baseline).filter(|&value| value != 0.0)?;
        Some(100.0 * (ratio.of(sums)? / baseline - 1.0))
    };
    let value = percent(&sums.sums, &baseline.sums)?;
    let resampled = sums.resampled.iter().zip(&baseline.resampled);
    let values = resampled.filter_map(|(sums, baseline)| percent(sums, baseline)).collect();
    let Interval { low, high } = Interval::of_values(values, level, value);
    Some(Estimate { value, low, high })
}

// The columns of a search.
const SEARCHES: usize = 0;
const ADS: usize = 1;
const CLICKS: usize = 2;
const SEARCHES_WITH_AD: usize = 3;

/// The metrics as ratios of those columns.
const METRICS: OnlineMetrics<Ratio> = OnlineMetrics {
    impression_yield: Ratio::new(ADS, SEARCHES),
    click_yield: Ratio::new(CLICKS, SEARCHES),
    query_coverage: Ratio::new(SEARCHES_WITH_AD, SEARCHES),
    click_through_rate: Ratio::new(CLICKS, ADS),
};

impl<T> OnlineMetrics<T> {
    /// Applies the function to every metric.
    fn map<U>(self, mut function: impl FnMut(T) -> U) -> OnlineMetrics<U> {
        OnlineMetrics {
            impression_yield: function(self.impression_yield),
            click_yield: function(self.click_yield),
            query_coverage: function(self.query_coverage),
            click_through_rate: function(self.click_through_rate),
        }
    }
}

/// The searches of one arm.
#[derive(Clone)]
struct ArmSearches(Vec<Search>);

impl Contributions for ArmSearches {
    fn n_rows(&self) -> usize {
        self.0.len()
    }

    fn n_columns(&self) -> usize {
        4
    }

    fn visit_rows(&self, rows: Range<usize>, visit: &mut dyn FnMut(&[f64])) {
        for search in &self.0[rows] {
            visit(&[
                1.0,
                f64::from(search.ads),
                f64::from(search.clicks),
                f64::from(search.ads > 0),
            ]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log of arms whose searches show 0, 1, 2, … `most_ads` ads in turn, of which every
    /// `ads_per_click`-th is clicked.
    fn log(arms: &[(&str, usize, u32, u32)]) -> SearchLog {
        let mut log = SearchLog::default();
        for (arm, &(name, n_searches, most_ads, ads_per_click)) in (0..).zip(arms) {
            log.arms.push(name.to_owned());
            log.searches.extend((0..n_searches as u32).map(|search| {
                let ads = search % (most_ads + 1);
                Search { arm, ads, clicks: ads / ads_per_click }
            }));
        }
        log
    }

    #[test]
    fn metrics_match_values_computed_by_hand() {
        // Arm a shows 0, 1, 2 ads and gets 0, 0, 1 clicks; arm b shows 0, 1, 2, 3 and gets 0, 1,
        // 2, 3 clicks.
        let log = log(&[("a", 300, 2, 2), ("b", 400, 3, 1)]);
        let report = evaluate_online(&log, "a", &Bootstrap::default()).unwrap();
        let values = |metrics: OnlineMetrics<Estimate>| {
            let value = metrics.map(|estimate| estimate.value);
            [
                value.impression_yield,
                value.click_yield,
                value.query_coverage,
                value.click_through_rate,
            ]
        };
        let (a, b) = (&report.arms[0], &report.arms[1]);
        assert_eq!(values(a.metrics), [1.0, 1.0 / 3.0, 2.0 / 3.0, 1.0 / 3.0]);
        assert_eq!(values(b.metrics), [1.5, 1.5, 0.75, 1.0]);
        assert_eq!((b.n_searches, b.n_ads, b.n_clicks), (400, 600, 600));
        assert_eq!(a.lift_percent, None);
        let lifts = values(b.lift_percent.unwrap().map(Option::unwrap));
        for (lift, expected) in lifts.into_iter().zip([50.0, 350.0, 12.5, 200.0]) {
            assert!((lift - expected).abs() < 1e-9, "{lift} is not {expected}");
        }
    }

    #[test]
    fn intervals_are_as_wide_as_theory_says() {
        let log = log(&[("a", 3000, 2, 2), ("b", 4000, 3, 1)]);
        let bootstrap = Bootstrap { resamples: 4000, level: 0.95, seed: 1 };
        let report = evaluate_online(&log, "a", &bootstrap).unwrap();
        let check = |estimate: Estimate, deviation: f64| {
            let width = (estimate.high - estimate.low) / (2.0 * 1.959_964 * deviation);
            assert!((width - 1.0).abs() < 0.06, "{width} times the normal width");
            assert!(estimate.low < estimate.value && estimate.value < estimate.high);
        };
        // Ads per search: the variances of 0, 1, 2 and of 0, 1, 2, 3 are 2/3 and 5/4.
        let deviations = [(2.0 / 3.0 / 3000.0f64).sqrt(), (1.25 / 4000.0f64).sqrt()];
        check(report.arms[0].metrics.impression_yield, deviations[0]);
        check(report.arms[1].metrics.impression_yield, deviations[1]);
        // The lift is 1.5 / 1; relative variances add up.
        let relative = (deviations[0].powi(2) + (deviations[1] / 1.5).powi(2)).sqrt();
        let lift = report.arms[1].lift_percent.unwrap().impression_yield.unwrap();
        check(lift, 150.0 * relative);
    }

    #[test]
    fn what_cannot_be_divided_is_zero_or_absent() {
        let mut log = log(&[("silent", 10, 0, 1), ("loud", 10, 1, 1)]);
        log.arms.push("idle".to_owned());
        let report = evaluate_online(&log, "silent", &Bootstrap::default()).unwrap();
        let zero = Estimate { value: 0.0, low: 0.0, high: 0.0 };
        assert_eq!(report.arms[0].metrics.click_through_rate, zero);
        assert_eq!(report.arms[2].metrics.impression_yield, zero);
        assert_eq!(report.arms[1].lift_percent.unwrap().impression_yield, None);
        let report = evaluate_online(&log, "loud", &Bootstrap::default()).unwrap();
        let lift = report.arms[0].lift_percent.unwrap();
        assert_eq!(lift.impression_yield.unwrap().value, -100.0);
        assert_eq!(lift.click_through_rate, None);
        assert_eq!(report.arms[2].lift_percent.unwrap().query_coverage, None);
    }

    #[test]
    fn an_unknown_baseline_is_the_users_mistake() {
        let error = evaluate_online(&log(&[("a", 1, 1, 1)]), "b", &Bootstrap::default());
        assert_eq!(error.unwrap_err().to_string(), "baseline: expected one of the arms a, found b");
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let log = log(&[("a", 3000, 2, 2), ("b", 1000, 3, 1)]);
        let run = |n_threads, seed| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            let bootstrap = Bootstrap { seed, ..Bootstrap::default() };
            let report = pool.install(|| evaluate_online(&log, "a", &bootstrap).unwrap());
            serde_json::to_string(&report.arms).unwrap()
        };
        assert_eq!(run(1, 3), run(4, 3));
        assert_ne!(run(1, 3), run(1, 4));
    }
}
