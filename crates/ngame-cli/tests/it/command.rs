//! Runs `ngame` and looks at what it says.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a run left behind.
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// The standard output of a run that must have worked.
    #[track_caller]
    pub(crate) fn success(self) -> String {
        assert_eq!(self.code, 0, "{}", self.stderr);
        self.stdout
    }

    /// The JSON that a run must have printed.
    #[track_caller]
    pub(crate) fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.success()).unwrap()
    }

    /// The message of a run that the user has to mend; it must have printed nothing else.
    #[track_caller]
    pub(crate) fn user_error(self) -> String {
        assert_eq!((self.code, &*self.stdout), (1, ""), "{}", self.stderr);
        self.stderr
    }
}

pub(crate) fn ngame<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Outcome {
    let output =
        Command::new(env!("CARGO_BIN_EXE_ngame")).args(args).stdin(Stdio::null()).output().unwrap();
    Outcome {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A path in the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// A file in a folder that is gone when the test ends.
pub(crate) fn temporary(name: &str, bytes: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}
