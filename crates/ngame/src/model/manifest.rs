//! `manifest.json`: what a model folder holds, and how to know that it is whole.
//!
//! Every file stands there with its length and two digests: one of all its bytes, and one of a sample
//! of them, which takes no longer however large the file is. Opening a model compares lengths and, of
//! files small enough, all bytes; of larger ones the sample, which a copy that broke off, a file of
//! another model or a disk that lost pages will not pass. [`Check::Whole`] reads everything.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{InputError, InputErrorKind, Place};
use crate::index::IndexFacts;
use crate::{Error, Result};

/// The name of the file; it is what tells a model folder from another.
pub(crate) const MANIFEST: &str = "manifest.json";

/// What every manifest says it is.
const FORMAT: &str = "ngame-model";

/// The version this build writes.
const VERSION: u32 = 5;

/// The oldest version this build reads: in the first, biases of classifiers were counted in ones.
const OLDEST: u32 = 2;

/// Files up to this many bytes are read whole whenever a model is opened.
const SMALL: u64 = 16 << 20;

/// A sample is this many pieces, evenly spread, the first and the last byte included.
const PIECES: u64 = 64;

/// The bytes of a piece.
const PIECE: u64 = 16 << 10;

/// What to do about a folder that does not pass.
const HELP: &str = "copy the whole folder again, or train the model again";

/// How closely a folder is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Lengths, small files, and samples of large ones: milliseconds.
    Quick,
    /// Every byte.
    Whole,
}

/// What a model folder holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    format: String,
    /// The version of the folder's layout.
    pub version: u32,
    /// Which program wrote it.
    pub written_by: String,
    /// Labels that can be predicted.
    pub n_labels: usize,
    /// How many of them, the last ones, were added after training.
    #[serde(default, skip_serializing_if = "is_none")]
    pub n_added: usize,
    /// Labels that it was trained with and that were removed since.
    #[serde(default, skip_serializing_if = "is_none")]
    pub n_removed: usize,
    /// Training points that are kept.
    pub n_points: usize,
    /// The length of a vector.
    pub dim: usize,
    /// The index of the classifiers.
    pub index: IndexFacts,
    /// The index of the training points, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub points_index: Option<IndexFacts>,
    /// Every other file, by its path in the folder.
    pub files: BTreeMap<String, FileFacts>,
}

/// What a manifest says beside its files.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModelFacts {
    pub(super) n_labels: usize,
    pub(super) n_added: usize,
    pub(super) n_removed: usize,
    pub(super) n_points: usize,
    pub(super) dim: usize,
    pub(super) index: IndexFacts,
    pub(super) points_index: Option<IndexFacts>,
}

/// What is known of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileFacts {
    /// Its length.
    pub bytes: u64,
    /// The SHA-256 of all its bytes.
    pub sha256: String,
    /// The SHA-256 of a sample of them.
    pub sample: String,
}

/// Counts that most models have no use for are not written.
#[allow(clippy::trivially_copy_pass_by_ref)] // As serde calls it.
fn is_none(count: &usize) -> bool {
    *count == 0
}

