//! Lines of text, parsed in parallel and collected in order.
//!
//! One thread reads and decompresses blocks of whole lines; the pool parses several blocks at a
//! time; the caller takes the results in the order of the file. Memory stays at a few blocks,
//! however large the file.

use std::path::Path;
use std::sync::mpsc;

use rayon::prelude::*;

use super::source::Source;
use crate::error::{Error, InputError, InputErrorKind, Place, Result};
use crate::progress::Observer;

/// How many bytes a block has, more where a line is longer.
const BLOCK_BYTES: usize = 1 << 20;

/// Some whole lines of a file.
pub(crate) struct Block {
    /// The number of the block's first line, counted from 1.
    first_line: u64,
    text: String,
}

impl Block {
    /// The lines with their numbers, without `\n` or `\r\n`.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (u64, &str)> {
        // `str::lines` removes `\r\n` too, and does not invent a line after the last newline.
        (self.first_line..).zip(self.text.lines())
    }
}

/// Parses blocks of lines with `parse`, in parallel, and hands the results to `collect` in order.
/// The first error in the order of the file wins. The first block is parsed alone, so that what its
/// header says is known to all others.
pub(crate) fn parse_blocks<B: Send>(
    mut source: Source<'_>,
    observer: &dyn Observer,
    parse: impl Fn(&Block) -> Result<B> + Sync,
    mut collect: impl FnMut(B) -> Result<()>,
) -> Result<()> {
    let n_parallel = rayon::current_num_threads().max(1);
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel::<Result<Block>>(n_parallel);
        scope.spawn(move || {
            let mut reader = BlockReader::new();
            while let Some(block) = reader.next(&mut source).transpose() {
                let failed = block.is_err();
                // The receiver is gone when the parser failed: nobody needs the rest.
                if sender.send(block).is_err() || failed {
                    break;
                }
            }
        });
        let mut n_blocks = 1;
        loop {
            if observer.cancelled() {
                return Err(Error::Cancelled);
            }
            let blocks: Vec<_> = receiver.iter().take(n_blocks).collect();
            n_blocks = n_parallel;
            if blocks.is_empty() {
                return Ok(());
            }
            let parsed: Vec<_> =
                blocks.into_par_iter().map(|block| block.and_then(|block| parse(&block))).collect();
            for result in parsed {
                collect(result?)?;
            }
        }
    })
}

/// Calls `each` for every line, in order.
pub(crate) fn for_each_line(
    mut source: Source<'_>,
    observer: &dyn Observer,
    mut each: impl FnMut(u64, &str) -> Result<()>,
) -> Result<()> {
    let mut reader = BlockReader::new();
    while let Some(block) = reader.next(&mut source)? {
        if observer.cancelled() {
            return Err(Error::Cancelled);
        }
        for (line, text) in block.lines() {
            each(line, text)?;
        }
    }
    Ok(())
}

/// The lines of a source one by one, for whoever wants to stop and go on.
pub(crate) struct BlockLines<'a> {
    source: Source<'a>,
    reader: BlockReader,
    /// The lines at hand, of which those before `begin` were taken.
    text: String,
    begin: usize,
}

impl<'a> BlockLines<'a> {
    pub(crate) fn new(source: Source<'a>) -> Self {
        Self { source, reader: BlockReader::new(), text: String::new(), begin: 0 }
    }

    /// The next line, without `\n` or `\r\n`; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<&str>> {
        if self.begin == self.text.len() {
            match self.reader.next(&mut self.source)? {
                Some(block) => (self.text, self.begin) = (block.text, 0),
                None => return Ok(None),
            }
        }
        let rest = &self.text[self.begin..];
        let end = memchr::memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |newline| newline + 1);
        self.begin += end;
        Ok(rest[..end].lines().next())
    }
}

/// Cuts a source into blocks that end with a line.
struct BlockReader {
    next_line: u64,
    /// The beginning of a line whose end was not read yet.
    rest: Vec<u8>,
    ended: bool,
}

impl BlockReader {
    fn new() -> Self {
        Self { next_line: 1, rest: Vec::new(), ended: false }
    }

