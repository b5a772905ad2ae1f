//! The encoder's side of `make bench-encoder`. After getting ready a case prints a line, then does
//! its work once for every line on standard input and answers with a line of JSON: whoever asks can
//! take turns with another program, turn by turn.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use gemm::Parallelism;
use ngame::data::{Dataset, ReadOptions, TextChoice};
use ngame::encoder::{Precision, TextEncoder, VectorFile, VectorType};
use ngame::progress::Silent;
use ngame_bench::{median, peak_memory};
use ngame_nn::{
    AdamW, AdamWConfig, Batch, Dropout, Encoder, Gradients, Parameters, Pooling, TrainingPass,
    Transformer, TransformerConfig,
};
use serde_json::json;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    case: Case,
}

#[derive(Subcommand)]
enum Case {
    /// Training steps on sequences of one length.
    TrainStep(StepArgs),
    /// The share of a training step that its matrix products take when they run alone.
    GemmShare(StepArgs),
    /// Training steps on pairs of real texts.
    TrainReal(RealArgs),
    /// The same, for its memory.
    Memory(RealArgs),
    /// All titles of a data set's test points.
    Embed {
        #[arg(long)]
        data: PathBuf,
        #[arg(long, default_value_t = 1)]
        threads: usize,
        #[arg(long)]
        out: PathBuf,
    },
    /// One short text, on one thread.
    Query {
        #[arg(long, value_delimiter = ',')]
        ids: Vec<u32>,
        #[arg(long)]
        tokens: usize,
        #[arg(long, default_value_t = 1)]
        threads: usize,
        #[arg(long, default_value = "f32")]
        precision: String,
        #[arg(long, default_value_t = 50)]
        calls: usize,
    },
}

#[derive(Args)]
struct StepArgs {
    #[arg(long, default_value = "minilm")]
    shape: String,
    #[arg(long, default_value_t = 128)]
    sequences: usize,
    #[arg(long, default_value_t = 32)]
    tokens: usize,
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

#[derive(Args)]
struct RealArgs {
    #[arg(long)]
    data: PathBuf,
    #[arg(long, default_value_t = 1600)]
    pairs: usize,
    #[arg(long, default_value_t = 32)]
    max_tokens: usize,
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// GiB of activations.
    #[arg(long, default_value_t = 8.0)]
    budget: f64,
}

fn main() -> Result<()> {
    ngame_nn::keep_freed_memory();
    match Cli::parse().case {
        Case::TrainStep(args) => train_step(&args),
        Case::GemmShare(args) => gemm_share(&args),
        Case::TrainReal(args) | Case::Memory(args) => train_real(&args),
        Case::Embed { data, threads, out } => embed(&data, threads, &out),
        Case::Query { ids, tokens, threads, precision, calls } => {
            query(&ids, tokens, threads, &precision, calls)
        }
    }
}

/// Says that all is ready, then does the work for every line that comes.
fn take_turns(mut work: impl FnMut() -> Result<serde_json::Value>) -> Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "ready")?;
    for line in std::io::stdin().lines() {
        line?;
        writeln!(out, "{}", work()?)?;
    }
    Ok(())
}

fn use_threads(threads: usize) -> Result<()> {
    Ok(rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?)
}

fn minilm() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../encoders/all-MiniLM-L6-v2")
}

fn shape(name: &str) -> Result<TransformerConfig> {
    let minilm = TransformerConfig {
        vocabulary_size: 30_522,
        dim: 384,
        n_layers: 6,
        n_heads: 12,
        feed_forward_dim: 1536,
        max_positions: 512,
        n_token_types: 2,
        layer_norm_epsilon: 1e-12,
        dropout: 0.0,
        attention_dropout: 0.0,
        pooling: Pooling::Mean,
    };
    match name {
        "minilm" => Ok(minilm),
        "distilbert" => {
            Ok(TransformerConfig { dim: 768, feed_forward_dim: 3072, n_token_types: 0, ..minilm })
        }
        other => bail!("no shape {other}"),
    }
}

/// Everything a training run holds.
struct Trainer<'a> {
    encoder: &'a dyn Encoder,
    parameters: &'a mut Parameters,
    gradients: Gradients,
    optimiser: AdamW,
    pass: TrainingPass,
    vectors: Vec<f32>, // (texts, dim)
}

