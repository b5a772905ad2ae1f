//! `ngame train`: a data set in, a model out.

use std::io::Write;
use std::path::PathBuf;

use anyhow::bail;
use clap::ValueEnum;
use ngame::data::{Dataset, TextChoice};
use ngame::encoder::Existing;
use ngame::training::{
    EncoderSummary, Estimate, LaterStages, Preset, RunFolder, TrainConfig, TrainPlan, config_from,
    parse_setting, start_encoder, train,
};
use toml::Value;

use crate::check::ReadArgs;
use crate::evaluate::write_ablation;
use crate::hub::encoder_folder;
use crate::inspect::write_tried;
use crate::progress::Bars;
use crate::terminal::{BOLD, DIM, bytes, counted, duration, grouped, stdout, styled};

/// Train a model on a data set.
///
/// First the encoder: a point's text comes close to its labels' texts, in batches of points that are
/// close already, so that the labels of one are hard negatives of the others (NGAME). Then one
/// classifier a label, an index of them, and a fusion of all scores, learnt from held-out points; last,
/// if there are test points, what the model reaches. Without --encoder a small one is made from your
/// texts alone, in seconds to minutes.
///
/// What you leave open is chosen by looking at the data and the machine; --dry-run says what and why.
/// A run that was stopped, by Ctrl-C or otherwise, goes on with --resume.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Settings come in layers, the later over the earlier: --preset, --config, --set, flags.
All of them, with what was chosen:  ngame train DATA --out MODEL --dry-run

