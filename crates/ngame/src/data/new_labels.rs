//! Labels to be added to a model: a file of their own, every one with a text.

use std::path::{Path, PathBuf};

use super::interner::Interner;
use super::lf;
use super::lines::for_each_line;
use super::options::TextChoice;
use super::own::FileKind;
use super::record::Record;
use super::rows::check_row_count;
use super::source::Source;
use super::table;
use super::texts::Texts;
use crate::error::{InputError, InputErrorKind, Place, Result};
use crate::progress::Observer;

/// Labels that a model does not have yet, and where they stand.
#[derive(Debug)]
pub struct NewLabels {
    ids: Interner,
    texts: Texts,
    lines: Vec<u64>,
    path: PathBuf,
}

impl NewLabels {
    /// Reads a file of labels: JSON lines, CSV or TSV with the columns of a label file, or a `.txt` with
    /// one text a line. A label without an id is called by its text. Ids must differ and texts must be
    /// there.
    pub fn read(path: &Path, choice: TextChoice, observer: &dyn Observer) -> Result<Self> {
        let mut labels = Self {
            ids: Interner::default(),
            texts: Texts::new(),
            lines: Vec::new(),
            path: path.to_owned(),
        };
        if is_plain_text(path) {
            for_each_line(Source::open(path, observer)?, observer, |line, text| {
                match text.trim() {
                    "" => Ok(()), // A blank line is no label.
                    text => labels.push(line, None, text),
                }
            })?;
        } else {
            match FileKind::of(path, observer)? {
                FileKind::JsonLines => labels.read_json(choice, observer)?,
                FileKind::Table(separator) => table::for_each_record(
                    path,
                    separator,
                    observer,
                    &[(&["text", "title"], "a column `text`, and mostly `id`")],
                    |line, record| labels.push_record(line, record, choice),
                )?,
            }
        }
        check_row_count(path, labels.texts.len())?;
        Ok(labels)
    }

    fn read_json(&mut self, choice: TextChoice, observer: &dyn Observer) -> Result<()> {
        let path = self.path.clone();
        let mut record = Record::default();
        for_each_line(Source::open(&path, observer)?, observer, |line, text| {
            if text.trim().is_empty() {
                return Ok(());
            }
            record.read_json(&path, line, text)?;
            self.push_record(line, &record, choice)
        })
    }

    fn push_record(&mut self, line: u64, record: &Record, choice: TextChoice) -> Result<()> {
        let mut text = Texts::new();
        record.push_text(choice, &mut text);
        self.push(line, record.id.as_deref(), text.get(0))
    }

    fn push(&mut self, line: u64, id: Option<&str>, text: &str) -> Result<()> {
        let text = text.trim();
        if text.is_empty() {
            let place = Place::line(&self.path, line).field("text");
            return Err(InputError::new(InputErrorKind::NoText, place)
                .expected("a text: it is all that is known of a new label")
                .found(id.map_or_else(|| "none".to_owned(), |id| format!("none for `{id}`")))
                .help("give the label a text, or leave it out")
                .into());
        }
        check_row_count(&self.path, self.texts.len() + 1)?;
        let id = id.unwrap_or(text);
        lf::check_new_label_id(&mut self.ids, id, &self.path, line)?;
        self.texts.push(text);
        self.lines.push(line);
        Ok(())
    }

    /// The labels' ids.
    pub fn ids(&self) -> &Texts {
        self.ids.strings()
    }

    /// The labels' texts.
    pub fn texts(&self) -> &Texts {
        &self.texts
    }

    /// Where a label stands.
    pub fn place(&self, label: usize) -> Place {
        Place::line(&self.path, self.lines[label])
    }
}

/// Whether a file has one text a line, by its name.
fn is_plain_text(path: &Path) -> bool {
    let name = path.to_string_lossy().to_lowercase();
    let name = [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    name.ends_with(".txt")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;

    fn read(name: &str, text: &str) -> Result<NewLabels> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        NewLabels::read(&path, TextChoice::default(), &Silent)
    }

    #[test]
    fn every_kind_of_file_gives_the_same_labels() {
        for (name, text) in [
            ("a.jsonl", "{\"id\": \"red fox\", \"text\": \"red fox\"}\n\n{\"text\": \"a hare\"}\n"),
            ("a.csv", "id,text\nred fox,red fox\na hare,a hare\n"),
            ("a.txt", "red fox\n\n  a hare \n"),
        ] {
            let labels = read(name, text).unwrap();
            assert_eq!(labels.ids().iter().collect::<Vec<_>>(), ["red fox", "a hare"], "{name}");
            assert_eq!(labels.texts().iter().collect::<Vec<_>>(), ["red fox", "a hare"], "{name}");
            assert_eq!(labels.place(1).line, Some(3), "{name}");
        }
    }

    #[test]
    fn mistakes_name_their_line() {
        for (name, text, expected) in [
            (
                "a.jsonl",
                "{\"id\": \"x\", \"text\": \"y\"}\n{\"id\": \"x\", \"text\": \"z\"}\n",
                "line 2",
            ),
            ("a.jsonl", "{\"id\": \"x\", \"text\": \" \"}\n", "line 1, field `text`: no text"),
            ("a.csv", "id,text\nx,y\nz,\n", "none for `z`"),
            ("a.txt", "same\nsame\n", "line 2"),
            ("a.jsonl", "", "the file is empty"),
            ("a.csv", "id,words\nx,y\n", "a column `text`"),
        ] {
            let error = read(name, text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
