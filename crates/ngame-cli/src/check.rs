//! `ngame check`: what is in a data set, and what is odd about it.

use std::io::Write;
use std::path::PathBuf;

use ngame::data::{
    Dataset, Distribution, Format, ReadOptions, SplitRequest, Summary, TextChoice, detect,
};
use ngame::tokens::{Tokenizer, tokenize};
use serde_json::json;

use crate::progress::Bars;
use crate::terminal::{BAR, BOLD, DIM, Table, WARN, bar, bytes, counted, grouped, stdout, styled};

/// Read a data set and show what is in it: counts, lengths, label frequencies, oddities.
///
/// Nothing is written. A file that cannot be used is an error that names the line.
#[derive(Debug, clap::Args)]
#[command(after_help = "What can be read (plain, gzip or zstd, whatever the file is called):
  mine.csv                  one table with columns text (or title, content) and labels
  folder with train.csv     also test.csv, valid.csv, labels.csv (id, text); .tsv and .jsonl too
  folder with trn.json.gz   the XC repository's LF layout, with lbl.json.gz and tst.json.gz
  folder with trn_X.txt     texts one a line, with Y.txt and trn_X_Y.txt label matrices
Filter files (filter_labels_test.txt and its other spellings) are found and applied.

Examples:
  ngame check samples/debian-small
  ngame check mine.csv --split 0.1
  ngame check data --text title --tokenizer encoders/all-MiniLM-L6-v2
  ngame check data --json | jq .n_labels")]
pub(crate) struct Args {
    /// A folder or a file
    data: PathBuf,
    #[command(flatten)]
    read: ReadArgs,
    /// Count tokens with this tokenizer: a tokenizer.json, a vocab.txt, or a folder with one
    #[arg(long, value_name = "PATH")]
    tokenizer: Option<PathBuf>,
    /// Texts longer than this many tokens are cut
    #[arg(long, value_name = "N", default_value_t = 128, requires = "tokenizer")]
    max_tokens: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How to read a data set.
#[derive(Debug, clap::Args)]
pub(crate) struct ReadArgs {
    /// The layout, where it should not be detected: lf, xc or own
    #[arg(long)]
    format: Option<Format>,
    /// Which text to use: title, content or both, where one is empty the other [default: both, or
    /// what a model was trained on]
    #[arg(long)]
    text: Option<TextChoice>,
    /// Make a test split of this share of the training rows, where there is no test file
    #[arg(long, value_name = "SHARE")]
    split: Option<f64>,
    /// The seed of the split
    #[arg(long, default_value_t = 0, requires = "split")]
    split_seed: u64,
}

impl ReadArgs {
    pub(crate) fn options(&self) -> ngame::Result<ReadOptions> {
        self.options_or(TextChoice::default())
    }

