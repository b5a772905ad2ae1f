//! The log: one line an event, for people or as JSON. Texts of users are never in it, because nobody
//! here is handed one.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

/// How lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Info,
    Warning,
    Error,
}

/// Where lines go.
pub struct Log {
    format: LogFormat,
    out: Mutex<Box<dyn Write + Send>>,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("format", &self.format).finish_non_exhaustive()
    }
}

impl Log {
    /// A log that writes here.
    pub fn new(format: LogFormat, out: Box<dyn Write + Send>) -> Self {
        Self { format, out: Mutex::new(out) }
    }

    /// Something happened that is as it should be.
    pub(crate) fn info(&self, event: &str, fields: &[(&str, Value)]) {
        self.write(Level::Info, event, fields);
    }

    /// Something an operator should look at.
    pub(crate) fn warning(&self, event: &str, fields: &[(&str, Value)]) {
        self.write(Level::Warning, event, fields);
    }

    /// Something that should not have happened.
    pub(crate) fn error(&self, event: &str, fields: &[(&str, Value)]) {
        self.write(Level::Error, event, fields);
    }

    fn write(&self, level: Level, event: &str, fields: &[(&str, Value)]) {
        let time = timestamp(SystemTime::now());
        let line = match self.format {
            LogFormat::Text => text_line(&time, level, event, fields),
            LogFormat::Json => json_line(&time, level, event, fields),
        };
        // A log that cannot be written must not stop the service.
        if let Ok(mut out) = self.out.lock() {
            let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
        }
    }
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

fn text_line(time: &str, level: Level, event: &str, fields: &[(&str, Value)]) -> String {
    let mut line = format!("{time} {:<7} {event}", level.name());
    for (name, value) in fields {
        // Whatever a value holds, a line stays a line.
        let _ = match value {
            Value::String(text) if is_word(text) => write!(line, " {name}={text}"),
            other => write!(line, " {name}={other}"),
        };
    }
    line.push('\n');
    line
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() && c != '"')
}

fn json_line(time: &str, level: Level, event: &str, fields: &[(&str, Value)]) -> String {
    let mut object = Map::new();
    object.insert("time".to_owned(), time.into());
    object.insert("level".to_owned(), level.name().into());
    object.insert("event".to_owned(), event.into());
    for (name, value) in fields {
        object.insert((*name).to_owned(), value.clone());
    }
    format!("{}\n", Value::Object(object))
}

/// A moment as RFC 3339 says it, in UTC.
fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let milliseconds = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// The date so many days after the first of January 1970. Years are counted from March, so that the
/// odd day of a leap year is the last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn moments_are_what_calendars_say() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (951_868_800, "2000-03-01T00:00:00.000Z"),
            (1_735_689_599, "2024-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(timestamp(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn a_line_stays_a_line() {
        let fields =
            [("route", "/v1/predict".into()), ("said", "two\nlines".into()), ("n", 3.into())];
        let text = text_line("T", Level::Warning, "event", &fields);
        assert_eq!(text, "T warning event route=/v1/predict said=\"two\\nlines\" n=3\n");
        let json = json_line("T", Level::Error, "event", &fields);
        assert_eq!(json.matches('\n').count(), 1);
        let value: Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&value["said"], &value["level"]), (&"two\nlines".into(), &"error".into()));
    }
}
