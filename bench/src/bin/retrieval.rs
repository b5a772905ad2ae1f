//! How an encoder does on a data set's test points by label embedding alone: exact search, one JSON
//! object on standard output.

use std::io::Write;
use std::path::PathBuf;

use clap::Parser;
use ngame::data::{Dataset, ReadOptions, TextChoice};
use ngame::encoder::{Precision, TextEncoder, VectorType};
use ngame::index::search_exact;
use ngame::metrics::{PropensityModel, Task, evaluate};
use ngame::progress::Silent;
use serde_json::json;

#[derive(Parser)]
struct Args {
    data: PathBuf,
    #[arg(long, default_value_t = TextChoice::Title)]
    text: TextChoice,
    #[arg(long)]
    encoder: PathBuf,
    #[arg(long)]
    max_tokens: Option<usize>,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let options = ReadOptions { text: args.text, ..Default::default() };
    let dataset = Dataset::read(&args.data, &options, &Silent)?;
    let test = dataset.test.as_ref().ok_or_else(|| anyhow::anyhow!("no test points"))?;
    let mut encoder = TextEncoder::load(&args.encoder)?;
    if let Some(max_tokens) = args.max_tokens {
        encoder = encoder.with_max_tokens(max_tokens)?;
    }
    let embedder = encoder.embedder(Precision::F32);
    let labels = embedder.embed_texts(&dataset.labels.texts, VectorType::F32, &Silent)?;
    let points = embedder.embed_texts(&test.texts, VectorType::F32, &Silent)?;
    let found = search_exact(&points, &labels, 100, Some(&test.filter), &Silent)?;
    let counts = dataset.train.by_point.column_counts();
    let weights =
        PropensityModel::default().inverse_propensities(dataset.train.n_points() as u64, &counts);
    let task = Task { truth: &test.by_point, filter: None, inverse_propensities: Some(&weights) };
    let metrics = evaluate(&found, &task, 100);
    let psp = metrics.psprecision.unwrap_or_default();
    let percent = |value: f64| 100.0 * value;
    let answer = json!({
        "P@1": percent(metrics.precision[0]),
        "P@5": percent(metrics.precision[4]),
        "PSP@1": percent(psp[0]),
        "PSP@5": percent(psp[4]),
        "R@100": percent(metrics.recall[99]),
    });
    writeln!(std::io::stdout(), "{answer}")?;
    Ok(())
}