    fn next(&mut self, source: &mut Source<'_>) -> Result<Option<Block>> {
        if self.ended {
            return Ok(None);
        }
        let mut bytes = std::mem::take(&mut self.rest);
        loop {
            let old_len = bytes.len();
            // A line longer than a block doubles the step, so that the time stays linear.
            let step = BLOCK_BYTES.max(old_len);
            bytes.resize(old_len + step, 0);
            let filled = source.fill(&mut bytes[old_len..])?;
            bytes.truncate(old_len + filled);
            if filled < step {
                self.ended = true;
                break;
            }
            if let Some(newline) = memchr::memrchr(b'\n', &bytes[old_len..]) {
                self.rest = bytes.split_off(old_len + newline + 1);
                break;
            }
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        let first_line = self.next_line;
        self.next_line += memchr::memchr_iter(b'\n', &bytes).count() as u64;
        let text = String::from_utf8(bytes)
            .map_err(|error| invalid_utf8(source.path(), first_line, &error))?;
        Ok(Some(Block { first_line, text }))
    }
}

fn invalid_utf8(path: &Path, first_line: u64, error: &std::string::FromUtf8Error) -> Error {
    let bytes = error.as_bytes();
    let at = error.utf8_error().valid_up_to();
    let before = &bytes[..at];
    let line = first_line + memchr::memchr_iter(b'\n', before).count() as u64;
    let column = at - memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1) + 1;
    utf8_error(Place::line(path, line), bytes.get(at).copied(), column)
}

/// What to say about a byte that is not UTF-8.
pub(crate) fn utf8_error(place: Place, byte: Option<u8>, column: usize) -> Error {
    InputError::new(InputErrorKind::InvalidUtf8, place)
        .expected("UTF-8 text")
        .found(format!("byte 0x{:02x} at byte {column} of the line", byte.unwrap_or_default()))
        .help("convert the file, for example: iconv -f ISO-8859-1 -t UTF-8 FILE > NEW")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;

    fn numbered(bytes: &[u8]) -> Result<Vec<(u64, String)>> {
        let source = Source::from_bytes(Path::new("file"), bytes, &Silent)?;
        let mut all = Vec::new();
        parse_blocks(
            source,
            &Silent,
            |block| Ok(block.lines().map(|(n, s)| (n, s.to_owned())).collect::<Vec<_>>()),
            |lines| {
                all.extend(lines);
                Ok(())
            },
        )?;
        let mut one_by_one = Vec::new();
        for_each_line(
            Source::from_bytes(Path::new("file"), bytes, &Silent)?,
            &Silent,
            |n, line| {
                one_by_one.push((n, line.to_owned()));
                Ok(())
            },
        )?;
        assert_eq!(all, one_by_one);
        let mut lines = BlockLines::new(Source::from_bytes(Path::new("file"), bytes, &Silent)?);
        for (_, line) in &all {
            assert_eq!(lines.next()?, Some(line.as_str()));
        }
        assert_eq!(lines.next()?, None);
        Ok(all)
    }

    #[test]
    fn lines_are_numbered_and_stripped() {
        let lines = numbered(b"a\r\n\nb").unwrap();
        assert_eq!(lines, [(1, "a".into()), (2, "".into()), (3, "b".into())]);
        assert_eq!(numbered(b"").unwrap(), []);
        assert_eq!(numbered(b"\n").unwrap(), [(1, "".into())]);
    }

    #[test]
    fn blocks_and_long_lines_lose_nothing() {
        let mut text = String::new();
        for n in 0..5 {
            text.push_str(&"é".repeat(700_000 * n));
            text.push('\n');
            for m in 0..1000 {
                text.push_str(&format!("{n} {m}\n"));
            }
        }
        let lines = numbered(text.as_bytes()).unwrap();
        assert!(text.lines().eq(lines.iter().map(|(_, line)| line.as_str())));
        assert!((1..).zip(&lines).all(|(n, &(number, _))| n == number));
    }

    #[test]
    fn a_wrong_byte_is_found_with_its_line() {
        let mut bytes = "ok\n".repeat(1_000_000).into_bytes();
        bytes.extend(b"caf\xe9\n");
        let error = numbered(&bytes).unwrap_err().to_string();
        assert!(error.starts_with("file, line 1000001: not UTF-8 text"), "{error}");
        assert!(error.contains("byte 0xe9 at byte 4 of the line"), "{error}");
    }
}
