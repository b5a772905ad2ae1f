//! The XC repository's raw "LF" layout: `trn`, `tst` and `lbl` as JSON lines.

use std::path::Path;

use super::csr::Csr;
use super::dataset::{Dataset, Labels, RowNotes, Split};
use super::filter;
use super::folder;
use super::interner::Interner;
use super::lines::{Block, parse_blocks};
use super::options::TextChoice;
use super::record::Record;
use super::rows::{Rows, check_label, check_row_count, count_mismatch};
use super::source::Source;
use crate::error::{InputError, InputErrorKind, Place, Result};
use crate::progress::Observer;

const ENDINGS: [&str; 2] = [".json", ".jsonl"];

/// Whether a folder looks like this format.
pub(crate) fn detect(folder: &Path) -> bool {
    folder::find(folder, &["trn"], &ENDINGS).is_some()
}

/// Reads a folder of this format.
pub(crate) fn read(data: &Path, choice: TextChoice, observer: &dyn Observer) -> Result<Dataset> {
    let help = "an LF folder holds trn.json.gz and lbl.json.gz, and mostly tst.json.gz";
    let file = |stem: &str| folder::find(data, &[stem], &ENDINGS);
    let labels = file("lbl").ok_or_else(|| {
        folder::missing(data, "lbl.json.gz", "a file of labels, one JSON object a line", help)
    })?;
    let train = file("trn").ok_or_else(|| {
        folder::missing(data, "trn.json.gz", "a file of training points, one a line", help)
    })?;
    let labels = read_labels(&labels, choice, observer)?;
    // `check_row_count` has seen to it that labels can be counted in u32.
    let n_labels = labels.texts.len() as u32;
    let read_split = |path: &Path, names: [&str; 2]| -> Result<Split> {
        let (rows, by_point, notes) = read_points(path, n_labels, choice, observer)?;
        let filter = filter::find_and_read(data, names, rows.len(), n_labels, observer)?;
        Ok(rows.into_split(by_point, filter, notes))
    };
    Ok(Dataset {
        train: read_split(&train, ["train", "trn"])?,
        valid: file("val").map(|path| read_split(&path, ["valid", "val"])).transpose()?,
        test: file("tst").map(|path| read_split(&path, ["test", "tst"])).transpose()?,
        labels,
    })
}

/// Reads a file of labels: ids must differ, texts may be missing.
pub(crate) fn read_labels(
    path: &Path,
    choice: TextChoice,
    observer: &dyn Observer,
) -> Result<Labels> {
    let mut rows = Rows::new();
    let mut ids = Interner::default();
    parse_blocks(
        Source::open(path, observer)?,
        observer,
        |block| {
            let (mut rows, mut named) = (Rows::new(), Vec::new());
            for_each_record(path, block, |line, record| {
                rows.push(record, choice);
                named.push((line, record.id.take()));
                Ok(())
            })?;
            Ok((rows, named))
        },
        |(block_rows, named)| {
            check_row_count(path, rows.len() + block_rows.len())?;
            rows.append(&block_rows);
            for (line, id) in named {
                if let Some(id) = id {
                    check_new_label_id(&mut ids, &id, path, line)?;
                }
            }
            Ok(())
        },
    )?;
    rows.into_labels(path)
}

/// Two labels of one id could not be told apart by anybody who uses the id.
pub(crate) fn check_new_label_id(
    ids: &mut Interner,
    id: &str,
    path: &Path,
    line: u64,
) -> Result<()> {
    let (earlier, is_new) = ids.intern(id);
    if is_new {
        return Ok(());
    }
    Err(InputError::new(InputErrorKind::DuplicateLabelId, Place::line(path, line))
        .expected("an id that no other label has")
        .found(format!("`{id}`, which is label {earlier} already (counted from 0)"))
        .help("remove the second label, or give it another id")
        .into())
}

/// Reads a file of points.
fn read_points(
    path: &Path,
    n_labels: u32,
    choice: TextChoice,
    observer: &dyn Observer,
) -> Result<(Rows, Csr, RowNotes)> {
    let mut rows = Rows::new();
    let mut by_point = Csr::new(n_labels);
    let mut notes = RowNotes::default();
    parse_blocks(
        Source::open(path, observer)?,
        observer,
        |block| {
            let (mut rows, mut by_point) = (Rows::new(), Csr::new(n_labels));
            let mut notes = RowNotes::default();
            let mut labels = Vec::new();
            for_each_record(path, block, |line, record| {
                rows.push(record, choice);
                read_targets(record, n_labels, &mut labels, &mut notes, path, line)?;
                notes.repeated_labels += by_point.push_row(&labels) as u64;
                Ok(())
            })?;
            Ok((rows, by_point, notes))
        },
        |(block_rows, block_by_point, block_notes)| {
            check_row_count(path, rows.len() + block_rows.len())?;
            rows.append(&block_rows);
            by_point.append(&block_by_point);
            notes.add(block_notes);
            Ok(())
        },
    )?;
    check_row_count(path, rows.len())?;
    Ok((rows, by_point, notes))
}

/// Checks `target_ind` and `target_rel` of a row and keeps the relevant labels.
fn read_targets(
    record: &Record,
    n_labels: u32,
    labels: &mut Vec<u32>,
    notes: &mut RowNotes,
    path: &Path,
    line: u64,
) -> Result<()> {
    labels.clear();
    let (indices, relevances) = (&record.label_indices, &record.relevances);
    if !relevances.is_empty() && relevances.len() != indices.len() {
        return Err(count_mismatch(
            Place::line(path, line).field("target_rel"),
            format!("{} numbers, one for each of `target_ind`", indices.len()),
            format!("{} numbers", relevances.len()),
        ));
    }
    for (position, &index) in indices.iter().enumerate() {
        let label = check_label(index, n_labels, || Place::line(path, line).field("target_ind"))?;
        if relevances.get(position).is_none_or(|&relevance| relevance > 0.0) {
            labels.push(label);
        } else {
            notes.irrelevant_pairs += 1;
        }
    }
    Ok(())
}

/// Calls `each` for every JSON object of a block; blank lines are passed over.
pub(crate) fn for_each_record(
    path: &Path,
    block: &Block,
    mut each: impl FnMut(u64, &mut Record) -> Result<()>,
) -> Result<()> {
    let mut record = Record::default();
    for (line, text) in block.lines() {
        if !text.trim().is_empty() {
            record.read_json(path, line, text)?;
            each(line, &mut record)?;
        }
    }
    Ok(())
}
