//! Progress bars on a terminal, plain lines elsewhere, and Ctrl-C.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use ngame::progress::{Event, Observer, StepProgress, ValidationProgress};

use crate::terminal::{DIM, GOOD, WARN, duration, grouped, styled};

/// How often a plain line tells of training, where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(15);

/// How often a line tells of held-out points at most; `metrics.jsonl` has all of them.
const VALIDATION_EVERY: Duration = Duration::from_secs(3);

/// Set by the first Ctrl-C; the second one ends the process.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Shows the running task as a bar on standard error, where that is a terminal.
pub(crate) struct Bars {
    running: Mutex<Option<ProgressBar>>,
    last_line: Mutex<Option<Instant>>,
    /// When a plain line last told of a task, or might have.
    last_task_line: Mutex<Instant>,
    last_validation: Mutex<Option<Instant>>,
}

impl Bars {
    /// Listens to Ctrl-C from now on.
    pub(crate) fn new() -> Self {
        // A handler is there already when a test or a second command made one.
        let _ = ctrlc::set_handler(|| {
            if INTERRUPTED.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        });
        Self {
            running: Mutex::default(),
            last_line: Mutex::default(),
            last_task_line: Mutex::new(Instant::now()),
            last_validation: Mutex::default(),
        }
    }

    /// A training step: the bar of the run moves on, or a line is due.
    fn step(&self, running: &mut Option<ProgressBar>, progress: &StepProgress) {
        let message = step_line(progress);
        if std::io::stderr().is_terminal() {
            let bar = running.get_or_insert_with(|| {
                let bar = ProgressBar::new(progress.n_steps).with_style(training_style());
                bar.enable_steady_tick(Duration::from_millis(200));
                bar
            });
            bar.set_position(progress.step);
            bar.set_message(message);
            return;
        }
        let Ok(mut last) = self.last_line.lock() else { return };
        if last.is_none_or(|at| at.elapsed() >= LINE_EVERY) || progress.step == progress.n_steps {
            *last = Some(Instant::now());
            let StepProgress { step, n_steps, .. } = progress;
            let _ = writeln!(anstream::stderr(), "step {step} of {n_steps}, {message}");
        }
    }

    /// How far a task is, now and then, where no bar shows it.
    fn task(&self, bar: &ProgressBar) {
        let Ok(mut last) = self.last_task_line.lock() else { return };
        if last.elapsed() >= LINE_EVERY && !std::io::stderr().is_terminal() {
            *last = Instant::now();
            let of = bar.length().map_or(String::new(), |total| format!(" of {}", grouped(total)));
            let (task, position) = (bar.message(), grouped(bar.position()));
            let _ = writeln!(anstream::stderr(), "{task}: {position}{of}");
        }
    }

    /// Writes a line above the bar, if there is one.
    fn line(running: &Option<ProgressBar>, line: &str) {
        let write = || {
            let _ = writeln!(anstream::stderr(), "{line}");
        };
        match running {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

/// How training goes, in a line.
fn step_line(progress: &StepProgress) -> String {
    let StepProgress { epoch, n_epochs, loss, active, hardness, cluster_size, .. } = progress;
    let mining = progress.mining_seconds / (progress.seconds + progress.mining_seconds).max(1e-9);
    format!(
        "epoch {epoch} of {n_epochs}, {} left, loss {loss:.4}, active {:.0} %, hardness {hardness:.2}, \
         clusters of {cluster_size}, {} tokens/s, mining {:.1} %",
        duration(progress.seconds_left),
        100.0 * active,
        grouped(progress.tokens_per_second as u64),
        100.0 * mining,
    )
}

/// What the encoder reaches, in a line.
fn validation_line(progress: &ValidationProgress) -> String {
    let ValidationProgress { epoch, precision_1, precision_5, recall_100, is_best, .. } = progress;
    let percent = |share: &f64| 100.0 * share;
    format!(
        "epoch {epoch:>3}  held out by label embedding: P@1 {:.2}  P@5 {:.2}  R@100 {:.2}{}",
        percent(precision_1),
        percent(precision_5),
        percent(recall_100),
        if *is_best { styled(GOOD, "  best") } else { String::new() },
    )
}

impl Observer for Bars {
    fn event(&self, event: Event<'_>) {
        let Ok(mut running) = self.running.lock() else { return };
        match event {
            Event::Started { task, total, unit } => {
                let bar = match total {
                    Some(total) => ProgressBar::new(total).with_style(style(unit)),
                    None => ProgressBar::new_spinner(),
                };
                bar.set_message(task.to_owned());
                bar.enable_steady_tick(Duration::from_millis(200));
                if let Some(earlier) = running.replace(bar) {
                    earlier.finish_and_clear();
                }
            }
            Event::Advanced(units) => {
                if let Some(bar) = &*running {
                    bar.inc(units);
                    self.task(bar);
                }
            }
            Event::Finished => {
                if let Some(bar) = running.take() {
                    bar.finish_and_clear();
                }
            }
            Event::Step(progress) => self.step(&mut running, progress),
            Event::Validated(progress) => {
                let Ok(mut last) = self.last_validation.lock() else { return };
                if last.is_none_or(|at| at.elapsed() >= VALIDATION_EVERY) {
                    *last = Some(Instant::now());
                    Self::line(&running, &validation_line(progress));
                }
            }
            Event::Note(note) => Self::line(&running, &styled(WARN, format!("note: {note}"))),
            _ => {}
        }
    }

    fn cancelled(&self) -> bool {
        INTERRUPTED.load(Ordering::Relaxed)
    }
}

fn training_style() -> ProgressStyle {
    let template = format!("{{bar:20.cyan}} {DIM}{{pos}}/{{len}}{DIM:#} {{wide_msg}}");
    ProgressStyle::with_template(&template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━╸ ")
}

fn style(unit: &str) -> ProgressStyle {
    let template = if unit == "bytes" {
        "{msg:32!} {bar:30.cyan} {bytes:>10} of {total_bytes}, {eta} left"
    } else {
        "{msg:32!} {bar:30.cyan} {human_pos:>10} of {human_len}, {eta} left"
    };
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━╸ ")
}