    /// The same, with the text to use where none is asked for.
    pub(crate) fn options_or(&self, text: TextChoice) -> ngame::Result<ReadOptions> {
        let split =
            self.split.map(|share| SplitRequest::new(share, self.split_seed)).transpose()?;
        Ok(ReadOptions { format: self.format, text: self.text.unwrap_or(text), split })
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let bars = Bars::new();
    let dataset = Dataset::read(&args.data, &args.read.options()?, &bars)?;
    let summary = Summary::new(&dataset);
    let tokens = match &args.tokenizer {
        Some(path) => Some(TokenCounts::new(&dataset, path, args.max_tokens, &bars)?),
        None => None,
    };
    let format = match args.read.format {
        Some(format) => format,
        None => detect(&args.data)?,
    };
    let mut out = stdout();
    if args.json {
        let mut value = serde_json::to_value(&summary)?;
        value["format"] = json!(format);
        value["text"] = json!(args.read.text.unwrap_or_default());
        if let Some(tokens) = &tokens {
            value["tokens_per_text"] = json!(tokens.texts);
            value["tokens_per_label"] = json!(tokens.labels);
            value["share_cut"] = json!(tokens.share_cut);
        }
        writeln!(out, "{value:#}")?;
        return Ok(());
    }
    writeln!(
        out,
        "{}  {}",
        styled(BOLD, args.data.display()),
        styled(DIM, format!("{format} layout, text: {}", args.read.text.unwrap_or_default()))
    )?;
    write_summary(&mut out, &summary, tokens.as_ref())?;
    Ok(())
}

/// How many tokens the texts have.
pub(crate) struct TokenCounts {
    texts: Distribution,
    labels: Distribution,
    /// The share of training texts that are cut at the limit.
    share_cut: f64,
    max_tokens: usize,
}

impl TokenCounts {
    fn new(
        dataset: &Dataset,
        path: &std::path::Path,
        max_tokens: usize,
        bars: &Bars,
    ) -> ngame::Result<Self> {
        /// Lengths are counted far beyond any encoder's limit, not without end.
        const LONGEST: usize = 1 << 16;
        let tokenizer = Tokenizer::load(path)?;
        let lengths = |texts| -> ngame::Result<Vec<u64>> {
            let store = tokenize(texts, &tokenizer, LONGEST.max(max_tokens), bars)?;
            Ok((0..store.n_texts()).map(|text| store.len(text) as u64).collect())
        };
        let texts = lengths(&dataset.train.texts)?;
        let n_cut = texts.iter().filter(|&&length| length > max_tokens as u64).count();
        Ok(Self {
            share_cut: n_cut as f64 / texts.len() as f64,
            texts: Distribution::of(texts),
            labels: Distribution::of(lengths(&dataset.labels.texts)?),
            max_tokens,
        })
    }
}

/// The summary as people read it.
pub(crate) fn write_summary(
    out: &mut impl Write,
    summary: &Summary,
    tokens: Option<&TokenCounts>,
) -> std::io::Result<()> {
    writeln!(out)?;
    let mut table = Table::new(["", "points", "labels a point", "filter pairs"]);
    let filter = |pairs: u64| if pairs == 0 { "–".to_owned() } else { grouped(pairs) };
    table.row([
        "train".to_owned(),
        grouped(summary.n_train as u64),
        format!("{:.2}", summary.labels_per_point),
        filter(summary.filter_pairs_train),
    ]);
    if let Some(n_valid) = summary.n_valid {
        table.row(["valid".to_owned(), grouped(n_valid as u64)]);
    }
    if let (Some(n_test), Some(labels)) = (summary.n_test, summary.labels_per_point_test) {
        table.row([
            "test".to_owned(),
            grouped(n_test as u64),
            format!("{labels:.2}"),
            filter(summary.filter_pairs_test),
        ]);
    }
    table.write(out)?;
    writeln!(
        out,
        "\n  {}, {:.2} training points each (median {}, most {}, {} with just one)\n",
        styled(BOLD, counted(summary.n_labels as u64, "label")),
        summary.points_per_label,
        grouped(summary.median_points_per_label),
        grouped(summary.max_points_per_label),
        grouped(summary.labels_with_1_train_point),
    )?;
    write_lengths(out, summary, tokens)?;
    write_frequencies(out, summary)?;
    writeln!(out, "\n  {} in memory", bytes(summary.memory_bytes))?;
    if summary.n_test.is_none() {
        writeln!(out, "  no test rows: add a test file, or make some with --split 0.1")?;
    }
    let mut oddities = summary.oddities.described().peekable();
    if oddities.peek().is_some() {
        writeln!(out, "\n  {}", styled(BOLD, "worth a look"))?;
    }
    for (count, what) in oddities {
        writeln!(out, "  {} {what}", styled(WARN, format!("{:>9}", grouped(count))))?;
    }
    Ok(())
}

fn write_lengths(
    out: &mut impl Write,
    summary: &Summary,
    tokens: Option<&TokenCounts>,
) -> std::io::Result<()> {
    let mut table = Table::new(["", "mean", "median", "90 %", "99 %", "longest"]);
    let mut row = |name: &str, lengths: &Distribution| {
        table.row([
            name.to_owned(),
            format!("{:.2}", lengths.mean),
            grouped(lengths.median),
            grouped(lengths.p90),
            grouped(lengths.p99),
            grouped(lengths.max),
        ]);
    };
    row("words of a text", &summary.words_per_text);
    row("words of a label", &summary.words_per_label);
    if let Some(tokens) = tokens {
        row("tokens of a text", &tokens.texts);
        row("tokens of a label", &tokens.labels);
    }
    table.write(out)?;
    let title_and_content = [
        ("texts", summary.words_title_train, summary.words_content_train),
        ("labels", summary.words_title_label, summary.words_content_label),
    ];
    for (what, title, content) in title_and_content {
        if content > 0.0 {
            let line = format!("  {what}: {title:.2} words of title, {content:.2} of content");
            writeln!(out, "{}", styled(DIM, line))?;
        }
    }
    if let Some(tokens) = tokens {
        let TokenCounts { share_cut, max_tokens, .. } = tokens;
        writeln!(out, "  {:.1} % of texts are cut at {max_tokens} tokens", share_cut * 100.0)?;
    }
    Ok(())
}

/// How many labels have how many training points, as bars.
fn write_frequencies(out: &mut impl Write, summary: &Summary) -> std::io::Result<()> {
    const WIDTH: usize = 40;
    writeln!(out, "\n  {}", styled(DIM, "training points of a label"))?;
    let most = summary.label_frequency.iter().map(|band| band.labels).max().unwrap_or(1);
    for band in &summary.label_frequency {
        let points = match band.from {
            from if from == band.to => grouped(from),
            from => format!("{}–{}", grouped(from), grouped(band.to)),
        };
        let share = band.labels as f64 / most as f64;
        let drawn = bar(share, WIDTH);
        writeln!(out, "  {points:>15}  {} {}", styled(BAR, drawn), grouped(band.labels))?;
    }
    Ok(())
}
