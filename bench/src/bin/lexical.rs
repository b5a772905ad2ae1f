//! The sparse view by itself: how long training takes and what search of it reaches on the test points,
//! or on training points held out to choose settings by. One JSON object.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Parser;
use ngame::baseline::NearestPoints;
use ngame::data::{Csr, Dataset, Ids, ReadOptions, ScoredCsr, Split, TextChoice, Texts};
use ngame::lexical::{Lexical, LexicalOptions, LexicalRoom, Overlap};
use ngame::progress::Silent;
use ngame_bench::{TaskClock, cpu_seconds, peak_memory, reached, timed};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rayon::prelude::*;
use serde_json::json;

#[derive(Parser)]
struct Args {
    data: PathBuf,
    #[arg(long, default_value_t = TextChoice::Title)]
    text: TextChoice,
    /// Scores so many training points drawn at random instead of the test points, and leaves them and
    /// what is nearly the same out of training.
    #[arg(long)]
    hold_out: Option<usize>,
    /// Writes features and labels here as train.txt and test.txt, in the layout of the XC repository:
    /// what peers need to be compared on the same features.
    #[arg(long)]
    write_features: Option<PathBuf>,
    /// Tells what points and labels have in common, which is what training will take, and trains nothing
    #[arg(long)]
    only_overlap: bool,
    #[arg(long, default_value_t = LexicalOptions::default().least_texts)]
    least_texts: u32,
    /// Leaves out the beginnings of long words
    #[arg(long)]
    no_beginnings: bool,
    #[arg(long, default_value_t = LexicalOptions::default().cost)]
    cost: f32,
    #[arg(long, default_value_t = LexicalOptions::default().rounds)]
    rounds: usize,
    #[arg(long, default_value_t = LexicalOptions::default().n_hard)]
    n_hard: usize,
    #[arg(long, default_value_t = LexicalOptions::default().most_labels)]
    most_labels: usize,
    #[arg(long, default_value_t = LexicalOptions::default().background)]
    background: f32,
    #[arg(long, default_value_t = LexicalOptions::default().mean)]
    mean: f32,
    #[arg(long, default_value_t = LexicalOptions::default().mean_power)]
    mean_power: f32,
    #[arg(long, default_value_t = LexicalOptions::default().label_text)]
    label_text: f32,
    #[arg(long, default_value_t = LexicalOptions::default().cluster_size)]
    cluster_size: usize,
    #[arg(long, default_value_t = LexicalOptions::default().branches)]
    branches: usize,
    #[arg(long, default_value_t = LexicalOptions::default().least_weight)]
    least_weight: f32,
    #[arg(long, default_value_t = LexicalOptions::default().most_weights)]
    most_weights: usize,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let options = LexicalOptions {
        least_texts: args.least_texts,
        beginnings: !args.no_beginnings,
        cost: args.cost,
        rounds: args.rounds,
        n_hard: args.n_hard,
        most_labels: args.most_labels,
        background: args.background,
        mean: args.mean,
        mean_power: args.mean_power,
        label_text: args.label_text,
        cluster_size: args.cluster_size,
        branches: args.branches,
        least_weight: args.least_weight,
        most_weights: args.most_weights,
        ..Default::default()
    };
    let read = ReadOptions { text: args.text, ..Default::default() };
    let mut dataset = Dataset::read(&args.data, &read, &Silent)?;
    if let Some(n_points) = args.hold_out {
        anyhow::ensure!(n_points < dataset.train.n_points(), "too many points to hold out");
        let mut points: Vec<u32> = (0..dataset.train.n_points() as u32).collect();
        points.shuffle(&mut ChaCha8Rng::seed_from_u64(5));
        let (held_out, kept) = points.split_at_mut(n_points);
        let kept = &mut without_twins(&dataset.train, held_out, kept);
        dataset.test = Some(select(&dataset.train, held_out));
        dataset.train = select(&dataset.train, kept);
    }
    let train = &dataset.train;
    let overlap = Overlap::estimate(&train.texts, &train.by_label, &dataset.labels.texts, &options);
    let overlap = json!({ "features": overlap.features, "compared": overlap.compared });
    if args.only_overlap {
        writeln!(std::io::stdout(), "{overlap}")?;
        return Ok(());
    }
    let test = dataset.test.as_ref().ok_or_else(|| anyhow::anyhow!("no test points"))?;
    let before = cpu_seconds();
    let clock = TaskClock::default();
    let (lexical, wall) = timed(|| {
        let filter = Some(&train.filter);
        Lexical::train(
            &train.texts,
            &train.by_point,
            &dataset.labels.texts,
            filter,
            &options,
            &clock,
        )
    });
    let lexical = lexical?;
    let cpu = cpu_seconds() - before;
    let peak = peak_memory();
    let before = cpu_seconds();
    let rows: Vec<Vec<(u32, f32)>> = (0..test.n_points())
        .into_par_iter()
        .map_init(LexicalRoom::default, |room, point| {
            let excluded = test.filter.row(point);
            let query = lexical.query(test.texts.get(point));
            let mut best = lexical.search(&query, 100 + excluded.len(), room);
            best.retain(|(label, _)| excluded.binary_search(label).is_err());
            best.truncate(100);
            best
        })
        .collect();
    let predict = (cpu_seconds() - before) * 1e3 / test.n_points() as f64;
    let mut predictions = ScoredCsr::new(dataset.n_labels() as u32);
    for mut row in rows {
        predictions.push_row(&mut row);
    }
    if let Some(folder) = &args.write_features {
        write(&folder.join("train.txt"), &lexical, &train.texts, &train.by_point)?;
        write(&folder.join("test.txt"), &lexical, &test.texts, &test.by_point)?;
    }
    let answer = json!({
        "points": train.n_points(),
        "labels": dataset.n_labels(),
        "overlap": overlap,
        "seconds": wall.as_secs_f64(),
        "seconds_of": clock.seconds(),
        "cpu_seconds": cpu,
        "predict_cpu_ms": predict,
        "features": lexical.n_features(),
        "weights": lexical.n_weights(),
        "megabytes": size(&lexical) as f64 / 1e6,
        "peak_megabytes": peak as f64 / 1e6,
        "reached": reached(&dataset, test, &predictions),
    });
    writeln!(std::io::stdout(), "{answer}")?;
    Ok(())
}

