//! Progress bars on a terminal, and Ctrl-C.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use ngame::progress::{Event, Observer};

/// Set by the first Ctrl-C; the second one ends the process.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Shows the running task as a bar on standard error, where that is a terminal.
pub(crate) struct Bars {
    running: Mutex<Option<ProgressBar>>,
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
        Self { running: Mutex::new(None) }
    }
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
                }
            }
            Event::Finished => {
                if let Some(bar) = running.take() {
                    bar.finish_and_clear();
                }
            }
            _ => {}
        }
    }

    fn cancelled(&self) -> bool {
        INTERRUPTED.load(Ordering::Relaxed)
    }
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