impl Manifest {
    /// Looks at all files of a folder.
    pub(super) fn of(folder: &Path, facts: ModelFacts) -> Result<Self> {
        let ModelFacts { n_labels, n_added, n_removed, n_points, dim, index, points_index } = facts;
        let mut names = Vec::new();
        list(folder, "", &mut names)?;
        names.sort_unstable();
        let files: Result<Vec<(String, FileFacts)>> = names
            .into_par_iter()
            .map(|name| {
                let path = folder.join(&name);
                let (bytes, sample) = read_sample(&path)?;
                Ok((name, FileFacts { bytes, sha256: read_all(&path)?, sample }))
            })
            .collect();
        Ok(Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            written_by: concat!("ngame ", env!("CARGO_PKG_VERSION")).to_owned(),
            n_labels,
            n_added,
            n_removed,
            n_points,
            dim,
            index,
            points_index,
            files: files?.into_iter().collect(),
        })
    }

    /// As it is written.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a manifest is names and numbers") + "\n"
    }

    /// Reads the manifest of a folder and checks that the folder is what it says.
    pub fn open(folder: &Path, check: Check) -> Result<Self> {
        let manifest = Self::read(folder)?;
        let problems: Vec<Error> = manifest
            .files
            .par_iter()
            .filter_map(|(name, facts)| facts.check(folder, name, check).err())
            .collect();
        problems.into_iter().next().map_or(Ok(manifest), Err)
    }

    fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(MANIFEST);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(InputError::new(InputErrorKind::MissingFile, Place::file(folder))
                    .expected("a model folder, which has a manifest.json")
                    .found(if folder.exists() { "no such file there" } else { "nothing" })
                    .help("name the folder that `ngame train --out` wrote, when it was done")
                    .into());
            }
            Err(error) => return Err(Error::io("read", path, error)),
            Ok(text) => text,
        };
        let damaged = |kind, expected: &str, found: String| {
            InputError::new(kind, Place::file(&path)).expected(expected).found(found).help(HELP)
        };
        // The version first: a later one may have other fields.
        let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| {
            damaged(InputErrorKind::InvalidJson, "the manifest of a model", error.to_string())
        })?;
        if value["format"] != FORMAT {
            let found = value["format"].to_string();
            let kind = InputErrorKind::UnknownFormat;
            return Err(damaged(kind, &format!("the format \"{FORMAT}\""), found).into());
        }
        let version = value["version"].as_u64().unwrap_or(0);
        if !(u64::from(OLDEST)..=u64::from(VERSION)).contains(&version) {
            let expected = format!("a version from {OLDEST} to {VERSION}");
            return Err(damaged(InputErrorKind::Unsupported, &expected, version.to_string())
                .help("use the ngame that wrote it, or train the model again")
                .into());
        }
        serde_json::from_value(value).map_err(|error| {
            let kind = InputErrorKind::DamagedFile;
            damaged(kind, "the manifest of a model", error.to_string()).into()
        })
    }

    /// The bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.values().map(|facts| facts.bytes).sum()
    }
}

impl FileFacts {
    fn check(&self, folder: &Path, name: &str, check: Check) -> Result<()> {
        let path = folder.join(name);
        let problem = |kind, expected: String, found: String| -> Error {
            InputError::new(kind, Place::file(&path))
                .expected(expected)
                .found(found)
                .help(HELP)
                .into()
        };
        let is_inside = !name.split('/').any(|part| part.is_empty() || part == "..");
        let found = match fs::metadata(&path) {
            Ok(metadata) if is_inside && metadata.is_file() => metadata.len(),
            _ => {
                let expected = format!("this file of {} bytes", self.bytes);
                return Err(problem(InputErrorKind::MissingFile, expected, "nothing".to_owned()));
            }
        };
        if found != self.bytes {
            let (expected, found) = (format!("{} bytes", self.bytes), format!("{found} bytes"));
            return Err(problem(InputErrorKind::DamagedFile, expected, found));
        }
        let (expected, found) = match check {
            Check::Quick if self.bytes > SMALL => (&self.sample, read_sample(&path)?.1),
            _ => (&self.sha256, read_all(&path)?),
        };
        if *expected != found {
            let expected = "the bytes that were written, by their checksum".to_owned();
            return Err(problem(InputErrorKind::DamagedFile, expected, "others".to_owned()));
        }
        Ok(())
    }
}

/// The files below a folder, by their paths from there, but for the manifest itself.
fn list(folder: &Path, prefix: &str, names: &mut Vec<String>) -> Result<()> {
    let read = |source| Error::io("read", folder, source);
    for entry in fs::read_dir(folder.join(prefix)).map_err(read)? {
        let entry = entry.map_err(read)?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().map_err(read)?.is_dir() {
            list(folder, &format!("{name}/"), names)?;
        } else if name != MANIFEST {
            names.push(name);
        }
    }
    Ok(())
}

fn read_all(path: &Path) -> Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut read = || -> std::io::Result<()> {
        let mut file = File::open(path)?;
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(()),
                n => hash.update(&buffer[..n]),
            }
        }
    };
    read().map_err(|source| Error::io("read", PathBuf::from(path), source))?;
    Ok(hexadecimal(&hash.finalize()))
}

