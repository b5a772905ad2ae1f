//! How many of its truly hardest negatives a point meets in its batch, under a given encoder, for every
//! sampler: one JSON object on standard output.
//!
//! Truth is exact: the 100 labels that score highest with a point and are not its own. A batch holds
//! the positives of its points, and what an index mined for them. The ceiling is what a batch of that
//! many labels could hold at best.

use std::io::Write;
use std::path::PathBuf;

use clap::Parser;
use ngame::batching::{Batches, Views};
use ngame::data::{Dataset, ReadOptions, TextChoice};
use ngame::encoder::{Precision, TextEncoder, VectorType};
use ngame::index::search_exact;
use ngame::progress::Silent;
use ngame::training::{TrainPlan, config_from, parse_setting};
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

    let mut samplers: Vec<(String, Vec<String>)> = args
        .clusters
        .iter()
        .map(|size| {
            let name = if *size == 1 { "random".to_owned() } else { format!("clusters of {size}") };
            let fixed = "batching.cluster_doublings=[]".to_owned();
            (name, vec![format!("batching.cluster_start={size}"), fixed])
        })
        .collect();
    samplers.push(("ann".to_owned(), vec!["batching.sampler=ann".to_owned()]));
    let mut answer = Map::new();
    for (name, settings) in samplers {
        let (plan, ..) = plan_with(&settings)?;
        let sampler = plan.sampler();
        let views = Views {
            n_points: corpus.n_points(),
            points: Some(&points),
            labels: Some(&labels),
            not_negative: &corpus.not_negative,
        };
        let mined = sampler.mine(0, &views)?;
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
        let (mut met, mut all) = (0usize, 0usize);
        for (row, &point) in chosen.iter().enumerate() {
            let present = &targets[batch_of[point as usize]];
            let (truth, _) = hardest.row(row);
            met += truth.iter().filter(|label| present.binary_search(label).is_ok()).count();
            all += truth.len();
        }
        let mean = targets.iter().map(Vec::len).sum::<usize>() as f64 / targets.len() as f64;
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
