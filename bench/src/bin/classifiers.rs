//! Classifiers on frozen vectors of a trained encoder: how long an epoch takes, and what exact search
//! of them reaches on held-out points. One JSON object for every line read, which says what to do.

use std::fs;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use ngame::batching::{Batches, Curriculum, KMeansOptions, cluster};
use ngame::classifier::{
    BIAS_UNIT, ClassifierRun, ClassifierTriplet, Classifiers, LogitStart, MomentType, Objective,
    OneVsAll, Sampled, SampledLoss, train_part,
};
use ngame::data::{Csr, Dataset, ReadOptions, ScoredCsr, TextChoice};
use ngame::encoder::{Precision, TextEncoder, VectorMatrix, VectorType};
use ngame::index::search_exact;
use ngame::progress::{Event, Observer, Silent};
use ngame_bench::{peak_memory, reached_of};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use serde_json::{Value, json};

/// What `ngame train` draws its held-out points with, where its seed is 0: points that the encoder was
/// trained on would look too easy.
const HELD_OUT: u64 = 0x9d4a_d7dd_6fc8_25f9;

#[derive(Parser)]
struct Args {
    /// The data set; none: points and labels are made up
    data: Option<PathBuf>,
    #[arg(long, default_value_t = TextChoice::Title)]
    text: TextChoice,
    /// The trained encoder
    #[arg(long)]
    encoder: Option<PathBuf>,
    /// Where vectors, labels and batches are written to for the peer
    #[arg(long)]
    export: Option<PathBuf>,
    /// Training points that are held out: as many as when the encoder was trained, a twentieth
    #[arg(long)]
    held_out: Option<usize>,
    #[arg(long, default_value_t = 2_250_000)]
    points: usize,
    #[arg(long, default_value_t = 1_300_000)]
    labels: usize,
    #[arg(long, default_value_t = 384)]
    dim: usize,
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

/// What a line says.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Turn {
    objective: Name,
    /// Only so many steps are run and timed; otherwise the whole run is, and tried on held-out points
    #[arg(long)]
    steps: Option<usize>,
    /// Tries the test points too
    #[arg(long)]
    test: bool,
    /// The labels are cut into so many parts, each trained as if there were no others
    #[arg(long, conflicts_with = "steps")]
    parts: Option<usize>,
    #[arg(long)]
    epochs: Option<usize>,
    #[arg(long)]
    batch: Option<usize>,
    #[arg(long)]
    sampled: Option<usize>,
    #[arg(long)]
    rate: Option<f32>,
    #[arg(long)]
    bias_rate: Option<f32>,
    /// Cosines become logits by these, not by what fits the points
    #[arg(long, requires = "offset")]
    scale: Option<f32>,
    #[arg(long, requires = "scale", allow_hyphen_values = true)]
    offset: Option<f32>,
    #[arg(long)]
    dropout: Option<f32>,
    #[arg(long)]
    margin: Option<f32>,
    #[arg(long)]
    cluster: Option<usize>,
    #[arg(long)]
    half: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Name {
    Embedding,
    OneVsAll,
    CrossEntropy,
    Softmax,
    Triplet,
}

/// Replaces what a line has another number for.
fn set<T>(number: &mut T, other: Option<T>) {
    if let Some(other) = other {
        *number = other;
    }
}

impl Turn {
    fn objective(&self) -> Option<Objective> {
        let moments = if self.half { MomentType::Half } else { MomentType::Full };
        Some(match self.objective {
            Name::Embedding => return None,
            Name::OneVsAll => {
                let mut options = OneVsAll::default();
                set(&mut options.epochs, self.epochs);
                set(&mut options.batch_size, self.batch);
                set(&mut options.learning_rate, self.rate);
                set(&mut options.bias_rate, self.bias_rate);
                set(&mut options.dropout, self.dropout);
                Objective::OneVsAll(options)
            }
            Name::CrossEntropy | Name::Softmax => {
                let loss = match self.objective {
                    Name::Softmax => SampledLoss::Softmax,
                    _ => SampledLoss::CrossEntropy,
                };
                let mut options = Sampled { loss, moments, ..Default::default() };
                set(&mut options.epochs, self.epochs);
                set(&mut options.batch_size, self.batch);
                set(&mut options.n_sampled, self.sampled);
                set(&mut options.learning_rate, self.rate);
                set(&mut options.bias_rate, self.bias_rate);
                set(&mut options.dropout, self.dropout);
                Objective::Sampled(options)
            }
            Name::Triplet => {
                let mut options = ClassifierTriplet { moments, ..Default::default() };
                set(&mut options.epochs, self.epochs);
                set(&mut options.batch_size, self.batch);
                set(&mut options.learning_rate, self.rate);
                set(&mut options.dropout, self.dropout);
                set(&mut options.margin, self.margin);
                if let Some(size) = self.cluster {
                    options.curriculum = Curriculum { start: size, doublings: vec![], most: size };
                }
                Objective::Triplet(options)
            }
        })
    }
}

/// Measures steps from the first on, and stops after some.
struct Stopwatch {
    most: usize,
    state: Mutex<(usize, Option<Instant>, f64)>, // Steps begun, the first's beginning, seconds.
}

impl Stopwatch {
    fn new(most: usize) -> Self {
        Self { most, state: Mutex::new((0, None, 0.0)) }
    }
}

impl Observer for Stopwatch {
    fn event(&self, event: Event<'_>) {
        if let (Event::Advanced(_), Ok(mut state)) = (event, self.state.lock()) {
            state.0 += 1;
            state.2 = state.1.map_or(0.0, |begin| begin.elapsed().as_secs_f64());
        }
    }

