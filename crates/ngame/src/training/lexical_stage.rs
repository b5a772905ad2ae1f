//! The sparse view, trained beside the classifiers.

use std::io::{BufWriter, Write};

use super::run_folder::RunFolder;
use crate::array_file::Check;
use crate::atomic_file::FileAside;
use crate::data::{Csr, Dataset};
use crate::lexical::{Lexical, LexicalOptions};
use crate::model::lexical_file;
use crate::progress::Observer;
use crate::{Error, Result};

/// Trains the sparse view on some points of the training split, or takes what this run trained before.
pub(super) fn train_lexical(
    which: &str,
    dataset: &Dataset,
    points: &[u32],
    truth: &Csr,
    seed: u64,
    folder: &RunFolder,
    observer: &dyn Observer,
) -> Result<Lexical> {
    let done = folder.lexical(which);
    if done.exists() {
        return lexical_file::read(&done, Check::Whole, "begin anew with --force");
    }
    let texts = dataset.train.texts.select(points);
    let not_negative = dataset.train.filter.select(points);
    let options = LexicalOptions { seed, ..Default::default() };
    let (labels, not_negative) = (&dataset.labels.texts, Some(&not_negative));
    let lexical = Lexical::train(&texts, truth, labels, not_negative, &options, observer)?;
    let mut aside = FileAside::create(&done)?;
    let mut output = BufWriter::new(aside.file());
    lexical_file::write(&mut output, &lexical)
        .and_then(|()| output.flush())
        .map_err(|source| Error::io("write", &done, source))?;
    drop(output);
    aside.finish()?;
    Ok(lexical)
}
