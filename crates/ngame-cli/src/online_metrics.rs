//! `ngame online-metrics`: what a live A/B test says.

use std::io::Write;
use std::path::PathBuf;

use ngame::metrics::{Bootstrap, Estimate, OnlineMetrics, SearchLog, evaluate_online};

use crate::progress::Bars;
use crate::terminal::{DIM, Table, grouped, stdout, styled};

/// Measure a live A/B test: impression yield, click yield, query coverage, click-through rate.
///
/// Impression yield is ads a search, click yield clicks a search, query coverage the share of
/// searches with at least one ad. Intervals are by a bootstrap over searches.
#[derive(Debug, clap::Args)]
#[command(after_help = "The log is JSON lines, CSV or TSV, in one of two shapes:
  one row a search   arm, ads, clicks            (the last two as numbers or as lists)
  one row an event   arm, search, event          (event: search, ad or click)
Without a column `arm`, everything is one arm.

Examples:
  ngame online-metrics log.csv
  ngame online-metrics events.jsonl --baseline control --json")]
pub(crate) struct Args {
    /// The log
    log: PathBuf,
    /// The arm the others are compared with [default: the first in the log]
    #[arg(long, value_name = "ARM")]
    baseline: Option<String>,
    /// How often the bootstrap resamples
    #[arg(long, value_name = "N", default_value_t = 1000)]
    resamples: u32,
    /// The seed of the bootstrap
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let log = SearchLog::read(&args.log, &Bars::new())?;
    let baseline = match &args.baseline {
        Some(arm) => arm,
        // A log has at least one search, and every search an arm.
        None => &log.arms[0],
    };
    let bootstrap =
        Bootstrap { resamples: args.resamples, seed: args.seed, ..Bootstrap::default() };
    let report = evaluate_online(&log, baseline, &bootstrap)?;
    let mut out = stdout();
    if args.json {
        writeln!(out, "{:#}", serde_json::to_value(&report)?)?;
        return Ok(());
    }
    let mut table = Table::new([
        "",
        "searches",
        "impression yield",
        "click yield",
        "query coverage",
        "click-through rate",
    ]);
    for arm in &report.arms {
        let value = |estimate: Estimate| format!("{:.4}", estimate.value);
        let range = |estimate: Estimate| format!("{:.4}–{:.4}", estimate.low, estimate.high);
        let first = [arm.name.clone(), grouped(arm.n_searches)];
        table.row(first.into_iter().chain(each(arm.metrics).map(value)));
        table.row([String::new(), String::new()].into_iter().chain(each(arm.metrics).map(range)));
        if let Some(lift) = arm.lift_percent {
            let value = |lift: Option<Estimate>| {
                lift.map_or_else(|| "–".to_owned(), |lift| format!("{:+.2} %", lift.value))
            };
            let range = |lift: Option<Estimate>| {
                lift.map_or_else(String::new, |l| format!("{:+.2} to {:+.2} %", l.low, l.high))
            };
            let first = [format!("  over {}", report.baseline), String::new()];
            table.row(first.into_iter().chain(each(lift).map(value)));
            table.row([String::new(), String::new()].into_iter().chain(each(lift).map(range)));
        }
    }
    table.write(&mut out)?;
    writeln!(out, "\n{}", styled(DIM, "  ranges: 95 % intervals, by a bootstrap over searches"))?;
    Ok(())
}

/// The metrics in the order of the columns.
fn each<T>(metrics: OnlineMetrics<T>) -> impl Iterator<Item = T> {
    let OnlineMetrics { impression_yield, click_yield, query_coverage, click_through_rate } =
        metrics;
    [impression_yield, click_yield, query_coverage, click_through_rate].into_iter()
}
