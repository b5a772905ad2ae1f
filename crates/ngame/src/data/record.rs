//! One row of a data file, whatever the format: an id, a title, a content, labels.
//!
//! A record is scratch space: readers fill the same one again and again, so that reading a million
//! rows allocates no million strings.

use std::path::Path;

use super::json;
use super::options::TextChoice;
use super::texts::Texts;
use crate::error::{Error, InputError, InputErrorKind, Place};

/// What one row says.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// `id` or `uid`.
    pub(crate) id: Option<String>,
    /// `title`, or `text` where there is no title.
    pub(crate) title: String,
    /// `content`, or `text` where there is a title.
    pub(crate) content: String,
    /// `labels` or `label`: ids or texts, in the user's words.
    pub(crate) label_names: Texts,
    /// `target_ind`: positions in the label file, unchecked.
    pub(crate) label_indices: Vec<i64>,
    /// `target_rel`: how relevant each of `label_indices` is; empty if the row does not say.
    pub(crate) relevances: Vec<f64>,
    /// The field being read, for error messages.
    pub(crate) field: &'static str,
    /// `text`, until [`Record::settle_text`] knows what it is.
    pub(crate) text: String,
}

impl Record {
    /// Forgets the row before, keeping the memory.
    pub(crate) fn clear(&mut self) {
        self.id = None;
        self.title.clear();
        self.content.clear();
        self.text.clear();
        self.label_names = Texts::new();
        self.label_indices.clear();
        self.relevances.clear();
        self.field = "";
    }

    /// Reads a JSON object from one line.
    pub(crate) fn read_json(&mut self, path: &Path, line: u64, text: &str) -> Result<(), Error> {
        self.clear();
        json::read_object(text, self).map_err(|error| self.json_error(path, line, text, &error))?;
        self.settle_text();
        Ok(())
    }

    /// Takes one cell of a table; `column` is a name from [`COLUMNS`].
    pub(crate) fn read_cell(
        &mut self,
        path: &Path,
        line: u64,
        column: &'static str,
        cell: &str,
    ) -> Result<(), Error> {
        match column {
            "id" => self.id = Some(cell.to_owned()),
            "title" => self.title.push_str(cell),
            "content" => self.content.push_str(cell),
            "text" => self.text.push_str(cell),
            "labels" => {
                // A label that holds a semicolon can be written in a JSON list.
                let trimmed = cell.trim();
                if trimmed.starts_with('[') && trimmed.ends_with(']') {
                    json::read_labels(trimmed, &mut self.label_names).map_err(|_| {
                        InputError::new(
                            InputErrorKind::WrongType,
                            Place::line(path, line).field("labels"),
                        )
                        .expected("labels separated by `;`, or a JSON list of labels")
                        .found(format!("`{cell}`"))
                        .help("write the list as in [\"one\", \"two\"], or use `;`")
                    })?;
                } else {
                    split_labels(cell, &mut self.label_names);
                }
            }
            _ => unreachable!("{column} is not in COLUMNS"),
        }
        Ok(())
    }

    /// Decides what `text` is, once the whole row has been read.
    pub(crate) fn settle_text(&mut self) {
        let place = if self.title.is_empty() { &mut self.title } else { &mut self.content };
        if !self.text.is_empty() && place.is_empty() {
            std::mem::swap(place, &mut self.text);
        }
    }

    /// Adds the chosen text to `texts`; where the chosen field is empty, the other one.
    pub(crate) fn push_text(&self, choice: TextChoice, texts: &mut Texts) {
        let (title, content) = (self.title.trim(), self.content.trim());
        let pieces = match choice {
            TextChoice::Both => [title, content],
            TextChoice::Title if title.is_empty() => [content, ""],
            TextChoice::Title => [title, ""],
            TextChoice::Content if content.is_empty() => [title, ""],
            TextChoice::Content => [content, ""],
        };
        texts.push_piece(pieces[0]);
        if !pieces[0].is_empty() && !pieces[1].is_empty() {
            texts.push_piece(" ");
        }
        texts.push_piece(pieces[1]);
        texts.finish_text();
    }

    fn json_error(&self, path: &Path, line: u64, text: &str, error: &serde_json::Error) -> Error {
        let message = error.to_string();
        // serde_json appends a position that counts lines inside the one line it was given.
        let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message);
        let place = Place::line(path, line);
        let help = if text.trim_start().starts_with('[') {
            "turn the list into lines: jq -c '.[]' FILE > NEW"
        } else {
            "mend or remove the line"
        };
        if error.classify() != serde_json::error::Category::Data {
            return InputError::new(InputErrorKind::InvalidJson, place)
                .expected("one JSON object a line")
                .found(format!("{message} at column {}", error.column()))
                .help(help)
                .into();
        }
        let found = message.split_once(", expected ").map_or(message, |(found, _)| found);
        let found =
            found.trim_start_matches("invalid type: ").trim_start_matches("invalid value: ");
        let place = if self.field.is_empty() { place } else { place.field(self.field) };
        InputError::new(InputErrorKind::WrongType, place)
            .expected(match self.field {
                "id" => "a string or a whole number",
                "title" | "content" | "text" => "a string",
                "labels" => "a list of labels, or one string with `;` between labels",
                "target_ind" => "a list of label indices (whole numbers)",
                "target_rel" => "a list of numbers",
                _ => "one JSON object a line",
            })
            .found(found)
            .help(help)
            .into()
    }
}

