//! Error analysis for people and programs: rows of misses in a file, a table on the terminal.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use ngame::data::{Dataset, Split};
use ngame::error_analysis::{ErrorAnalysis, Stage};
use ngame::evaluation::Aligned;
use ngame::model::Model;
use serde_json::{Value, json};

use crate::output_file::OutputFile;
use crate::terminal::{BOLD, DIM, Table, counted, grouped, styled};

/// Writes one JSON object for every true label that was missed.
pub(crate) fn write_misses(
    path: &Path,
    analysis: &ErrorAnalysis,
    model: &Model,
    dataset: &Dataset,
    split: &Split,
    points: &Aligned<'_>,
) -> anyhow::Result<()> {
    let failed = || format!("cannot write {}", path.display());
    let mut out = OutputFile::create(path)?;
    // A label that the model does not know is called as the data set calls it.
    let label = |label: u32| -> Value {
        let (labels, at) = match points.unknown(label) {
            Some(at) => (&dataset.labels, at as usize),
            None => (&model.labels, label as usize),
        };
        json!({ "id": labels.id(at), "text": labels.texts.get(at) })
    };
    for miss in &analysis.misses {
        let point = miss.point as usize;
        let row = json!({
            "point": { "id": split.id(point), "text": split.texts.get(point) },
            "label": label(miss.label),
            "stage": miss.stage,
            "rank": miss.rank,
            "views": miss.views,
            "training_points": miss.training_points,
            "band": miss.band,
            "first": miss.first.map(label),
        });
        writeln!(out, "{row}").with_context(failed)?;
    }
    out.finish()
}

/// Misses by stage and band, and what each view carried.
pub(crate) fn write_summary(
    out: &mut impl Write,
    analysis: &ErrorAnalysis,
    path: &Path,
) -> std::io::Result<()> {
    let n_missed = analysis.n_true - analysis.n_right;
    let share = |n: u64, of: u64| 100.0 * n as f64 / of.max(1) as f64;
    let title = format!("True labels missed by the first {}", analysis.k);
    let line = format!(
        "{} of {} ({:.1} %), each in {}",
        grouped(n_missed),
        grouped(analysis.n_true),
        share(n_missed, analysis.n_true),
        path.display()
    );
    writeln!(out, "\n{}  {}", styled(BOLD, title), styled(DIM, line))?;
    let header = [""].into_iter().chain(analysis.bands.iter().map(String::as_str));
    let mut table = Table::new(header.chain(["all", "%"]));
    for (stage, counts) in Stage::ALL.iter().zip(&analysis.by_stage) {
        let sum: u64 = counts.iter().sum();
        let cells = counts.iter().map(|&count| grouped(count));
        let ends = [grouped(sum), format!("{:.1}", share(sum, n_missed))];
        table.row(std::iter::once(stage.name().to_owned()).chain(cells).chain(ends));
    }
    table.write(out)?;
    let k = analysis.k;
    writeln!(
        out,
        "\n{}  {}",
        styled(BOLD, "Which view carried those that are right"),
        styled(
            DIM,
            format!(
                "{}; {} by the fusion alone",
                counted(analysis.n_right, "right label"),
                grouped(analysis.n_fused_alone)
            )
        )
    )?;
    let in_first = format!("in its first {k}");
    let mut table = Table::new(["", &in_first, "%", "in no other's", "missed though in its first"]);
    for (name, carried) in &analysis.views {
        table.row([
            (*name).to_owned(),
            grouped(carried.right),
            format!("{:.1}", share(carried.right, analysis.n_right)),
            grouped(carried.alone),
            grouped(carried.missed),
        ]);
    }
    table.write(out)
}
