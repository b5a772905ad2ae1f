//! `ngame metrics`: how good any system's predictions are.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use ngame::data::{
    Csr, Dataset, Labels, ReadOptions, read_filter, read_label_counts, read_label_matrix,
    read_predictions,
};
use ngame::metrics::{
    Bootstrap, GroupMetrics, Intervals, LabelGroups, Metrics, PropensityModel, Task,
    evaluate_groups, evaluate_with_intervals,
};
use serde_json::json;

use crate::progress::Bars;
use crate::terminal::{DIM, Table, bar, counted, grouped, stdout, styled};

/// Score any system's predictions: P@k, nDCG@k, recall@k and their propensity-scored forms.
///
/// The numbers are those of pyxclib, the community's reference, to five digits and more. Filter
/// pairs are removed before the top k are taken; equal scores rank the lower label first.
#[derive(Debug, clap::Args)]
#[command(after_help = "Files:
  predictions  sparse text (header `points labels`, then `label:score` rows), .npz (SciPy CSR), or
               JSON lines {\"labels\": [{\"id\": …, \"score\": …}, …]}
  truth        sparse text or .npz; or a data set folder, whose test split, filter pairs and
               training counts are then used
  filter       lines `point label`, counted from 0
  counts       header `points labels` and one training count a line, or the training label matrix

Examples:
  ngame metrics --predictions scores.npz --truth samples/debian-small
  ngame metrics --predictions p.txt --truth tst_X_Y.txt --filter filter_labels_test.txt \\
      --label-counts trn_X_Y.txt --propensity amazon -k 10 --intervals
  ngame metrics --predictions p.txt --truth tst_X_Y.txt --json | jq .precision[0]")]
pub(crate) struct Args {
    /// What was predicted
    #[arg(long, short, value_name = "FILE")]
    predictions: PathBuf,
    /// What is true
    #[arg(long, short, value_name = "FILE|FOLDER")]
    truth: PathBuf,
    /// Pairs to remove from the predictions (a data set folder brings its own)
    #[arg(long, short, value_name = "FILE")]
    filter: Option<PathBuf>,
    /// Do not filter, though the data set folder has a filter
    #[arg(long, conflicts_with = "filter")]
    no_filter: bool,
    /// Training counts of the labels, for the propensity-scored metrics and --groups
    #[arg(long, value_name = "FILE")]
    label_counts: Option<PathBuf>,
    /// Propensity parameters by data set, such as amazon, wikipedia or LF-AmazonTitles-131K
    #[arg(long, value_name = "NAME", conflicts_with_all = ["a", "b"])]
    propensity: Option<String>,
    /// Propensity parameter A [default: 0.55]
    #[arg(long, value_name = "A")]
    a: Option<f64>,
    /// Propensity parameter B [default: 1.5]
    #[arg(long, value_name = "B")]
    b: Option<f64>,
    /// Score the first 1 to K labels
    #[arg(short, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    k: u16,
    /// Add 95 % confidence intervals, by a bootstrap over points
    #[arg(long)]
    intervals: bool,
    /// How often the bootstrap resamples
    #[arg(long, value_name = "N", default_value_t = 1000, requires = "intervals")]
    resamples: u32,
    /// The seed of the bootstrap
    #[arg(long, default_value_t = 0, requires = "intervals")]
    seed: u64,
    /// Break precision down by label frequency: deciles, and head, torso, tail
    #[arg(long)]
    groups: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What predictions are judged by, from files or from a data set.
struct Judgement {
    truth: Csr,
    filter: Option<Csr>,
    /// The number of training points, and each label's share of them.
    counts: Option<(u64, Vec<u32>)>,
    labels: Option<Labels>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let bars = Bars::new();
    let model = propensity_model(args)?;
    let Judgement { truth, filter, counts, labels } = read_judgement(args, &bars)?;
    let (n_points, n_labels) = (truth.n_rows(), truth.n_columns());
    let predictions =
        read_predictions(&args.predictions, n_points, n_labels, labels.as_ref(), &bars)?;
    let weights = counts.as_ref().map(|(n, counts)| model.inverse_propensities(*n, counts));
    let task =
        Task { truth: &truth, filter: filter.as_ref(), inverse_propensities: weights.as_deref() };
    let k = usize::from(args.k);
    let (metrics, intervals) = if args.intervals {
        let bootstrap =
            Bootstrap { resamples: args.resamples, seed: args.seed, ..Bootstrap::default() };
        bootstrap.validate()?;
        let (metrics, intervals) = evaluate_with_intervals(&predictions, &task, k, &bootstrap);
        (metrics, Some(intervals))
    } else {
        (ngame::metrics::evaluate(&predictions, &task, k), None)
    };
    let groups = if args.groups {
        let (_, counts) = counts
            .as_ref()
            .context("--groups needs --label-counts, or a data set folder as --truth")?;
        [LabelGroups::by_decile(counts), LabelGroups::by_training_count(counts)]
            .map(|groups| evaluate_groups(&predictions, &task, &groups, counts, k))
            .to_vec()
    } else {
        Vec::new()
    };
    let mut out = stdout();
    if args.json {
        let mut value = serde_json::to_value(&metrics)?;
        value["n_points"] = json!(n_points);
        value["n_labels"] = json!(n_labels);
        if let Some(intervals) = &intervals {
            value["intervals"] = json!(intervals);
        }
        if let [deciles, bands] = &groups[..] {
            value["deciles"] = json!(deciles);
            value["head_torso_tail"] = json!(bands);
        }
        writeln!(out, "{value:#}")?;
        return Ok(());
    }
    let filtered = match &filter {
        Some(filter) => counted(filter.n_pairs(), "filter pair"),
        None => "no filter".to_owned(),
    };
    let weighted = match weights {
        Some(_) => format!("propensities A {} B {}", model.a, model.b),
        None => "no label counts, so no propensity-scored metrics".to_owned(),
    };
    let points = counted(n_points as u64, "point");
    let line = format!("{points}, {}, {filtered}, {weighted}", counted(n_labels.into(), "label"));
    writeln!(out, "{}\n", styled(DIM, line))?;
    write_metrics(&mut out, &metrics, intervals.as_ref())?;
    for groups in &groups {
        writeln!(out)?;
        write_groups(&mut out, groups)?;
    }
    Ok(())
}

fn propensity_model(args: &Args) -> anyhow::Result<PropensityModel> {
    let default = match &args.propensity {
        Some(name) => PropensityModel::for_dataset(name).with_context(|| {
            let known: Vec<_> =
                PropensityModel::known_datasets().iter().map(|&(name, _)| name).collect();
            format!(
                "--propensity: `{name}` is not known; use --a and --b, or: {}",
                known.join(", ")
            )
        })?,
        None => PropensityModel::default(),
    };
    let model = PropensityModel { a: args.a.unwrap_or(default.a), b: args.b.unwrap_or(default.b) };
    model.validate()?;
    Ok(model)
}

fn read_judgement(args: &Args, bars: &Bars) -> anyhow::Result<Judgement> {
    let mut judgement = if args.truth.is_dir() {
        let dataset = Dataset::read(&args.truth, &ReadOptions::default(), bars)?;
        let test = dataset.test.with_context(|| {
            format!("{}: the data set has no test split to score", args.truth.display())
        })?;
        let n_train = dataset.train.n_points() as u64;
        Judgement {
            truth: test.by_point,
            filter: (test.filter.n_pairs() > 0 && !args.no_filter).then_some(test.filter),
            counts: Some((n_train, dataset.train.by_point.column_counts())),
            labels: Some(dataset.labels),
        }
    } else {
        let truth = read_label_matrix(&args.truth, bars)?;
        Judgement { truth, filter: None, counts: None, labels: None }
    };
    let (n_points, n_labels) = (judgement.truth.n_rows(), judgement.truth.n_columns());
    if let Some(path) = &args.filter {
        judgement.filter = Some(read_filter(path, n_points, n_labels, bars)?);
    }
    if let Some(path) = &args.label_counts {
        let (n_train, counts) = read_label_counts(path, bars)?;
        ensure!(
            counts.len() == n_labels as usize,
            "{}: counts of {} labels, but the truth has {n_labels}",
            path.display(),
            counts.len()
        );
        judgement.counts = Some((n_train, counts));
    }
    Ok(judgement)
}

/// One line a metric, one column a k, in percent.
pub(crate) fn write_metrics(
    out: &mut impl Write,
    metrics: &Metrics,
    intervals: Option<&Intervals>,
) -> std::io::Result<()> {
    let k = metrics.precision.len();
    // Beyond a handful, people look at the round ones; JSON has them all.
    let shown: Vec<usize> =
        (1..=k).filter(|&at| at <= 5 || at == k || (at % 10 == 0 && at <= 100)).collect();
    let mut table =
        Table::new(std::iter::once("%".to_owned()).chain(shown.iter().map(|at| format!("@{at}"))));
    let rows = [
        ("precision", Some(&metrics.precision), intervals.map(|i| &i.precision)),
        ("nDCG", Some(&metrics.ndcg), intervals.map(|i| &i.ndcg)),
        ("recall", Some(&metrics.recall), intervals.map(|i| &i.recall)),
        (
            "PS precision",
            metrics.psprecision.as_ref(),
            intervals.and_then(|i| i.psprecision.as_ref()),
        ),
        ("PS nDCG", metrics.psndcg.as_ref(), intervals.and_then(|i| i.psndcg.as_ref())),
        ("PS recall", metrics.psrecall.as_ref(), intervals.and_then(|i| i.psrecall.as_ref())),
    ];
    for (name, values, intervals) in rows {
        let Some(values) = values else { continue };
        let cells = shown.iter().map(|&at| format!("{:.2}", values[at - 1] * 100.0));
        table.row(std::iter::once(name.to_owned()).chain(cells));
        if let Some(intervals) = intervals {
            let cells = shown.iter().map(|&at| {
                let interval = intervals[at - 1];
                format!("{:.1}–{:.1}", interval.low * 100.0, interval.high * 100.0)
            });
            table.row(std::iter::once(String::new()).chain(cells));
        }
    }
    table.write(out)
}

/// One line a group: what it adds to precision at 1 and at the last k, and how much of it is found.
pub(crate) fn write_groups(out: &mut impl Write, groups: &[GroupMetrics]) -> std::io::Result<()> {
    const WIDTH: usize = 20;
    let Some(k) = groups.first().map(|group| group.precision.len()) else { return Ok(()) };
    let mut table = Table::new([
        String::new(),
        "labels".to_owned(),
        "training pairs".to_owned(),
        "part of P@1".to_owned(),
        format!("part of P@{k}"),
        format!("found @{k}"),
        String::new(),
    ]);
    let largest = groups.iter().map(|group| group.precision[k - 1]).fold(0.0, f64::max);
    for group in groups {
        let share = if largest > 0.0 { group.precision[k - 1] / largest } else { 0.0 };
        table.row([
            group.name.clone(),
            grouped(group.n_labels),
            grouped(group.n_training_pairs),
            format!("{:.2}", group.precision[0] * 100.0),
            format!("{:.2}", group.precision[k - 1] * 100.0),
            format!("{:.2}", group.recall[k - 1] * 100.0),
            format!("{:<WIDTH$}", bar(share, WIDTH)),
        ]);
    }
    table.write(out)
}
