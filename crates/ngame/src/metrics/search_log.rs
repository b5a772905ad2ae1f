//! Reading the log of an A/B test: JSON lines, CSV or TSV.
//!
//! Two shapes are read, told apart by their columns. One row a search: `arm`, `ads`, `clicks`,
//! the last two as numbers or as lists. One row an event: `arm`, `search` (an id), `event`
//! (`search`, `ad` or `click`). Without `arm`, everything is one arm.

use std::path::Path;

use serde_json::{Map, Value};

use super::online::{Search, SearchLog};
use crate::data::{FileKind, Interner, Source, for_each_line, for_each_row};
use crate::error::{Error, InputError, InputErrorKind, Place, Result};
use crate::progress::Observer;

/// The arm of searches that name none.
const ONLY_ARM: &str = "all";

impl SearchLog {
    /// Reads a log.
    pub fn read(path: &Path, observer: &dyn Observer) -> Result<Self> {
        let mut builder = LogBuilder::default();
        match FileKind::of(path, observer)? {
            FileKind::JsonLines => {
                for_each_line(Source::open(path, observer)?, observer, |line, text| {
                    if text.trim().is_empty() {
                        return Ok(());
                    }
                    let row: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
                        InputError::new(InputErrorKind::InvalidJson, Place::line(path, line))
                            .expected("one JSON object a line")
                            .found(error.to_string())
                            .help("mend or remove the line")
                    })?;
                    builder.add(path, line, |column| row.get(column).cloned())
                })?;
            }
            FileKind::Table(separator) => {
                let columns = std::cell::OnceCell::new();
                for_each_row(
                    path,
                    separator,
                    observer,
                    |header| {
                        columns.get_or_init(|| {
                            header.iter().map(|name| name.trim().to_lowercase()).collect::<Vec<_>>()
                        });
                        Ok(())
                    },
                    |line, cells| {
                        let columns = columns.get().into_iter().flatten();
                        let row: Vec<_> = columns.zip(cells).collect();
                        builder.add(path, line, |column| {
                            let cell = row.iter().find(|(name, _)| *name == column)?.1;
                            Some(Value::String((*cell).to_owned()))
                        })
                    },
                )?;
            }
        }
        builder.finish(path)
    }
}

/// Searches as their rows or events come in.
#[derive(Default)]
struct LogBuilder {
    arms: Interner,
    /// Searches by arm and id, for logs of events.
    searches_by_id: Interner,
    searches: Vec<Search>,
}

impl LogBuilder {
    fn add(
        &mut self,
        path: &Path,
        line: u64,
        column: impl Fn(&str) -> Option<Value>,
    ) -> Result<()> {
        let arm_name = column("arm").and_then(text).unwrap_or_else(|| ONLY_ARM.to_owned());
        let (arm, _) = self.arms.intern(&arm_name);
        if let Some(event) = column("event") {
            let event = text(event).unwrap_or_default();
            let id =
                column("search").and_then(text).ok_or_else(|| missing(path, line, "search"))?;
            // No arm's name holds a NUL, so that no two searches share a key.
            let (index, is_new) =
                self.searches_by_id.intern(&format!("{}\0{id}", arm_name.replace('\0', " ")));
            if is_new {
                self.searches.push(Search { arm, ads: 0, clicks: 0 });
            }
            let search = &mut self.searches[index as usize];
            match event.as_str() {
                "search" => {}
                "ad" | "impression" => search.ads = search.ads.saturating_add(1),
                "click" => search.clicks = search.clicks.saturating_add(1),
                _ => {
                    return Err(wrong(path, line, "event", "search, ad or click", &event));
                }
            }
            return Ok(());
        }
        let count = |name: &str| {
            let value = column(name).ok_or_else(|| missing(path, line, name))?;
            number(&value)
                .ok_or_else(|| wrong(path, line, name, "a number or a list", &value.to_string()))
        };
        let (ads, clicks) = (count("ads")?, count("clicks")?);
        self.searches.push(Search { arm, ads, clicks });
        Ok(())
    }

    fn finish(self, path: &Path) -> Result<SearchLog> {
        if self.searches.is_empty() {
            return Err(InputError::new(InputErrorKind::EmptyFile, Place::file(path))
                .expected("at least one search")
                .found("none")
                .help("check that the file was written whole")
                .into());
        }
        let arms = self.arms.into_strings().iter().map(str::to_owned).collect();
        Ok(SearchLog { arms, searches: self.searches })
    }
}

/// A name: text as it is, numbers as they are written, nothing where nothing stands.
fn text(value: Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

/// A count, or how many things a list holds; empty cells hold none.
fn number(value: &Value) -> Option<u32> {
    match value {
        Value::Null => Some(0),
        Value::Bool(one) => Some(u32::from(*one)),
        Value::Number(number) => u32::try_from(number.as_u64()?).ok(),
        Value::Array(list) => u32::try_from(list.len()).ok(),
        Value::String(cell) => {
            let cell = cell.trim();
            if cell.starts_with(|c: char| c.is_ascii_digit() || c == '-') && !cell.contains(';') {
                return cell.parse().ok();
            }
            u32::try_from(cell.split(';').filter(|item| !item.trim().is_empty()).count()).ok()
        }
        Value::Object(_) => None,
    }
}

fn missing(path: &Path, line: u64, column: &str) -> Error {
    InputError::new(InputErrorKind::MissingField, Place::line(path, line).field(column))
        .expected("`arm`, `ads`, `clicks` for each search, or `arm`, `search`, `event`")
        .found("a row without it")
        .help("name the columns so")
        .into()
}

fn wrong(path: &Path, line: u64, column: &str, expected: &str, found: &str) -> Error {
    InputError::new(InputErrorKind::WrongType, Place::line(path, line).field(column))
        .expected(expected)
        .found(format!("`{found}`"))
        .help("mend or remove the line")
        .into()
}
