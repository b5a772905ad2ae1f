//! What any system predicted, and what it is measured by: sparse text, `.npz`, or JSON lines.

use std::path::Path;

use serde_json::Value;

use super::csr::{Csr, ScoredCsr};
use super::dataset::{Ids, Labels};
use super::interner::Interner;
use super::lines::{for_each_line, parse_blocks};
use super::rows::{check_label, check_row_count, count_mismatch, empty_file};
use super::source::Source;
use super::{npz, sparse_text, xc};
use crate::error::{Error, InputError, InputErrorKind, Place, Result};
use crate::progress::Observer;

/// Reads a truth matrix of points × labels: sparse text or `.npz`. Pairs of value 0 are no pairs.
pub fn read_label_matrix(path: &Path, observer: &dyn Observer) -> Result<Csr> {
    Ok(xc::read_label_matrix(path, observer)?.0)
}

/// Reads predictions for `n_points` points over `n_labels` labels, from
///
/// - sparse text: a header `points labels`, then `label:score` rows;
/// - an `.npz` matrix in compressed rows;
/// - JSON lines: `{"labels": [{"id": …, "score": …}, …]}`, where a number is a label's position
///   and a string its id; also pairs `[label, score]`, bare labels in ranked order, or the list
///   itself without the object around it.
///
/// Of a label predicted twice for a point the higher score counts.
pub fn read_predictions(
    path: &Path,
    n_points: usize,
    n_labels: u32,
    labels: Option<&Labels>,
    observer: &dyn Observer,
) -> Result<ScoredCsr> {
    let predictions = if is_npz(path) {
        npz::read(path)?.0
    } else if looks_like_json(path, observer)? {
        read_json_predictions(path, n_labels, labels, observer)?
    } else {
        sparse_text::read(path, observer)?.0
    };
    if predictions.n_rows() != n_points || predictions.n_columns() != n_labels {
        return Err(count_mismatch(
            Place::file(path),
            format!("{n_points} points and {n_labels} labels, as in the truth"),
            format!("{} points and {} labels", predictions.n_rows(), predictions.n_columns()),
        ));
    }
    Ok(predictions)
}

/// Reads how many training points each label has, and how many training points there are: a header
/// `points labels` and one count a line, or a training label matrix, text or `.npz`.
pub fn read_label_counts(path: &Path, observer: &dyn Observer) -> Result<(u64, Vec<u32>)> {
    if is_npz(path) || second_line_is_a_row(path, observer)? {
        let matrix = read_label_matrix(path, observer)?;
        return Ok((matrix.n_rows() as u64, matrix.column_counts()));
    }
    let mut header = None;
    let mut counts = Vec::new();
    for_each_line(Source::open(path, observer)?, observer, |line, text| {
        let numbers: Option<Vec<u64>> =
            text.split_ascii_whitespace().map(|field| field.parse().ok()).collect();
        match (&header, numbers.as_deref()) {
            (None, Some(&[n_points, n_labels])) => header = Some((n_points, n_labels)),
            (Some(_), Some(&[count])) if u32::try_from(count).is_ok() => counts.push(count as u32),
            (Some(_), Some(&[])) => {}
            (header, _) => {
                let expected = match header {
                    None => "a header of two numbers: training points, labels",
                    Some(_) => "one count a line",
                };
                return Err(InputError::new(InputErrorKind::WrongType, Place::line(path, line))
                    .expected(expected)
                    .found(format!("`{text}`"))
                    .help("give a file of label counts, or the training label matrix")
                    .into());
            }
        }
        Ok(())
    })?;
    let Some((n_points, n_labels)) = header else {
        return Err(empty_file(path, "a header of two numbers: training points, labels"));
    };
    if counts.len() as u64 != n_labels {
        return Err(count_mismatch(
            Place::file(path),
            format!("{n_labels} counts, as the header says"),
            format!("{} counts", counts.len()),
        ));
    }
    Ok((n_points, counts))
}

fn is_npz(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "npz")
}

/// By the first byte: sparse text begins with a number.
fn looks_like_json(path: &Path, observer: &dyn Observer) -> Result<bool> {
    let head = head(path, observer)?;
    Ok(matches!(head.trim_ascii_start().first(), Some(b'{' | b'[')))
}

/// Label matrices have pairs, or empty rows, where count files have a number.
fn second_line_is_a_row(path: &Path, observer: &dyn Observer) -> Result<bool> {
    let head = head(path, observer)?;
    let second = head.split(|&byte| byte == b'\n').nth(1).unwrap_or(b"0");
    Ok(second.contains(&b':') || second.trim_ascii().is_empty())
}

