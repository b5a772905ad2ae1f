//! A file as a stream of bytes: decompressed by its content, its byte-order mark removed.
//!
//! The name of a file says nothing here: `trn.json` may hold gzip, `trn.json.gz` plain text.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use crate::error::{Error, InputError, InputErrorKind, Place, Result};
use crate::progress::{Event, Observer};

/// An open file whose bytes are read decompressed.
pub(crate) struct Source<'a> {
    path: PathBuf,
    compression: Compression,
    reader: Box<dyn Read + Send + 'a>,
    observer: &'a dyn Observer,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Compression {
    Plain,
    Gzip,
    Zstd,
}

impl<'a> Source<'a> {
    /// Opens a file and looks at its first bytes.
    pub(crate) fn open(path: &Path, observer: &'a dyn Observer) -> Result<Self> {
        let file = File::open(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => missing_file(path),
            _ => Error::io("open", path, source),
        })?;
        let metadata = file.metadata().map_err(|source| Error::io("read", path, source))?;
        // Some readers look at the beginning of a file first, which a pipe shows only once.
        if !metadata.is_file() {
            let (found, help) = if metadata.is_dir() {
                ("a folder", "name a file inside it")
            } else {
                ("a pipe or device", "write the data to a file first")
            };
            return Err(InputError::new(InputErrorKind::UnknownFormat, Place::file(path))
                .expected("a file")
                .found(found)
                .help(help)
                .into());
        }
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        observer.event(Event::Started {
            task: &format!("reading {name}"),
            total: Some(metadata.len()),
            unit: "bytes",
        });
        Self::from_reader(path, Counted { inner: file, observer }, observer)
    }

    /// Reads bytes that are already in memory, under a name for messages.
    #[cfg(test)]
    pub(crate) fn from_bytes(
        path: &Path,
        bytes: &'a [u8],
        observer: &'a dyn Observer,
    ) -> Result<Self> {
        observer.event(Event::Started {
            task: "reading",
            total: Some(bytes.len() as u64),
            unit: "bytes",
        });
        Self::from_reader(path, Counted { inner: bytes, observer }, observer)
    }

    /// Reads a stream, under a name for messages. It is for the caller to tell the observer that
    /// reading begins.
    pub(crate) fn from_reader(
        path: &Path,
        reader: impl Read + Send + 'a,
        observer: &'a dyn Observer,
    ) -> Result<Self> {
        let mut reader = BufReader::with_capacity(1 << 18, reader);
        let head = reader.fill_buf().map_err(|source| Error::io("read", path, source))?;
        let compression = recognise(path, head)?;
        let reader: Box<dyn Read + Send + 'a> = match compression {
            Compression::Plain => Box::new(reader),
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(reader)),
            Compression::Zstd => Box::new(
                zstd::Decoder::with_buffer(reader)
                    .map_err(|source| Error::io("decompress", path, source))?,
            ),
        };
        let mut source = Self { path: path.to_owned(), compression, reader, observer };
        source.skip_byte_order_mark()?;
        Ok(source)
    }

    /// The file's path, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Fills as much of `buffer` as there are bytes left; fewer bytes mean the end.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.reader.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.read_error(error)),
            }
        }
        Ok(filled)
    }

    /// Reads everything that is left.
    #[cfg(test)]
    pub(crate) fn read_to_end(&mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.reader.read_to_end(&mut bytes).map_err(|error| self.read_error(error))?;
        Ok(bytes)
    }

    /// What an I/O error met while reading means to the user.
    pub(crate) fn read_error(&self, error: io::Error) -> Error {
        match (self.compression, error.raw_os_error()) {
            (Compression::Plain, _) | (_, Some(_)) => Error::io("read", &self.path, error),
            (Compression::Gzip, None) => self.damaged("gzip", &error),
            (Compression::Zstd, None) => self.damaged("zstd", &error),
        }
    }

    fn damaged(&self, format: &str, error: &io::Error) -> Error {
        let found = if error.kind() == io::ErrorKind::UnexpectedEof {
            "the data ends in the middle of the stream: the file is truncated".to_owned()
        } else {
            error.to_string()
        };
        InputError::new(InputErrorKind::DamagedFile, Place::file(&self.path))
            .expected(format!("a whole {format} file"))
            .found(found)
            .help(format!(
                "copy or download the file again (`{format} -t` tells whether it is whole)"
            ))
            .into()
    }

    /// Takes a UTF-8 byte-order mark away; says what to do about UTF-16.
    fn skip_byte_order_mark(&mut self) -> Result<()> {
        let mut head = [0; 3];
        let n = self.fill(&mut head)?;
        let head = &head[..n];
        if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
            return Err(InputError::new(InputErrorKind::InvalidUtf8, Place::file(&self.path))
                .expected("UTF-8 text")
                .found("a UTF-16 byte-order mark")
                .help("convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW")
                .into());
        }
        if head != b"\xef\xbb\xbf" {
            let reader = std::mem::replace(&mut self.reader, Box::new(io::empty()));
            self.reader = Box::new(Cursor::new(head.to_owned()).chain(reader));
        }
        Ok(())
    }
}

