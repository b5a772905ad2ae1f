//! The XC text layout: one text a line in `trn_X.txt`, `tst_X.txt` and `Y.txt`, label matrices in
//! `trn_X_Y.txt` and `tst_X_Y.txt` (or `.npz`).

use std::path::Path;

use super::csr::Csr;
use super::dataset::{Dataset, FieldWords, Ids, Labels, RowNotes, Split};
use super::filter;
use super::folder;
use super::lines::for_each_line;
use super::rows::{check_row_count, count_mismatch};
use super::source::Source;
use super::texts::Texts;
use super::{npz, sparse_text};
use crate::error::{Place, Result};
use crate::progress::Observer;

/// Whether a folder looks like this format.
pub(crate) fn detect(folder: &Path) -> bool {
    ["trn_X", "trn_X_Y"].iter().any(|stem| folder::find(folder, &[stem], &[".txt"]).is_some())
}

/// Reads a folder of this format.
pub(crate) fn read(data: &Path, observer: &dyn Observer) -> Result<Dataset> {
    let train = read_split(data, ["train", "trn"], observer)?.ok_or_else(|| {
        folder::missing(
            data,
            "trn_X.txt",
            "a file of training texts, one a line",
            "ngame works on texts; where the data set has only features, use its raw text version",
        )
    })?;
    let n_labels = train.by_point.n_columns();
    let labels = read_labels(data, n_labels, observer)?;
    let test = read_split(data, ["test", "tst"], observer)?;
    let valid = read_split(data, ["valid", "val"], observer)?;
    for (name, split) in [("tst_X_Y", &test), ("val_X_Y", &valid)] {
        if let Some(split) = split
            && split.by_point.n_columns() != n_labels
        {
            return Err(count_mismatch(
                Place::file(data.join(name)),
                format!("{n_labels} labels, as in trn_X_Y"),
                format!("{} labels", split.by_point.n_columns()),
            ));
        }
    }
    Ok(Dataset { labels, train, valid, test })
}

/// Reads the texts and labels of a split, if its texts are there.
fn read_split(data: &Path, names: [&str; 2], observer: &dyn Observer) -> Result<Option<Split>> {
    let short = names[1];
    let Some(path) = folder::find(data, &[&format!("{short}_X")], &[".txt"]) else {
        return Ok(None);
    };
    let (texts, words) = read_texts(&path, observer)?;
    check_row_count(&path, texts.len())?;
    let stem = format!("{short}_X_Y");
    let matrix_path = folder::find(data, &[&stem], &[".txt", ".npz"]).ok_or_else(|| {
        folder::missing(
            data,
            &format!("{stem}.txt"),
            "a label matrix: a header `points labels`, then `label:1` pairs, one point a line",
            "put the label matrix beside the texts",
        )
    })?;
    let (by_point, notes) = read_label_matrix(&matrix_path, observer)?;
    if by_point.n_rows() != texts.len() {
        return Err(count_mismatch(
            Place::file(&matrix_path),
            format!("{} rows, one for each line of {}", texts.len(), path.display()),
            format!("{} rows", by_point.n_rows()),
        ));
    }
    let n_labels = by_point.n_columns();
    let filter = filter::find_and_read(data, names, texts.len(), n_labels, observer)?;
    let by_label = by_point.transpose();
    Ok(Some(Split { ids: Ids::Position, texts, by_point, by_label, filter, words, notes }))
}

/// Reads `Y.txt`; without it, labels have no text.
fn read_labels(data: &Path, n_labels: u32, observer: &dyn Observer) -> Result<Labels> {
    let Some(path) = folder::find(data, &["Y", "lbl_X"], &[".txt"]) else {
        let texts = std::iter::repeat_n("", n_labels as usize).collect();
        return Ok(Labels { ids: Ids::Position, texts, words: FieldWords::default() });
    };
    let (texts, words) = read_texts(&path, observer)?;
    if texts.len() != n_labels as usize {
        return Err(count_mismatch(
            Place::file(&path),
            format!("{n_labels} lines, one for each label of the label matrix"),
            format!("{} lines", texts.len()),
        ));
    }
    Ok(Labels { ids: Ids::Position, texts, words })
}

/// Reads a label matrix, text or `.npz`; pairs of value zero are no pairs.
pub(crate) fn read_label_matrix(path: &Path, observer: &dyn Observer) -> Result<(Csr, RowNotes)> {
    let (scored, repeated_labels) = match path.extension() {
        Some(extension) if extension == "npz" => npz::read(path)?,
        _ => sparse_text::read(path, observer)?,
    };
    let n_pairs = scored.pattern().n_pairs();
    let by_point = scored.into_pattern_where(|value| value > 0.0);
    let irrelevant_pairs = n_pairs - by_point.n_pairs();
    Ok((by_point, RowNotes { repeated_labels, irrelevant_pairs }))
}

/// Reads one text a line.
fn read_texts(path: &Path, observer: &dyn Observer) -> Result<(Texts, FieldWords)> {
    let mut texts = Texts::new();
    let mut words = FieldWords::default();
    for_each_line(Source::open(path, observer)?, observer, |_, text| {
        texts.push(text.trim());
        words.n_rows += 1;
        words.title += text.split_whitespace().count() as u64;
        Ok(())
    })?;
    texts.shrink_to_fit();
    Ok((texts, words))
}
