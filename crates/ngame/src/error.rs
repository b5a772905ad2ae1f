//! What can go wrong, said so that a user can mend it.
//!
//! A user's mistake is an [`Error`]: where it is (file, line, field), what was expected, what was
//! found and what to do. A programmer's mistake is an assertion. Nothing in between.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can fail.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused to read or write a file or folder.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was being done, as a verb: "read", "create".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error(transparent)]
    Input(Box<InputError>),
    /// A value given as an option makes no sense.
    #[error("{option}: expected {expected}, found {found}")]
    Option {
        /// The option's name, as the user knows it.
        option: &'static str,
        /// What values it takes.
        expected: String,
        /// The value given.
        found: String,
    },
    /// A setting of a run that does not exist or makes no sense.
    #[error("{setting}: {problem}")]
    Setting {
        /// The setting, as it is written: `loss.margin`.
        setting: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// Training went astray.
    #[error(
        "training went astray in epoch {epoch}, step {step}: {found}\n  to do:    lower \
         optimiser.learning_rate or raise optimiser.warmup; the checkpoint before this step is kept"
    )]
    Diverged {
        /// The epoch, counted from 1.
        epoch: usize,
        /// The step of the run, counted from 1.
        step: u64,
        /// What was found: a loss or a gradient that is not finite.
        found: String,
    },
    /// The observer asked to stop (see [`crate::progress::Observer::cancelled`]).
    #[error("stopped at your request")]
    Cancelled,
}

impl Error {
    /// The operating system's answer to `action` on `path`.
    pub fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { action, path: path.into(), source }
    }

    /// The kind of input error this is, if it is one.
    pub fn input_kind(&self) -> Option<InputErrorKind> {
        match self {
            Self::Input(error) => Some(error.kind),
            _ => None,
        }
    }
}

impl From<InputError> for Error {
    fn from(error: InputError) -> Self {
        Self::Input(Box::new(error))
    }
}

/// The situations an [`InputError`] describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InputErrorKind {
    /// A file that must be there is not.
    MissingFile,
    /// No format was recognised in a folder or file, or the recognised one cannot be used.
    UnknownFormat,
    /// A file without a single row.
    EmptyFile,
    /// A compressed file that ends early or is damaged.
    DamagedFile,
    /// Bytes that are not UTF-8.
    InvalidUtf8,
    /// A line that is not JSON.
    InvalidJson,
    /// A field that is not there.
    MissingField,
    /// A field, or a whole row, of another type or shape than expected.
    WrongType,
    /// A label that is not a number, is negative, or lies beyond the last label.
    LabelOutOfRange,
    /// A label that names no known label.
    UnknownLabel,
    /// Two files, or a header and its rows, that disagree about a count.
    CountMismatch,
    /// A filter pair that points outside the data.
    FilterOutOfRange,
    /// Two labels of the same id.
    DuplicateLabelId,
    /// Not one label in the whole training set.
    NoLabels,
    /// Not one text in the whole training set.
    NoText,
    /// More rows, labels or tokens than this build can count.
    TooLarge,
    /// Something understood that is not done here, such as an encoder of another kind.
    Unsupported,
    /// Something stands already where something would be written.
    AlreadyThere,
}

impl InputErrorKind {
    /// The situation in a few words.
    fn summary(self) -> &'static str {
        match self {
            Self::MissingFile => "file not found",
            Self::UnknownFormat => "unknown format",
            Self::EmptyFile => "the file is empty",
            Self::DamagedFile => "the file is damaged",
            Self::InvalidUtf8 => "not UTF-8 text",
            Self::InvalidJson => "not valid JSON",
            Self::MissingField => "missing field",
            Self::WrongType => "wrong type of value",
            Self::LabelOutOfRange => "label out of range",
            Self::UnknownLabel => "unknown label",
            Self::CountMismatch => "counts disagree",
            Self::FilterOutOfRange => "filter pair out of range",
            Self::DuplicateLabelId => "duplicate label id",
            Self::NoLabels => "no labels at all",
            Self::NoText => "no text at all",
            Self::TooLarge => "too large",
            Self::Unsupported => "not supported",
            Self::AlreadyThere => "there already",
        }
    }
}

/// A place in a user's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file or folder.
    pub path: PathBuf,
    /// The line, counted from 1.
    pub line: Option<u64>,
    /// The field or column.
    pub field: Option<String>,
}

impl Place {
    /// A whole file or folder.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), line: None, field: None }
    }

    /// A line of a file, counted from 1.
    pub fn line(path: &Path, line: u64) -> Self {
        Self { path: path.to_owned(), line: Some(line), field: None }
    }

    /// The same place, narrowed to one field.
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some(field) = &self.field {
            write!(f, ", field `{field}`")?;
        }
        Ok(())
    }
}

/// A file that does not hold what it should: where, expected, found, what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// The situation, for code that wants to tell them apart.
    pub kind: InputErrorKind,
    /// Where it is.
    pub place: Place,
    /// What should stand there.
    pub expected: String,
    /// What stands there.
    pub found: String,
    /// What the user can do about it.
    pub help: String,
}

impl InputError {
    /// An error of this kind at this place; its other parts are added by the methods below.
    pub fn new(kind: InputErrorKind, place: Place) -> Self {
        Self { kind, place, expected: String::new(), found: String::new(), help: String::new() }
    }

    /// What should stand there.
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = expected.into();
        self
    }

    /// What stands there. Long values are cut: an error message is no place for a whole document.
    pub fn found(mut self, found: impl Into<String>) -> Self {
        self.found = shorten(&found.into());
        self
    }

    /// What the user can do about it.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
}

impl std::error::Error for InputError {}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.kind.summary())?;
        for (name, value) in
            [("expected:", &self.expected), ("found:", &self.found), ("to do:", &self.help)]
        {
            if !value.is_empty() {
                write!(f, "\n  {name:<9} {value}")?;
            }
        }
        Ok(())
    }
}

/// Cuts a quoted value to what fits a terminal line or two, and hides control characters.
fn shorten(value: &str) -> String {
    const MOST: usize = 160;
    let mut short = String::new();
    for (n, c) in value.chars().enumerate() {
        if n == MOST {
            short.push('…');
            break;
        }
        if c.is_control() {
            short.extend(c.escape_default());
        } else {
            short.push(c);
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_error_reads_from_place_to_remedy() {
        let place = Place::line(Path::new("trn.json"), 17).field("target_ind");
        let error = InputError::new(InputErrorKind::LabelOutOfRange, place)
            .expected("a whole number from 0 to 9")
            .found("12")
            .help("remove the label");
        assert_eq!(
            Error::from(error).to_string(),
            "trn.json, line 17, field `target_ind`: label out of range\n  \
             expected: a whole number from 0 to 9\n  found:    12\n  to do:    remove the label"
        );
    }

    #[test]
    fn found_values_are_cut_and_escaped() {
        let place = Place::file("x");
        let error = InputError::new(InputErrorKind::WrongType, place).found("é\u{1b}".repeat(1000));
        assert!(error.found.starts_with("é\\u{1b}é"));
        assert!(error.found.ends_with('…'));
        assert!(error.found.len() < 1000);
    }
}
