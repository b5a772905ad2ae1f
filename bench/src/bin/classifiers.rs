//! Classifiers on frozen vectors of a trained encoder: how long an epoch takes, and what exact search
//! of them reaches on the test points, beside the labels' embeddings. One JSON object.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use clap::Parser;
use ngame::classifier::{OneVsAll, train_one_vs_all};
use ngame::data::{Dataset, ReadOptions, TextChoice};
use ngame::encoder::{Precision, TextEncoder, VectorMatrix, VectorType};
use ngame::index::search_exact;
use ngame::progress::Silent;
use ngame_bench::reached;
use serde_json::json;

#[derive(Parser)]
struct Args {
    data: PathBuf,
    #[arg(long, default_value_t = TextChoice::Title)]
    text: TextChoice,
    #[arg(long)]
    encoder: PathBuf,
    #[arg(long, default_value_t = 10)]
    epochs: usize,
    #[arg(long, default_value_t = 256)]
    batch: usize,
    #[arg(long, default_value_t = 2e-3)]
    rate: f32,
    #[arg(long, default_value_t = 2e-2)]
    bias_rate: f32,
    #[arg(long, default_value_t = 20.0)]
    scale: f32,
    #[arg(long, default_value_t = 0.2)]
    dropout: f32,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let options = ReadOptions { text: args.text, ..Default::default() };
    let dataset = Dataset::read(&args.data, &options, &Silent)?;
    let test = dataset.test.as_ref().ok_or_else(|| anyhow::anyhow!("no test points"))?;
    let encoder = TextEncoder::load(&args.encoder)?;
    let embedder = encoder.embedder(Precision::F32);
    let embed = |texts| embedder.embed_texts(texts, VectorType::F32, &Silent);
    let labels = embed(&dataset.labels.texts)?;
    let points = embed(&dataset.train.texts)?;
    let queries = embed(&test.texts)?;
    let one_vs_all = OneVsAll {
        epochs: args.epochs,
        batch_size: args.batch,
        learning_rate: args.rate,
        bias_rate: args.bias_rate,
        scale: args.scale,
        dropout: args.dropout,
        ..Default::default()
    };
    let began = Instant::now();
    let classifiers =
        train_one_vs_all(&points, &dataset.train.by_point, &labels, &one_vs_all, &Silent)?;
    let seconds = began.elapsed().as_secs_f64() / args.epochs as f64;
    // A 1 behind every query meets the bias behind every classifier.
    let mut longer = Vec::with_capacity(queries.n_rows() * (queries.dim() + 1));
    for query in 0..queries.n_rows() {
        longer.extend(queries.row(query).to_vec());
        longer.push(1.0);
    }
    let longer = VectorMatrix::from_f32(longer, queries.dim() + 1);
    let filter = Some(&test.filter);
    let by_embedding = search_exact(&queries, &labels, 100, filter, &Silent)?;
    let by_classifier = search_exact(&longer, &classifiers.with_biases(), 100, filter, &Silent)?;
    let answer = json!({
        "seconds_per_epoch": seconds,
        "embedding": reached(&dataset, test, &by_embedding),
        "classifier": reached(&dataset, test, &by_classifier),
    });
    writeln!(std::io::stdout(), "{answer}")?;
    Ok(())
}