/// The column names of tables, each with the spellings it goes by.
pub(crate) const COLUMNS: [(&str, &[&str]); 5] = [
    ("id", &["id", "uid"]),
    ("title", &["title"]),
    ("content", &["content"]),
    ("text", &["text"]),
    ("labels", &["labels", "label"]),
];

/// Splits a cell at semicolons; empty pieces are no labels.
pub(crate) fn split_labels(cell: &str, names: &mut Texts) {
    for name in cell.split(';').map(str::trim).filter(|name| !name.is_empty()) {
        names.push(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(line: &str) -> Result<Record, String> {
        let mut record = Record::default();
        record
            .read_json(Path::new("f.jsonl"), 3, line)
            .map(|()| record)
            .map_err(|error| error.to_string())
    }

    fn text(record: &Record, choice: TextChoice) -> String {
        let mut texts = Texts::new();
        record.push_text(choice, &mut texts);
        texts.get(0).to_owned()
    }

    #[test]
    fn every_field_is_read_and_others_are_passed_over() {
        let record = json(
            r#"{"uid": 7, "title": "a\u00e4", "content": null, "extra": {"title": [1]},
                "target_ind": [3, 1], "target_rel": [1.0, 0], "labels": ["x", 5, " "]}"#,
        )
        .unwrap();
        assert_eq!(record.id.as_deref(), Some("7"));
        assert_eq!((&*record.title, &*record.content), ("aä", ""));
        assert_eq!((record.label_indices, record.relevances), (vec![3, 1], vec![1.0, 0.0]));
        assert_eq!(record.label_names.iter().collect::<Vec<_>>(), ["x", "5"]);
    }

    #[test]
    fn text_is_a_title_alone_and_a_content_beside_a_title() {
        let alone = json(r#"{"text": "t"}"#).unwrap();
        assert_eq!((&*alone.title, &*alone.content), ("t", ""));
        let beside = json(r#"{"text": "t", "title": "a"}"#).unwrap();
        assert_eq!((&*beside.title, &*beside.content), ("a", "t"));
    }

    #[test]
    fn the_chosen_text_falls_back_to_the_other_field() {
        let both = json(r#"{"title": " a ", "content": "b"}"#).unwrap();
        assert_eq!(text(&both, TextChoice::Both), "a b");
        assert_eq!(text(&both, TextChoice::Title), "a");
        assert_eq!(text(&both, TextChoice::Content), "b");
        let title = json(r#"{"title": "a", "content": ""}"#).unwrap();
        assert_eq!(text(&title, TextChoice::Both), "a");
        assert_eq!(text(&title, TextChoice::Content), "a");
    }

    #[test]
    fn labels_come_as_lists_and_as_strings() {
        let names = |line| json(line).unwrap().label_names.iter().collect::<Vec<_>>().join("|");
        assert_eq!(names(r#"{"labels": "a; b;;c "}"#), "a|b|c");
        assert_eq!(names(r#"{"label": 4}"#), "4");
        assert_eq!(names(r#"{"labels": null}"#), "");
        let mut record = Record::default();
        record.read_cell(Path::new("f.csv"), 2, "labels", r#"["a;b", "c"]"#).unwrap();
        assert_eq!(record.label_names.iter().collect::<Vec<_>>(), ["a;b", "c"]);
        record.clear();
        record.read_cell(Path::new("f.csv"), 2, "labels", "[draft] a;b").unwrap();
        assert_eq!(record.label_names.iter().collect::<Vec<_>>(), ["[draft] a", "b"]);
        let error = record.read_cell(Path::new("f.csv"), 2, "labels", "[a]").unwrap_err();
        assert!(error.to_string().contains("or a JSON list of labels"), "{error}");
    }

    #[test]
    fn errors_name_the_field_and_what_was_found() {
        for (line, expected) in [
            (
                r#"{"title": 5}"#,
                "line 3, field `title`: wrong type of value\n  expected: a string\n  found:    integer `5`",
            ),
            (r#"{"target_ind": ["a"]}"#, "found:    string \"a\""),
            (r#"{"target_ind": [1.5]}"#, "found:    floating point `1.5`"),
            (r#"{"labels": [[1]]}"#, "field `labels`"),
            (
                r#"{"title": "a""#,
                "line 3: not valid JSON\n  expected: one JSON object a line\n  found:    EOF while parsing an object",
            ),
            (r#"{"title": "a"} x"#, "trailing characters"),
            (r#"[{"title": "a"}]"#, "expected: one JSON object a line\n  found:    sequence"),
            ("17", "found:    integer `17`"),
        ] {
            let error = json(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
