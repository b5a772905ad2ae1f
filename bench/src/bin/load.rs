//! Reads a data set and nothing else: `load DATA`. Prints one JSON line.

use std::io::Write;

use ngame::data::{Dataset, ReadOptions};
use ngame::progress::Silent;
use ngame_bench::{peak_memory, timed};
use serde_json::json;

fn main() -> anyhow::Result<()> {
    let data = std::env::args().nth(1).ok_or_else(|| anyhow::anyhow!("DATA"))?;
    let (dataset, read) = timed(|| Dataset::read(data.as_ref(), &ReadOptions::default(), &Silent));
    let dataset = dataset?;
    let line = json!({
        "points": dataset.splits().map(|(_, split)| split.n_points()).sum::<usize>(),
        "labels": dataset.n_labels(),
        "pairs": dataset.splits().map(|(_, split)| split.by_point.n_pairs()).sum::<u64>(),
        "read_seconds": read.as_secs_f64(),
        "result_bytes": dataset.memory(),
        "peak_bytes": peak_memory(),
    });
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}
