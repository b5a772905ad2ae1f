//! How things look in a terminal: aligned tables, grouped numbers, bars.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr;

/// Headings.
pub(crate) const BOLD: Style = Style::new().bold();
/// What matters less.
pub(crate) const DIM: Style = Style::new().dimmed();
/// Bars.
pub(crate) const BAR: Style = AnsiColor::Cyan.on_default();
/// What is right.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// What wants attention.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();

/// Standard output: colours go through to a terminal and nowhere else.
pub(crate) fn stdout() -> impl Write {
    anstream::stdout()
}

/// Text in a style.
pub(crate) fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// 1234567 as 1,234,567.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number and its noun, in the plural where it needs one.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Bytes in the unit people would say.
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = number as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Seconds as people would say them.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds.max(0.0).round() as u64 {
        whole @ 0..60 => format!("{whole} s"),
        whole @ 60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        whole => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// A bar of eighths of a character, `share` of `width`; anything above zero shows.
pub(crate) fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// A table whose first column is aligned to the left and all others to the right.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with this header.
    pub(crate) fn new<S: Into<String>>(header: impl IntoIterator<Item = S>) -> Self {
        Self { rows: vec![header.into_iter().map(Into::into).collect()] }
    }

    /// Adds a row.
    pub(crate) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Writes the table, indented by two; the header is dimmed.
    pub(crate) fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        let n_columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..n_columns)
            .map(|column| {
                self.rows.iter().filter_map(|row| row.get(column)).map(|c| c.width()).max()
            })
            .map(Option::unwrap_or_default)
            .collect();
        for (index, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let space = " ".repeat(widths[column] - cell.width());
                match column {
                    0 => line.extend(["  ", cell, &space]),
                    _ => line.extend(["  ", &space, cell]),
                }
            }
            let line = line.trim_end();
            let style = if index == 0 { DIM } else { Style::new() };
            writeln!(out, "{}", styled(style, line))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three() {
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            (counted(1, "label"), counted(0, "label")),
            ("1 label".into(), "0 labels".into())
        );
    }

    #[test]
    fn durations_have_two_units_at_most() {
        assert_eq!(
            [0.4, 59.9, 61.0, 7260.0].map(duration),
            ["0 s", "1 min 0 s", "1 min 1 s", "2 h 1 min"]
        );
    }

    #[test]
    fn bars_show_what_there_is() {
        assert_eq!(bar(1.0, 3), "███");
        assert_eq!(bar(0.5, 3), "█▌");
        assert_eq!(bar(0.0001, 3), "▏");
        assert_eq!(bar(0.0, 3), "");
    }

    #[test]
    fn wide_characters_are_aligned() {
        let mut table = Table::new(["", "n"]);
        table.row(["日本", "5"]);
        table.row(["a", "17"]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        let plain = anstream::adapter::strip_str(std::str::from_utf8(&out).unwrap()).to_string();
        assert_eq!(plain, "         n\n  日本   5\n  a     17\n");
    }
}
