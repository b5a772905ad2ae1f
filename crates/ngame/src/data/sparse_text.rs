//! Sparse matrices as text: a header "rows columns", then one row a line of `column:value` pairs.
//!
//! An empty line is an empty row. This is how the XC repository writes label matrices
//! (`trn_X_Y.txt`) and how most systems of the field write predictions.

use std::path::Path;
use std::sync::OnceLock;

use super::csr::ScoredCsr;
use super::lines::parse_blocks;
use super::rows::{check_label, count_mismatch, empty_file};
use super::source::Source;
use crate::error::{Error, InputError, InputErrorKind, Place, Result};
use crate::progress::Observer;

/// What the first line says.
#[derive(Clone, Copy)]
struct Header {
    n_rows: u64,
    n_columns: u32,
}

/// Reads a sparse matrix; also returns how many columns stood twice in a row.
pub(crate) fn read(path: &Path, observer: &dyn Observer) -> Result<(ScoredCsr, u64)> {
    let header = OnceLock::new();
    let mut matrix = None;
    let mut repeats = 0;
    parse_blocks(
        Source::open(path, observer)?,
        observer,
        |block| {
            let mut lines = block.lines();
            // The first block is parsed before all others, so they find the header read.
            let header = match header.get() {
                Some(header) => *header,
                None => {
                    let read = read_header(path, lines.next().map_or("", |(_, text)| text))?;
                    *header.get_or_init(|| read)
                }
            };
            read_rows(path, lines, header)
        },
        |rows| {
            let Some(header) = header.get() else { return Ok(()) };
            let matrix = matrix.get_or_insert_with(|| ScoredCsr::new(header.n_columns));
            // An empty line at the end is a last row only where the header counts it.
            let surplus = (matrix.n_rows() + rows.matrix.n_rows()) as u64 > header.n_rows;
            if surplus && matrix.n_rows() as u64 + rows.n_until_last_pair > header.n_rows {
                return Err(row_count_mismatch(path, header, "more than that"));
            }
            matrix.append(&rows.matrix);
            repeats += rows.repeats;
            Ok(())
        },
    )?;
    let (Some(header), Some(mut matrix)) = (header.get(), matrix) else {
        return Err(empty_file(path, "a header `rows columns`"));
    };
    if (matrix.n_rows() as u64) < header.n_rows {
        return Err(row_count_mismatch(path, header, &matrix.n_rows().to_string()));
    }
    matrix.truncate(header.n_rows as usize);
    Ok((matrix, repeats))
}

fn read_header(path: &Path, text: &str) -> Result<Header> {
    let place = Place::line(path, 1);
    let numbers: Vec<Option<u64>> =
        text.split_ascii_whitespace().map(|field| field.parse().ok()).collect();
    match numbers[..] {
        [Some(n_rows), Some(n_columns)] => {
            let (Ok(_), Ok(n_columns)) = (u32::try_from(n_rows), u32::try_from(n_columns)) else {
                return Err(InputError::new(InputErrorKind::TooLarge, place)
                    .expected(format!("at most {} rows and columns", u32::MAX))
                    .found(text)
                    .help("split the matrix")
                    .into());
            };
            Ok(Header { n_rows, n_columns })
        }
        [Some(_), Some(_), Some(_)] => Err(InputError::new(InputErrorKind::UnknownFormat, place)
            .expected("a header of two numbers: rows columns")
            .found(format!("`{text}`, the header of a bag-of-words file (points features labels)"))
            .help("ngame works on texts: use the data set's raw text version")
            .into()),
        _ => Err(InputError::new(InputErrorKind::WrongType, place)
            .expected("a header of two numbers: rows columns")
            .found(format!("`{text}`"))
            .help("write the number of rows and of columns on the first line")
            .into()),
    }
}

struct ParsedRows {
    matrix: ScoredCsr,
    repeats: u64,
    /// How many rows there are up to the last one that is not empty.
    n_until_last_pair: u64,
}

fn read_rows<'a>(
    path: &Path,
    lines: impl Iterator<Item = (u64, &'a str)>,
    header: Header,
) -> Result<ParsedRows> {
    let mut matrix = ScoredCsr::new(header.n_columns);
    let (mut repeats, mut n_until_last_pair) = (0, 0);
    let mut row = Vec::new();
    for (line, text) in lines {
        row.clear();
        for pair in text.split_ascii_whitespace() {
            let (column, value) = split_pair(pair).ok_or_else(|| malformed(path, line, pair))?;
            let column = check_label(column, header.n_columns, || Place::line(path, line))?;
            row.push((column, value));
        }
        repeats += matrix.push_row(&mut row) as u64;
        if !row.is_empty() {
            n_until_last_pair = matrix.n_rows() as u64;
        }
    }
    Ok(ParsedRows { matrix, repeats, n_until_last_pair })
}

/// `column:value` as numbers; a column beyond every matrix is left to the range check.
fn split_pair(pair: &str) -> Option<(i64, f32)> {
    let (column, value) = pair.split_once(':')?;
    Some((column.parse().ok()?, value.parse().ok()?))
}

fn malformed(path: &Path, line: u64, pair: &str) -> Error {
    InputError::new(InputErrorKind::WrongType, Place::line(path, line))
        .expected("pairs `label:value`, a whole number and a number")
        .found(format!("`{pair}`"))
        .help("mend the line")
        .into()
}

fn row_count_mismatch(path: &Path, header: &Header, found: &str) -> Error {
    count_mismatch(
        Place::file(path),
        format!("{} rows after the header, as it says", header.n_rows),
        found.to_owned(),
    )
}
