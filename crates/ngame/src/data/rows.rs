//! The rows of one file while they are being collected, and what they become.

use std::path::Path;

use super::csr::Csr;
use super::dataset::{FieldWords, Ids, Labels, RowNotes, Split};
use super::options::TextChoice;
use super::record::Record;
use super::texts::Texts;
use crate::error::{Error, InputError, InputErrorKind, Place, Result};

/// Ids and texts of some rows.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    ids: Texts,
    all_have_ids: bool,
    pub(crate) texts: Texts,
    pub(crate) words: FieldWords,
}

impl Rows {
    pub(crate) fn new() -> Self {
        Self { all_have_ids: true, ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    pub(crate) fn push(&mut self, record: &Record, choice: TextChoice) {
        self.all_have_ids &= record.id.is_some();
        self.ids.push(record.id.as_deref().unwrap_or_default());
        record.push_text(choice, &mut self.texts);
        self.words.n_rows += 1;
        self.words.title += record.title.split_whitespace().count() as u64;
        self.words.content += record.content.split_whitespace().count() as u64;
    }

    pub(crate) fn append(&mut self, other: &Self) {
        self.all_have_ids &= other.all_have_ids;
        self.ids.append(&other.ids);
        self.texts.append(&other.texts);
        self.words.add(other.words);
    }

    /// Labels, one a row.
    pub(crate) fn into_labels(self, path: &Path) -> Result<Labels> {
        check_row_count(path, self.len())?;
        let words = self.words;
        let (ids, texts) = self.into_ids_and_texts();
        Ok(Labels { ids, texts, words })
    }

    /// The ids, if every row has one, and the texts.
    fn into_ids_and_texts(mut self) -> (Ids, Texts) {
        self.texts.shrink_to_fit();
        self.ids.shrink_to_fit();
        let ids = if self.all_have_ids { Ids::Own(self.ids) } else { Ids::Position };
        (ids, self.texts)
    }

    /// A split of these rows as points.
    pub(crate) fn into_split(self, mut by_point: Csr, filter: Csr, notes: RowNotes) -> Split {
        by_point.shrink_to_fit();
        let words = self.words;
        let (ids, texts) = self.into_ids_and_texts();
        let by_label = by_point.transpose();
        Split { ids, texts, by_point, by_label, filter, words, notes }
    }
}

/// A file must have rows, and no more than can be counted.
pub(crate) fn check_row_count(path: &Path, n_rows: usize) -> Result<()> {
    if n_rows == 0 {
        return Err(empty_file(path, "at least one row"));
    }
    if u32::try_from(n_rows).is_err() {
        return Err(InputError::new(InputErrorKind::TooLarge, Place::file(path))
            .expected(format!("at most {} rows", u32::MAX))
            .found(n_rows.to_string())
            .help("split the data set")
            .into());
    }
    Ok(())
}

/// A file without a row.
pub(crate) fn empty_file(path: &Path, expected: &str) -> Error {
    InputError::new(InputErrorKind::EmptyFile, Place::file(path))
        .expected(expected)
        .found("nothing")
        .help("check that the file was written whole")
        .into()
}

/// Checks a label's position in the label file.
pub(crate) fn check_label(index: i64, n_labels: u32, place: impl Fn() -> Place) -> Result<u32> {
    u32::try_from(index).ok().filter(|&index| index < n_labels).ok_or_else(|| {
        InputError::new(InputErrorKind::LabelOutOfRange, place())
            .expected(match n_labels {
                0 => "no label at all, because there are none".to_owned(),
                _ => format!("a label from 0 to {} (there are {n_labels})", n_labels - 1),
            })
            .found(index.to_string())
            .help("labels are numbered from 0, in the order of the label file")
            .into()
    })
}

/// Two files disagree about the number of something.
pub(crate) fn count_mismatch(place: Place, expected: String, found: String) -> Error {
    InputError::new(InputErrorKind::CountMismatch, place)
        .expected(expected)
        .found(found)
        .help("use files that were written together")
        .into()
}
