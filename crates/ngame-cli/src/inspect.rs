//! `ngame inspect`: what a model folder holds.

use std::io::Write;
use std::path::PathBuf;

use ngame::fusion::Tried;
use ngame::model::{Check, Manifest, Model};
use serde_json::{Value, json};

use crate::terminal::{BOLD, DIM, GOOD, Table, bytes, counted, stdout, styled};

/// Show what is inside a model folder: sizes, plan, metrics, recall.
///
/// Opening a model checks lengths and checksums of small files, and samples of large ones; --verify
/// reads every byte.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ngame inspect model
  ngame inspect model --verify
  ngame inspect model --json | jq .files")]
pub(crate) struct Args {
    /// The model folder
    model: PathBuf,
    /// Read every byte and compare it with the checksums
    #[arg(long)]
    verify: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let check = if args.verify { Check::Whole } else { Check::Quick };
    let manifest = Manifest::open(&args.model, check)?;
    let model = Model::open(&args.model)?;
    let evaluation: Value = serde_json::from_str(&model.records.evaluation).unwrap_or_default();
    let mut out = stdout();
    if args.json {
        let mut value = serde_json::to_value(&manifest)?;
        value["plan"] = json!(toml::from_str::<Value>(&model.records.plan).unwrap_or_default());
        value["evaluation"] = evaluation;
        value["tried"] = json!(model.fusion.tried);
        value["method"] = json!(model.fusion.method.name());
        value["views"] = json!(model.fusion.views);
        value["index"] = json!(model.views.index.facts());
        writeln!(out, "{value:#}")?;
        return Ok(());
    }
    let verified = if args.verify { styled(GOOD, ", every byte verified") } else { String::new() };
    writeln!(
        out,
        "{}, vectors of {}, {} in {}{verified}",
        styled(BOLD, counted(manifest.n_labels as u64, "label")),
        manifest.dim,
        bytes(manifest.bytes()),
        counted(manifest.files.len() as u64, "file"),
    )?;
    writeln!(
        out,
        "{}",
        styled(
            DIM,
            format!(
                "format {}, written by {}, {} kept",
                manifest.version,
                manifest.written_by,
                counted(manifest.n_points as u64, "training point"),
            )
        )
    )?;
    let changes = changes(&manifest);
    if !changes.is_empty() {
        writeln!(out, "{}", styled(DIM, format!("since it was trained: {changes}")))?;
    }
    writeln!(out, "\n{}", styled(BOLD, "Files"))?;
    let mut table = Table::new(["", "size"]);
    for (name, facts) in &manifest.files {
        table.row([name.clone(), bytes(facts.bytes)]);
    }
    table.write(&mut out)?;
    writeln!(out, "\n{}  {}", styled(BOLD, "Index"), model.views.index.facts())?;
    let views: Vec<&str> = model.fusion.views.iter().map(|view| view.name()).collect();
    writeln!(out, "{}  {}", styled(BOLD, "Views"), views.join(", "))?;
    if !model.fusion.tried.is_empty() {
        writeln!(out, "\n{}", styled(BOLD, "Held-out points, by how candidates are scored"))?;
        write_tried(&mut out, &model.fusion.tried)?;
    }
    if let Some(fused) = evaluation.get("fused") {
        let at = |name: &str, k: usize| fused[name][k].as_f64().map_or(f64::NAN, |v| 100.0 * v);
        writeln!(
            out,
            "\n{}  P@1 {:.2}, P@5 {:.2}, PSP@1 {:.2}, PSP@5 {:.2}, R@100 {:.2}",
            styled(
                BOLD,
                if changes.is_empty() { "Test points" } else { "Test points, as trained" }
            ),
            at("precision", 0),
            at("precision", 4),
            at("psprecision", 0),
            at("psprecision", 4),
            fused["recall_100"].as_f64().map_or(f64::NAN, |v| 100.0 * v),
        )?;
    }
    Ok(())
}

/// How the labels changed after training.
fn changes(manifest: &Manifest) -> String {
    let mut parts = Vec::new();
    for (n, verb) in [(manifest.n_added, "added"), (manifest.n_removed, "removed")] {
        if n > 0 {
            parts.push(format!("{} {verb}", counted(n as u64, "label")));
        }
    }
    parts.join(", ")
}

/// What each way to score candidates reached on held-out points.
pub(crate) fn write_tried(out: &mut impl Write, tried: &[Tried]) -> std::io::Result<()> {
    let mut table = Table::new(["%", "P@1", "P@5", "PSP@1", "PSP@5", ""]);
    for one in tried {
        let values = [one.precision_1, one.precision_5, one.psprecision_1, one.psprecision_5];
        let cells = values.map(|value| format!("{:.2}", 100.0 * value));
        let mark = if one.chosen { "chosen" } else { "" };
        table.row(std::iter::once(one.method.clone()).chain(cells).chain([mark.to_owned()]));
    }
    table.write(out)
}
