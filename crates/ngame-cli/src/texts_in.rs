//! Texts that a command is given: lines, standard input, or a part of a data set.

use std::path::Path;

use anyhow::{Context, bail};
use clap::ValueEnum;
use ngame::data::{Csr, Dataset, ReadOptions, Split, Texts};
use ngame::encoder::{TextLines, TextSource};

use crate::progress::Bars;

/// The texts of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    Train,
    Test,
    Valid,
    Labels,
}

/// Texts of a data set, and the pairs that do not count, where they are points.
pub(crate) struct PartTexts {
    pub(crate) texts: Texts,
    pub(crate) filter: Option<Csr>,
}

/// Whether a path is read as a data set: a folder, or a table by its name. All else is lines.
pub(crate) fn is_dataset(input: &Path) -> bool {
    let name = input.to_string_lossy().to_lowercase();
    let name = [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    input.is_dir() || [".csv", ".tsv", ".jsonl", ".json"].iter().any(|end| name.ends_with(end))
}

/// The lines of a file, or of standard input.
pub(crate) fn lines(input: &Path, part: Option<Part>) -> anyhow::Result<Box<dyn TextSource>> {
    if part.is_some() {
        bail!("--part: {} has one text a line and no parts", input.display());
    }
    Ok(match input == Path::new("-") {
        true => Box::new(TextLines::from_reader(Path::new("standard input"), std::io::stdin())?),
        false => Box::new(TextLines::open(input)?),
    })
}

/// The texts of one part of a data set.
pub(crate) fn read_part(
    input: &Path,
    part: Option<Part>,
    options: &ReadOptions,
    bars: &Bars,
) -> anyhow::Result<PartTexts> {
    let path = input.display();
    let Some(part) = part else {
        bail!(
            "{path}: a data set has several parts\n  to do:    add --part train, test, valid or labels"
        )
    };
    let dataset = Dataset::read(input, options, bars)?;
    let missing =
        || format!("{path}: the data set has no such part\n  to do:    choose another --part");
    let points = |split: Split| PartTexts { texts: split.texts, filter: Some(split.filter) };
    Ok(match part {
        Part::Train => points(dataset.train),
        Part::Test => points(dataset.test.with_context(missing)?),
        Part::Valid => points(dataset.valid.with_context(missing)?),
        Part::Labels => PartTexts { texts: dataset.labels.texts, filter: None },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_lines_are_told_by_their_names() {
        for path in ["a.csv", "a.TSV.gz", "b/a.jsonl.zst", "."] {
            assert!(is_dataset(Path::new(path)), "{path}");
        }
        for path in ["-", "a.txt", "a.txt.gz", "texts"] {
            assert!(!is_dataset(Path::new(path)), "{path}");
        }
    }
}
