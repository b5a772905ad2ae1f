//! The labels a user's own data names, and which label a name means.

use std::path::Path;

use super::dataset::{FieldWords, Ids, Labels};
use super::interner::Interner;
use super::lf;
use super::options::TextChoice;
use super::own::FileKind;
use super::rows::{Rows, check_row_count};
use super::table;
use super::texts::Texts;
use crate::error::{Error, InputError, InputErrorKind, Place, Result};
use crate::progress::Observer;

/// Labels by id and by text.
pub(crate) enum LabelBook {
    /// No label file: every new name is a new label, and is its own text.
    Open(Interner),
    /// A label file: its labels and no others.
    Closed(Box<ListedLabels>),
}

/// The labels of a label file.
pub(crate) struct ListedLabels {
    ids: Interner,
    /// The distinct texts, so that labels can be named by them.
    distinct_texts: Interner,
    /// For each distinct text its label, or `None` where several labels share it.
    label_of_text: Vec<Option<u32>>,
    texts: Texts,
    words: FieldWords,
    file: String,
}

impl LabelBook {
    /// A book without a label file.
    pub(crate) fn open() -> Self {
        Self::Open(Interner::default())
    }

    /// Reads a label file: ids must differ, texts may be missing.
    pub(crate) fn read(path: &Path, choice: TextChoice, observer: &dyn Observer) -> Result<Self> {
        let labels = match FileKind::of(path, observer)? {
            FileKind::JsonLines => lf::read_labels(path, choice, observer)?,
            FileKind::Table(separator) => read_table(path, separator, choice, observer)?,
        };
        Ok(Self::Closed(Box::new(ListedLabels::new(labels, path)?)))
    }

    /// How many labels there are so far.
    pub(crate) fn n_labels(&self) -> u32 {
        match self {
            Self::Open(names) => names.strings().len() as u32,
            Self::Closed(listed) => listed.texts.len() as u32,
        }
    }

    /// The label a name means: an id first, then a text.
    pub(crate) fn resolve(&mut self, name: &str, path: &Path, line: u64) -> Result<u32> {
        match self {
            Self::Open(names) => Ok(names.intern(name).0),
            Self::Closed(listed) => listed.find(name).map_err(|found| {
                InputError::new(
                    InputErrorKind::UnknownLabel,
                    Place::line(path, line).field("labels"),
                )
                .expected(format!("the id or text of a label in {}", listed.file))
                .found(format!("`{name}`, {found}"))
                .help("add the label to the label file, correct it, or separate labels by `;`")
                .into()
            }),
        }
    }

    /// The labels, once all rows are read.
    pub(crate) fn into_labels(self) -> Labels {
        match self {
            Self::Open(names) => {
                let mut texts = names.into_strings();
                texts.shrink_to_fit();
                let title = texts.iter().map(|text| text.split_whitespace().count() as u64).sum();
                let words = FieldWords { n_rows: texts.len(), title, content: 0 };
                Labels { ids: Ids::SameAsText, texts, words }
            }
            Self::Closed(listed) => {
                let ListedLabels { ids, texts, words, .. } = *listed;
                Labels { ids: Ids::Own(ids.into_strings()), texts, words }
            }
        }
    }
}

impl ListedLabels {
    fn new(labels: Labels, path: &Path) -> Result<Self> {
        let Labels { ids, texts, words } = labels;
        let mut distinct_texts = Interner::default();
        let mut label_of_text = Vec::new();
        for (label, text) in texts.iter().enumerate() {
            match distinct_texts.intern(text) {
                (_, true) => label_of_text.push(Some(label as u32)),
                (number, false) => label_of_text[number as usize] = None,
            }
        }
        let mut interner = Interner::default();
        for label in 0..texts.len() {
            let id = match &ids {
                Ids::Own(ids) => ids.get(label),
                // Without ids of their own, labels are told apart by their texts.
                Ids::Position | Ids::SameAsText => texts.get(label),
            };
            if !interner.intern(id).1 {
                return Err(duplicate_text(path, id));
            }
        }
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { ids: interner, distinct_texts, label_of_text, texts, words, file })
    }

    fn find(&self, name: &str) -> Result<u32, &'static str> {
        if let Some(label) = self.ids.get(name) {
            return Ok(label);
        }
        let number = self.distinct_texts.get(name).ok_or("which is neither")?;
        self.label_of_text[number as usize].ok_or("a text that several labels share: use the id")
    }
}

fn read_table(
    path: &Path,
    separator: table::Separator,
    choice: TextChoice,
    observer: &dyn Observer,
) -> Result<Labels> {
    let mut rows = Rows::new();
    let mut ids = Interner::default();
    table::for_each_record(
        path,
        separator,
        observer,
        &[(&["id", "text", "title"], "columns `id` and `text`")],
        |line, record| {
            check_row_count(path, rows.len() + 1)?;
            if let Some(id) = &record.id {
                lf::check_new_label_id(&mut ids, id, path, line)?;
            }
            rows.push(record, choice);
            Ok(())
        },
    )?;
    rows.into_labels(path)
}

fn duplicate_text(path: &Path, text: &str) -> Error {
    InputError::new(InputErrorKind::DuplicateLabelId, Place::file(path))
        .expected("labels with ids, or labels whose texts differ")
        .found(format!("two labels with the text `{text}` and no ids"))
        .help("add a column `id`")
        .into()
}
