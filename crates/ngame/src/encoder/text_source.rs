//! Where texts come from, a window at a time.

use std::io::Read;
use std::path::Path;

use crate::Result;
use crate::data::{BlockLines, Source, Texts};
use crate::progress::Silent;

/// Texts in order, of which a few are taken at a time.
pub trait TextSource {
    /// How many texts there are in all, where that is known.
    fn n_texts(&self) -> Option<u64>;

    /// Adds the next texts to `window`, until it holds `most_texts` texts or `most_bytes` bytes (a
    /// text that crosses the line still goes in) or there are no more.
    fn next_texts(
        &mut self,
        window: &mut Texts,
        most_texts: usize,
        most_bytes: usize,
    ) -> Result<()>;
}

/// Texts in memory.
impl<'a, I: ExactSizeIterator<Item = &'a str>> TextSource for I {
    fn n_texts(&self) -> Option<u64> {
        Some(self.len() as u64)
    }

    fn next_texts(
        &mut self,
        window: &mut Texts,
        most_texts: usize,
        most_bytes: usize,
    ) -> Result<()> {
        while window.len() < most_texts && window.n_bytes() < most_bytes {
            let Some(text) = self.next() else { break };
            window.push(text);
        }
        Ok(())
    }
}

/// One text a line, from a file or any stream: plain, gzip or zstd.
pub struct TextLines<'a> {
    lines: BlockLines<'a>,
}

impl<'a> TextLines<'a> {
    /// The lines of a file.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self { lines: BlockLines::new(Source::open(path, &Silent)?) })
    }

    /// The lines of a stream, under a name for messages.
    pub fn from_reader(name: &Path, reader: impl Read + Send + 'a) -> Result<Self> {
        Ok(Self { lines: BlockLines::new(Source::from_reader(name, reader, &Silent)?) })
    }
}

impl TextSource for TextLines<'_> {
    fn n_texts(&self) -> Option<u64> {
        None
    }

    fn next_texts(
        &mut self,
        window: &mut Texts,
        most_texts: usize,
        most_bytes: usize,
    ) -> Result<()> {
        while window.len() < most_texts && window.n_bytes() < most_bytes {
            let Some(line) = self.lines.next()? else { break };
            window.push(line);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(source: &mut dyn TextSource, texts: usize, bytes: usize) -> Vec<Vec<String>> {
        let mut windows = Vec::new();
        loop {
            let mut window = Texts::new();
            source.next_texts(&mut window, texts, bytes).unwrap();
            if window.is_empty() {
                return windows;
            }
            windows.push(window.iter().map(str::to_owned).collect());
        }
    }

    #[test]
    fn windows_hold_as_much_as_was_asked() {
        let texts = ["a", "", "bcd", "e"];
        assert_eq!(windows(&mut texts.into_iter(), 3, 100), [vec!["a", "", "bcd"], vec!["e"]]);
        assert_eq!(windows(&mut texts.into_iter(), 9, 2), [vec!["a", "", "bcd"], vec!["e"]]);
        let text = "a\r\n\nbcd\ne".as_bytes();
        let mut lines = TextLines::from_reader(Path::new("stdin"), text).unwrap();
        assert_eq!(windows(&mut lines, 3, 100), [vec!["a", "", "bcd"], vec!["e"]]);
    }

    #[test]
    fn a_line_that_is_no_text_is_named() {
        let text = &b"a\nb\xff\n"[..];
        let mut lines = TextLines::from_reader(Path::new("standard input"), text).unwrap();
        let error = lines.next_texts(&mut Texts::new(), 9, 9).unwrap_err().to_string();
        assert!(error.starts_with("standard input, line 2: not UTF-8 text"), "{error}");
    }
}
