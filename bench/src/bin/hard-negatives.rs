//! How many of its truly hardest negatives a point meets in its batch, under a given encoder, for every
//! sampler: one JSON object on standard output.
//!
//! Truth is exact: the 100 labels that score highest with a point and are not its own. A batch holds
//! the positives of its points, and what an index mined for them. The ceiling is what a batch of that
//! many labels could hold at best. With `--draw`, one point instead: its positives, random negatives,
//! NGAME's, and hard ones that it misses, as places in a plane.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;

use clap::Parser;
use ngame::batching::{Batches, Views};
use ngame::data::{Dataset, ReadOptions, TextChoice};
use ngame::encoder::{Precision, TextEncoder, VectorType};
use ngame::index::search_exact;
use ngame::progress::Silent;
use ngame::training::{Corpus, TrainPlan, config_from, parse_setting};
use serde_json::{Map, json};

#[derive(Parser)]
struct Args {
    data: PathBuf,
    #[arg(long, default_value_t = TextChoice::Title)]
    text: TextChoice,
    #[arg(long)]
    encoder: PathBuf,
    /// Points of a batch
    #[arg(long, default_value_t = 256)]
    batch: usize,
    /// Points that are looked at
    #[arg(long, default_value_t = 4_000)]
    sample: usize,
    /// Cluster sizes to try
    #[arg(long, value_delimiter = ',', default_value = "1,4,16,64,256")]
    clusters: Vec<usize>,
    /// Draw the labels around one point
    #[arg(long)]
    draw: bool,
}

/// What the batches of one epoch hold.
struct Drawn {
    /// The labels of every batch, ascending.
    targets: Vec<Vec<u32>>,
    /// The batch of every point.
    batch_of: Vec<usize>,
}

impl Drawn {
    fn new(plan: &TrainPlan, corpus: &Corpus, views: &Views<'_>) -> anyhow::Result<Self> {
        let mined = plan.sampler().mine(0, views)?;
        let batches = Batches::draw(&mined.clusters, mined.cluster_size, plan.batch_size(), 0, 0);
        let mut batch_of = vec![0; corpus.n_points()];
        let mut targets = Vec::new();
        for batch in 0..batches.len() {
            let mut present: Vec<u32> = Vec::new();
            for &point in batches.get(batch) {
                batch_of[point as usize] = batch;
                present.push(corpus.draw_positive(point, 0, 0));
                if let Some(lists) = &mined.negatives {
                    present.extend(lists.get(point as usize));
                }
            }
            present.sort_unstable();
            present.dedup();
            targets.push(present);
        }
        Ok(Self { targets, batch_of })
    }

    /// The labels that a point meets.
    fn met(&self, point: usize) -> &[u32] {
        &self.targets[self.batch_of[point]]
    }
}

/// Settings of random batches, or of clusters of one size.
fn clusters_of(size: usize) -> Vec<String> {
    vec![format!("batching.cluster_start={size}"), "batching.cluster_doublings=[]".to_owned()]
}

