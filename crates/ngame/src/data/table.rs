//! Tables with a header: CSV as spreadsheets write it, TSV as everybody else does.

use std::io::Read;
use std::path::Path;

use super::lines::utf8_error;
use super::record::{COLUMNS, Record};
use super::source::Source;
use crate::error::{Error, InputError, InputErrorKind, Place, Result};
use crate::progress::Observer;

/// What stands between two cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    /// CSV, quoted as in RFC 4180.
    Comma,
    /// TSV. A cell cannot hold a tab or a line break, so quotes are needed for nothing; cells that
    /// a program quoted all the same are unquoted.
    Tab,
}

/// Calls `each` with the line and cells of every row after the header; the header's cells go
/// through `check_header` first.
pub(crate) fn for_each_row(
    path: &Path,
    separator: Separator,
    observer: &dyn Observer,
    check_header: impl FnOnce(&[&str]) -> Result<()>,
    mut each: impl FnMut(u64, &[&str]) -> Result<()>,
) -> Result<()> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .terminator(csv::Terminator::Any(b'\n'))
        .delimiter(match separator {
            Separator::Comma => b',',
            Separator::Tab => b'\t',
        })
        .quoting(separator == Separator::Comma)
        .from_reader(Lines::new(Source::open(path, observer)?));
    let mut record = csv::ByteRecord::new();
    let mut n_columns = None;
    let mut check_header = Some(check_header);
    let mut last = (1, 0);
    for n_rows in 0u64.. {
        let read = reader.read_byte_record(&mut record);
        if let Some(error) = reader.get_mut().error.take() {
            return Err(error);
        }
        if !read.map_err(|error| damaged(path, &error))? {
            break;
        }
        if n_rows.is_multiple_of(4096) && observer.cancelled() {
            return Err(Error::Cancelled);
        }
        // Every row ends with a line break that has been read by now, and quoted cells may hold
        // more of them. (The row's own position is that of blank lines before it.)
        let n_inside = memchr::memchr_iter(b'\n', record.as_slice()).count() as u64;
        let line = reader.position().line().saturating_sub(1 + n_inside);
        last = (line, n_inside);
        let mut cells = cells(path, line, &record)?;
        let unquoted: Vec<String>;
        if separator == Separator::Tab {
            unquoted = cells.iter().map(|cell| unquote(cell)).collect();
            cells = unquoted.iter().map(String::as_str).collect();
        }
        match n_columns {
            None => {
                n_columns = Some(cells.len());
                if let Some(check_header) = check_header.take() {
                    check_header(&cells)?;
                }
            }
            Some(n_columns) if cells.len() != n_columns => {
                return Err(wrong_width(path, line, separator, n_columns, cells.len()));
            }
            Some(_) => each(line, &cells)?,
        }
    }
    // A quote that is never closed swallows every row after it; nothing else would tell.
    let (line, n_inside) = last;
    if separator == Separator::Comma && n_inside > 0 && reader.get_ref().n_quotes % 2 == 1 {
        // The swallowed row has no line break of its own at its end.
        return Err(InputError::new(InputErrorKind::WrongType, Place::line(path, line + 1))
            .expected("every quoted cell to be closed by a quote")
            .found("a row that begins here and runs to the end of the file")
            .help("close the quote, or write a quote inside a quoted cell twice")
            .into());
    }
    Ok(())
}

fn wrong_width(
    path: &Path,
    line: u64,
    separator: Separator,
    n_columns: usize,
    n_found: usize,
) -> Error {
    InputError::new(InputErrorKind::CountMismatch, Place::line(path, line))
        .expected(format!("{n_columns} columns, as in the header"))
        .found(format!("{n_found} columns"))
        .help(match separator {
            Separator::Comma => "put a cell that holds a comma or a quote into \"quotes\"",
            Separator::Tab => "replace tabs and line breaks inside cells by spaces",
        })
        .into()
}

/// Reads every row of a table into a record; `needed` are groups of columns of which the header
/// must have one each, and what to call them.
pub(crate) fn for_each_record(
    path: &Path,
    separator: Separator,
    observer: &dyn Observer,
    needed: &[(&[&str], &str)],
    mut each: impl FnMut(u64, &mut Record) -> Result<()>,
) -> Result<()> {
    let columns = std::cell::OnceCell::new();
    let mut record = Record::default();
    for_each_row(
        path,
        separator,
        observer,
        |header| {
            let known = recognise_columns(path, header)?;
            for (names, expected) in needed {
                if !known.iter().any(|column| names.contains(column)) {
                    return Err(missing_column(path, header, expected));
                }
            }
            columns.get_or_init(|| known);
            Ok(())
        },
        |line, cells| {
            record.clear();
            for (&column, cell) in columns.get().into_iter().flatten().zip(cells) {
                if !column.is_empty() {
                    record.read_cell(path, line, column, cell)?;
                }
            }
            record.settle_text();
            each(line, &mut record)
        },
    )
}