Examples:
  ngame train samples/debian-small --out model
  ngame train mine.csv --split 0.1 --out model --time-budget 10m
  ngame train data --text title --encoder encoders/all-MiniLM-L6-v2 --out model
  ngame train data --out model --views paper --set classifier.objective=triplet
  ngame train data --out model --resume"
)]
pub(crate) struct Args {
    /// A folder or a file, as `ngame check` takes it
    data: PathBuf,
    #[command(flatten)]
    read: ReadArgs,
    /// The model folder to write
    #[arg(long, value_name = "MODEL")]
    out: PathBuf,
    /// Where the encoder starts: a folder, org/name on the Hugging Face hub, or bag
    #[arg(long, value_name = "FOLDER")]
    encoder: Option<String>,
    /// Settings that belong together: titles, full-text, or the paper's for one of its data sets
    #[arg(long)]
    preset: Option<Preset>,
    /// How batches are made
    #[arg(long, value_enum)]
    sampler: Option<Sampler>,
    /// Show the encoder every point this often; 0 leaves it as it is
    #[arg(long, value_name = "N")]
    epochs: Option<i64>,
    /// Take about so long in all, where --epochs is left open: 90s, 30m, 2h
    #[arg(long, value_name = "TIME", conflicts_with = "epochs", value_parser = minutes)]
    time_budget: Option<f64>,
    /// Points of a batch
    #[arg(long, value_name = "N")]
    batch: Option<i64>,
    /// Points of a cluster, all the time (otherwise clusters grow)
    #[arg(long, value_name = "N")]
    cluster: Option<i64>,
    /// How much higher a positive should score than a negative
    #[arg(long)]
    margin: Option<f64>,
    /// Cut texts at this many tokens
    #[arg(long, value_name = "N")]
    max_tokens: Option<i64>,
    /// Where random choices come from
    #[arg(long)]
    seed: Option<i64>,
    /// Use this many threads (otherwise all there are)
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Memory for activations, in GiB; larger batches are trained in parts
    #[arg(long, value_name = "GIB")]
    memory: Option<f64>,
    /// Train the encoder alone, or together with one classifier a label
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    /// What scores are made of: all, paper (embedding, classifier, frequency), or a list of views
    #[arg(long, value_name = "VIEWS")]
    views: Option<String>,
    /// What to be good at: precision (frequent labels), tail (rare ones), or both
    #[arg(long, value_enum)]
    aim: Option<Aim>,
    /// A file of settings, as --dry-run prints them below [config]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One setting, such as loss.margin=0.2
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse_setting)]
    settings: Vec<(String, Value)>,
    /// Stop after a stage
    #[arg(long, value_enum)]
    only: Option<Stage>,
    /// Go on with a run that was stopped
    #[arg(long)]
    resume: bool,
    /// Print the plan and what it will take, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Replace an existing model, and an unfinished run
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Sampler {
    /// Clusters of points that are close under the current encoder
    Ngame,
    /// Points at random (DPR)
    Random,
    /// Clusters made once, before training (TAS)
    Static,
    /// Random batches, with negatives from an index of all labels (ANCE)
    Ann,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Mode {
    /// The encoder alone
    Modular,
    /// Encoder and classifiers at once
    Joint,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Aim {
    /// Right labels at the top, however frequent they are
    Precision,
    /// Both
    Balanced,
    /// Rare labels count more
    Tail,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Stage {
    /// The encoder, and nothing behind it
    Encoder,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.threads == Some(0) {
        bail!("--threads: expected at least 1, found 0");
    }
    let run_folder = RunFolder::of(&args.out);
    let settings = args.settings()?;
    if args.resume {
        let given = !settings.is_empty() || args.preset.is_some() || args.config.is_some();
        if given {
            bail!("--resume: a run keeps its plan\n  to do:    leave out other settings");
        }
        if !run_folder.is_begun() && args.out.join("plan.toml").exists() {
            bail!("{}: the run is finished, there is nothing to resume", args.out.display());
        }
    } else if run_folder.is_begun() && !args.force && !args.dry_run {
        bail!(
            "{}: an unfinished run\n  to do:    go on with --resume, or begin anew with --force",
            run_folder.path().display()
        );
    }
    // A run that goes on has the threads it had: others would change the last digits.
    let threads = match args.resume {
        true => args.threads.unwrap_or(run_folder.plan()?.threads),
        false => args.threads.unwrap_or(0),
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    pool.install(|| run_in_pool(args, &run_folder, &settings))
}

fn run_in_pool(
    args: &Args,
    run_folder: &RunFolder,
    settings: &[(String, Value)],
) -> anyhow::Result<()> {
    let bars = Bars::new();
    let existing = if args.force { Existing::Replace } else { Existing::Keep };
    let text = match args.resume {
        true => run_folder.plan()?.data.text,
        false => TextChoice::default(),
    };
    let options = args.read.options_or(text)?;
    let dataset = Dataset::read(&args.data, &options, &bars)?;
    let trained = if args.resume {
        run_folder.resume(&dataset, &args.out, existing, &bars)
    } else {
        let config = config_from(args.preset, args.config.as_deref(), settings)?;
        let (config, encoder) = start(&dataset, config, &bars)?;
        let (plan, corpus, encoder) =
            TrainPlan::new(&dataset, options.text, config, encoder, &bars)?;
        if args.dry_run {
            explain(&plan, &mut anstream::stderr())?;
            write!(stdout(), "{}", plan.to_toml())?;
            return Ok(());
        }
        explain(&plan, &mut anstream::stderr())?;
        train(&plan, &dataset, &corpus, encoder, &args.out, existing, &bars)
    };
    let trained = match trained {
        Err(ngame::Error::Cancelled) => {
            let path = run_folder.path().display();
            writeln!(anstream::stderr(), "saved in {path}; go on with --resume")?;
            return Err(ngame::Error::Cancelled.into());
        }
        trained => trained?,
    };
    writeln!(anstream::stderr(), "{}", summary(args, &trained.encoder))?;
    if let Some(fusion) = &trained.fusion {
        let mut out = stdout();
        if !fusion.tried.is_empty() {
            writeln!(out, "\n{}", styled(BOLD, "Held-out points, by how candidates are scored"))?;
            write_tried(&mut out, &fusion.tried)?;
        }
        if let Some(evaluation) = &trained.evaluation {
            writeln!(out, "\n{}", styled(BOLD, "Test points"))?;
            write_ablation(&mut out, evaluation, &[])?;
        }
        let model = args.out.display();
        writeln!(
            out,
            "\n{}\n  ngame predict {model}\n  ngame evaluate {model} {}\n  ngame inspect {model}",
            styled(BOLD, "Next"),
            args.data.display(),
        )?;
    }
    Ok(())
}

/// The encoder to start from, fetched if it is named by the hub.
fn start(
    dataset: &Dataset,
    mut config: TrainConfig,
    bars: &Bars,
) -> anyhow::Result<(TrainConfig, ngame::encoder::TextEncoder)> {
    if config.encoder.start != "bag" {
        let folder = encoder_folder(config.encoder.start.as_ref())?;
        config.encoder.start = folder.to_string_lossy().into_owned();
    }
    let encoder = start_encoder(dataset, &config.encoder, config.run.seed, bars)?;
    Ok((config, encoder))
}

impl Args {
    /// Flags as settings, over those of `--set`.
    fn settings(&self) -> anyhow::Result<Vec<(String, Value)>> {
        let mut settings = self.settings.clone();
        let mut add = |name: &str, value: Option<Value>| {
            settings.extend(value.map(|value| (name.to_owned(), value)));
        };
        let name = |value: &dyn std::fmt::Debug| Value::String(format!("{value:?}").to_lowercase());
        add("encoder.start", self.encoder.clone().map(Value::String));
        add("encoder.max_tokens", self.max_tokens.map(Value::Integer));
        add("batching.sampler", self.sampler.map(|sampler| name(&sampler)));
        add("batching.batch_size", self.batch.map(Value::Integer));
        if let Some(size) = self.cluster {
            add("batching.cluster_start", Some(Value::Integer(size)));
            add("batching.cluster_doublings", Some(Value::Array(Vec::new())));
        }
        add("loss.margin", self.margin.map(Value::Float));
        add("run.epochs", self.epochs.map(Value::Integer));
        add("run.minutes", self.time_budget.map(Value::Float));
        add("run.seed", self.seed.map(Value::Integer));
        add("run.memory", self.memory.map(Value::Float));
        add("run.only", self.only.filter(|_| !self.resume).map(|stage| name(&stage)));
        add("mode", self.mode.map(|mode| name(&mode)));
        add("fusion.views", self.views.as_deref().map(views));
        add("fusion.aim", self.aim.map(|aim| name(&aim)));
        Ok(settings)
    }
}

/// A time as minutes.
fn minutes(text: &str) -> Result<f64, String> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "s" => 1.0 / 60.0,
        "m" | "min" => 1.0,
        "h" => 60.0,
        _ => return Err("expected a number and a unit, such as 90s, 30m or 2h".to_owned()),
    };
    let number = number.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0);
    number.map(|n| n * factor).ok_or_else(|| "expected a number above 0 before the unit".to_owned())
}

/// Views as a setting: a name for several, or a list.
fn views(text: &str) -> Value {
    match text {
        "all" | "paper" => Value::String(text.to_owned()),
        list => Value::Array(
            list.split(',').map(|view| Value::String(view.trim().to_owned())).collect(),
        ),
    }
}

/// The plan for people: what was chosen and why, and what it will take.
fn explain(plan: &TrainPlan, out: &mut impl Write) -> std::io::Result<()> {
    let data = &plan.data;
    writeln!(
        out,
        "{} points to train on, {} held out, {}",
        styled(BOLD, grouped(data.n_points as u64)),
        grouped(data.n_held_out as u64),
        counted(data.n_labels as u64, "label"),
    )?;
    let settings =
        plan.choices.iter().map(|choice| format!("{} = {}", choice.setting, choice.value));
    let settings: Vec<String> = settings.collect();
    let width = settings.iter().map(String::len).max().unwrap_or(0);
    for (setting, choice) in settings.iter().zip(&plan.choices) {
        writeln!(out, "  {setting:<width$}  {}", styled(DIM, &choice.why))?;
    }
    let (first, last) = (plan.cluster_sizes.first(), plan.cluster_sizes.last());
    let Estimate { seconds, memory, later, .. } = plan.estimate;
    write!(
        out,
        "{}, {} of {} points, clusters of {} to {}, about {}",
        counted(plan.n_epochs() as u64, "epoch"),
        counted(plan.n_steps, "step"),
        grouped(plan.batch_size() as u64),
        first.unwrap_or(&1),
        last.unwrap_or(&1),
        duration(seconds),
    )?;
    let LaterStages { vectors, classifiers, words, fusion, index, evaluation } = later;
    let stages = [
        ("vectors", vectors),
        ("classifiers", classifiers),
        ("words", words),
        ("fusion", fusion),
        ("index", index),
        ("evaluation", evaluation),
    ];
    let told = stages.iter().filter(|(_, seconds)| *seconds >= 0.5);
    let told: Vec<String> =
        told.map(|(stage, seconds)| format!("{stage} {}", duration(*seconds))).collect();
    let memory = bytes(memory);
    if told.is_empty() {
        return writeln!(out, " and {memory}");
    }
    let total = duration(plan.estimate.total_seconds());
    writeln!(out, "\nthen {}: about {total} and {memory} in all", told.join(", "))
}

/// What was made, in a line.
fn summary(args: &Args, trained: &EncoderSummary) -> String {
    let out = args.out.display();
    let mut line = format!("{out}: encoder trained in {}", duration(trained.seconds));
    let total = trained.seconds + trained.mining_seconds;
    let mining = 100.0 * trained.mining_seconds / total.max(1e-9);
    line += &format!(", mining {mining:.1} % of it");
    if let Some(best) = trained.best {
        line += &format!(
            "; held out by label embedding P@1 {:.2}, P@5 {:.2}, R@100 {:.2}",
            100.0 * best.precision_1,
            100.0 * best.precision_5,
            100.0 * best.recall_100
        );
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(minutes("90s"), Ok(1.5));
        assert_eq!(minutes("30m"), Ok(30.0));
        assert_eq!(minutes("1.5h"), Ok(90.0));
        for wrong in ["30", "m", "-3m", "0s", "3 days", "nanm"] {
            assert!(minutes(wrong).is_err(), "{wrong}");
        }
    }
}
