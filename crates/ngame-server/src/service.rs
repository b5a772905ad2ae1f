//! What all requests share.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ngame::data::Texts;
use tokio::sync::Semaphore;

use crate::batcher::{Answer, Batcher, Failure, Work};
use crate::log::Log;
use crate::measurements::{Gauges, Measurements};
use crate::models::{Models, Place, Served};
use crate::problem::Problem;
use crate::queue::Refused;
use crate::settings::{ServeError, Settings};

/// The most threads that take batches: while one is in a stage that does not spread over all
/// processors, another fills the gaps.
const MOST_WORKERS: usize = 4;

/// Searches of labels that run or wait at once.
const MOST_SEARCHES: usize = 32;

/// Models, queue, log and settings: what a request is answered with.
#[derive(Debug)]
pub struct Service {
    pub(crate) settings: Settings,
    pub(crate) models: Models,
    pub(crate) batcher: Batcher,
    pub(crate) measurements: Arc<Measurements>,
    pub(crate) log: Arc<Log>,
    /// Room for searches of labels, which have threads of their own.
    pub(crate) searches: Arc<Semaphore>,
    stopping: AtomicBool,
    request_ids: RequestIds,
}

impl Service {
    /// Opens the models and starts the threads that answer.
    pub fn open(settings: Settings, log: Log) -> Result<Arc<Self>, ServeError> {
        settings.check()?;
        let threads = settings.threads.unwrap_or(0);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|number| format!("computes-{number}"))
            .build()
            .map_err(|error| ServeError::Io {
                action: "start threads".to_owned(),
                source: std::io::Error::other(error),
            })?;
        let n_workers = pool.current_num_threads().min(MOST_WORKERS);
        Self::with_workers(settings, log, pool, n_workers)
    }

    /// The same with so many threads that take batches; with none, requests wait for ever.
    pub(crate) fn with_workers(
        settings: Settings,
        log: Log,
        pool: rayon::ThreadPool,
        n_workers: usize,
    ) -> Result<Arc<Self>, ServeError> {
        let models = pool.install(|| Models::open(&settings.models))?;
        let (log, measurements, pool) = (Arc::new(log), Arc::default(), Arc::new(pool));
        let batcher = Batcher::start(n_workers, &pool, settings.max_queue, &measurements, &log)
            .map_err(|source| ServeError::Io { action: "start a thread".to_owned(), source })?;
        Ok(Arc::new(Self {
            settings,
            models,
            batcher,
            measurements,
            log,
            searches: Arc::new(Semaphore::new(MOST_SEARCHES)),
            stopping: AtomicBool::new(false),
            request_ids: RequestIds::default(),
        }))
    }

    /// A new id for a request.
    pub(crate) fn request_id(&self) -> String {
        self.request_ids.next()
    }

    /// The model of this name, or the first if none is named.
    pub(crate) fn model(&self, name: Option<&str>) -> Result<&Place, Problem> {
        self.models.find(name).ok_or_else(Problem::no_model)
    }

    /// Asks a model, in the time there is.
    pub(crate) async fn ask(
        &self,
        model: Arc<Served>,
        work: Work,
        texts: Texts,
    ) -> Result<Answer, Problem> {
        let answer = self.batcher.ask(model, work, texts);
        match tokio::time::timeout(self.settings.limits.answer_time, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(Failure::Refused(Refused::Full))) => Err(Problem::busy()),
            Ok(Err(Failure::Refused(Refused::Closed))) => Err(Problem::stopping()),
            Ok(Err(Failure::Broken)) => Err(Problem::bug()),
            Err(_) => Err(Problem::too_late()),
        }
    }

    /// What is seen at the moment.
    pub(crate) fn gauges(&self) -> Gauges {
        Gauges { waiting: self.batcher.waiting(), max_queue: self.settings.max_queue }
    }

    /// Says that the server is about to end, so that nobody sends new requests.
    pub(crate) fn begin_stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Loads models anew: all, or those whose folders changed. The one before goes on answering until
    /// the new one has been read whole and tried. Takes a while; not for a thread that serves.
    pub(crate) fn reload(&self, which: Which) -> bool {
        let mut all_well = true;
        for place in self.models.places() {
            if which == Which::Changed && place.change().is_none() {
                continue;
            }
            let name = ("model", place.name.clone().into());
            match place.reload() {
                Ok(()) => {
                    self.measurements.reloads.fetch_add(1, Ordering::Relaxed);
                    self.log.info("model loaded anew", &[name]);
                }
                Err(error) => {
                    all_well = false;
                    self.measurements.failed_reloads.fetch_add(1, Ordering::Relaxed);
                    let problem = ("problem", error.to_string().into());
                    self.log.warning("model not loaded, the one before stays", &[name, problem]);
                }
            }
        }
        all_well
    }

    /// Whether a folder holds another model than the one that answers.
    pub(crate) fn has_changed(&self) -> bool {
        self.models.places().iter().any(|place| place.change().is_some())
    }
}

/// Which models to load anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    Changed,
}

/// Ids that no two requests share and nobody can foresee.
#[derive(Debug)]
struct RequestIds {
    key: RandomState,
    count: AtomicU64,
}

impl Default for RequestIds {
    fn default() -> Self {
        Self { key: RandomState::new(), count: AtomicU64::new(0) }
    }
}

impl RequestIds {
    fn next(&self) -> String {
        let mut hasher = self.key.build_hasher();
        hasher.write_u64(self.count.fetch_add(1, Ordering::Relaxed));
        format!("{:016x}", hasher.finish())
    }
}