impl Drop for Source<'_> {
    fn drop(&mut self) {
        self.observer.event(Event::Finished);
    }
}

/// Tells the compression by magic number, and refuses archives nobody here can read.
fn recognise(path: &Path, head: &[u8]) -> Result<Compression> {
    const FOREIGN: [(&[u8], &str, &str); 4] = [
        (b"\xfd7zXZ\x00", "an xz file", "unpack it: xz -d FILE"),
        (b"BZh", "a bzip2 file", "unpack it: bzip2 -d FILE"),
        (b"PK\x03\x04", "a zip archive", "unpack it: unzip FILE"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it: 7z x FILE"),
    ];
    for (magic, found, help) in FOREIGN {
        if head.starts_with(magic) {
            return Err(InputError::new(InputErrorKind::UnknownFormat, Place::file(path))
                .expected("plain text, gzip or zstd")
                .found(found)
                .help(help)
                .into());
        }
    }
    Ok(if head.starts_with(&[0x1f, 0x8b]) {
        Compression::Gzip
    } else if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        Compression::Zstd
    } else {
        Compression::Plain
    })
}

/// A file that must be there is not.
pub(crate) fn missing_file(path: &Path) -> Error {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    InputError::new(InputErrorKind::MissingFile, Place::file(path))
        .expected("a file or folder of this name")
        .found(match folder {
            Some(folder) if !folder.exists() => {
                format!("nothing; the folder {} is missing too", folder.display())
            }
            _ => "nothing".to_owned(),
        })
        .help("check the spelling of the path")
        .into()
}

/// Reports the bytes that pass, which are those of the file as it lies on disk.
struct Counted<'a, R> {
    inner: R,
    observer: &'a dyn Observer,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.observer.event(Event::Advanced(n as u64));
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::progress::Silent;

    fn read(bytes: &[u8]) -> Result<Vec<u8>> {
        Source::from_bytes(Path::new("file"), bytes, &Silent)?.read_to_end()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn compression_is_told_by_content() {
        let text = "ä\nb".as_bytes();
        assert_eq!(read(text).unwrap(), text);
        assert_eq!(read(&gzip(text)).unwrap(), text);
        assert_eq!(read(&[gzip(b"\xc3"), gzip(b"\xa4\nb")].concat()).unwrap(), text);
        assert_eq!(read(&zstd::encode_all(text, 3).unwrap()).unwrap(), text);
        assert_eq!(read(b"").unwrap(), b"");
    }

    #[test]
    fn a_byte_order_mark_is_taken_away() {
        assert_eq!(read(b"\xef\xbb\xbfa").unwrap(), b"a");
        assert_eq!(read(&gzip(b"\xef\xbb\xbfa")).unwrap(), b"a");
        assert_eq!(read(b"\xef\xbb").unwrap(), b"\xef\xbb");
    }

    #[test]
    fn damaged_and_foreign_files_are_named() {
        let whole = gzip(&b"some text ".repeat(100));
        let error = read(&whole[..whole.len() / 2]).unwrap_err();
        assert_eq!(error.input_kind(), Some(InputErrorKind::DamagedFile));
        assert!(error.to_string().contains("truncated"), "{error}");
        let zstd = zstd::encode_all(&b"some text "[..], 3).unwrap();
        assert_eq!(
            read(&zstd[..zstd.len() - 3]).unwrap_err().input_kind(),
            Some(InputErrorKind::DamagedFile)
        );
        assert!(read(b"PK\x03\x04...").unwrap_err().to_string().contains("unzip"));
        assert!(read(b"\xff\xfea\0").unwrap_err().to_string().contains("iconv"));
    }
}
