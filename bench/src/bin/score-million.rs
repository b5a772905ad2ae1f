//! Scores a million rows of a hundred predictions over 1.3 million labels, held in memory. Prints
//! one JSON line.

use std::io::Write;

use ngame::data::{Csr, ScoredCsr};
use ngame::metrics::{Bootstrap, PropensityModel, Task, evaluate, evaluate_with_intervals};
use ngame_bench::{peak_memory, timed};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

const N_ROWS: usize = 1_000_000;
const N_LABELS: u32 = 1_300_000;
const N_PREDICTED: usize = 100;

fn main() -> anyhow::Result<()> {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut predictions = ScoredCsr::new(N_LABELS);
    let mut truth = Csr::new(N_LABELS);
    let mut row = Vec::new();
    for _ in 0..N_ROWS {
        row.clear();
        row.extend((0..N_PREDICTED).map(|_| (random.random_range(0..N_LABELS), random.random())));
        predictions.push_row(&mut row);
        let found = row[random.random_range(0..row.len())].0;
        truth.push_row(&[found, random.random_range(0..N_LABELS)]);
    }
    let weights =
        PropensityModel::default().inverse_propensities(N_ROWS as u64, &truth.column_counts());
    let task = Task { truth: &truth, filter: None, inverse_propensities: Some(&weights) };
    let (metrics, plain) = timed(|| evaluate(&predictions, &task, 5));
    let bootstrap = Bootstrap::default();
    let ((with_intervals, _), intervals) =
        timed(|| evaluate_with_intervals(&predictions, &task, 5, &bootstrap));
    anyhow::ensure!(metrics == with_intervals, "both ways give the same metrics");
    let line = json!({
        "rows": N_ROWS,
        "evaluate_seconds": plain.as_secs_f64(),
        "intervals_seconds": intervals.as_secs_f64(),
        "peak_bytes": peak_memory(),
    });
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}
