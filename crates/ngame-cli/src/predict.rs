//! `ngame predict`: texts in, labels out.

use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::bail;
use clap::ValueEnum;
use ngame::data::{Csr, ReadOptions, ScoredCsr, TextChoice, Texts, write_npz};
use ngame::encoder::TextSource;
use ngame::model::Model;
use ngame::prediction::{Explanation, Predicted, PredictionOptions, Predictor};
use ngame::training::TrainPlan;
use serde_json::{Value, json};

use crate::output_file::OutputFile;
use crate::progress::Bars;
use crate::terminal::{BAR, BOLD, DIM, bar, stdout, styled};
use crate::texts_in::{Part, is_dataset, lines, read_part};

/// Texts that are read, answered and written before the next are read.
const WINDOW: usize = 8_192;

/// Bytes of text that are read at once.
const WINDOW_BYTES: usize = 64 << 20;

/// Find the labels of texts.
///
/// Texts come one a line, from a file or standard input; on a terminal, type one and see. A score is
/// the probability that the label is right.
#[derive(Debug, clap::Args)]
#[command(after_help = "Formats:
  text   for people
  jsonl  {\"text\": …, \"labels\": [{\"id\": …, \"text\": …, \"score\": …}, …]}, one a line
  tsv    position of the text, label id, score, label text
  npz    a SciPy matrix of texts × labels, for `ngame metrics`; needs --out

Examples:
  ngame predict model
  ngame predict model texts.txt --format jsonl > labels.jsonl
  echo \"a viewer for photos\" | ngame predict model --top 3 --explain
  ngame predict model data --part test --top 100 --format npz --out predictions.npz")]
pub(crate) struct Args {
    /// The model folder
    model: PathBuf,
    /// One text a line, or a data set with --part; - is standard input
    #[arg(default_value = "-")]
    input: PathBuf,
    /// Which texts of a data set; its filter pairs are left out of the answers
    #[arg(long, value_enum)]
    part: Option<Part>,
    /// Which text of a data set: title, content or both [default: what the model was trained on]
    #[arg(long)]
    text: Option<TextChoice>,
    /// At most so many labels a text
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    top: u32,
    /// Only labels with at least this probability
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = probability)]
    threshold: f32,
    /// How answers are written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Say why: both scores, how frequent the label is, the nearest training texts that have it
    #[arg(long)]
    explain: bool,
    /// Write to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Use this many threads (otherwise all there are)
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Jsonl,
    Tsv,
    Npz,
}

fn probability(text: &str) -> Result<f32, String> {
    let number = text.parse::<f32>().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.threads == Some(0) {
        bail!("--threads: expected at least 1, found 0");
    }
    if args.format == Format::Npz && args.out.is_none() {
        bail!("--format npz: a matrix is no text\n  to do:    name a file with --out");
    }
    if args.format == Format::Npz && args.explain {
        bail!("--explain: a matrix has no room for reasons\n  to do:    use --format jsonl");
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.threads.unwrap_or(0)).build()?;
    pool.install(|| run_in_pool(args))
}

