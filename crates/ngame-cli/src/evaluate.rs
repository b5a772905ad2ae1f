//! `ngame evaluate`: what a model reaches on points it was not trained on.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::ValueEnum;
use ngame::data::{Dataset, TextChoice};
use ngame::error_analysis::analyse_errors;
use ngame::evaluation::{Evaluation, EvaluationOptions, Reached, align, evaluate_model};
use ngame::metrics::{Bootstrap, PropensityModel};
use ngame::model::Model;
use ngame::prediction::Predictor;
use ngame::training::TrainPlan;

use crate::check::ReadArgs;
use crate::error_rows::{write_misses, write_summary};
use crate::metrics::{write_groups, write_metrics};
use crate::progress::Bars;
use crate::terminal::{BOLD, DIM, Table, counted, stdout, styled};

/// Measure a model on the test points of a data set.
///
/// Shows every metric of `ngame metrics` for the fused scores, and beside them what the classifiers
/// alone and the labels' embeddings alone would reach (the paper's ablation, on your data); who earns
/// the score, from frequent labels to rare ones; milliseconds a text; and how far the index is from
/// exact search.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ngame evaluate model samples/debian-small
  ngame evaluate model data --intervals
  ngame evaluate model data --errors misses.jsonl
  ngame evaluate model data --json | jq .fused.precision[0]")]
pub(crate) struct Args {
    /// The model folder
    model: PathBuf,
    /// A data set, as `ngame check` takes it
    data: PathBuf,
    #[command(flatten)]
    read: ReadArgs,
    /// Which points
    #[arg(long, value_enum, default_value_t = Points::Test)]
    part: Points,
    /// Metrics at 1 to K
    #[arg(short, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    k: u16,
    /// Propensity parameters by data set, such as amazon or wikipedia [default: A 0.55, B 1.5]
    #[arg(long, value_name = "NAME")]
    propensity: Option<String>,
    /// Add 95 % confidence intervals, by a bootstrap over points
    #[arg(long)]
    intervals: bool,
    /// Write every true label that the first K miss, one JSON object a line: where it was lost (no view
    /// proposed it, it was ranked low, training never saw it), its rank, what each view says of it;
    /// and show how many were lost where, and which view carried those that are right
    #[arg(long, value_name = "FILE")]
    errors: Option<PathBuf>,
    /// Use this many threads (otherwise all there are)
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Points {
    Test,
    Valid,
    Train,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.threads == Some(0) {
        bail!("--threads: expected at least 1, found 0");
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.threads.unwrap_or(0)).build()?;
    pool.install(|| run_in_pool(args))
}

fn run_in_pool(args: &Args) -> anyhow::Result<()> {
    let bars = Bars::new();
    let model = Model::open(&args.model)?;
    let plan = TrainPlan::parse(&model.records.plan).ok();
    let text = plan.as_ref().map_or(TextChoice::default(), |plan| plan.data.text);
    let dataset = Dataset::read(&args.data, &args.read.options_or(text)?, &bars)?;
    let propensities = match &args.propensity {
        None => PropensityModel::default(),
        Some(name) => PropensityModel::for_dataset(name)
            .with_context(|| format!("--propensity: `{name}` is not known"))?,
    };
    let missing = || {
        format!(
            "{}: the data set has no such points\n  to do:    choose others with --part, or make test points with --split",
            args.data.display()
        )
    };
    let split = match args.part {
        Points::Test => dataset.test.as_ref().with_context(missing)?,
        Points::Valid => dataset.valid.as_ref().with_context(missing)?,
        Points::Train => &dataset.train,
    };
    let aligned = align(&model.labels, &dataset.labels, split);
    if aligned.n_unknown > 0 {
        let line = format!(
            "the model does not know, and cannot find, {} of the data set",
            counted(aligned.n_unknown as u64, "label")
        );
        writeln!(anstream::stderr(), "{}", styled(DIM, line))?;
    }
    let options = EvaluationOptions {
        k: args.k.into(),
        bootstrap: args.intervals.then(Bootstrap::default),
        propensities,
        n_train: plan.map_or(dataset.train.n_points() as u64, |plan| plan.data.n_train),
    };
    let predictor = Predictor::new(model);
    let evaluation = evaluate_model(&predictor, &aligned, &options, &bars)?;
    let errors = match &args.errors {
        None => None,
        Some(path) => {
            let analysis = analyse_errors(&predictor, &aligned, args.k.into(), &bars)?;
            write_misses(path, &analysis, predictor.model(), &dataset, split, &aligned)?;
            Some((analysis, path))
        }
    };
    let mut out = stdout();
    if args.json {
        let mut value = serde_json::to_value(&evaluation)?;
        if let Some((analysis, _)) = &errors {
            value["errors"] = serde_json::to_value(analysis)?;
        }
        writeln!(out, "{value:#}")?;
        return Ok(());
    }
    write_evaluation(&mut out, &evaluation)?;
    if let Some((analysis, path)) = errors {
        write_summary(&mut out, &analysis, path)?;
    }
    Ok(())
}

/// The whole evaluation, for people.
fn write_evaluation(out: &mut impl Write, evaluation: &Evaluation) -> anyhow::Result<()> {
    let points = counted(evaluation.n_points as u64, "point");
    let labels = counted(evaluation.n_labels as u64, "label");
    let line = format!(
        "{points}, {labels}, {:.2} ms a point, index recall {:.1} %",
        evaluation.milliseconds.unwrap_or(f64::NAN),
        100.0 * evaluation.index_recall
    );
    writeln!(out, "{}\n", styled(DIM, line))?;
    write_ablation(out, evaluation, &[])?;
    writeln!(out, "\n{}", styled(BOLD, "Fused"))?;
    write_metrics(out, &evaluation.fused.metrics, evaluation.fused.intervals.as_ref())?;
    for groups in [&evaluation.head_torso_tail, &evaluation.deciles] {
        writeln!(out)?;
        write_groups(out, groups)?;
    }
    Ok(())
}

/// One line for each way to score, the fused one last; `others` come before them.
pub(crate) fn write_ablation(
    out: &mut impl Write,
    evaluation: &Evaluation,
    others: &[(&str, [f64; 6])],
) -> std::io::Result<()> {
    let mut table = Table::new(["%", "P@1", "P@5", "nDCG@5", "PSP@1", "PSP@5", "R@100"]);
    let mut row = |name: &str, values: [f64; 6]| {
        let cells = values.map(|value| format!("{:.2}", 100.0 * value));
        table.row(std::iter::once(name.to_owned()).chain(cells));
    };
    for (name, values) in others {
        row(name, *values);
    }
    row("label embedding", headline(&evaluation.embedding));
    row("classifier", headline(&evaluation.classifier));
    row("fused", headline(&evaluation.fused));
    table.write(out)
}

/// What people look at first.
fn headline(reached: &Reached) -> [f64; 6] {
    let metrics = &reached.metrics;
    let last = |values: &[f64]| values.get(4).or(values.last()).copied().unwrap_or(0.0);
    let weighted = metrics.psprecision.as_deref().unwrap_or(&[0.0]);
    [
        metrics.precision[0],
        last(&metrics.precision),
        last(&metrics.ndcg),
        weighted[0],
        last(weighted),
        reached.recall_100,
    ]
}