impl<'a> Trainer<'a> {
    fn new(encoder: &'a dyn Encoder, parameters: &'a mut Parameters, budget: usize) -> Self {
        Self {
            encoder,
            parameters,
            gradients: Gradients::zeros(encoder.layout()),
            optimiser: AdamW::new(AdamWConfig::default(), encoder.layout()),
            pass: TrainingPass::new(budget),
            vectors: Vec::new(),
        }
    }

    /// One step: forward, loss, backward, AdamW. `loss` gets the vectors and writes its gradient.
    fn step(&mut self, batch: Batch<'_>, loss: impl FnOnce(&[f32]) -> (f32, Vec<f32>)) -> f32 {
        self.vectors.resize(batch.n_texts() * self.encoder.dim(), 0.0);
        let (weights, dropout) = (self.parameters.values(), Dropout::Off);
        self.pass.forward(self.encoder, weights, batch, dropout, &mut self.vectors);
        let (loss, d_vectors) = loss(&self.vectors);
        self.pass.backward(self.encoder, weights, batch, dropout, &d_vectors, &mut self.gradients);
        self.optimiser.step(1e-4, self.parameters, &mut self.gradients);
        loss
    }
}

/// Numbers that look random.
fn pseudo_random(n: usize, modulus: u32) -> impl Iterator<Item = u32> {
    let mut state = 12_345u32;
    (0..n).map(move |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % modulus
    })
}

/// A training step on sequences of one length, to be run again and again. Returns its seconds.
fn with_steps(
    args: &StepArgs,
    run: impl FnOnce(&mut dyn FnMut() -> f64) -> Result<()>,
) -> Result<()> {
    use_threads(args.threads)?;
    let transformer = Transformer::new(shape(&args.shape)?);
    let mut parameters = transformer.initial_weights(1);
    let ids: Vec<u32> = pseudo_random(args.sequences * args.tokens, 30_522).collect();
    let offsets: Vec<usize> = (0..=args.sequences).map(|i| i * args.tokens).collect();
    let batch = Batch::new(&ids, &offsets);
    let mut trainer = Trainer::new(&transformer, &mut parameters, 8 << 30);
    let d_vectors: Vec<f32> = pseudo_random(args.sequences * transformer.dim(), 2001)
        .map(|x| x as f32 / 1000.0 - 1.0)
        .collect();
    let mut step = || {
        let start = Instant::now();
        trainer.step(batch, |_| (0.0, d_vectors.clone()));
        start.elapsed().as_secs_f64()
    };
    for _ in 0..2 {
        step();
    }
    run(&mut step)
}

fn train_step(args: &StepArgs) -> Result<()> {
    with_steps(args, |step| {
        let tokens = args.sequences * args.tokens;
        take_turns(|| Ok(json!({"seconds": step(), "tokens": tokens, "peak_rss": peak_memory()})))
    })
}

/// The products of a training step by the `gemm` crate alone, as it shares out work by itself,
/// against the whole step.
fn gemm_share(args: &StepArgs) -> Result<()> {
    let config = shape(&args.shape)?;
    let (rows, dim, inner) = (args.sequences * args.tokens, config.dim, config.feed_forward_dim);
    // Every layer has matrices of its own, as in the step.
    let matrix = |n: usize| vec![0.5f32; n];
    let layers: Vec<[(usize, usize, Vec<f32>); 4]> = (0..config.n_layers)
        .map(|_| {
            [(dim, 3 * dim), (dim, dim), (dim, inner), (inner, dim)]
                .map(|(inputs, outputs)| (inputs, outputs, matrix(inputs * outputs)))
        })
        .collect();
    let (mut x, mut y) = (matrix(rows * inner), matrix(rows * inner));
    let mut gradients = layers.clone();
    let mut products = || {
        x.fill(0.5);
        y.fill(0.5);
        let start = Instant::now();
        for (inputs, outputs, weight) in layers.iter().flatten() {
            let (inputs, outputs) = (*inputs, *outputs);
            multiply([rows, outputs, inputs], (&x, inputs, 1), (weight, 1, inputs), &mut y, false);
        }
        for ((inputs, outputs, weight), (_, _, d_weight)) in
            layers.iter().flatten().zip(gradients.iter_mut().flatten())
        {
            let (inputs, outputs) = (*inputs, *outputs);
            multiply([rows, inputs, outputs], (&y, outputs, 1), (weight, inputs, 1), &mut x, false);
            multiply([outputs, inputs, rows], (&y, 1, outputs), (&x, inputs, 1), d_weight, true);
        }
        start.elapsed().as_secs_f64()
    };
    let flops =
        6.0 * rows as f64 * config.n_layers as f64 * (4 * dim * dim + 2 * dim * inner) as f64;
    with_steps(args, |step| {
        products();
        take_turns(|| {
            let (step, products) = (step(), products());
            Ok(json!({
                "share": products / step,
                "step_seconds": step,
                "product_seconds": products,
                "product_gflops": flops / products / 1e9,
            }))
        })
    })
}

