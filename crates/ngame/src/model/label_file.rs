//! The labels in a model folder: ids, texts, and how many training points each has.

use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::array_file::{self, ArrayFile, Arrays, Check, damaged};
use crate::data::{FieldWords, Ids, Labels, Texts};

/// What to do about a file that is not what was written.
pub(super) const HELP: &str = "copy the whole folder again, or train the model again";

/// How labels are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Named {
    Position,
    Text,
    Id,
}

/// Writes the labels.
pub(super) fn write(output: &mut impl Write, labels: &Labels, counts: &[u32]) -> io::Result<()> {
    let (texts, text_ends) = labels.texts.parts();
    let mut arrays: Arrays<'_> = vec![
        ("texts", texts),
        ("text_ends", bytemuck::cast_slice(text_ends)),
        ("counts", bytemuck::cast_slice(counts)),
    ];
    let named = match &labels.ids {
        Ids::Position => Named::Position,
        Ids::SameAsText => Named::Text,
        Ids::Own(ids) => {
            let (ids, id_ends) = ids.parts();
            arrays.push(("ids", ids));
            arrays.push(("id_ends", bytemuck::cast_slice(id_ends)));
            Named::Id
        }
    };
    array_file::write(output, &named, &arrays)
}

/// Reads the labels and their counts.
pub(super) fn read(path: &Path) -> Result<(Labels, Vec<u32>)> {
    let file = ArrayFile::<Named>::open(path, Check::Shape, HELP)?;
    let texts = read_texts(&file, path, "texts", "text_ends")?;
    let counts = file.require::<u32>("counts", HELP)?.to_vec();
    let ids = match file.state {
        Named::Position => Ids::Position,
        Named::Text => Ids::SameAsText,
        Named::Id => Ids::Own(read_texts(&file, path, "ids", "id_ends")?),
    };
    let n_ids = if let Ids::Own(ids) = &ids { ids.len() } else { texts.len() };
    if counts.len() != texts.len() || n_ids != texts.len() {
        return Err(damaged(path, "numbers of texts, ids and counts that differ", HELP));
    }
    Ok((Labels { ids, texts, words: FieldWords::default() }, counts))
}

/// Texts of two arrays.
pub(super) fn read_texts<S>(
    file: &ArrayFile<S>,
    path: &Path,
    texts: &str,
    ends: &str,
) -> Result<Texts> {
    let bytes = file.require::<u8>(texts, HELP)?.to_vec();
    let ends = file.require::<u64>(ends, HELP)?.to_vec();
    Texts::from_parts(bytes, ends)
        .ok_or_else(|| damaged(path, &format!("`{texts}` that are no texts"), HELP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_come_back_however_they_are_called() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("labels.bin");
        let texts: Texts = ["apple", "", "pear"].into_iter().collect();
        let own: Texts = ["a", "b", "c"].into_iter().collect();
        for ids in [Ids::Position, Ids::SameAsText, Ids::Own(own)] {
            let labels = Labels { ids, texts: texts.clone(), words: FieldWords::default() };
            let mut bytes = Vec::new();
            write(&mut bytes, &labels, &[3, 0, 1]).unwrap();
            std::fs::write(&path, &bytes).unwrap();
            let (found, counts) = read(&path).unwrap();
            assert_eq!((found.ids, found.texts), (labels.ids.clone(), labels.texts.clone()));
            assert_eq!(counts, [3, 0, 1]);
            let mut fewer = Vec::new();
            write(&mut fewer, &labels, &[3, 0]).unwrap();
            std::fs::write(&path, &fewer).unwrap();
            assert!(read(&path).unwrap_err().to_string().contains("that differ"));
        }
    }
}
