//! `ngame theory`: the paper's guarantee, measured on a model and a data set.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use ngame::batching::{KMeansOptions, cluster};
use ngame::data::{Dataset, TextChoice};
use ngame::encoder::{Precision, TextEncoder, VectorType};
use ngame::model::Model;
use ngame::theory::{
    AtRadius, DataConstants, Estimate, Theory, TheoryOptions, TheoryTask, measure,
};
use ngame::training::TrainPlan;

use crate::check::ReadArgs;
use crate::output_file::write_file;
use crate::progress::Bars;
use crate::terminal::{BOLD, DIM, GOOD, Table, WARN, counted, grouped, stdout, styled};
use crate::theory_figure::figure;

/// Pairs up to which everything is looked at, unless a sample is asked for.
const MOST_PAIRS: usize = 1 << 31;

/// Points of a sample, where there are more pairs.
const SAMPLE: usize = 2_000;

/// Measure the paper's negative mining guarantee on a model and its training points.
///
/// Mini-batches are made of clusters of close points, so that a point meets its hard negatives: labels
/// that it does not have, at most r from it. The theorem says how many are missed at most:
/// missed / (N L) <= c1 e1 + c2 e2, where e1 is the share of true pairs more than r apart (the
/// encoder), e2 the share of pairs of points at most 2r apart in different clusters (the clustering),
/// and c1, c2 follow from how many labels points have and how many points labels have. This command
/// clusters the training points as training does and counts all of it.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A distance of unit vectors lies between 0 (same) and 2 (opposite); r = 0.77 is a cosine of 0.7.
Labels without a training point are left out: nobody can mine them. Pairs of the filter are no negatives.

Examples:
  ngame theory model samples/debian-small --radius 0.3,0.5,0.7
  ngame theory model data --radius 0.5 --sample 5000 --json
  ngame theory model data --radius 0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1 --figure bound.svg"
)]
pub(crate) struct Args {
    /// The model folder, or what `ngame train --only encoder` made
    model: PathBuf,
    /// The data set it was trained on, as `ngame check` takes it
    data: PathBuf,
    #[command(flatten)]
    read: ReadArgs,
    /// The radius r, or several
    #[arg(long, value_name = "R", value_delimiter = ',', required = true)]
    radius: Vec<f32>,
    /// Look at so many points, drawn at random, and give 95 % intervals [default: all points, or 2,000
    /// where there are more than 2^31 pairs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    sample: Option<u32>,
    /// The seed of the sample and of the clustering
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Points of a cluster [default: that of the last epoch of training]
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u32).range(1..))]
    cluster: Option<u32>,
    /// Draw the missed share and the bound over the radii, as SVG
    #[arg(long, value_name = "FILE")]
    figure: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let bars = Bars::new();
    let (encoder, plan) = encoder_of(&args.model)?;
    let plan = TrainPlan::parse(&plan).ok();
    let text = plan.as_ref().map_or(TextChoice::default(), |plan| plan.data.text);
    let dataset = Dataset::read(&args.data, &args.read.options_or(text)?, &bars)?;
    let train = &dataset.train;
    let embedder = encoder.embedder(Precision::F32);
    let points = embedder.embed_texts(&train.texts, VectorType::F32, &bars)?;
    let labels = embedder.embed_texts(&dataset.labels.texts, VectorType::F32, &bars)?;
    let last_size = plan.and_then(|plan| plan.cluster_sizes.last().copied());
    let cluster_size = args.cluster.map_or(last_size.unwrap_or(1), |size| size as usize);
    let kmeans = KMeansOptions { seed: args.seed, ..Default::default() };
    let clusters = cluster(&points, cluster_size, &kmeans);
    let n_pairs = train.n_points().saturating_mul(train.n_points() + dataset.n_labels());
    let by_size = (n_pairs > MOST_PAIRS).then_some(SAMPLE);
    let options = TheoryOptions {
        radii: args.radius.clone(),
        sample: args.sample.map(|n| n as usize).or(by_size),
        seed: args.seed,
    };
    let task = TheoryTask {
        points: &points,
        labels: &labels,
        truth: &train.by_point,
        not_negative: Some(&train.filter),
        clusters: &clusters,
    };
    let theory = measure(&task, &options, &bars)?;
    if let Some(path) = &args.figure {
        write_file(path, &figure(&theory))?;
    }
    let mut out = stdout();
    if args.json {
        let mut value = serde_json::to_value(&theory)?;
        value["cluster_size"] = cluster_size.into();
        writeln!(out, "{value:#}")?;
        return Ok(());
    }
    write_theory(&mut out, &theory, cluster_size)
}