/// out (m, n) = a (m, k) b (k, n), or added to it; a and b with row and column strides.
fn multiply(
    [m, n, k]: [usize; 3],
    (a, a_row, a_column): (&[f32], usize, usize),
    (b, b_row, b_column): (&[f32], usize, usize),
    out: &mut [f32],
    add: bool,
) {
    assert!(out.len() >= m * n);
    assert!(a.len() > (m - 1) * a_row + (k - 1) * a_column);
    assert!(b.len() > (k - 1) * b_row + (n - 1) * b_column);
    let parallelism = match rayon::current_num_threads() {
        1 => Parallelism::None,
        threads => Parallelism::Rayon(threads),
    };
    // SAFETY: the assertions above say that all elements lie inside the three slices.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            add,
            a.as_ptr(),
            a_column as isize,
            a_row as isize,
            b.as_ptr(),
            b_column as isize,
            b_row as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}

/// Pairs of real texts as one packed batch, every distinct text once.
struct Pairs {
    ids: Vec<u32>,
    offsets: Vec<usize>,
    points: Vec<usize>, // The text of every pair's point.
    labels: Vec<usize>, // The text of every pair's label.
    label_ids: Vec<u32>,
    n_tokens: usize, // With repeated texts counted every time.
}

fn titles(data: &Path) -> Result<Dataset> {
    let options = ReadOptions { text: TextChoice::Title, ..ReadOptions::default() };
    Ok(Dataset::read(data, &options, &Silent)?)
}

fn pairs(args: &RealArgs, encoder: &TextEncoder) -> Result<Pairs> {
    let dataset = titles(&args.data)?;
    let labels = &dataset.labels.texts;
    let mut pairs = Pairs {
        ids: Vec::new(),
        offsets: vec![0],
        points: Vec::new(),
        labels: Vec::new(),
        label_ids: Vec::new(),
        n_tokens: 0,
    };
    let mut texts = std::collections::BTreeMap::new();
    let mut text_of = |pairs: &mut Pairs, text: String| -> Result<usize> {
        if let Some(&known) = texts.get(&text) {
            return Ok(known);
        }
        encoder.tokenizer().encode(&text, args.max_tokens, &mut pairs.ids)?;
        pairs.offsets.push(pairs.ids.len());
        texts.insert(text, texts.len());
        Ok(texts.len() - 1)
    };
    for point in 0..dataset.train.texts.len() {
        let Some(&label) = dataset.train.by_point.row(point).first() else { continue };
        let point = text_of(&mut pairs, dataset.train.texts.get(point).to_owned())?;
        let text = text_of(&mut pairs, labels.get(label as usize).to_owned())?;
        pairs.points.push(point);
        pairs.labels.push(text);
        pairs.label_ids.push(label);
        for text in [point, text] {
            pairs.n_tokens += pairs.offsets[text + 1] - pairs.offsets[text];
        }
        if pairs.points.len() == args.pairs {
            return Ok(pairs);
        }
    }
    bail!("{} has only {} points with a label", args.data.display(), pairs.points.len())
}

fn train_real(args: &RealArgs) -> Result<()> {
    use_threads(args.threads)?;
    let mut encoder = TextEncoder::load(&minilm()).context("run scripts/get-minilm")?;
    let pairs = pairs(args, &encoder)?;
    let batch = Batch::new(&pairs.ids, &pairs.offsets);
    let budget = (args.budget * f64::from(1 << 30)) as usize;
    let (encoder, parameters) = encoder.parts_mut();
    let mut trainer = Trainer::new(encoder, parameters, budget);
    let mut step = || trainer.step(batch, |vectors| hinge(&pairs, vectors, encoder.dim()));
    let first_loss = step();
    take_turns(|| {
        let start = Instant::now();
        step();
        Ok(json!({
            "seconds": start.elapsed().as_secs_f64(),
            "loss": first_loss,
            "real_tokens": pairs.n_tokens,
            "encoded_tokens": batch.n_tokens(),
            "peak_rss": peak_memory(),
        }))
    })
}

