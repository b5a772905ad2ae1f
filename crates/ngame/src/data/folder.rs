//! Finding a data set's files by the names they go by.

use std::path::{Path, PathBuf};

use crate::error::{Error, InputError, InputErrorKind, Place};

/// The first file in a folder named `stem` + `ending`, compressed or not; stems first.
pub(crate) fn find(folder: &Path, stems: &[&str], endings: &[&str]) -> Option<PathBuf> {
    for stem in stems {
        for ending in endings {
            for compression in ["", ".gz", ".zst"] {
                let path = folder.join(format!("{stem}{ending}{compression}"));
                if path.is_file() {
                    return Some(path);
                }
            }
        }
    }
    None
}

/// A file the format needs is not in the folder.
pub(crate) fn missing(folder: &Path, name: &str, expected: &str, help: &str) -> Error {
    InputError::new(InputErrorKind::MissingFile, Place::file(folder.join(name)))
        .expected(expected)
        .found(listing(folder))
        .help(help)
        .into()
}

/// What stands in a folder, for messages: the first few names in order.
pub(crate) fn listing(folder: &Path) -> String {
    const MOST: usize = 8;
    let Ok(entries) = folder.read_dir() else { return "a folder that cannot be read".to_owned() };
    let mut names: Vec<_> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    match names.len() {
        0 => "an empty folder".to_owned(),
        n if n > MOST => format!("{} and {} more", names[..MOST].join(", "), n - MOST),
        _ => names.join(", "),
    }
}
