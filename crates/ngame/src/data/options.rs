//! What to read, and how: the choices a user can make about a data set.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How to read a data set. The default detects the format and uses every text there is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadOptions {
    /// The format; `None` detects it.
    pub format: Option<Format>,
    /// Which text of a row is used.
    pub text: TextChoice,
    /// Makes a test split out of the training rows where there is no test file.
    pub split: Option<SplitRequest>,
}

/// The formats of a data set on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// `trn`, `tst`, `lbl` as JSON lines with `target_ind`: the XC repository's raw data sets.
    Lf,
    /// `trn_X.txt`, `tst_X.txt`, `Y.txt`, one text a line, with `*_X_Y` label matrices.
    Xc,
    /// One's own `train`, `test`, `valid`, `labels` as JSON lines, CSV or TSV, or one such file.
    Own,
}

impl Format {
    /// Every format, in the order of detection.
    pub const ALL: [Self; 3] = [Self::Lf, Self::Xc, Self::Own];
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lf => "lf",
            Self::Xc => "xc",
            Self::Own => "own",
        })
    }
}

/// Which text of a row is used. Where the chosen field is empty, the other one is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextChoice {
    /// The title.
    Title,
    /// The content.
    Content,
    /// The title, a space, the content.
    #[default]
    Both,
}

impl fmt::Display for TextChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Title => "title",
            Self::Content => "content",
            Self::Both => "both",
        })
    }
}

/// A test split to be drawn from the training rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitRequest {
    /// The share of rows that become test rows, between 0 and 1.
    pub share: f64,
    /// The same seed draws the same rows.
    pub seed: u64,
}

impl SplitRequest {
    /// A request for a share strictly between 0 and 1.
    pub fn new(share: f64, seed: u64) -> Result<Self> {
        if share > 0.0 && share < 1.0 {
            return Ok(Self { share, seed });
        }
        Err(Error::Option {
            option: "--split",
            expected: "a share between 0 and 1, such as 0.1".to_owned(),
            found: share.to_string(),
        })
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|format| format.to_string() == name)
            .ok_or_else(|| "expected lf, xc or own".to_owned())
    }
}

impl FromStr for TextChoice {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        [Self::Title, Self::Content, Self::Both]
            .into_iter()
            .find(|choice| choice.to_string() == name)
            .ok_or_else(|| "expected title, content or both".to_owned())
    }
}
