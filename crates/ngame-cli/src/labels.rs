//! `ngame labels`: labels that come and go, without training.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use ngame::data::{NewLabels, TextChoice};
use ngame::encoder::Existing;
use ngame::model::Model;
use ngame::training::TrainPlan;
use serde_json::json;

use crate::progress::Bars;
use crate::terminal::{BOLD, DIM, Table, counted, grouped, stdout, styled};

/// Add labels to a model, remove some, or list them.
///
/// A new label needs nothing but its text: it is found at once, without training. What a model says of
/// its other labels stays the same, to the last bit.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ngame labels add model new-labels.jsonl
  ngame labels remove model 4711 4712 --out smaller-model
  ngame labels list model --search viewer")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Add(AddArgs),
    Remove(RemoveArgs),
    List(ListArgs),
}

/// Add labels that are known by their texts.
///
/// A new label's vector is that of its text, and so is its classifier, scaled as those of the labels
/// that training knows least of; its words weigh as theirs do. A text that is the very text of a new
/// label, but for case and spaces, has that label first. The folder is written aside and takes the
/// place of the old one when it is whole. Train again when there is something to learn: points that
/// have the new labels, or very many of them (they are searched one by one).
#[derive(Debug, clap::Args)]
#[command(after_help = "Formats, plain, gzip or zstd:
  jsonl     {\"id\": \"a17\", \"text\": \"a viewer for photos\"}, one a line; also title and content
  csv, tsv  columns id and text
  txt       one text a line
A label without an id is called by its text.")]
struct AddArgs {
    /// The model folder
    model: PathBuf,
    /// The new labels
    labels: PathBuf,
    /// Write the model there and leave the old one as it is
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Replace the folder of --out, if it is a model
    #[arg(long, requires = "out")]
    force: bool,
}

/// Remove labels: from vectors, index, words and votes.
///
/// Nothing is left of them: no text finds them again. What was learnt for the other labels stays; an
/// index of many labels is built again. The folder is written aside and takes the place of the old one
/// when it is whole.
#[derive(Debug, clap::Args)]
struct RemoveArgs {
    /// The model folder
    model: PathBuf,
    /// Ids of labels, as `ngame labels list` shows them
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Write the model there and leave the old one as it is
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Replace the folder of --out, if it is a model
    #[arg(long, requires = "out")]
    force: bool,
}

/// List labels: text, id, training points.
#[derive(Debug, clap::Args)]
struct ListArgs {
    /// The model folder
    model: PathBuf,
    /// Only labels whose id or text has these words
    #[arg(long, value_name = "WORDS")]
    search: Option<String>,
    /// At most so many, 0 for all
    #[arg(long, value_name = "N", default_value_t = 100)]
    top: usize,
    /// Print JSON, one label a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.command {
        Command::Add(args) => add(args),
        Command::Remove(args) => remove(args),
        Command::List(args) => list(args),
    }
}

fn add(args: &AddArgs) -> anyhow::Result<()> {
    let bars = Bars::new();
    let model = Model::open(&args.model)?;
    // A label's text is made of the same fields as those that the model was trained on.
    let plan = TrainPlan::parse(&model.records.plan).ok();
    let text = plan.map_or(TextChoice::default(), |plan| plan.data.text);
    let new = NewLabels::read(&args.labels, text, &bars)?;
    let n_new = new.texts().len() as u64;
    let model = model.with_labels(&new, &bars)?;
    save(
        &model,
        &args.model,
        args.out.as_deref(),
        args.force,
        &format!("{} added", counted(n_new, "label")),
    )
}

fn remove(args: &RemoveArgs) -> anyhow::Result<()> {
    let bars = Bars::new();
    let model = Model::open(&args.model)?;
    let n_before = model.labels.texts.len();
    let model = model.without_labels(&args.ids, &bars)?;
    let n_removed = (n_before - model.labels.texts.len()) as u64;
    let done = format!("{} removed", counted(n_removed, "label"));
    save(&model, &args.model, args.out.as_deref(), args.force, &done)
}

/// Writes a model in the place of the old one, or elsewhere.
fn save(
    model: &Model,
    old: &Path,
    out: Option<&Path>,
    force: bool,
    done: &str,
) -> anyhow::Result<()> {
    let existing = if out.is_none() || force { Existing::Replace } else { Existing::Keep };
    let folder = out.unwrap_or(old);
    model.save(folder, existing)?;
    let n_labels = counted(model.labels.texts.len() as u64, "label");
    writeln!(
        stdout(),
        "{} {}",
        styled(BOLD, done),
        styled(DIM, format!("- {} has {n_labels} now", folder.display()))
    )?;
    Ok(())
}

fn list(args: &ListArgs) -> anyhow::Result<()> {
    let model = Model::open(&args.model)?;
    let found = model.search_labels(args.search.as_deref().unwrap_or_default());
    let n_shown = if args.top == 0 { found.len() } else { args.top.min(found.len()) };
    let mut out = stdout();
    let n_trained = model.views.n_trained() as u32;
    if args.json {
        for &label in &found[..n_shown] {
            let at = label as usize;
            let line = json!({
                "id": model.labels.id(at),
                "text": model.labels.texts.get(at),
                "training_points": model.views.counts[at],
                "added": label >= n_trained,
            });
            writeln!(out, "{line}")?;
        }
        return Ok(());
    }
    let mut table = Table::new(["", "id", "points"]);
    for &label in &found[..n_shown] {
        let at = label as usize;
        let points = match label >= n_trained {
            true => "added".to_owned(),
            false => grouped(u64::from(model.views.counts[at])),
        };
        let text = beginning(model.labels.texts.get(at));
        table.row([text, model.labels.id(at).into_owned(), points]);
    }
    table.write(&mut out)?;
    if n_shown < found.len() {
        let line =
            format!("{} of {}; --top 0 shows all", n_shown, counted(found.len() as u64, "label"));
        writeln!(out, "{}", styled(DIM, line))?;
    }
    Ok(())
}

/// The beginning of a text, on one line.
fn beginning(text: &str) -> String {
    const MOST: usize = 60;
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
