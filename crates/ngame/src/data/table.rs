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
    let source = Source::open(path, observer)?;
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(match separator {
            Separator::Comma => b',',
            Separator::Tab => b'\t',
        })
        .quoting(separator == Separator::Comma)
        .from_reader(QuoteCounter { source, n_quotes: 0, error: None });
    let mut record = csv::ByteRecord::new();
    let mut n_columns = None;
    let mut check_header = Some(check_header);
    let mut last_row_spans_lines = false;
    let mut last_line = 1;
    let mut n_rows = 0u64;
    loop {
        let read = reader.read_byte_record(&mut record);
        if let Some(error) = reader.get_mut().error.take() {
            return Err(error);
        }
        if !read.map_err(|error| damaged(path, &error))? {
            break;
        }
        let line = record.position().map_or(0, csv::Position::line);
        last_row_spans_lines = reader.position().line() > line + 1;
        last_line = line;
        n_rows += 1;
        if n_rows.is_multiple_of(4096) && observer.cancelled() {
            return Err(Error::Cancelled);
        }
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
                return Err(InputError::new(
                    InputErrorKind::CountMismatch,
                    Place::line(path, line),
                )
                .expected(format!("{n_columns} columns, as in the header"))
                .found(format!("{} columns", cells.len()))
                .help(match separator {
                    Separator::Comma => "put a cell that holds a comma or a quote into \"quotes\"",
                    Separator::Tab => "replace tabs and line breaks inside cells by spaces",
                })
                .into());
            }
            Some(_) => each(line, &cells)?,
        }
    }
    // A quote that is never closed swallows every row after it; nothing else would tell.
    if reader.get_ref().n_quotes % 2 == 1 && last_row_spans_lines && separator == Separator::Comma {
        return Err(InputError::new(InputErrorKind::WrongType, Place::line(path, last_line))
            .expected("every quoted cell to be closed by a quote")
            .found("a row that begins here and runs to the end of the file")
            .help("close the quote, or write a quote inside a quoted cell twice")
            .into());
    }
    Ok(())
}

/// Reads every row of a table into a record.
pub(crate) fn for_each_record(
    path: &Path,
    separator: Separator,
    observer: &dyn Observer,
    check_columns: impl FnOnce(&[&'static str]) -> Result<()>,
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
            check_columns(&known)?;
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

/// Counts the quotes that pass, and keeps our own error aside from `std::io`'s.
struct QuoteCounter<'a> {
    source: Source<'a>,
    n_quotes: u64,
    error: Option<Error>,
}

impl Read for QuoteCounter<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.source.fill(buffer) {
            Ok(n) => {
                self.n_quotes += memchr::memchr_iter(b'"', &buffer[..n]).count() as u64;
                Ok(n)
            }
            Err(error) => {
                self.error = Some(error);
                Err(std::io::ErrorKind::InvalidData.into())
            }
        }
    }
}
