//! A model that answers texts on so many threads, timed: for every line read, `one` answers the texts one
//! after the other, `all` answers them together. One JSON object a turn.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::time::Instant;

use clap::Parser;
use ngame::data::Texts;
use ngame::model::Model;
use ngame::prediction::{PredictionOptions, Predictor};
use ngame::progress::Silent;
use ngame_bench::{cpu_seconds, peak_memory};
use serde_json::json;

#[derive(Parser)]
struct Args {
    model: PathBuf,
    /// One text a line
    texts: PathBuf,
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Labels of an answer
    #[arg(long, default_value_t = 5)]
    top: usize,
}

fn main() -> anyhow::Result<()> {
    ngame::encoder::keep_freed_memory();
    let args = Args::parse();
    rayon::ThreadPoolBuilder::new().num_threads(args.threads).build_global()?;
    let texts: Texts = std::fs::read_to_string(&args.texts)?.lines().collect();
    let began = Instant::now();
    let predictor = Predictor::new(Model::open(&args.model)?);
    let options = PredictionOptions { top: args.top, ..Default::default() };
    let ready = json!({ "open_seconds": began.elapsed().as_secs_f64(), "n_texts": texts.len() });
    let mut out = std::io::stdout();
    writeln!(out, "{ready}")?;
    for line in std::io::stdin().lock().lines() {
        let (began, began_computing) = (Instant::now(), cpu_seconds());
        let (mut milliseconds, mut n_labels) = (Vec::new(), 0);
        if line? == "one" {
            for text in texts.iter() {
                let began = Instant::now();
                n_labels += predictor.predict_one(text, options, &[])?.len();
                milliseconds.push(began.elapsed().as_secs_f64() * 1e3);
            }
        } else {
            let answers = predictor.predict(&texts, options, None, &Silent)?;
            n_labels = answers.iter().map(Vec::len).sum();
        }
        let answer = json!({
            "seconds": began.elapsed().as_secs_f64(),
            "cpu_seconds": cpu_seconds() - began_computing,
            "milliseconds": milliseconds,
            "n_labels": n_labels,
            "peak_rss": peak_memory(),
        });
        writeln!(out, "{answer}")?;
    }
    Ok(())
}