/// With unit vectors P of the points, L of their labels and S = P Lᵀ: the mean over all i and j of
/// `max(0, S[i][j] - S[i][i] + 0.3)`, where pairs of one label count as 0; and its gradient.
fn hinge(pairs: &Pairs, vectors: &[f32], dim: usize) -> (f32, Vec<f32>) {
    let n = pairs.points.len();
    let gather = |texts: &[usize]| -> Vec<f32> {
        texts.iter().flat_map(|&text| &vectors[text * dim..(text + 1) * dim]).copied().collect()
    };
    let (points, labels) = (gather(&pairs.points), gather(&pairs.labels));
    let mut scores = vec![0.0; n * n];
    multiply([n, n, dim], (&points, dim, 1), (&labels, 1, dim), &mut scores, false);
    let share = 1.0 / (n * n) as f32;
    let mut loss = 0.0f64;
    for (i, row) in scores.chunks_exact_mut(n).enumerate() {
        let own = row[i];
        let mut active = 0.0;
        for (j, score) in row.iter_mut().enumerate() {
            let excess = *score - own + 0.3;
            let counts = excess > 0.0 && pairs.label_ids[i] != pairs.label_ids[j];
            loss += if counts { f64::from(excess) } else { 0.0 };
            *score = if counts { share } else { 0.0 };
            active += *score;
        }
        row[i] -= active;
    }
    let (mut d_points, mut d_labels) = (vec![0.0; n * dim], vec![0.0; n * dim]);
    multiply([n, dim, n], (&scores, n, 1), (&labels, dim, 1), &mut d_points, false);
    multiply([n, dim, n], (&scores, 1, n), (&points, dim, 1), &mut d_labels, false);
    let mut d_vectors = vec![0.0; vectors.len()];
    for (texts, d) in [(&pairs.points, d_points), (&pairs.labels, d_labels)] {
        for (text, d) in texts.iter().zip(d.chunks_exact(dim)) {
            for (total, d) in d_vectors[text * dim..].iter_mut().zip(d) {
                *total += d;
            }
        }
    }
    ((loss * f64::from(share)) as f32, d_vectors)
}

fn embed(data: &Path, threads: usize, out: &Path) -> Result<()> {
    use_threads(threads)?;
    let encoder =
        TextEncoder::load(&minilm()).context("run scripts/get-minilm")?.with_max_tokens(128)?;
    let dataset = titles(data)?;
    let texts = dataset.test.context("the data set has no test points")?.texts;
    let embedder = encoder.embedder(Precision::F32);
    take_turns(|| {
        let start = Instant::now();
        let mut vectors = VectorFile::create(out, embedder.dim(), VectorType::F32)?;
        embedder.embed(&mut texts.iter(), &mut vectors, &Silent)?;
        vectors.finish()?;
        let seconds = start.elapsed().as_secs_f64();
        Ok(json!({"seconds": seconds, "texts": texts.len(), "peak_rss": peak_memory()}))
    })
}

fn query(ids: &[u32], tokens: usize, threads: usize, precision: &str, calls: usize) -> Result<()> {
    if threads != 1 || ids.len() != tokens {
        bail!("a query runs on one thread and has as many ids as --tokens says");
    }
    let precision = match precision {
        "f32" => Precision::F32,
        "f16" => Precision::F16,
        "fastest" => Precision::fastest(),
        other => bail!("no precision {other}"),
    };
    let encoder = TextEncoder::load(&minilm()).context("run scripts/get-minilm")?;
    let frozen = encoder.encoder().freeze(encoder.parameters(), precision);
    let offsets = [0, ids.len()];
    let batch = Batch::new(ids, &offsets);
    let (mut workspace, mut vector) = (Vec::new(), vec![0.0; frozen.dim()]);
    take_turns(|| {
        let mut seconds = Vec::new();
        for _ in 0..calls + 10 {
            let start = Instant::now();
            frozen.embed(batch, &mut workspace, &mut vector);
            seconds.push(start.elapsed().as_secs_f64());
        }
        let milliseconds = 1000.0 * median(seconds[10..].to_vec());
        let precision = format!("{precision:?}").to_lowercase();
        Ok(json!({"milliseconds": milliseconds, "precision": precision, "vector": vector}))
    })
}
