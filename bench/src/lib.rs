//! What the timed programs share: how long something took and how much memory.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ngame::data::{Csr, Dataset, ScoredCsr, Split};
use ngame::metrics::{PropensityModel, Task, evaluate};
use ngame::progress::{Event, Observer};
use serde_json::{Value, json};

/// What predictions for a split reach, in percent; filter pairs have been left out of them.
pub fn reached(dataset: &Dataset, split: &Split, predictions: &ScoredCsr) -> Value {
    reached_of(dataset, &split.by_point, predictions)
}

/// The same for any points with these labels.
pub fn reached_of(dataset: &Dataset, truth: &Csr, predictions: &ScoredCsr) -> Value {
    let counts = dataset.train.by_point.column_counts();
    let n_points = dataset.train.n_points() as u64;
    let weights = PropensityModel::default().inverse_propensities(n_points, &counts);
    let task = Task { truth, filter: None, inverse_propensities: Some(&weights) };
    let metrics = evaluate(predictions, &task, 100);
    let psp = metrics.psprecision.expect("there are propensities");
    json!({
        "P@1": 100.0 * metrics.precision[0],
        "P@5": 100.0 * metrics.precision[4],
        "PSP@1": 100.0 * psp[0],
        "PSP@5": 100.0 * psp[4],
        "R@100": 100.0 * metrics.recall[99],
    })
}

/// The most memory this process has held, in bytes; 0 where the system does not tell.
pub fn peak_memory() -> u64 {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return 0 };
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: Option<u64> = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok());
    kib.unwrap_or(0) * 1024
}

/// The seconds that all threads of this process have computed so far; 0 where the system does not tell.
/// On a busy machine they say more than the time on the clock.
pub fn cpu_seconds() -> f64 {
    let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else { return 0.0 };
    // The program's name, in parentheses, may hold spaces; user and system time are the 12th and 13th
    // field behind it, in hundredths of a second.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Runs something and says how long it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// An observer that times every task by its name: seconds, all times it was done together.
#[derive(Default)]
pub struct TaskClock(Mutex<Running>);

#[derive(Default)]
struct Running {
    task: Option<(String, Instant)>,
    seconds: BTreeMap<String, f64>,
}

impl TaskClock {
    /// The seconds of every task so far.
    pub fn seconds(&self) -> BTreeMap<String, f64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).seconds.clone()
    }
}

impl Observer for TaskClock {
    fn event(&self, event: Event<'_>) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Started { task, .. } => running.task = Some((task.to_owned(), Instant::now())),
            Event::Finished => {
                if let Some((task, began)) = running.task.take() {
                    *running.seconds.entry(task).or_default() += began.elapsed().as_secs_f64();
                }
            }
            _ => {}
        }
    }
}

/// The middle value, or the mean of the two middle ones.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    assert!(n > 0, "nothing was measured");
    (values[(n - 1) / 2] + values[n / 2]) / 2.0
}
