//! What `/metrics` shows, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the latency histogram, in seconds.
const SECONDS: [f64; 13] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];

/// The upper bounds of the histogram of batches, in texts.
const TEXTS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

/// Everything counted.
#[derive(Debug, Default)]
pub(crate) struct Measurements {
    requests: Mutex<BTreeMap<(&'static str, u16), u64>>,
    latencies: Mutex<BTreeMap<&'static str, Histogram<13>>>,
    batches: Mutex<Histogram<8>>,
    /// Requests that nobody waited for any more when their turn came.
    pub(crate) abandoned: AtomicU64,
    /// Connections that are open.
    pub(crate) connections: AtomicU64,
    /// Models loaded anew.
    pub(crate) reloads: AtomicU64,
    /// Models that could not be loaded anew.
    pub(crate) failed_reloads: AtomicU64,
    /// Panics that were caught: bugs.
    pub(crate) panics: AtomicU64,
}

/// What is seen at the moment of looking.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gauges {
    /// Texts that wait.
    pub(crate) waiting: usize,
    /// The most that may.
    pub(crate) max_queue: usize,
}

#[derive(Clone, Copy, Debug)]
struct Histogram<const N: usize> {
    counts: [u64; N],
    n: u64,
    sum: f64,
}

impl<const N: usize> Default for Histogram<N> {
    fn default() -> Self {
        Self { counts: [0; N], n: 0, sum: 0.0 }
    }
}

impl<const N: usize> Histogram<N> {
    fn add(&mut self, bounds: &[f64; N], value: f64) {
        if let Some(count) = bounds.iter().position(|&bound| value <= bound) {
            self.counts[count] += 1;
        }
        self.n += 1;
        self.sum += value;
    }

    fn write(&self, text: &mut String, name: &str, labels: &str, bounds: &[f64; N]) {
        let comma = if labels.is_empty() { "" } else { "," };
        let mut below = 0;
        for (bound, count) in bounds.iter().zip(self.counts) {
            below += count;
            let _ = writeln!(text, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {below}");
        }
        let _ = writeln!(text, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {}", self.n);
        let braces = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let _ = writeln!(text, "{name}_sum{braces} {}", self.sum);
        let _ = writeln!(text, "{name}_count{braces} {}", self.n);
    }
}

impl Measurements {
    /// A request was answered. Routes are ours, so there are few, whatever clients ask for.
    pub(crate) fn answered(&self, route: &'static str, status: u16, time: Duration) {
        if let Ok(mut requests) = self.requests.lock() {
            *requests.entry((route, status)).or_default() += 1;
        }
        if let Ok(mut latencies) = self.latencies.lock() {
            latencies.entry(route).or_default().add(&SECONDS, time.as_secs_f64());
        }
    }

    /// Texts were worked on together.
    pub(crate) fn batch(&self, n_texts: usize) {
        if let Ok(mut batches) = self.batches.lock() {
            batches.add(&TEXTS, n_texts as f64);
        }
    }

    /// As Prometheus reads it.
    pub(crate) fn to_text(&self, gauges: Gauges) -> String {
        let mut text = String::new();
        let head = |text: &mut String, name: &str, kind: &str, help: &str| {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        };
        head(&mut text, "ngame_requests_total", "counter", "Requests answered.");
        if let Ok(requests) = self.requests.lock() {
            for ((route, status), n) in requests.iter() {
                let name = "ngame_requests_total";
                let _ = writeln!(text, "{name}{{route=\"{route}\",status=\"{status}\"}} {n}");
            }
        }
        let name = "ngame_request_seconds";
        head(&mut text, name, "histogram", "From the headers of a request to its answer.");
        if let Ok(latencies) = self.latencies.lock() {
            for (route, histogram) in latencies.iter() {
                histogram.write(&mut text, name, &format!("route=\"{route}\""), &SECONDS);
            }
        }
        let name = "ngame_batch_texts";
        head(&mut text, name, "histogram", "Texts worked on together.");
        if let Ok(batches) = self.batches.lock() {
            batches.write(&mut text, name, "", &TEXTS);
        }
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for (name, kind, help, value) in [
            ("ngame_queue_texts", "gauge", "Texts that wait.", gauges.waiting as u64),
            (
                "ngame_queue_limit",
                "gauge",
                "The most texts that may wait.",
                gauges.max_queue as u64,
            ),
            ("ngame_connections", "gauge", "Open connections.", read(&self.connections)),
            (
                "ngame_abandoned_total",
                "counter",
                "Requests given up by their clients before they cost anything.",
                read(&self.abandoned),
            ),
            ("ngame_reloads_total", "counter", "Models loaded anew.", read(&self.reloads)),
            (
                "ngame_failed_reloads_total",
                "counter",
                "Models that could not be loaded anew.",
                read(&self.failed_reloads),
            ),
            ("ngame_panics_total", "counter", "Bugs that were caught.", read(&self.panics)),
        ] {
            head(&mut text, name, kind, help);
            let _ = writeln!(text, "{name} {value}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_add_up() {
        let measurements = Measurements::default();
        for milliseconds in [1, 2, 40, 60_000] {
            measurements.answered("/v1/predict", 200, Duration::from_millis(milliseconds));
        }
        measurements.answered("/v1/predict", 503, Duration::ZERO);
        measurements.batch(3);
        let text = measurements.to_text(Gauges { waiting: 7, max_queue: 9 });
        for line in [
            "ngame_requests_total{route=\"/v1/predict\",status=\"200\"} 4",
            "ngame_requests_total{route=\"/v1/predict\",status=\"503\"} 1",
            "ngame_request_seconds_bucket{route=\"/v1/predict\",le=\"0.001\"} 2",
            "ngame_request_seconds_bucket{route=\"/v1/predict\",le=\"30\"} 4",
            "ngame_request_seconds_bucket{route=\"/v1/predict\",le=\"+Inf\"} 5",
            "ngame_request_seconds_count{route=\"/v1/predict\"} 5",
            "ngame_batch_texts_bucket{le=\"2\"} 0",
            "ngame_batch_texts_bucket{le=\"4\"} 1",
            "ngame_batch_texts_sum 3",
            "ngame_queue_texts 7",
            "ngame_queue_limit 9",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
