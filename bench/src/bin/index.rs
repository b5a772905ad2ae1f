//! A search of vectors in `.npy` files on one thread, timed: builds a graph, finds the search width that
//! reaches a recall, and then searches all queries once for every line read.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use ngame::encoder::VectorMatrix;
use ngame::index::{ExactIndex, Hnsw, HnswOptions, Index, recall, tune};
use ngame::progress::Silent;
use ngame_bench::peak_memory;
use serde_json::json;

#[derive(Parser)]
struct Args {
    vectors: PathBuf,
    queries: PathBuf,
    #[arg(long, value_enum, default_value_t = Kind::F32)]
    kind: Kind,
    /// Vectors wanted for every query
    #[arg(long, default_value_t = 100)]
    k: usize,
    #[arg(long, default_value_t = 0.95)]
    recall: f64,
    #[arg(long, default_value_t = HnswOptions::default().connectivity)]
    connectivity: usize,
    #[arg(long, default_value_t = HnswOptions::default().build_width)]
    build_width: usize,
    /// Compare vectors as if all were equally long
    #[arg(long)]
    equal_lengths: bool,
}

/// The seconds that this thread has run: what other programs of a shared machine take is left out.
fn running_seconds() -> f64 {
    let Ok(text) = std::fs::read_to_string("/proc/thread-self/schedstat") else { return f64::NAN };
    let nanoseconds = text.split(' ').next().and_then(|number| number.parse::<f64>().ok());
    nanoseconds.unwrap_or(f64::NAN) / 1e9
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Kind {
    /// A graph, vectors in 32 bits
    F32,
    /// A graph, vectors in 16 bits
    F16,
    /// No graph, vectors in 32 bits
    Exact,
    /// No graph, vectors in 16 bits
    ExactF16,
    /// No graph, all queries at once, vectors in 32 bits
    Many,
    /// No graph, all queries at once, vectors in 16 bits
    ManyF16,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    // This thread is the only one, so that its seconds are all there are.
    rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global()?;
    let vectors = VectorMatrix::open(&args.vectors)?;
    let queries = VectorMatrix::open(&args.queries)?;
    let exact = ngame::index::search_exact(&queries, &vectors, args.k, None, &Silent)?;
    let half = matches!(args.kind, Kind::F16 | Kind::ExactF16 | Kind::ManyF16);
    let at_once = matches!(args.kind, Kind::Many | Kind::ManyF16);
    let vectors = Arc::new(if half { vectors.to_f16() } else { vectors });
    let began = running_seconds();
    let mut ready = json!({ "n_vectors": vectors.n_rows(), "dim": vectors.dim() });
    let index: Box<dyn Index> = if !matches!(args.kind, Kind::F32 | Kind::F16) {
        Box::new(ExactIndex::new(vectors))
    } else {
        let options = HnswOptions {
            connectivity: args.connectivity,
            build_width: args.build_width,
            equal_lengths: args.equal_lengths,
            ..Default::default()
        };
        let mut hnsw = Hnsw::build(vectors, &options, &Silent)?;
        ready["build_seconds"] = json!(running_seconds() - began);
        let tuned = tune(&mut hnsw, &queries, &exact, args.k, args.recall)?;
        ready["search_width"] = json!(tuned.search_width);
        Box::new(hnsw)
    };
    let mut out = std::io::stdout();
    writeln!(out, "{ready}")?;
    for line in std::io::stdin().lock().lines() {
        line?;
        let (began, began_running) = (Instant::now(), running_seconds());
        let mut rows = ngame::data::ScoredCsr::new(exact.n_columns());
        if at_once {
            rows = index.search_many(&queries, args.k, &Silent)?;
        } else {
            for query in 0..queries.n_rows() {
                rows.push_row(&mut index.search(&queries.row(query).to_vec(), args.k)?);
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        let running = running_seconds() - began_running;
        let answer = json!({
            "queries_per_second": queries.n_rows() as f64 / running,
            "queries_per_second_of_the_clock": queries.n_rows() as f64 / seconds,
            "recall": recall(&rows, &exact),
            "peak_rss": peak_memory(),
        });
        writeln!(out, "{answer}")?;
    }
    Ok(())
}