/// The direction in which vectors differ most, by power iteration.
fn principal(rows: &[Vec<f32>], dim: usize) -> Vec<f32> {
    let mut direction: Vec<f32> = (0..dim).map(|at| 1.0 + (at % 7) as f32).collect();
    for _ in 0..60 {
        let mut next = vec![0.0f32; dim];
        for row in rows {
            let dot: f32 = row.iter().zip(&direction).map(|(a, b)| a * b).sum();
            next.iter_mut().zip(row).for_each(|(next, value)| *next += dot * value);
        }
        let length = next.iter().map(|value| value * value).sum::<f32>().sqrt().max(1e-12);
        direction = next.into_iter().map(|value| value / length).collect();
    }
    direction
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let options = ReadOptions { text: args.text, ..Default::default() };
    let dataset = Dataset::read(&args.data, &options, &Silent)?;
    let setting = |text: String| parse_setting(&text).map_err(anyhow::Error::msg);
    let plan_with = |settings: &[String]| -> anyhow::Result<_> {
        let mut all = vec![
            setting(format!("encoder.start={}", args.encoder.display()))?,
            setting(format!("batching.batch_size={}", args.batch))?,
            setting("run.epochs=1".to_owned())?,
        ];
        for text in settings {
            all.push(setting(text.clone())?);
        }
        let config = config_from(None, None, &all)?;
        let encoder = TextEncoder::load(&args.encoder)?;
        Ok(TrainPlan::new(&dataset, args.text, config, encoder, &Silent)?)
    };
    let (_, corpus, encoder) = plan_with(&[])?;
    let embedder = encoder.embedder(Precision::F32);
    let points =
        embedder.embed_some(&corpus.tokens, &corpus.point_text, VectorType::F32, &Silent)?;
    let labels =
        embedder.embed_some(&corpus.tokens, &corpus.target_texts(), VectorType::F32, &Silent)?;

    let every = corpus.n_points().div_ceil(args.sample).max(1);
    let chosen: Vec<u32> = (0..corpus.n_points() as u32).step_by(every).collect();
    let queries = embedder.embed_some(
        &corpus.tokens,
        &chosen.iter().map(|&point| corpus.point_text[point as usize]).collect::<Vec<_>>(),
        VectorType::F32,
        &Silent,
    )?;
    let spared = corpus.not_negative.select(&chosen);
    let hardest = search_exact(&queries, &labels, 100, Some(&spared), &Silent)?;

    let views = Views {
        n_points: corpus.n_points(),
        points: Some(&points),
        labels: Some(&labels),
        not_negative: &corpus.not_negative,
    };
    if args.draw {
        // A point with some labels and a title that can be read at a glance.
        let readable = |&(_, &point): &(usize, &u32)| {
            let place = corpus.trained.get(point as usize);
            let text =
                place.map(|&place| dataset.train.texts.get(place as usize)).unwrap_or_default();
            (25..70).contains(&text.chars().count())
                && corpus.positives.row(point as usize).len() >= 5
        };
        let Some((row, &point)) = chosen.iter().enumerate().find(readable) else {
            anyhow::bail!("no point has five labels and a title of 25 to 70 letters");
        };
        let (random, ..) = plan_with(&clusters_of(1))?;
        let (close, ..) = plan_with(&clusters_of(args.batch))?;
        let random = Drawn::new(&random, &corpus, &views)?;
        let close = Drawn::new(&close, &corpus, &views)?;
        let own = corpus.not_negative.row(point as usize);
        let not_own = |labels: &[u32]| -> Vec<u32> {
            labels.iter().copied().filter(|label| own.binary_search(label).is_err()).collect()
        };
        let (mined, hard) = (not_own(close.met(point as usize)), hardest.row(row).0);
        let missed = hard.iter().copied().filter(|label| mined.binary_search(label).is_err());
        let kinds = [
            ("positives", corpus.positives.row(point as usize).to_vec()),
            ("random negatives", not_own(random.met(point as usize))),
            ("NGAME's negatives", mined.clone()),
            ("hard, missed", missed.collect()),
        ];
        // Labels of one text are one target: any of them names it.
        let text_of: HashMap<u32, usize> =
            corpus.label_text.iter().enumerate().map(|(label, &text)| (text, label)).collect();
        let targets = corpus.target_texts();
        let name = |target: u32| {
            let label = text_of.get(&targets[target as usize]);
            label.map(|&label| dataset.labels.texts.get(label)).unwrap_or_default()
        };
        // To the right the score with the point; upwards where labels differ most beside that.
        let query = queries.row(row).to_vec();
        let dot = |a: &[f32], b: &[f32]| -> f32 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
        let beside = |label: u32| -> (f32, Vec<f32>) {
            let vector = labels.row(label as usize).to_vec();
            let score = dot(&vector, &query);
            let rest = vector.iter().zip(&query).map(|(value, of)| value - score * of).collect();
            (score, rest)
        };
        let mut rests: Vec<Vec<f32>> =
            kinds.iter().flat_map(|(_, labels)| labels).map(|&label| beside(label).1).collect();
        let mean: Vec<f32> = (0..query.len())
            .map(|at| rests.iter().map(|rest| rest[at]).sum::<f32>() / rests.len() as f32)
            .collect();
        rests.iter_mut().for_each(|rest| rest.iter_mut().zip(&mean).for_each(|(a, b)| *a -= b));
        let upwards = principal(&rests, query.len());
        let (mut places, mut scores) = (Map::new(), Map::new());
        for (kind, of) in kinds {
            let drawn: Vec<(f32, f32, &str)> = of
                .iter()
                .map(|&label| {
                    let (score, rest) = beside(label);
                    (score, dot(&rest, &upwards), name(label))
                })
                .collect();
            let mean = drawn.iter().map(|place| place.0).sum::<f32>() / drawn.len().max(1) as f32;
            scores.insert(kind.to_owned(), json!(mean));
            places.insert(kind.to_owned(), json!(drawn));
        }
        let text = dataset.train.texts.get(corpus.trained[point as usize] as usize);
        let answer = json!({ "text": text, "labels": places, "scores": scores });
        writeln!(std::io::stdout(), "{answer}")?;
        return Ok(());
    }

    let mut samplers: Vec<(String, Vec<String>)> = args
        .clusters
        .iter()
        .map(|&size| {
            let name = if size == 1 { "random".to_owned() } else { format!("clusters of {size}") };
            (name, clusters_of(size))
        })
        .collect();
    samplers.push(("ann".to_owned(), vec!["batching.sampler=ann".to_owned()]));
    let mut answer = Map::new();
    for (name, settings) in samplers {
        let (plan, ..) = plan_with(&settings)?;
        let drawn = Drawn::new(&plan, &corpus, &views)?;
        let (mut met, mut all) = (0usize, 0usize);
        for (row, &point) in chosen.iter().enumerate() {
            let present = drawn.met(point as usize);
            let (truth, _) = hardest.row(row);
            met += truth.iter().filter(|label| present.binary_search(label).is_ok()).count();
            all += truth.len();
        }
        let n_targets: usize = drawn.targets.iter().map(Vec::len).sum();
        let mean = n_targets as f64 / drawn.targets.len() as f64;
        answer.insert(
            name,
            json!({
                "share": met as f64 / all as f64,
                "labels_per_batch": mean,
            }),
        );
    }
    writeln!(std::io::stdout(), "{}", serde_json::Value::Object(answer))?;
    Ok(())
}
