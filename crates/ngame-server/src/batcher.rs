//! Threads that answer. Requests wait in one queue; whoever is free takes all that go together and
//! asks the model once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use ngame::data::{Csr, Texts};
use ngame::encoder::VectorType;
use ngame::prediction::{Explanation, Predicted, PredictionOptions};
use ngame::progress::Silent;
use tokio::sync::oneshot;

use crate::log::Log;
use crate::measurements::Measurements;
use crate::models::Served;
use crate::queue::{Queue, Refused, Waiting};

/// The most texts of a batch: enough to fill the processor, few enough that the next in line waits
/// for milliseconds.
const MOST_TEXTS: usize = 32;

/// What is wanted of texts.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// Labels, without the excluded, which ascend.
    Predict { options: PredictionOptions, excluded: Vec<u32> },
    /// The same, and why.
    Explain { options: PredictionOptions, excluded: Vec<u32> },
    /// Vectors.
    Embed,
}

/// What comes back, one for every text.
#[derive(Debug)]
pub(crate) enum Answer {
    Labels(Vec<Vec<(Predicted, Option<Explanation>)>>),
    Vectors(Vec<Vec<f32>>),
}

/// Why nothing comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No room, or no time left.
    Refused(Refused),
    /// A bug.
    Broken,
}

struct Job {
    model: Arc<Served>,
    work: Work,
    texts: Texts,
    answer: oneshot::Sender<Result<Answer, Failure>>,
    measurements: Arc<Measurements>,
}

impl Waiting for Job {
    fn n_texts(&self) -> usize {
        self.texts.len()
    }

    fn is_wanted(&self) -> bool {
        let gone = self.answer.is_closed();
        if gone {
            self.measurements.abandoned.fetch_add(1, Ordering::Relaxed);
        }
        !gone
    }

    fn goes_with(&self, other: &Self) -> bool {
        let together = matches!(
            (&self.work, &other.work),
            (Work::Predict { .. }, Work::Predict { .. }) | (Work::Embed, Work::Embed)
        );
        together && Arc::ptr_eq(&self.model, &other.model)
    }
}

/// The queue and the threads behind it.
pub(crate) struct Batcher {
    queue: Arc<Queue<Job>>,
    workers: Mutex<Vec<JoinHandle<()>>>,
    measurements: Arc<Measurements>,
}

impl std::fmt::Debug for Batcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batcher").field("waiting", &self.queue.n_texts()).finish_non_exhaustive()
    }
}

impl Batcher {
    /// Starts `n_workers` threads, which share the threads of `pool`. Without any, everything waits.
    pub(crate) fn start(
        n_workers: usize,
        pool: &Arc<rayon::ThreadPool>,
        max_queue: usize,
        measurements: &Arc<Measurements>,
        log: &Arc<Log>,
    ) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::<Job>::new(max_queue));
        let mut workers = Vec::new();
        for number in 0..n_workers {
            let (queue, pool) = (Arc::clone(&queue), Arc::clone(pool));
            let (measurements, log) = (Arc::clone(measurements), Arc::clone(log));
            let work = move || {
                while let Some(jobs) = queue.take(MOST_TEXTS) {
                    measurements.batch(jobs.iter().map(|job| job.texts.len()).sum());
                    run(jobs, &pool, &measurements, &log);
                }
            };
            let thread = std::thread::Builder::new().name(format!("answers-{number}"));
            workers.push(thread.spawn(work)?);
        }
        let measurements = Arc::clone(measurements);
        Ok(Self { queue, workers: Mutex::new(workers), measurements })
    }

    /// Waits in the queue and for the answer. Whoever stops waiting is forgotten.
    pub(crate) async fn ask(
        &self,
        model: Arc<Served>,
        work: Work,
        texts: Texts,
    ) -> Result<Answer, Failure> {
        let (answer, answered) = oneshot::channel();
        let measurements = Arc::clone(&self.measurements);
        let job = Job { model, work, texts, answer, measurements };
        self.queue.push(job).map_err(Failure::Refused)?;
        answered.await.unwrap_or(Err(Failure::Broken))
    }

    /// The texts that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.n_texts()
    }

    /// Answers what waits, takes nothing more, and ends the threads.
    pub(crate) fn finish(&self) {
        self.queue.close();
        let workers: Vec<_> =
            self.workers.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect();
        for worker in workers {
            let _ = worker.join();
        }
    }
}