    fn cancelled(&self) -> bool {
        self.state.lock().is_ok_and(|mut state| {
            state.1.get_or_insert_with(Instant::now);
            state.0 >= self.most
        })
    }
}

/// All that turns work on.
struct Bench {
    points: VectorMatrix,
    truth: Csr,
    not_negative: Option<Csr>,
    labels: VectorMatrix,
    real: Option<Real>,
}

/// A data set and the points of it that are not trained on.
struct Real {
    dataset: Dataset,
    held_out: Asked,
    test: Option<Asked>,
}

/// Points that are searched for, what they should find, and what they must not.
struct Asked {
    vectors: VectorMatrix,
    truth: Csr,
    filter: Csr,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    rayon::ThreadPoolBuilder::new().num_threads(args.threads).build_global()?;
    ngame_nn::keep_freed_memory();
    let bench = match (&args.data, &args.encoder) {
        (Some(data), Some(encoder)) => real(&args, data, encoder)?,
        _ => made_up(&args),
    };
    if let Some(folder) = &args.export {
        export(folder, &bench)?;
    }
    let mut out = std::io::stdout();
    writeln!(out, "ready")?;
    for line in std::io::stdin().lock().lines() {
        let turn = Turn::try_parse_from(line?.split_whitespace())?;
        writeln!(out, "{}", bench.turn(&turn)?)?;
    }
    Ok(())
}

impl Bench {
    fn turn(&self, turn: &Turn) -> anyhow::Result<Value> {
        let Some(objective) = turn.objective() else {
            return self.tried(turn, None, json!({}));
        };
        let not_negative = self.not_negative.as_ref();
        let start = match (turn.scale, turn.offset) {
            (Some(scale), Some(offset)) => LogitStart { scale, offset },
            _ => LogitStart::fit(&self.points, &self.truth, not_negative, &self.labels, 0),
        };
        let objective = objective.starting_at(start);
        if let Some(parts) = turn.parts {
            return self.in_parts(turn, parts, &objective);
        }
        let mut run =
            ClassifierRun::new(&self.points, &self.truth, not_negative, &self.labels, &objective);
        let watch = Stopwatch::new(turn.steps.unwrap_or(usize::MAX));
        let began = Instant::now();
        while run.epoch() < run.n_epochs() && run.run_epoch(&watch).is_ok() {}
        let all = began.elapsed().as_secs_f64();
        let (n_steps, _, seconds) = *watch.state.lock().map_err(|_| anyhow::anyhow!("poisoned"))?;
        let answer = json!({
            "steps": n_steps,
            "seconds": seconds,
            "before_steps": if run.epoch() == 0 { all - seconds } else { 0.0 },
            "peak_rss": peak_memory(),
            "start": [start.scale, start.offset],
        });
        let classifiers = run.finish();
        self.tried(turn, Some(&classifiers), answer)
    }

