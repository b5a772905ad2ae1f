//! Checkpoints: where a run stands, in a file that is checked to the last byte.
//!
//! A file is written aside and renamed, after the one before has stepped back: whatever happens, one
//! whole checkpoint is there.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::run_folder::RunFolder;
pub(super) use crate::array_file::Arrays;
use crate::array_file::{self, ArrayFile, Check};
use crate::atomic_file::FileAside;
use crate::{Error, Result};

/// A checkpoint that was read.
pub(super) type Checkpoint<S> = ArrayFile<S>;

/// Writes a file, whole or not at all.
pub(super) fn write(path: &Path, state: &impl Serialize, arrays: &Arrays<'_>) -> Result<()> {
    let mut aside = FileAside::create(path)?;
    let mut output = BufWriter::with_capacity(1 << 20, aside.file());
    array_file::write(&mut output, state, arrays)
        .and_then(|()| output.flush())
        .map_err(|source| Error::io("write", path, source))?;
    drop(output);
    aside.finish()
}

/// Reads a file, and checks it to the last byte.
pub(super) fn read<S: DeserializeOwned>(path: &Path) -> Result<Checkpoint<S>> {
    ArrayFile::open(path, Check::Whole, "begin anew with --force")
}

/// Writes the newest checkpoint of a run; the one before stays beside it.
pub(super) fn write_newest(
    folder: &RunFolder,
    state: &impl Serialize,
    arrays: &Arrays<'_>,
) -> Result<()> {
    let newest = folder.checkpoint();
    // Written under a third name first: a full disk must leave both checkpoints as they are.
    let next = newest.with_extension("next");
    write(&next, state, arrays)?;
    let rename = |from: &Path, to: &Path| {
        fs::rename(from, to).map_err(|source| Error::io("write", to, source))
    };
    if newest.exists() {
        rename(&newest, &folder.previous_checkpoint())?;
    }
    rename(&next, &newest)
}

/// The newest checkpoint of a run that is whole, and what is wrong with a newer one, if anything.
/// `None` if there is no checkpoint yet.
pub(super) fn read_newest<S: DeserializeOwned>(
    folder: &RunFolder,
) -> Result<Option<(Checkpoint<S>, Option<String>)>> {
    let mut problem = None;
    let next = folder.checkpoint().with_extension("next");
    for path in [folder.checkpoint(), next, folder.previous_checkpoint()] {
        if !path.exists() {
            continue;
        }
        match read(&path) {
            Ok(checkpoint) => {
                let told = problem.map(|error: Error| error.to_string());
                return Ok(Some((checkpoint, told)));
            }
            Err(error) => problem = Some(problem.unwrap_or(error)),
        }
    }
    problem.map_or(Ok(None), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(base: &Path) -> RunFolder {
        let folder = RunFolder::of(&base.join("model"));
        fs::create_dir_all(folder.path()).unwrap();
        folder
    }

    fn write_number(folder: &RunFolder, number: u32) {
        let numbers = [number; 100];
        write_newest(folder, &number, &vec![("numbers", bytemuck::cast_slice(&numbers))]).unwrap();
    }

    #[test]
    fn a_checkpoint_comes_back_and_the_one_before_stays() {
        let base = tempfile::tempdir().unwrap();
        let folder = folder(base.path());
        assert!(read_newest::<u32>(&folder).unwrap().is_none());
        for number in [1, 2, 3] {
            write_number(&folder, number);
        }
        let (newest, problem) = read_newest::<u32>(&folder).unwrap().unwrap();
        assert_eq!((newest.state, problem), (3, None));
        assert_eq!(newest.array::<u32>("numbers").unwrap(), [3; 100]);
        assert!(newest.array::<u32>("others").is_none());
        assert_eq!(read::<u32>(&folder.previous_checkpoint()).unwrap().state, 2);
    }

    #[test]
    fn damage_anywhere_is_noticed_and_the_one_before_still_works() {
        let base = tempfile::tempdir().unwrap();
        let folder = folder(base.path());
        write_number(&folder, 1);
        write_number(&folder, 2);
        let whole = fs::read(folder.checkpoint()).unwrap();
        for at in (0..whole.len()).step_by(7) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(folder.checkpoint(), &bytes).unwrap();
            let (found, problem) = read_newest::<u32>(&folder).unwrap().unwrap();
            assert_eq!(found.state, 1);
            assert!(problem.unwrap().contains("damaged"));
        }
        for length in [0, 5, 31, 33, 40, whole.len() - 1] {
            fs::write(folder.checkpoint(), &whole[..length]).unwrap();
            assert_eq!(read_newest::<u32>(&folder).unwrap().unwrap().0.state, 1, "{length}");
        }
        fs::remove_file(folder.previous_checkpoint()).unwrap();
        let error = read_newest::<u32>(&folder).unwrap_err().to_string();
        assert!(error.contains("checkpoint.bin") && error.contains("--force"), "{error}");
    }

    #[test]
    fn a_kill_between_the_renames_loses_nothing() {
        let base = tempfile::tempdir().unwrap();
        let folder = folder(base.path());
        write_number(&folder, 1);
        write_number(&folder, 2);
        // As if stopped after the old one stepped back: the new one still has its first name.
        fs::rename(folder.checkpoint(), folder.checkpoint().with_extension("next")).unwrap();
        assert_eq!(read_newest::<u32>(&folder).unwrap().unwrap().0.state, 2);
        write_number(&folder, 3);
        assert_eq!(read_newest::<u32>(&folder).unwrap().unwrap().0.state, 3);
    }
}