fn head(path: &Path, observer: &dyn Observer) -> Result<Vec<u8>> {
    let mut head = vec![0; 1 << 16];
    let n = Source::open(path, observer)?.fill(&mut head)?;
    head.truncate(n);
    Ok(head)
}

fn read_json_predictions(
    path: &Path,
    n_labels: u32,
    labels: Option<&Labels>,
    observer: &dyn Observer,
) -> Result<ScoredCsr> {
    let names = LabelNames::new(labels, n_labels);
    let mut predictions = ScoredCsr::new(n_labels);
    parse_blocks(
        Source::open(path, observer)?,
        observer,
        |block| {
            let mut rows = ScoredCsr::new(n_labels);
            let mut row = Vec::new();
            for (line, text) in block.lines().filter(|(_, text)| !text.trim().is_empty()) {
                read_json_row(path, line, text, &names, &mut row)?;
                rows.push_row(&mut row);
            }
            Ok(rows)
        },
        |rows| {
            check_row_count(path, predictions.n_rows() + rows.n_rows())?;
            predictions.append(&rows);
            Ok(())
        },
    )?;
    Ok(predictions)
}

fn read_json_row(
    path: &Path,
    line: u64,
    text: &str,
    names: &LabelNames,
    row: &mut Vec<(u32, f32)>,
) -> Result<()> {
    row.clear();
    let wrong = |found: String| -> Error {
        InputError::new(InputErrorKind::WrongType, Place::line(path, line).field("labels"))
            .expected(r#"{"labels": [{"id": …, "score": …}, …]}, pairs, or ranked labels"#)
            .found(found)
            .help("write one JSON line a point, in the order of the truth")
            .into()
    };
    let value: Value = serde_json::from_str(text).map_err(|error| {
        InputError::new(InputErrorKind::InvalidJson, Place::line(path, line))
            .expected("one JSON value a line")
            .found(error.to_string())
            .help("mend the line")
    })?;
    let list = match &value {
        Value::Array(list) => list,
        Value::Object(object) => match object.get("labels") {
            Some(Value::Array(list)) => list,
            other => return Err(wrong(other.map_or("no `labels`".to_owned(), Value::to_string))),
        },
        other => return Err(wrong(other.to_string())),
    };
    for (rank, item) in list.iter().enumerate() {
        let (label, score) = match item {
            Value::Object(object) => {
                let label = ["id", "label"].iter().find_map(|&key| object.get(key));
                (label, object.get("score").and_then(Value::as_f64))
            }
            Value::Array(pair) if pair.len() == 2 => (pair.first(), pair[1].as_f64()),
            label => (Some(label), Some(-(rank as f64))),
        };
        let (Some(label), Some(score)) = (label, score) else {
            return Err(wrong(item.to_string()));
        };
        row.push((names.find(label, path, line)?, score as f32));
    }
    Ok(())
}

/// Which label a prediction names.
struct LabelNames {
    /// The labels' ids, where they have some.
    ids: Option<Interner>,
    n_labels: u32,
}

impl LabelNames {
    fn new(labels: Option<&Labels>, n_labels: u32) -> Self {
        let ids = labels.filter(|labels| labels.ids != Ids::Position).map(|labels| {
            let mut ids = Interner::default();
            for label in 0..labels.texts.len() {
                ids.intern(&labels.id(label));
            }
            ids
        });
        Self { ids, n_labels }
    }

    fn find(&self, label: &Value, path: &Path, line: u64) -> Result<u32> {
        let place = || Place::line(path, line).field("labels");
        if let Some(position) = label.as_i64() {
            return check_label(position, self.n_labels, place);
        }
        if let Some(name) = label.as_str() {
            match &self.ids {
                Some(ids) => {
                    if let Some(label) = ids.get(name) {
                        return Ok(label);
                    }
                }
                None => {
                    if let Ok(position) = name.parse() {
                        return check_label(position, self.n_labels, place);
                    }
                }
            }
        }
        Err(InputError::new(InputErrorKind::UnknownLabel, place())
            .expected(match self.ids {
                Some(_) => "a label's id (a string) or its position (a number)",
                None => "a label's position, counted from 0",
            })
            .found(label.to_string())
            .help("to use ids, give a data set folder as the truth")
            .into())
    }
}
