//! Folders that are whole or not there: written aside, synced, then renamed.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::atomic_file::{folder_of, sync_folder};
use crate::error::{InputError, InputErrorKind, Place};
use crate::{Error, Result};

/// What to do about a folder that stands where one is to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and writing is an error.
    #[default]
    Keep,
    /// It gives way, if it is a folder of the same kind: another is never removed.
    Replace,
}

/// A folder being written beside the place it will take; dropped unfinished, it leaves no trace.
#[derive(Debug)]
pub(crate) struct FolderAside {
    folder: TempDir,
    destination: PathBuf,
    existing: Existing,
}

impl FolderAside {
    /// Begins a folder. A folder to be replaced must hold a file named `mark`.
    pub(crate) fn create(destination: &Path, existing: Existing, mark: &str) -> Result<Self> {
        let folder = temporary(destination, ".writing-")?;
        let aside = Self { folder, destination: destination.to_owned(), existing };
        aside.check_destination(mark)?;
        Ok(aside)
    }

    /// Refuses to write over what is not to be replaced.
    fn check_destination(&self, mark: &str) -> Result<()> {
        let destination = &self.destination;
        let is_empty =
            |folder: &Path| fs::read_dir(folder).is_ok_and(|mut all| all.next().is_none());
        if !destination.exists() || is_empty(destination) {
            return Ok(());
        }
        let (found, help) = match (self.existing, destination.join(mark).is_file()) {
            (Existing::Replace, true) => return Ok(()),
            (Existing::Replace, false) => {
                ("something else, which is not replaced", "name another folder")
            }
            (Existing::Keep, _) => {
                ("a file or folder of this name", "name another folder, or ask to replace this one")
            }
        };
        Err(InputError::new(InputErrorKind::AlreadyThere, Place::file(destination))
            .expected("no folder of this name, or an empty one")
            .found(found)
            .help(help)
            .into())
    }

    /// Writes and syncs a file, given by its path inside the folder.
    pub(crate) fn write(
        &self,
        name: &str,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<()> {
        let path = self.folder.path().join(name);
        let written = || -> io::Result<()> {
            fs::create_dir_all(folder_of(&path))?;
            let mut output = BufWriter::new(File::create(&path)?);
            write(&mut output)?;
            output.flush()?;
            output.get_ref().sync_all()?;
            sync_folder(folder_of(&path))
        };
        written().map_err(|source| Error::io("write", self.destination.join(name), source))
    }

    /// Where a file of this name lies until the folder is finished, for whoever writes it by
    /// itself; [`FolderAside::finish`] syncs it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes an empty folder inside.
    pub(crate) fn add_folder(&self, name: &str) -> Result<()> {
        fs::create_dir_all(self.folder.path().join(name))
            .map_err(|source| Error::io("create", self.destination.join(name), source))
    }

    /// Gives the folder its name.
    pub(crate) fn finish(self) -> Result<()> {
        let Self { folder, destination, existing } = self;
        let write = |source| Error::io("write", &destination, source);
        sync_folder(folder.path()).map_err(write)?;
        if existing == Existing::Replace && exchange(folder.path(), &destination) {
            // What was there has the other name now, and is removed with it.
            drop(folder);
            return sync_folder(folder_of(&destination)).map_err(write);
        }
        // A folder cannot be renamed onto one with files in it, so an old one steps aside first. It
        // comes back if the new one cannot take its place, and is removed when it has.
        let old = match existing {
            Existing::Replace if destination.exists() => Some(temporary(&destination, ".old-")?),
            _ => None,
        };
        let step_aside = |old: &TempDir| fs::rename(&destination, old.path().join("folder"));
        old.as_ref().map_or(Ok(()), step_aside).map_err(write)?;
        if let Err(error) = fs::rename(folder.path(), &destination) {
            if let Some(old) = old {
                let kept = old.keep();
                let _ = fs::rename(kept.join("folder"), &destination);
                let _ = fs::remove_dir(kept);
            }
            return Err(write(error));
        }
        // It has another name now: there is nothing left to remove.
        let _ = folder.keep();
        sync_folder(folder_of(&destination)).map_err(write)
    }
}

/// Gives two folders each other's name in one step, so that there is no moment without either: a process
/// that is killed leaves the old folder or the new one. Not every system and file system can do it.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn exchange(one: &Path, other: &Path) -> bool {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    other.is_dir() && renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok()
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn exchange(_: &Path, _: &Path) -> bool {
    false
}

/// A folder beside `destination`, as a rename is atomic only within one file system.
fn temporary(destination: &Path, prefix: &str) -> Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    #[cfg(unix)]
    {
        // The default is a folder only its owner may enter; a model is often shared.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o777));
    }
    builder
        .tempdir_in(folder_of(destination))
        .map_err(|source| Error::io("create", destination, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(destination: &Path, existing: Existing, text: &str) -> Result<()> {
        let aside = FolderAside::create(destination, existing, "mark")?;
        aside.write("mark", |output| output.write_all(text.as_bytes()))?;
        aside.write("a/b", |output| output.write_all(b"b"))?;
        aside.add_folder("c")?;
        aside.finish()
    }

    #[test]
    fn a_folder_appears_whole_and_is_replaced_on_request_only() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("x");
        write(&folder, Existing::Keep, "one").unwrap();
        assert_eq!(fs::read(folder.join("a/b")).unwrap(), b"b");
        assert!(folder.join("c").is_dir());
        let error = write(&folder, Existing::Keep, "two").unwrap_err().to_string();
        assert!(error.contains("there already") && error.contains("ask to replace"), "{error}");
        assert_eq!(fs::read(folder.join("mark")).unwrap(), b"one");
        write(&folder, Existing::Replace, "two").unwrap();
        assert_eq!(fs::read(folder.join("mark")).unwrap(), b"two");
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_folder_of_another_kind_is_never_replaced() {
        let base = tempfile::tempdir().unwrap();
        fs::write(base.path().join("photo"), "").unwrap();
        let error = write(base.path(), Existing::Replace, "x").unwrap_err().to_string();
        assert!(error.contains("something else, which is not replaced"), "{error}");
        assert!(base.path().join("photo").exists());
        let empty = base.path().join("empty");
        fs::create_dir(&empty).unwrap();
        write(&empty, Existing::Keep, "x").unwrap();
        assert!(empty.join("mark").exists());
    }

    #[test]
    fn an_unfinished_folder_leaves_no_trace() {
        let base = tempfile::tempdir().unwrap();
        let aside = FolderAside::create(&base.path().join("x"), Existing::Keep, "mark").unwrap();
        aside.write("mark", |output| output.write_all(b"x")).unwrap();
        drop(aside);
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
    }
}