fn run_in_pool(args: &Args) -> anyhow::Result<()> {
    let bars = Bars::new();
    let predictor = Predictor::new(Model::open(&args.model)?);
    let is_stdin = args.input.as_os_str() == "-";
    if is_stdin && std::io::stdin().is_terminal() && args.out.is_none() {
        return converse(args, &predictor);
    }
    let (texts, filter);
    let mut source: Box<dyn TextSource + '_> = match is_dataset(&args.input) {
        true => {
            let trained_on = TrainPlan::parse(&predictor.model().records.plan);
            let text = args.text.or(trained_on.ok().map(|plan| plan.data.text));
            let options = ReadOptions { text: text.unwrap_or_default(), ..Default::default() };
            let part = read_part(&args.input, args.part, &options, &bars)?;
            (texts, filter) = (part.texts, part.filter);
            check_labels(filter.as_ref(), &predictor, args)?;
            Box::new(texts.iter())
        }
        false => {
            filter = None;
            lines(&args.input, args.part)?
        }
    };
    let mut file = match (&args.out, args.format) {
        (Some(path), Format::Text | Format::Jsonl | Format::Tsv) => Some(OutputFile::create(path)?),
        _ => None,
    };
    let mut terminal = stdout();
    let out: &mut dyn Write = match &mut file {
        Some(file) => file,
        None => &mut terminal,
    };
    let n_labels = predictor.model().labels.texts.len() as u32;
    let mut matrix = ScoredCsr::new(n_labels);
    let mut done = 0;
    loop {
        let mut window = Texts::new();
        source.next_texts(&mut window, WINDOW, WINDOW_BYTES)?;
        if window.is_empty() {
            break;
        }
        let rows: Vec<u32> = (done as u32..(done + window.len()) as u32).collect();
        let excluded = filter.as_ref().map(|filter| filter.select(&rows));
        let answers = answer(args, &predictor, &window, excluded.as_ref(), &bars)?;
        for (at, (text, labels)) in window.iter().zip(answers).enumerate() {
            if args.format == Format::Npz {
                let row = labels.iter().map(|(found, _)| (found.label, found.score));
                matrix.push_row(&mut row.collect());
            } else {
                write_answer(out, args, &predictor, done + at, text, &labels)?;
            }
        }
        done += window.len();
    }
    out.flush()?;
    if let Some(file) = file {
        file.finish()?;
    }
    if let (Format::Npz, Some(path)) = (args.format, &args.out) {
        write_npz(path, &matrix)?;
    }
    Ok(())
}

/// A data set's filter pairs name labels by position: they must be the model's, but for those that were
/// added behind them.
fn check_labels(filter: Option<&Csr>, predictor: &Predictor, args: &Args) -> anyhow::Result<()> {
    let model = predictor.model();
    let (n_trained, n_removed) = (model.views.n_trained(), model.records.n_removed);
    match filter.map(|filter| filter.n_columns() as usize) {
        Some(_) if n_removed > 0 => bail!(
            "{}: labels were removed from the model, and positions in filter files with them\n  \
             to do:    give a file of texts",
            args.input.display()
        ),
        Some(found) if found != n_trained => bail!(
            "{}: a data set of {found} labels, but the model was trained with {n_trained}\n  \
             to do:    give the data set that it was trained on, or a file of texts",
            args.input.display()
        ),
        _ => Ok(()),
    }
}

type Answer = Vec<(Predicted, Option<Explanation>)>;

fn answer(
    args: &Args,
    predictor: &Predictor,
    texts: &Texts,
    excluded: Option<&Csr>,
    bars: &Bars,
) -> anyhow::Result<Vec<Answer>> {
    let options = PredictionOptions { top: args.top as usize, threshold: args.threshold };
    if !args.explain {
        let plain = predictor.predict(texts, options, excluded, bars)?;
        let bare = |row: Vec<Predicted>| row.into_iter().map(|found| (found, None)).collect();
        return Ok(plain.into_iter().map(bare).collect());
    }
    let mut answers = Vec::new();
    for (at, text) in texts.iter().enumerate() {
        let excluded = excluded.map_or(&[][..], |pairs| pairs.row(at));
        let explained = predictor.explain(text, options, excluded)?;
        answers.push(explained.into_iter().map(|(found, why)| (found, Some(why))).collect());
    }
    Ok(answers)
}

