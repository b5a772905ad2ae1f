//! `ngame demo`: the bundled sample, from texts to scored answers.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use ngame::baseline::{NearestPoints, most_frequent};
use ngame::data::{Dataset, ReadOptions, Split, Summary};
use ngame::metrics::{LabelGroups, PropensityModel, Task, evaluate, evaluate_groups, top_k};

use crate::check::write_summary;
use crate::metrics::write_groups;
use crate::progress::Bars;
use crate::terminal::{BOLD, DIM, GOOD, Table, stdout, styled};

/// See it work on a bundled sample: no file, no download, a second or two.
///
/// The sample is 1,987 Debian packages; the labels of a package are the packages it depends on,
/// recommends, suggests or enhances.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ngame demo
  ngame demo --out sample && ngame check sample")]
pub(crate) struct Args {
    /// Also write the sample's files into this folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<std::path::PathBuf>,
}

/// The files of the sample, inside the binary.
const FILES: [(&str, &[u8]); 6] = [
    ("trn.json.gz", include_bytes!("../../../samples/debian-small/trn.json.gz")),
    ("tst.json.gz", include_bytes!("../../../samples/debian-small/tst.json.gz")),
    ("lbl.json.gz", include_bytes!("../../../samples/debian-small/lbl.json.gz")),
    (
        "filter_labels_train.txt",
        include_bytes!("../../../samples/debian-small/filter_labels_train.txt"),
    ),
    (
        "filter_labels_test.txt",
        include_bytes!("../../../samples/debian-small/filter_labels_test.txt"),
    ),
    ("README.md", include_bytes!("../../../samples/debian-small/README.md")),
];

/// Which test points are shown, by id.
const SHOWN: [&str; 3] = ["gwenview", "widelands-data", "espeakedit"];

/// How many labels are predicted for a point.
const N_PREDICTED: usize = 10;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    unpack(folder.path())?;
    let dataset = Dataset::read(folder.path(), &ReadOptions::default(), &Bars::new())?;
    let test = dataset.test.as_ref().context("the sample has a test split")?;
    let mut out = stdout();
    writeln!(
        out,
        "{}\nDebian packages; the labels of a package are the packages it depends on, recommends,\n\
         suggests or enhances.",
        styled(BOLD, "The bundled sample")
    )?;
    write_summary(&mut out, &Summary::new(&dataset), None)?;

    let nearest = NearestPoints::new(&dataset.train);
    writeln!(
        out,
        "\n{}\nBoth are there without training: how far frequency alone goes, and shared words.\n",
        styled(BOLD, "What a classifier has to beat")
    )?;
    write_baselines(&mut out, &dataset, test, &nearest)?;

    writeln!(out, "\n{}", styled(BOLD, "Three packages it has never seen"))?;
    for id in SHOWN {
        if let Some(point) = (0..test.n_points()).find(|&point| test.id(point) == id) {
            write_answer(&mut out, &dataset, test, &nearest, point)?;
        }
    }
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        unpack(folder)?;
    }
    writeln!(
        out,
        "\n{}\n  ngame check FILE_OR_FOLDER    what is in your own data: one CSV with columns\n\
         {:32}text and labels is enough\n  \
         ngame train --help            train an encoder on it, in seconds to minutes\n  \
         ngame metrics --help          score any system's predictions",
        styled(BOLD, "Next"),
        ""
    )?;
    Ok(())
}

fn unpack(folder: &Path) -> anyhow::Result<()> {
    for (name, bytes) in FILES {
        let path = folder.join(name);
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn write_baselines(
    out: &mut impl Write,
    dataset: &Dataset,
    test: &Split,
    nearest: &NearestPoints<'_>,
) -> std::io::Result<()> {
    let counts = dataset.train.by_point.column_counts();
    let weights =
        PropensityModel::default().inverse_propensities(dataset.train.n_points() as u64, &counts);
    let task = Task {
        truth: &test.by_point,
        filter: Some(&test.filter),
        inverse_propensities: Some(&weights),
    };
    let frequent = most_frequent(&dataset.train, test.n_points(), N_PREDICTED);
    let voted = nearest.predict(&test.texts, N_PREDICTED);
    let mut table = Table::new(["%", "P@1", "P@5", "nDCG@5", "PSP@1", "PSP@5", "recall@10"]);
    for (name, predictions) in
        [("most frequent labels", &frequent), ("votes of the 20 nearest texts", &voted)]
    {
        let metrics = evaluate(predictions, &task, N_PREDICTED);
        let weighted = metrics.psprecision.unwrap_or_default();
        let [p1, p5] = [metrics.precision[0], metrics.precision[4]];
        let values = [p1, p5, metrics.ndcg[4], weighted[0], weighted[4], metrics.recall[9]];
        let cells = values.map(|value| format!("{:.2}", value * 100.0));
        table.row(std::iter::once(name.to_owned()).chain(cells));
    }
    table.write(out)?;
    writeln!(out, "\n  {}", styled(DIM, "the votes, by how frequent a label is in training:"))?;
    let groups = LabelGroups::by_training_count(&counts);
    write_groups(out, &evaluate_groups(&voted, &task, &groups, &counts, 5))
}

fn write_answer(
    out: &mut impl Write,
    dataset: &Dataset,
    test: &Split,
    nearest: &NearestPoints<'_>,
    point: usize,
) -> std::io::Result<()> {
    const WIDTH: usize = 88;
    writeln!(out, "\n  {}", shorten(test.texts.get(point), WIDTH))?;
    let (labels, votes): (Vec<u32>, Vec<f32>) =
        nearest.predict_one(test.texts.get(point), N_PREDICTED).into_iter().unzip();
    let mut best = Vec::new();
    top_k(&labels, &votes, test.filter.row(point), 5, &mut best);
    for (label, votes) in best {
        let is_true = test.by_point.contains(point, label);
        let mark = if is_true { styled(GOOD, "✓") } else { " ".to_owned() };
        let text = shorten(dataset.labels.texts.get(label as usize), WIDTH - 12);
        writeln!(out, "   {mark} {} {text}", styled(DIM, format!("{votes:5.2}")))?;
    }
    Ok(())
}

/// The beginning of a text, cut at a character.
fn shorten(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}
