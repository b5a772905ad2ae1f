//! Balanced clusters of unit vectors in a `.npy` file, timed: one JSON line for every line read.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::time::Instant;

use clap::Parser;
use ngame::batching::{KMeansOptions, cluster};
use ngame::encoder::VectorMatrix;
use ngame_bench::peak_memory;
use serde_json::json;

#[derive(Parser)]
struct Args {
    /// The vectors
    vectors: PathBuf,
    /// Points of a cluster
    #[arg(long, default_value_t = 32)]
    cluster_size: usize,
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    rayon::ThreadPoolBuilder::new().num_threads(args.threads).build_global()?;
    let vectors = VectorMatrix::open(&args.vectors)?;
    let mut out = std::io::stdout();
    writeln!(out, "ready")?;
    for line in std::io::stdin().lock().lines() {
        // A line is the seed of the turn.
        let options = KMeansOptions { seed: line?.trim().parse()?, ..Default::default() };
        let began = Instant::now();
        let clusters = cluster(&vectors, args.cluster_size, &options);
        let seconds = began.elapsed().as_secs_f64();
        let peak = peak_memory();
        let answer = json!({
            "seconds": seconds,
            "n_clusters": clusters.n_clusters(),
            "similarity": clusters.mean_similarity(&vectors),
            "peak_rss": peak,
        });
        writeln!(out, "{answer}")?;
    }
    Ok(())
}
