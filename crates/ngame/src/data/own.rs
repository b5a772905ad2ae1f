//! A user's own data: `train`, `test`, `valid` and `labels` as JSON lines, CSV or TSV, or one such
//! file alone.
//!
//! Labels are given as ids or as texts. With a label file, what it lists are the labels; without
//! one, every distinct string is a label, and is its own text.

use std::path::{Path, PathBuf};

use super::csr::Csr;
use super::dataset::{Dataset, RowNotes, Split};
use super::filter;
use super::folder;
use super::label_book::LabelBook;
use super::lf;
use super::lines::parse_blocks;
use super::options::TextChoice;
use super::rows::{Rows, check_row_count};
use super::source::Source;
use super::table::{self, Separator};
use super::texts::Texts;
use crate::error::Result;
use crate::progress::Observer;

const ENDINGS: [&str; 5] = [".jsonl", ".ndjson", ".json", ".csv", ".tsv"];

/// The columns that a table of training rows must have; test rows may be without labels.
const NEEDED: [(&[&str], &str); 2] = [
    (&["text", "title", "content"], "a column `text`, or `title` and `content`"),
    (&["labels"], "a column `labels`"),
];

/// Whether a folder looks like this format.
pub(crate) fn detect(folder: &Path) -> bool {
    folder::find(folder, &["train"], &ENDINGS).is_some()
}

/// Reads a folder of this format, or one file of training rows.
pub(crate) fn read(path: &Path, choice: TextChoice, observer: &dyn Observer) -> Result<Dataset> {
    let is_folder = path.is_dir();
    let file = |stems: &[&str]| is_folder.then(|| folder::find(path, stems, &ENDINGS)).flatten();
    let train: PathBuf = if is_folder {
        file(&["train"]).ok_or_else(|| {
            folder::missing(
                path,
                "train.csv",
                "a file of training rows: train.jsonl, train.csv or train.tsv",
                "name the file of your training rows so, or give the file itself",
            )
        })?
    } else {
        path.to_owned()
    };
    let mut book = match file(&["labels"]) {
        Some(labels) => LabelBook::read(&labels, choice, observer)?,
        None => LabelBook::open(),
    };
    let train = read_points(&train, choice, &mut book, true, observer)?;
    let mut read_optional = |stems: &[&str]| {
        file(stems).map(|path| read_points(&path, choice, &mut book, false, observer)).transpose()
    };
    let test = read_optional(&["test"])?;
    let valid = read_optional(&["valid", "validation", "val", "dev"])?;
    let n_labels = book.n_labels();
    let finish = |points: Points, names: [&str; 2]| -> Result<Split> {
        let Points { rows, mut by_point, notes } = points;
        by_point.widen(n_labels);
        let filter = if is_folder {
            filter::find_and_read(path, names, rows.len(), n_labels, observer)?
        } else {
            Csr::empty(rows.len(), n_labels)
        };
        Ok(rows.into_split(by_point, filter, notes))
    };
    Ok(Dataset {
        train: finish(train, ["train", "trn"])?,
        test: test.map(|points| finish(points, ["test", "tst"])).transpose()?,
        valid: valid.map(|points| finish(points, ["valid", "val"])).transpose()?,
        labels: book.into_labels(),
    })
}

/// The kind of a file, by its name or else by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    JsonLines,
    Table(Separator),
}

impl FileKind {
    pub(crate) fn of(path: &Path, observer: &dyn Observer) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("jsonl" | "ndjson" | "json") => return Ok(Self::JsonLines),
            Some("csv") => return Ok(Self::Table(Separator::Comma)),
            Some("tsv" | "tab") => return Ok(Self::Table(Separator::Tab)),
            _ => {}
        }
        let mut head = [0; 4096];
        let n = Source::open(path, observer)?.fill(&mut head)?;
        let head = head[..n].trim_ascii_start();
        let first_line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
        Ok(match head.first() {
            Some(b'{' | b'[') => Self::JsonLines,
            _ if first_line.contains(&b'\t') => Self::Table(Separator::Tab),
            _ => Self::Table(Separator::Comma),
        })
    }
}

/// The points of one file.
struct Points {
    rows: Rows,
    by_point: Csr,
    notes: RowNotes,
}

fn read_points(
    path: &Path,
    choice: TextChoice,
    book: &mut LabelBook,
    must_have_labels: bool,
    observer: &dyn Observer,
) -> Result<Points> {
    let mut labels_of_row = Vec::new();
    let mut rows = Rows::new();
    let mut by_point = Csr::new(book.n_labels());
    let mut notes = RowNotes::default();
    match FileKind::of(path, observer)? {
        FileKind::JsonLines => parse_blocks(
            Source::open(path, observer)?,
            observer,
            |block| {
                let (mut rows, mut named) = (Rows::new(), Vec::new());
                lf::for_each_record(path, block, |line, record| {
                    rows.push(record, choice);
                    named.push((line, std::mem::take(&mut record.label_names)));
                    Ok(())
                })?;
                Ok((rows, named))
            },
            |(block_rows, named)| {
                check_row_count(path, rows.len() + block_rows.len())?;
                rows.append(&block_rows);
                for (line, names) in named {
                    resolve(book, path, line, &names, &mut labels_of_row)?;
                    // A name that nobody used before is a new label, and a new column.
                    by_point.widen(book.n_labels());
                    notes.repeated_labels += by_point.push_row(&labels_of_row) as u64;
                }
                Ok(())
            },
        )?,
        FileKind::Table(separator) => table::for_each_record(
            path,
            separator,
            observer,
            if must_have_labels { &NEEDED } else { &NEEDED[..1] },
            |line, record| {
                check_row_count(path, rows.len() + 1)?;
                rows.push(record, choice);
                resolve(book, path, line, &record.label_names, &mut labels_of_row)?;
                by_point.widen(book.n_labels());
                notes.repeated_labels += by_point.push_row(&labels_of_row) as u64;
                Ok(())
            },
        )?,
    }
    check_row_count(path, rows.len())?;
    Ok(Points { rows, by_point, notes })
}

/// The label numbers of a row's label names.
fn resolve(
    book: &mut LabelBook,
    path: &Path,
    line: u64,
    names: &Texts,
    labels: &mut Vec<u32>,
) -> Result<()> {
    labels.clear();
    for name in names.iter() {
        labels.push(book.resolve(name, path, line)?);
    }
    Ok(())
}
