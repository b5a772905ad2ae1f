//! From a path to a data set: detect the format, read it, check that it can be used.

use std::path::Path;

use super::dataset::Dataset;
use super::options::{Format, ReadOptions};
use super::source::missing_file;
use super::{folder, lf, own, split, xc};
use crate::error::{InputError, InputErrorKind, Place, Result};
use crate::progress::Observer;

impl Dataset {
    /// Reads a data set from a folder or file.
    ///
    /// The format is detected from the names of the files unless the options say it. Filter files
    /// are read where there are any. Errors tell the file, the line and what to do.
    pub fn read(path: &Path, options: &ReadOptions, observer: &dyn Observer) -> Result<Self> {
        if !path.exists() {
            return Err(missing_file(path));
        }
        let format = match options.format {
            Some(format) => format,
            None => detect(path)?,
        };
        let mut dataset = match format {
            Format::Lf => lf::read(path, options.text, observer)?,
            Format::Xc => xc::read(path, observer)?,
            Format::Own => own::read(path, options.text, observer)?,
        };
        check_usable(&dataset, path)?;
        if let Some(request) = options.split {
            split::split_test(&mut dataset, request, path)?;
        }
        Ok(dataset)
    }
}

/// Tells the format of a data set from the files that are there.
pub fn detect(path: &Path) -> Result<Format> {
    if !path.is_dir() {
        return Ok(Format::Own);
    }
    for format in Format::ALL {
        let is_format = match format {
            Format::Lf => lf::detect(path),
            Format::Xc => xc::detect(path),
            Format::Own => own::detect(path),
        };
        if is_format {
            return Ok(format);
        }
    }
    Err(InputError::new(InputErrorKind::UnknownFormat, Place::file(path))
        .expected("trn.json.gz (lf), trn_X.txt (xc), or train.jsonl, .csv or .tsv (own)")
        .found(folder::listing(path))
        .help("name your training file train.csv, or give the file itself")
        .into())
}

/// There must be something to learn from.
fn check_usable(dataset: &Dataset, path: &Path) -> Result<()> {
    if dataset.train.texts.is_blank() {
        return Err(InputError::new(InputErrorKind::NoText, Place::file(path))
            .expected("training rows with a `text`, or a `title` and a `content`")
            .found(format!("{} rows without any", dataset.train.n_points()))
            .help("check the names of the fields")
            .into());
    }
    if dataset.train.by_point.n_pairs() == 0 {
        return Err(InputError::new(InputErrorKind::NoLabels, Place::file(path))
            .expected("training rows with labels")
            .found(format!("{} rows without any", dataset.train.n_points()))
            .help("check the names of the fields: `labels`, or `target_ind` in an LF folder")
            .into());
    }
    Ok(())
}