fn missing_column(path: &Path, header: &[&str], expected: &str) -> Error {
    let help = match header {
        [cell] if cell.contains(';') => {
            "separate columns by commas, or by tabs in a .tsv file; `;` separates labels"
        }
        _ => "name the columns on the first line, such as: text,labels",
    };
    InputError::new(InputErrorKind::MissingField, Place::line(path, 1))
        .expected(expected)
        .found(format!("`{}`", header.join(", ")))
        .help(help)
        .into()
}

/// Our name of each column; "" for columns that are not ours.
fn recognise_columns(path: &Path, header: &[&str]) -> Result<Vec<&'static str>> {
    let mut columns: Vec<&'static str> = Vec::with_capacity(header.len());
    for cell in header {
        let name = cell.trim().to_lowercase();
        let column = COLUMNS
            .iter()
            .find(|(_, spellings)| spellings.contains(&&*name))
            .map_or("", |&(column, _)| column);
        if !column.is_empty() && columns.contains(&column) {
            return Err(InputError::new(InputErrorKind::WrongType, Place::line(path, 1))
                .expected(format!("one column `{column}`"))
                .found("two of them")
                .help("rename one of the columns")
                .into());
        }
        columns.push(column);
    }
    Ok(columns)
}

fn cells<'a>(path: &Path, line: u64, record: &'a csv::ByteRecord) -> Result<Vec<&'a str>> {
    record
        .iter()
        .map(|cell| {
            std::str::from_utf8(cell).map_err(|error| {
                let at = error.valid_up_to();
                utf8_error(Place::line(path, line), cell.get(at).copied(), at + 1)
            })
        })
        .collect()
}

/// Takes the quotes off a cell that is quoted through and through.
fn unquote(cell: &str) -> String {
    let inner = cell.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match inner {
        Some(inner) if !inner.replace("\"\"", "").contains('"') => inner.replace("\"\"", "\""),
        _ => cell.to_owned(),
    }
}

fn damaged(path: &Path, error: &csv::Error) -> Error {
    InputError::new(InputErrorKind::DamagedFile, Place::file(path))
        .expected("a table with a header")
        .found(error.to_string())
        .help("mend the file")
        .into()
}

/// The source with every line ending in `\n`, the last one too; counts the quotes that pass, and
/// keeps our own error aside from `std::io`'s.
struct Lines<'a> {
    source: Source<'a>,
    n_quotes: u64,
    /// A `\r` that came last and may be the beginning of `\r\n`.
    pending_return: bool,
    last_byte: u8,
    error: Option<Error>,
}

impl<'a> Lines<'a> {
    fn new(source: Source<'a>) -> Self {
        // An empty file has no line, so none is missing its end.
        Self { source, n_quotes: 0, pending_return: false, last_byte: b'\n', error: None }
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let begin = usize::from(std::mem::take(&mut self.pending_return));
        buffer[..begin].fill(b'\r');
        let n_read = self.source.fill(&mut buffer[begin..])?;
        let ended = begin + n_read < buffer.len();
        let mut n_filled = begin + n_read;
        if !ended && buffer[n_filled - 1] == b'\r' {
            self.pending_return = true;
            n_filled -= 1;
        }
        let mut kept = 0;
        for index in 0..n_filled {
            if buffer[index] != b'\r' || buffer[..n_filled].get(index + 1) != Some(&b'\n') {
                buffer[kept] = buffer[index];
                kept += 1;
            }
        }
        if let Some(&last) = buffer[..kept].last() {
            self.last_byte = last;
        }
        if ended && self.last_byte != b'\n' {
            // There is room, because the source ended before the buffer did.
            buffer[kept] = b'\n';
            kept += 1;
            self.last_byte = b'\n';
        }
        self.n_quotes += memchr::memchr_iter(b'"', &buffer[..kept]).count() as u64;
        Ok(kept)
    }
}

impl Read for Lines<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        assert!(buffer.len() > 1, "the csv crate reads by the thousand bytes");
        self.fill(buffer).map_err(|error| {
            self.error = Some(error);
            std::io::ErrorKind::InvalidData.into()
        })
    }
}
