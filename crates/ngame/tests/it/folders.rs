//! A temporary folder to write data sets into.

use std::io::Write;
use std::path::{Path, PathBuf};

use ngame::data::{Dataset, ReadOptions};
use ngame::error::Result;
use ngame::progress::Silent;

/// A folder that is gone when the test ends.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file and returns the folder, so that files can be listed in a chain.
    pub(crate) fn with(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        std::fs::write(self.path().join(name), bytes).unwrap();
        self
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn read(&self) -> Result<Dataset> {
        self.read_with(&ReadOptions::default())
    }

    pub(crate) fn read_with(&self, options: &ReadOptions) -> Result<Dataset> {
        Dataset::read(self.path(), options, &Silent)
    }

    /// The message of the error that reading gives, the folder's own path taken out.
    pub(crate) fn message(&self) -> String {
        let error = self.read().expect_err("reading should fail");
        self.strip(&error.to_string())
    }

    pub(crate) fn strip(&self, message: &str) -> String {
        let path = self.path().display().to_string();
        message.replace(&format!("{path}/"), "").replace(&path, "FOLDER")
    }
}

pub(crate) fn gzip(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes.as_ref()).unwrap();
    encoder.finish().unwrap()
}
