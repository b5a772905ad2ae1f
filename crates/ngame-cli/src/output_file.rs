//! Files that commands write their answers to.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use ngame::FileAside;

/// A file that is whole or not there: a command that is stopped leaves what was there before. A pipe or a
/// device cannot be replaced, and is written to as it is.
pub(crate) struct OutputFile {
    out: BufWriter<Inner>,
    path: PathBuf,
}

enum Inner {
    Aside(FileAside),
    Direct(File),
}

impl OutputFile {
    /// Begins to write what will be at `path`.
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let failed = || format!("cannot create {}", path.display());
        let inner = match std::fs::metadata(path) {
            Ok(found) if !found.is_file() => {
                Inner::Direct(File::options().write(true).open(path).with_context(failed)?)
            }
            // A link stays one: what it leads to is replaced.
            Ok(_) => Inner::Aside(FileAside::create(&path.canonicalize().with_context(failed)?)?),
            Err(_) => Inner::Aside(FileAside::create(path)?),
        };
        Ok(Self { out: BufWriter::new(inner), path: path.to_owned() })
    }

    /// Puts what was written in its place.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        let failed = || format!("cannot write {}", self.path.display());
        match self.out.into_inner().map_err(io::IntoInnerError::into_error).with_context(failed)? {
            Inner::Aside(aside) => Ok(aside.finish()?),
            Inner::Direct(_) => Ok(()),
        }
    }
}

/// Writes a file in one go.
pub(crate) fn write_file(path: &Path, contents: &str) -> anyhow::Result<()> {
    let mut file = OutputFile::create(path)?;
    file.write_all(contents.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))?;
    file.finish()
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Write for Inner {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Aside(aside) => aside.file().write(bytes),
            Self::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Aside(aside) => aside.file().flush(),
            Self::Direct(file) => file.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_when_it_is_finished_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("answers.tsv");
        let read = || std::fs::read_to_string(&path).unwrap();
        write_file(&path, "old").unwrap();
        let mut file = OutputFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        file.flush().unwrap();
        assert_eq!(read(), "old");
        drop(file);
        assert_eq!(read(), "old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
        write_file(&path, "new").unwrap();
        assert_eq!(read(), "new");
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_links_and_devices_are_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        write_file(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write_file(&link, "new").unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        write_file(Path::new("/dev/null"), "gone").unwrap();
        assert!(!Path::new("/dev/null").metadata().unwrap().is_file());
    }

    #[test]
    fn a_folder_that_is_not_there_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let error = write_file(&folder.path().join("no/x"), "").unwrap_err();
        assert!(format!("{error:#}").contains("no/x"), "{error:#}");
    }
}