impl Drop for Batcher {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Answers jobs that go together. A panic is a bug of ours; it must not end the thread, and what it
/// says may hold a user's text.
fn run(jobs: Vec<Job>, pool: &rayon::ThreadPool, measurements: &Measurements, log: &Log) {
    let answers = catch_unwind(AssertUnwindSafe(|| pool.install(|| answer(&jobs))));
    let answers = match answers {
        Ok(Ok(answers)) => answers,
        Ok(Err(error)) => {
            log.error("a model could not answer", &[("problem", error.to_string().into())]);
            Vec::new()
        }
        Err(_) => {
            measurements.panics.fetch_add(1, Ordering::Relaxed);
            Vec::new()
        }
    };
    let mut answers = answers.into_iter();
    for job in jobs {
        // Nobody may be there any more.
        let _ = job.answer.send(answers.next().ok_or(Failure::Broken));
    }
}

fn answer(jobs: &[Job]) -> ngame::Result<Vec<Answer>> {
    let Some(first) = jobs.first() else { return Ok(Vec::new()) };
    let predictor = &first.model.predictor;
    match &first.work {
        Work::Explain { options, excluded } => {
            // Text by text: whoever is gone by then costs no more.
            let wanted = first.texts.iter().take_while(|_| !first.answer.is_closed());
            let explained = wanted.map(|text| {
                let found = predictor.explain(text, *options, excluded)?;
                Ok(found.into_iter().map(|(label, why)| (label, Some(why))).collect())
            });
            Ok(vec![Answer::Labels(explained.collect::<ngame::Result<_>>()?)])
        }
        Work::Predict { options, excluded } if jobs.len() == 1 && first.texts.len() == 1 => {
            let found = predictor.predict_one(first.texts.get(0), *options, excluded)?;
            Ok(vec![Answer::Labels(vec![bare(found)])])
        }
        Work::Predict { .. } => predict(jobs),
        Work::Embed => {
            let vectors =
                predictor.embedder().embed_texts(&joined(jobs), VectorType::F32, &Silent)?;
            let mut rows = (0..vectors.n_rows()).map(|row| {
                let mut vector = vec![0.0; vectors.dim()];
                vectors.row(row).copy_to(&mut vector);
                vector
            });
            let of_job = |job: &Job| Answer::Vectors(rows.by_ref().take(job.texts.len()).collect());
            Ok(jobs.iter().map(of_job).collect())
        }
    }
}

fn predict(jobs: &[Job]) -> ngame::Result<Vec<Answer>> {
    let model = &jobs[0].model;
    let mut wanted = Vec::new();
    let mut excluded = Csr::new(model.labels().texts.len() as u32);
    for job in jobs {
        let Work::Predict { options, excluded: labels } = &job.work else { continue };
        for _ in job.texts.iter() {
            wanted.push(*options);
            excluded.push_row(labels);
        }
    }
    let found = model.predictor.predict_each(&joined(jobs), &wanted, Some(&excluded), &Silent)?;
    let mut found = found.into_iter().map(bare);
    let of_job = |job: &Job| Answer::Labels(found.by_ref().take(job.texts.len()).collect());
    Ok(jobs.iter().map(of_job).collect())
}

fn joined(jobs: &[Job]) -> Texts {
    let mut texts = Texts::new();
    jobs.iter().for_each(|job| texts.append(&job.texts));
    texts
}

fn bare(found: Vec<Predicted>) -> Vec<(Predicted, Option<Explanation>)> {
    found.into_iter().map(|label| (label, None)).collect()
}