/// The encoder of a model, or of what `ngame train --only encoder` made, and its plan.
fn encoder_of(folder: &Path) -> anyhow::Result<(TextEncoder, String)> {
    let plan = folder.join("plan.toml");
    if folder.join("manifest.json").exists() || !plan.exists() {
        let model = Model::open(folder)?;
        return Ok((model.encoder, model.records.plan));
    }
    let encoder = TextEncoder::load(&folder.join("encoder"))?;
    let plan = std::fs::read_to_string(&plan)
        .with_context(|| format!("cannot read {}", plan.display()))?;
    Ok((encoder, plan))
}

fn write_theory(out: &mut impl Write, theory: &Theory, cluster_size: usize) -> anyhow::Result<()> {
    let DataConstants { n_points, n_labels, n_left_out, .. } = theory.constants;
    let how = match theory.exact {
        true => "every pair counted".to_owned(),
        false => format!(
            "{} against everything, 95 % intervals",
            counted(theory.n_looked_at as u64, "point")
        ),
    };
    let line = format!(
        "N = {}, L = {} ({} without a point left out), {} of {}; {how}",
        grouped(n_points as u64),
        grouped(n_labels as u64),
        grouped(n_left_out as u64),
        counted(theory.n_clusters as u64, "cluster"),
        grouped(cluster_size as u64),
    );
    writeln!(out, "{}\n", styled(DIM, line))?;
    write_constants(out, &theory.constants)?;
    writeln!(out, "\n{}", styled(BOLD, "missed / (N L) ≤ c₁ ε₁ + c₂ ε₂"))?;
    let mut table =
        Table::new(["r", "ε₁", "ε₂", "bound", "sharp bound", "missed", "of the hard", "holds"]);
    for at in &theory.radii {
        let AtRadius { epsilon_1, epsilon_2, bound, sharp, missed, .. } = *at;
        table.row([
            at.radius.to_string(),
            number(epsilon_1),
            interval(epsilon_2, theory.exact),
            interval(bound, theory.exact),
            interval(sharp, theory.exact),
            interval(missed, theory.exact),
            format!("{:.1} %", 100.0 * at.missed_of_hard),
            if at.holds { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table.write(out)?;
    if theory.radii.iter().any(|at| at.bound.value >= 1.0) {
        let line = "A share is never above 1: where the bound is, it allows everything. The sharp bound is\n\
                    the proof's before it puts deviations and q_min in the place of sums.";
        writeln!(out, "{}", styled(DIM, line))?;
    }
    let holds = theory.radii.iter().all(|at| at.holds);
    let line = match holds {
        true => styled(GOOD, "Both bounds hold at every radius."),
        false if theory.exact => styled(WARN, "A bound does not hold: please report it."),
        false => styled(WARN, "Intervals overlap: ask for a larger --sample."),
    };
    writeln!(out, "\n{line}")?;
    Ok(())
}

fn write_constants(out: &mut impl Write, constants: &DataConstants) -> std::io::Result<()> {
    let mut table = Table::new(["", "p̄", "q̄", "q_min", "μ₁", "σ₁", "σ₂", "c₁", "c₂"]);
    table.row([
        "data".to_owned(),
        number(constants.p_mean),
        number(constants.q_mean),
        constants.q_min.to_string(),
        number(constants.mu_1),
        number(constants.sigma_1),
        number(constants.sigma_2),
        number(constants.c_1),
        number(constants.c_2),
    ]);
    table.write(out)
}

/// Four digits that matter, small numbers with an exponent.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size < 1e-3 => format!("{value:.2e}"),
        size if size < 10.0 => format!("{value:.4}"),
        size if size < 1e4 => format!("{value:.1}"),
        _ => format!("{value:.3e}"),
    }
}

fn interval(estimate: Estimate, exact: bool) -> String {
    let value = number(estimate.value);
    if exact {
        return value;
    }
    format!("{value} ({}–{})", number(estimate.low), number(estimate.high))
}