    /// Trains parts of the labels one after the other, each timed as if it had a machine of its own.
    fn in_parts(&self, turn: &Turn, parts: usize, objective: &Objective) -> anyhow::Result<Value> {
        let (n_labels, not_negative) = (self.labels.n_rows(), self.not_negative.as_ref());
        let (mut trained, mut seconds) = (Vec::new(), Vec::new());
        for part in 0..parts {
            let range = part * n_labels / parts..(part + 1) * n_labels / parts;
            let began = Instant::now();
            let (points, labels) = (&self.points, &self.labels);
            let truth = &self.truth;
            trained.push(train_part(
                points,
                truth,
                not_negative,
                labels,
                range,
                objective,
                &Silent,
            )?);
            seconds.push(began.elapsed().as_secs_f64());
        }
        let answer = json!({ "seconds_of_parts": seconds, "peak_rss": peak_memory() });
        self.tried(turn, Some(&Classifiers::join(trained)), answer)
    }

    /// What classifiers reach, or embeddings.
    fn tried(
        &self,
        turn: &Turn,
        classifiers: Option<&Classifiers>,
        mut answer: Value,
    ) -> anyhow::Result<Value> {
        if let Some(classifiers) = classifiers {
            answer["moved"] = json!(self.moved(classifiers));
        }
        let Some(real) = self.real.as_ref().filter(|_| turn.steps.is_none()) else {
            return Ok(answer);
        };
        let sets = [("held out", Some(&real.held_out)), ("test", real.test.as_ref())];
        for (name, set) in sets.into_iter().take(1 + usize::from(turn.test)) {
            let Some(Asked { vectors, truth, filter }) = set else { continue };
            let found = match classifiers {
                None => search_exact(vectors, &self.labels, 100, Some(filter), &Silent)?,
                Some(classifiers) => search(vectors, classifiers, filter)?,
            };
            answer[name] = reached_of(&real.dataset, truth, &found);
        }
        Ok(answer)
    }

