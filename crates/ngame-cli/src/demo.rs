//! `ngame demo`: the bundled sample, from texts to a trained model and its answers.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use ngame::baseline::{NearestPoints, most_frequent};
use ngame::data::{Dataset, ReadOptions, ScoredCsr, Split, Summary};
use ngame::encoder::Existing;
use ngame::evaluation::Evaluation;
use ngame::metrics::{PropensityModel, Task, evaluate};
use ngame::model::Model;
use ngame::prediction::{PredictionOptions, Predictor};
use ngame::progress::{Event, Observer};
use ngame::training::{TrainConfig, TrainPlan, start_encoder, train};

use crate::check::write_summary;
use crate::evaluate::write_ablation;
use crate::metrics::write_groups;
use crate::progress::Bars;
use crate::terminal::{BAR, BOLD, DIM, GOOD, bar, duration, stdout, styled};

/// See it work on a bundled sample: no file, no download, less than a minute.
///
/// The sample is 1,987 Debian packages; the labels of a package are the packages it depends on,
/// recommends, suggests or enhances. A model is trained on it, measured on packages it has not seen,
/// and asked about three of them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ngame demo
  ngame demo --out sample && ngame predict sample/model")]
pub(crate) struct Args {
    /// Keep the sample's files in this folder, and the model in its subfolder `model`
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

/// How deep baselines predict.
const DEPTH: usize = 100;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let temporary = tempfile::tempdir().context("cannot create a temporary folder")?;
    let folder = args.out.as_deref().unwrap_or(temporary.path());
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    unpack(folder)?;
    let bars = Bars::new();
    let options = ReadOptions::default();
    let dataset = Dataset::read(folder, &options, &bars)?;
    let test = dataset.test.as_ref().context("the sample has a test split")?;
    let mut out = stdout();
    writeln!(
        out,
        "{}\nDebian packages; the labels of a package are the packages it depends on, recommends,\n\
         suggests or enhances.",
        styled(BOLD, "The bundled sample")
    )?;
    write_summary(&mut out, &Summary::new(&dataset), None)?;

    let began = Instant::now();
    let config = TrainConfig::default();
    let encoder = start_encoder(&dataset, &config.encoder, config.run.seed, &bars)?;
    let (plan, corpus, encoder) = TrainPlan::new(&dataset, options.text, config, encoder, &bars)?;
    let model = folder.join("model");
    let quiet = Quiet(&bars);
    let trained = train(&plan, &dataset, &corpus, encoder, &model, Existing::Replace, &quiet)?;
    let evaluation = trained.evaluation.context("the sample has test points")?;
    writeln!(
        out,
        "\n{}\nTrained in {} from the texts alone, and measured on {} packages it has never seen.\n",
        styled(BOLD, "The model, and what it has to beat"),
        duration(began.elapsed().as_secs_f64()),
        test.n_points(),
    )?;
    write_table(&mut out, &dataset, test, &evaluation)?;
    writeln!(
        out,
        "\n  {}",
        styled(DIM, "the fused scores, by how frequent a label is in training:")
    )?;
    write_groups(&mut out, &evaluation.head_torso_tail)?;

    writeln!(out, "\n{}", styled(BOLD, "Three of them"))?;
    let predictor = Predictor::new(Model::open(&model)?);
    for id in SHOWN {
        if let Some(point) = (0..test.n_points()).find(|&point| test.id(point) == id) {
            write_answer(&mut out, &dataset, test, &predictor, point)?;
        }
    }
    let model = match &args.out {
        Some(_) => model.display().to_string(),
        None => "MODEL".to_owned(),
    };
    writeln!(
        out,
        "\n{}\n  ngame check FILE_OR_FOLDER               what is in your own data: one CSV with columns\n\
         {:43}text and labels is enough\n  \
         ngame train FILE_OR_FOLDER --out MODEL   train on it\n  \
         ngame predict {model:<27}type texts, see labels\n  \
         ngame serve {model:<29}the same on a page in your browser, and for programs",
        styled(BOLD, "Next"),
        ""
    )?;
    Ok(())
}

/// Progress of everything but single validations, which would hide the story.
struct Quiet<'a>(&'a Bars);

impl Observer for Quiet<'_> {
    fn event(&self, event: Event<'_>) {
        if !matches!(event, Event::Validated(_)) {
            self.0.event(event);
        }
    }

    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}

fn unpack(folder: &Path) -> anyhow::Result<()> {
    for (name, bytes) in FILES {
        let path = folder.join(name);
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn write_table(
    out: &mut impl Write,
    dataset: &Dataset,
    test: &Split,
    evaluation: &Evaluation,
) -> std::io::Result<()> {
    let counts = dataset.train.by_point.column_counts();
    let weights =
        PropensityModel::default().inverse_propensities(dataset.train.n_points() as u64, &counts);
    let task = Task {
        truth: &test.by_point,
        filter: Some(&test.filter),
        inverse_propensities: Some(&weights),
    };
    let reached = |predictions: &ScoredCsr| {
        let metrics = evaluate(predictions, &task, DEPTH);
        let weighted = metrics.psprecision.unwrap_or_default();
        let [p1, p5] = [metrics.precision[0], metrics.precision[4]];
        [p1, p5, metrics.ndcg[4], weighted[0], weighted[4], metrics.recall[DEPTH - 1]]
    };
    let frequent = most_frequent(&dataset.train, test.n_points(), DEPTH);
    let voted = NearestPoints::new(&dataset.train).predict(&test.texts, DEPTH);
    let others = [
        ("most frequent labels", reached(&frequent)),
        ("votes of the 20 nearest texts", reached(&voted)),
    ];
    write_ablation(out, evaluation, &others)
}

fn write_answer(
    out: &mut impl Write,
    dataset: &Dataset,
    test: &Split,
    predictor: &Predictor,
    point: usize,
) -> anyhow::Result<()> {
    const WIDTH: usize = 88;
    const BAR_WIDTH: usize = 8;
    let text = test.texts.get(point);
    writeln!(out, "\n  {}", shorten(text, WIDTH))?;
    let excluded = test.filter.row(point);
    for found in predictor.predict_one(text, PredictionOptions::default(), excluded)? {
        let is_true = test.by_point.contains(point, found.label);
        let mark = if is_true { styled(GOOD, "✓") } else { " ".to_owned() };
        let text = shorten(dataset.labels.texts.get(found.label as usize), WIDTH - 24);
        let bar = format!("{:<BAR_WIDTH$}", bar(f64::from(found.score), BAR_WIDTH));
        let score = styled(DIM, format!("{:5.1} %", 100.0 * found.score));
        writeln!(out, "   {mark} {} {score}  {text}", styled(BAR, bar))?;
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
