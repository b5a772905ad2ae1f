//! Reads a data set and tokenises its points, as training does: `read-and-tokenise DATA TOKENIZER
//! MAX_TOKENS`. Prints one JSON line.

use std::io::Write;
use std::path::PathBuf;

use ngame::data::{Dataset, ReadOptions};
use ngame::progress::Silent;
use ngame::tokens::{Tokenizer, tokenize};
use ngame_bench::{peak_memory, timed};
use serde_json::json;

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or_else(|| anyhow::anyhow!("DATA TOKENIZER MAX_TOKENS"));
    let (data, tokenizer) = (PathBuf::from(next()?), PathBuf::from(next()?));
    let max_tokens: usize = next()?.parse()?;
    let (dataset, read) = timed(|| Dataset::read(&data, &ReadOptions::default(), &Silent));
    let dataset = dataset?;
    let (stores, tokenising) = timed(|| -> ngame::Result<Vec<_>> {
        let tokenizer = Tokenizer::load(&tokenizer)?;
        dataset
            .splits()
            .map(|(_, split)| tokenize(&split.texts, &tokenizer, max_tokens, &Silent))
            .collect()
    });
    let stores = stores?;
    let line = json!({
        "points": stores.iter().map(|store| store.n_texts()).sum::<usize>(),
        "tokens": stores.iter().map(|store| store.n_tokens()).sum::<usize>(),
        "read_seconds": read.as_secs_f64(),
        "tokenise_seconds": tokenising.as_secs_f64(),
        "result_bytes": dataset.memory() + stores.iter().map(|store| store.memory()).sum::<u64>(),
        "peak_bytes": peak_memory(),
    });
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}