    /// How far the labels' directions have moved, on average: 1 less the cosine.
    fn moved(&self, classifiers: &Classifiers) -> f64 {
        let dim = self.labels.dim();
        let total: f64 = (0..self.labels.n_rows())
            .map(|label| {
                let now = &classifiers.vectors()[label * dim..(label + 1) * dim];
                let length = ngame_nn::dot(now, now).sqrt();
                f64::from(1.0 - ngame_nn::dot(now, &self.labels.row(label).to_vec()) / length)
            })
            .sum();
        total / self.labels.n_rows() as f64
    }
}

/// The best labels by classifiers; a unit behind every query meets the bias behind every classifier.
fn search(
    queries: &VectorMatrix,
    classifiers: &Classifiers,
    filter: &Csr,
) -> ngame::Result<ScoredCsr> {
    let mut longer = Vec::with_capacity(queries.n_rows() * (queries.dim() + 1));
    for query in 0..queries.n_rows() {
        longer.extend(queries.row(query).to_vec());
        longer.push(BIAS_UNIT);
    }
    let longer = VectorMatrix::from_f32(longer, queries.dim() + 1);
    search_exact(&longer, &classifiers.with_biases(), 100, Some(filter), &Silent)
}

/// Vectors of a data set, some of its training points held out.
fn real(args: &Args, data: &Path, encoder: &Path) -> anyhow::Result<Bench> {
    let options = ReadOptions { text: args.text, ..Default::default() };
    let mut dataset = Dataset::read(data, &options, &Silent)?;
    let encoder = TextEncoder::load(encoder)?;
    let embedder = encoder.embedder(Precision::F32);
    let embed = |texts| embedder.embed_texts(texts, VectorType::F32, &Silent);
    let labels = embed(&dataset.labels.texts)?;
    let mut order: Vec<u32> = (0..dataset.train.n_points() as u32).collect();
    order.shuffle(&mut rand::rngs::ChaCha8Rng::seed_from_u64(HELD_OUT));
    let (held_out, kept) =
        order.split_at(args.held_out.unwrap_or((order.len() / 20).clamp(100, 10_000)));
    let all = embed(&dataset.train.texts)?;
    let some = |ids: &[u32]| {
        let mut numbers = vec![0.0; ids.len() * all.dim()];
        all.as_rows().gather(ids, &mut numbers);
        VectorMatrix::from_f32(numbers, all.dim())
    };
    let train = &dataset.train;
    let asked = Asked {
        vectors: some(held_out),
        truth: train.by_point.select(held_out),
        filter: train.filter.select(held_out),
    };
    let test = match dataset.test.take() {
        None => None,
        Some(test) => {
            let vectors = embed(&test.texts)?;
            Some(Asked { vectors, truth: test.by_point, filter: test.filter })
        }
    };
    Ok(Bench {
        points: some(kept),
        truth: dataset.train.by_point.select(kept),
        not_negative: Some(dataset.train.filter.select(kept)),
        labels,
        real: Some(Real { dataset, held_out: asked, test }),
    })
}

/// Labels that lie anywhere, and points near the mean of theirs.
fn made_up(args: &Args) -> Bench {
    const ROWS: usize = 1_000;
    let noise = |random: &mut rand::rngs::ChaCha8Rng| -> Vec<f32> {
        // The sum of the bytes of a number is normal enough.
        let number = |random: &mut rand::rngs::ChaCha8Rng| {
            let bytes = random.random::<u32>().to_le_bytes();
            bytes.iter().map(|&byte| f32::from(byte) - 127.5).sum::<f32>()
        };
        (0..args.dim).map(|_| number(random)).collect()
    };
    let unit = |mut row: Vec<f32>| {
        let length = ngame_nn::dot(&row, &row).sqrt();
        row.iter_mut().for_each(|value| *value /= length);
        row
    };
    let fill = |matrix: &mut VectorMatrix, make: &(dyn Fn(usize) -> Vec<f32> + Sync)| {
        for start in (0..matrix.n_rows()).step_by(ROWS * 100) {
            let end = matrix.n_rows().min(start + ROWS * 100);
            if let Some(rows) = matrix.rows_mut(start..end) {
                let rows = rows.into_par_iter().enumerate();
                rows.for_each(|(at, mut row)| row.set(&make(start + at)));
            }
        }
    };
    let random = |row: usize| rand::rngs::ChaCha8Rng::seed_from_u64(row as u64);
    let mut labels = VectorMatrix::zeros(args.labels, args.dim, VectorType::F16);
    fill(&mut labels, &|label| unit(noise(&mut random(label))));
    let mut truth = Csr::new(args.labels as u32);
    for point in 0..args.points {
        let mut random = random(args.labels + point);
        // A few labels have very many points.
        let mut draw = || (random.random::<f64>().powi(3) * args.labels as f64) as u32;
        let mut row = vec![draw(), draw(), draw(), draw(), draw()];
        row.sort_unstable();
        row.dedup();
        truth.push_row(&row);
    }
    let mut points = VectorMatrix::zeros(args.points, args.dim, VectorType::F16);
    fill(&mut points, &|point| {
        let mut row = unit(noise(&mut random(args.labels + args.points + point)));
        for &label in truth.row(point) {
            let label = labels.row(label as usize).to_vec();
            row.iter_mut().zip(label).for_each(|(value, near)| *value += 0.6 * near);
        }
        unit(row)
    });
    Bench { points, truth, not_negative: None, labels, real: None }
}

/// What the peer reads: raw little-endian numbers.
fn export(folder: &Path, bench: &Bench) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    let write = |name: &str, bytes: Vec<u8>| fs::write(folder.join(name), bytes);
    let floats = |values: Vec<f32>| values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let numbers = |values: &[u32]| values.iter().flat_map(|value| value.to_le_bytes()).collect();
    write("points.f32", floats(bench.points.all().to_vec()))?;
    write("labels.f32", floats(bench.labels.all().to_vec()))?;
    let csr = |name: &str, pairs: &Csr| -> anyhow::Result<()> {
        let lengths: Vec<u32> = pairs.rows().map(|row| row.len() as u32).collect();
        let columns: Vec<u32> = pairs.rows().flatten().copied().collect();
        write(&format!("{name}-lengths.u32"), numbers(&lengths))?;
        write(&format!("{name}-columns.u32"), numbers(&columns))?;
        Ok(())
    };
    csr("truth", &bench.truth)?;
    if let Some(pairs) = &bench.not_negative {
        csr("filter", pairs)?;
    }
    // The batches of the first epoch, as a run of the same settings has them.
    let options = ClassifierTriplet::default();
    let size = options.curriculum.start;
    let clusters = cluster(&bench.points, size, &KMeansOptions::default());
    let batches = Batches::draw(&clusters, size, options.batch_size, options.seed, 0);
    let lengths: Vec<u32> = (0..batches.len()).map(|at| batches.get(at).len() as u32).collect();
    let order: Vec<u32> = (0..batches.len()).flat_map(|at| batches.get(at)).copied().collect();
    write("batch-lengths.u32", numbers(&lengths))?;
    write("batch-points.u32", numbers(&order))?;
    fs::write(folder.join("dim"), bench.points.dim().to_string())?;
    Ok(())
}
