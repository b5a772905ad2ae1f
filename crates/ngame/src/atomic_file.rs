//! Files that are whole or not there: written aside, synced, then renamed.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::{Error, Result};

/// A file being written beside the place it will take; dropped unfinished, it leaves no trace.
#[derive(Debug)]
pub struct FileAside {
    file: NamedTempFile,
    destination: PathBuf,
}

impl FileAside {
    /// Begins a file that will replace `destination`, in the same folder because a rename is atomic
    /// only within one file system.
    pub fn create(destination: &Path) -> Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".writing-");
        #[cfg(unix)]
        {
            // The default is a file only its owner may read; a model or a cache is often shared,
            // so it gets the rights of any new file (the user's umask still applies).
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let file = builder
            .tempfile_in(folder_of(destination))
            .map_err(|source| Error::io("create", destination, source))?;
        Ok(Self { file, destination: destination.to_owned() })
    }

    /// The file to write to.
    pub fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Syncs the file and gives it its name.
    pub fn finish(self) -> Result<()> {
        let Self { file, destination } = self;
        let write = |source| Error::io("write", &destination, source);
        file.as_file().sync_all().map_err(write)?;
        file.persist(&destination).map_err(|error| write(error.error))?;
        sync_folder(folder_of(&destination)).map_err(write)
    }
}

/// The folder a file lies in; a bare file name lies in the current folder.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Makes a rename survive a power cut, where the system has a way to say so.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_appears_whole_and_replaces_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, "old").unwrap();
        let mut aside = FileAside::create(&path).unwrap();
        aside.file().write_all(b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        aside.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_unfinished_file_leaves_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        drop(FileAside::create(&folder.path().join("x")).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_missing_folder_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let error = FileAside::create(&folder.path().join("no/x")).unwrap_err();
        assert!(error.to_string().contains("no/x"), "{error}");
    }
}
