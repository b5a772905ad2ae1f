//! How an encoder does on a data set's test points by label embedding alone: exact search, one JSON
//! object on standard output.

use std::io::Write;
use std::path::PathBuf;

use clap::Parser;
use ngame::data::{Dataset, ReadOptions, TextChoice};
use ngame::encoder::{Precision, TextEncoder, VectorType};
use ngame::index::search_exact;
use ngame::progress::Silent;
use ngame_bench::reached;

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
    writeln!(std::io::stdout(), "{}", reached(&dataset, test, &found))?;
    Ok(())
}