/// The length of a file and the digest of a sample of it.
fn read_sample(path: &Path) -> Result<(u64, String)> {
    let mut hash = Sha256::new();
    let mut read = || -> std::io::Result<u64> {
        let mut file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let last = bytes.saturating_sub(PIECE);
        let mut piece = Vec::new();
        for at in 0..PIECES {
            let begin = u128::from(last) * u128::from(at) / u128::from(PIECES - 1);
            file.seek(SeekFrom::Start(begin as u64))?;
            piece.clear();
            file.by_ref().take(PIECE).read_to_end(&mut piece)?;
            hash.update(&piece);
        }
        Ok(bytes)
    };
    let bytes = read().map_err(|source| Error::io("read", PathBuf::from(path), source))?;
    Ok((bytes, hexadecimal(&hash.finalize())))
}

fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("inner")).unwrap();
        fs::write(folder.path().join("small"), "abc").unwrap();
        let large: Vec<u8> = (0..SMALL + 12_345).map(|i| (i * 7 % 251) as u8).collect();
        fs::write(folder.path().join("inner/large"), large).unwrap();
        let index = IndexFacts { exact: false, recall: 0.98, search_width: 100 };
        let facts = ModelFacts {
            n_labels: 3,
            n_added: 1,
            n_removed: 0,
            n_points: 2,
            dim: 4,
            index,
            points_index: None,
        };
        let manifest = Manifest::of(folder.path(), facts).unwrap();
        fs::write(folder.path().join(MANIFEST), manifest.to_json()).unwrap();
        folder
    }

    fn error(folder: &Path, check: Check) -> String {
        Manifest::open(folder, check).unwrap_err().to_string()
    }

    #[test]
    fn a_whole_folder_passes() {
        let folder = folder();
        let manifest = Manifest::open(folder.path(), Check::Whole).unwrap();
        assert_eq!(manifest, Manifest::open(folder.path(), Check::Quick).unwrap());
        assert_eq!((manifest.n_labels, manifest.n_points, manifest.dim), (3, 2, 4));
        let names: Vec<&String> = manifest.files.keys().collect();
        assert_eq!(names, ["inner/large", "small"]);
        assert_eq!(manifest.bytes(), SMALL + 12_348);
    }

    #[test]
    fn every_kind_of_damage_is_told() {
        let folder = folder();
        let large = folder.path().join("inner/large");
        let whole = fs::read(&large).unwrap();
        fs::write(&large, &whole[..whole.len() - 1]).unwrap();
        assert!(error(folder.path(), Check::Quick).contains("inner/large"));
        // The second half lost, as by a copy that broke off, with the length kept.
        let mut half = whole.clone();
        half[whole.len() / 2..].fill(0);
        fs::write(&large, half).unwrap();
        assert!(error(folder.path(), Check::Quick).contains("checksum"));
        let mut one = whole.clone();
        one[PIECE as usize + 5] ^= 1;
        fs::write(&large, one).unwrap();
        Manifest::open(folder.path(), Check::Quick).unwrap();
        assert!(error(folder.path(), Check::Whole).contains("checksum"));
        fs::write(&large, whole).unwrap();
        fs::write(folder.path().join("small"), "abd").unwrap();
        assert!(error(folder.path(), Check::Quick).contains("small"));
        fs::remove_file(folder.path().join("small")).unwrap();
        assert!(error(folder.path(), Check::Quick).contains("file not found"));
    }

    #[test]
    fn other_folders_and_versions_are_refused() {
        let folder = folder();
        let path = folder.path().join(MANIFEST);
        let text = fs::read_to_string(&path).unwrap();
        for (from, to, expected) in [
            ("\"version\": 5", "\"version\": 1", "a version from 2 to 5"),
            ("\"version\": 5", "\"version\": 9", "a version from 2 to 5"),
            ("ngame-model", "other", "the format \"ngame-model\""),
            ("\"dim\"", "\"dom\"", "missing field `dim`"),
            ("{", "", "not valid JSON"),
            ("inner/large", "../large", "file not found"),
        ] {
            fs::write(&path, text.replacen(from, to, 1)).unwrap();
            let found = error(folder.path(), Check::Quick);
            assert!(found.contains(expected), "{from}: {found}");
        }
        fs::remove_file(&path).unwrap();
        assert!(error(folder.path(), Check::Quick).contains("a model folder"));
    }
}