/// The points to keep that are not nearly the same as one held out.
fn without_twins(train: &Split, held_out: &[u32], kept: &[u32]) -> Vec<u32> {
    let nearest = NearestPoints::new(train);
    let mut is_twin = vec![false; train.n_points()];
    for &point in held_out {
        for (twin, similarity) in nearest.nearest(train.texts.get(point as usize), 20) {
            is_twin[twin as usize] |= similarity > 0.5;
        }
    }
    kept.iter().copied().filter(|&point| !is_twin[point as usize]).collect()
}

/// Some points of a split, in their order there.
fn select(split: &Split, points: &mut [u32]) -> Split {
    points.sort_unstable();
    let by_point = split.by_point.select(points);
    Split {
        texts: split.texts.select(points),
        by_label: by_point.transpose(),
        by_point,
        filter: split.filter.select(points),
        ids: Ids::Position,
        ..split.clone()
    }
}

/// The bytes of its arrays in memory.
fn size(lexical: &Lexical) -> usize {
    let parts = lexical.parts();
    let postings = [&parts.labels, &parts.clusters, &parts.label_texts, &parts.points];
    let of_postings = postings.iter().map(|postings| {
        size_of_val(&*postings.offsets)
            + size_of_val(&*postings.numbers)
            + size_of_val(&*postings.weights)
    });
    of_postings.sum::<usize>()
        + size_of_val(&*parts.inverse_frequencies)
        + size_of_val(&*parts.biases)
        + size_of_val(&*parts.parents)
        + (parts.truth.memory() + parts.features.memory()) as usize
}

/// Writes vectors and labels: a header "points features labels", then lines "labels feature:weight …".
fn write(path: &Path, lexical: &Lexical, texts: &Texts, truth: &Csr) -> anyhow::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    // Peers refuse points without features; each gets one more, that nothing else has.
    let n_features = lexical.n_features();
    writeln!(file, "{} {} {}", texts.len(), n_features + 1, lexical.n_labels())?;
    for (text, labels) in texts.iter().zip(truth.rows()) {
        let labels: Vec<String> = labels.iter().map(u32::to_string).collect();
        write!(file, "{}", labels.join(","))?;
        let query = lexical.query(text);
        for (feature, weight) in query.vector() {
            write!(file, " {feature}:{weight:.5}")?;
        }
        if query.vector().is_empty() {
            write!(file, " {n_features}:1")?;
        }
        writeln!(file)?;
    }
    Ok(())
}
