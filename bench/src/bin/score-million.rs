//! Scores a million rows of a hundred predictions over 1.3 million labels, from files as a user has
//! them: `score-million FOLDER`. The files are written into the folder if they are not there yet.
//! Prints one JSON line.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use ngame::data::{read_label_matrix, read_predictions};
use ngame::metrics::{Bootstrap, PropensityModel, Task, evaluate, evaluate_with_intervals};
use ngame::progress::Silent;
use ngame_bench::{peak_memory, timed};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

const N_ROWS: usize = 1_000_000;
const N_LABELS: u32 = 1_300_000;
const N_PREDICTED: usize = 100;

fn main() -> anyhow::Result<()> {
    let folder = std::env::args().nth(1).ok_or_else(|| anyhow::anyhow!("FOLDER"))?;
    let [truth, predictions] = files(Path::new(&folder))?;
    let ((truth, predictions), reading) = timed(|| {
        let truth = read_label_matrix(&truth, &Silent);
        (truth, read_predictions(&predictions, N_ROWS, N_LABELS, None, &Silent))
    });
    let (truth, predictions) = (truth?, predictions?);
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
        "read_seconds": reading.as_secs_f64(),
        "evaluate_seconds": plain.as_secs_f64(),
        "intervals_seconds": intervals.as_secs_f64(),
        "peak_bytes": peak_memory(),
    });
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}

/// Random truth and predictions; every row has one true label among its predictions, and one that
/// may not be.
fn files(folder: &Path) -> anyhow::Result<[PathBuf; 2]> {
    let paths = ["truth.txt", "predictions.txt"].map(|name| folder.join(name));
    if paths.iter().all(|path| path.exists()) {
        return Ok(paths);
    }
    std::fs::create_dir_all(folder)?;
    let parts = paths.each_ref().map(|path| path.with_extension("part"));
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let create = |path| File::create(path).map(|file| BufWriter::with_capacity(1 << 20, file));
    let (mut truth, mut predictions) = (create(&parts[0])?, create(&parts[1])?);
    for out in [&mut truth, &mut predictions] {
        writeln!(out, "{N_ROWS} {N_LABELS}")?;
    }
    for _ in 0..N_ROWS {
        let labels: Vec<u32> = (0..N_PREDICTED).map(|_| random.random_range(0..N_LABELS)).collect();
        for label in &labels {
            write!(predictions, "{label}:{:.6} ", random.random::<f32>())?;
        }
        writeln!(predictions)?;
        let found = labels[random.random_range(0..N_PREDICTED)];
        writeln!(truth, "{found}:1.0 {}:1.0", random.random_range(0..N_LABELS))?;
    }
    truth.flush()?;
    predictions.flush()?;
    for (part, path) in parts.iter().zip(&paths) {
        std::fs::rename(part, path)?;
    }
    Ok(paths)
}
