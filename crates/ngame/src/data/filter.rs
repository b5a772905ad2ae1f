//! Filter files: pairs that are removed from predictions before they are ranked.
//!
//! In product-to-product and page-to-page data a test point is often a label too, and would be its
//! own best answer. The XC repository ships such pairs as lines "point label", both counted from 0.

use std::path::Path;

use super::csr::Csr;
use super::folder;
use super::lines::for_each_line;
use super::source::Source;
use crate::error::{Error, InputError, InputErrorKind, Place, Result};
use crate::progress::Observer;

/// Reads the filter pairs of a split where the folder has some; `long` is the split's name in one
/// spelling ("test"), `short` in the other ("tst").
pub(crate) fn find_and_read(
    data: &Path,
    [long, short]: [&str; 2],
    n_points: usize,
    n_labels: u32,
    observer: &dyn Observer,
) -> Result<Csr> {
    let stems = [
        format!("filter_labels_{long}"),
        format!("filter_labels_{short}"),
        format!("{short}_filter_labels"),
        format!("{long}_filter_labels"),
    ];
    let stems: Vec<&str> = stems.iter().map(String::as_str).collect();
    match folder::find(data, &stems, &[".txt"]) {
        Some(path) => read_filter(&path, n_points, n_labels, observer),
        None => Ok(Csr::empty(n_points, n_labels)),
    }
}

/// Reads filter pairs: lines "point label", both counted from 0, no header. An empty file is fine.
pub fn read_filter(
    path: &Path,
    n_points: usize,
    n_labels: u32,
    observer: &dyn Observer,
) -> Result<Csr> {
    let mut pairs = Vec::new();
    for_each_line(Source::open(path, observer)?, observer, |line, text| {
        let mut fields = text.split_ascii_whitespace();
        let (point, label) = match (fields.next(), fields.next(), fields.next()) {
            (None, ..) => return Ok(()),
            (Some(point), Some(label), None) => (point, label),
            _ => return Err(malformed(path, line, text)),
        };
        let (Ok(point), Ok(label)) = (point.parse::<i128>(), label.parse::<i128>()) else {
            return Err(malformed(path, line, text));
        };
        let check = |name: &str, value: i128, end: usize| {
            u32::try_from(value).ok().filter(|&value| (value as usize) < end).ok_or_else(|| {
                Error::from(
                    InputError::new(InputErrorKind::FilterOutOfRange, Place::line(path, line))
                        .expected(format!("a {name} below {end}"))
                        .found(format!("{name} {value}"))
                        .help("use the filter file that belongs to this split of the data set"),
                )
            })
        };
        pairs.push((check("point", point, n_points)?, check("label", label, n_labels as usize)?));
        Ok(())
    })?;
    Ok(Csr::from_pairs(n_points, n_labels, pairs))
}

fn malformed(path: &Path, line: u64, text: &str) -> Error {
    InputError::new(InputErrorKind::WrongType, Place::line(path, line))
        .expected("two whole numbers: point label")
        .found(format!("`{text}`"))
        .help("mend or remove the line")
        .into()
}