/// Asks for texts on a terminal until there are no more.
fn converse(args: &Args, predictor: &Predictor) -> anyhow::Result<()> {
    let mut out = stdout();
    let n_labels = predictor.model().labels.texts.len() as u64;
    writeln!(
        out,
        "{} {}",
        styled(BOLD, crate::terminal::counted(n_labels, "label")),
        styled(DIM, "- type a text and Enter; Ctrl-D ends")
    )?;
    let options = PredictionOptions { top: args.top as usize, threshold: args.threshold };
    let mut input = std::io::stdin().lock();
    loop {
        write!(out, "{}", styled(BAR, "> "))?;
        out.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            writeln!(out)?;
            return Ok(());
        }
        let text = line.trim();
        if text.is_empty() {
            continue;
        }
        let began = std::time::Instant::now();
        let labels: Answer = if args.explain {
            let explained = predictor.explain(text, options, &[])?;
            explained.into_iter().map(|(found, why)| (found, Some(why))).collect()
        } else {
            let plain = predictor.predict_one(text, options, &[])?;
            plain.into_iter().map(|found| (found, None)).collect()
        };
        let milliseconds = began.elapsed().as_secs_f64() * 1e3;
        write_labels(&mut out, predictor, &labels)?;
        writeln!(out, "  {}", styled(DIM, format!("{milliseconds:.1} ms")))?;
    }
}

fn write_answer(
    out: &mut dyn Write,
    args: &Args,
    predictor: &Predictor,
    position: usize,
    text: &str,
    labels: &Answer,
) -> std::io::Result<()> {
    let names = &predictor.model().labels;
    match args.format {
        Format::Text => {
            writeln!(out, "{}", styled(BOLD, text))?;
            write_labels(out, predictor, labels)
        }
        Format::Jsonl => {
            let labels: Vec<Value> = labels
                .iter()
                .map(|(found, why)| {
                    let label = found.label as usize;
                    let mut value = json!({
                        "id": names.id(label),
                        "text": names.texts.get(label),
                        "score": found.score,
                    });
                    if let Some(why) = why {
                        value["why"] = json!(why);
                    }
                    value
                })
                .collect();
            writeln!(out, "{}", json!({ "text": text, "labels": labels }))
        }
        Format::Tsv => {
            for (found, _) in labels {
                let label = found.label as usize;
                let plain = |text: &str| text.replace(['\t', '\n', '\r'], " ");
                let (id, text) = (plain(&names.id(label)), plain(names.texts.get(label)));
                writeln!(out, "{position}\t{id}\t{:.6}\t{text}", found.score)?;
            }
            Ok(())
        }
        Format::Npz => Ok(()),
    }
}

/// A rank as people say it.
fn ordinal(rank: u32) -> String {
    let ending = match (rank % 10, rank % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{rank}{ending}")
}

/// Labels for people: a bar, a probability, a text, and why.
fn write_labels(
    out: &mut dyn Write,
    predictor: &Predictor,
    labels: &Answer,
) -> std::io::Result<()> {
    const WIDTH: usize = 8;
    let names = &predictor.model().labels;
    for (found, why) in labels {
        let label = found.label as usize;
        let text = names.texts.get(label);
        let name = if text.is_empty() { names.id(label).into_owned() } else { text.to_owned() };
        let bar = format!("{:<WIDTH$}", bar(f64::from(found.score), WIDTH));
        writeln!(out, "  {} {:5.1} %  {name}", styled(BAR, bar), 100.0 * found.score)?;
        if let Some(why) = why {
            let mut views: Vec<_> = why.views.iter().collect();
            views.sort_by_key(|(_, says)| says.rank);
            let views: Vec<String> =
                views.iter().map(|(name, says)| format!("{name} {}", ordinal(says.rank))).collect();
            let line = format!(
                "by view: {}; embedding {:.3}, classifier {:.3}, {} training {}",
                views.join(", "),
                why.embedding,
                why.classifier,
                why.frequency,
                if why.frequency == 1 { "point" } else { "points" }
            );
            writeln!(out, "    {:WIDTH$}        {}", "", styled(DIM, line))?;
            for near in &why.nearest {
                let line = format!("near {:.3}: {}", near.similarity, near.text);
                writeln!(out, "    {:WIDTH$}        {}", "", styled(DIM, line))?;
            }
        }
    }
    Ok(())
}
