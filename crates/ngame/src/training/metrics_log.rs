//! `metrics.jsonl`: every step and every validation, one JSON object a line.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use crate::{Error, Result};

/// A log that grows.
#[derive(Debug)]
pub(super) struct MetricsLog {
    file: BufWriter<File>,
    path: PathBuf,
}

/// A line, with what kind of thing it tells of.
#[derive(Serialize)]
struct Line<'a, T> {
    kind: &'static str,
    #[serde(flatten)]
    content: &'a T,
}

impl MetricsLog {
    /// Opens a log and drops what it tells of steps after `step`, and of the validation after that
    /// one unless it was `validated`: they will be done again.
    pub(super) fn open(path: &Path, step: u64, validated: bool) -> Result<Self> {
        let kept = match fs::read_to_string(path) {
            Ok(text) => text
                .lines()
                .filter(|line| {
                    let value: Value = serde_json::from_str(line).unwrap_or_default();
                    let at = value.get("step").and_then(Value::as_u64).unwrap_or(u64::MAX);
                    at < step || (at == step && (validated || value["kind"] == "step"))
                })
                .fold(String::new(), |kept, line| kept + line + "\n"),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Error::io("read", path, error)),
        };
        let write = |source| Error::io("write", path, source);
        fs::write(path, kept).map_err(write)?;
        let file = OpenOptions::new().append(true).open(path).map_err(write)?;
        Ok(Self { file: BufWriter::new(file), path: path.to_owned() })
    }

    /// Opens a log to add to all it tells.
    pub(super) fn append(path: &Path) -> Result<Self> {
        let opened = OpenOptions::new().create(true).append(true).open(path);
        let file = opened.map_err(|source| Error::io("write", path, source))?;
        Ok(Self { file: BufWriter::new(file), path: path.to_owned() })
    }

    /// Adds a line.
    pub(super) fn add(&mut self, kind: &'static str, content: &impl Serialize) -> Result<()> {
        let line = serde_json::to_string(&Line { kind, content }).expect("numbers and names");
        writeln!(self.file, "{line}")
            .and_then(|()| self.file.flush())
            .map_err(|source| Error::io("write", &self.path, source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct At {
        step: u64,
    }

    #[test]
    fn lines_after_a_checkpoint_are_dropped_when_a_run_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut log = MetricsLog::open(&path, 0, true).unwrap();
        for step in 1..=5 {
            log.add("step", &At { step }).unwrap();
        }
        drop(log);
        // A line that was being written when the process ended.
        let mut text = fs::read_to_string(&path).unwrap();
        text.push_str("{\"kind\":\"st");
        fs::write(&path, text).unwrap();
        let mut log = MetricsLog::open(&path, 3, true).unwrap();
        log.add("step", &At { step: 4 }).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[3], r#"{"kind":"step","step":4}"#);
        log.add("validation", &At { step: 4 }).unwrap();
        drop(log);
        for (validated, n_lines) in [(true, 5), (false, 4)] {
            MetricsLog::open(&path, 4, validated).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), n_lines);
        }
    }
}
