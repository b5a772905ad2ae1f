//! The training points in a model folder: what they are called, and which labels they have. Their
//! vectors lie beside them.

use std::io::{self, Write};
use std::path::Path;

use super::label_file::{HELP, read_texts};
use crate::Result;
use crate::array_file::{self, ArrayFile, Arrays, Check, damaged};
use crate::data::{Csr, Texts};

/// The characters of a point's text that are kept: enough to recognise it.
const KEPT_CHARACTERS: usize = 120;

/// The training points, for explanations and votes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Points {
    /// The beginning of each point's text.
    pub texts: Texts,
    /// Which labels each has.
    pub labels: Csr,
}

impl Points {
    /// Keeps what a model needs of its training points.
    pub fn new(texts: &Texts, labels: Csr) -> Self {
        let mut kept = Texts::new();
        for text in texts.iter() {
            let end = text.char_indices().nth(KEPT_CHARACTERS).map_or(text.len(), |(at, _)| at);
            kept.push(&text[..end]);
        }
        Self { texts: kept, labels }
    }

    pub(super) fn write(&self, output: &mut impl Write) -> io::Result<()> {
        let (texts, text_ends) = self.texts.parts();
        let (offsets, columns) = self.labels.parts();
        let arrays: Arrays<'_> = vec![
            ("texts", texts),
            ("text_ends", bytemuck::cast_slice(text_ends)),
            ("label_offsets", bytemuck::cast_slice(offsets)),
            ("labels", bytemuck::cast_slice(columns)),
        ];
        array_file::write(output, &self.labels.n_columns(), &arrays)
    }

    pub(super) fn read(path: &Path) -> Result<Self> {
        let file = ArrayFile::<u32>::open(path, Check::Shape, HELP)?;
        let texts = read_texts(&file, path, "texts", "text_ends")?;
        let offsets = file.require::<u64>("label_offsets", HELP)?.to_vec();
        let columns = file.require::<u32>("labels", HELP)?.to_vec();
        let labels = Csr::from_parts(file.state, offsets, columns)
            .filter(|labels| labels.n_rows() == texts.len())
            .ok_or_else(|| damaged(path, "labels that do not fit the points", HELP))?;
        Ok(Self { texts, labels })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_come_back_with_long_texts_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("points.bin");
        let long = "é".repeat(500);
        let texts: Texts = ["short", &long].into_iter().collect();
        let points = Points::new(&texts, Csr::from_pairs(2, 3, vec![(0, 2), (1, 0)]));
        assert_eq!(points.texts.get(1).chars().count(), KEPT_CHARACTERS);
        let mut bytes = Vec::new();
        points.write(&mut bytes).unwrap();
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(Points::read(&path).unwrap(), points);
        let fewer = Points { labels: Csr::empty(1, 3), ..points };
        let mut bytes = Vec::new();
        fewer.write(&mut bytes).unwrap();
        std::fs::write(&path, &bytes).unwrap();
        assert!(Points::read(&path).unwrap_err().to_string().contains("do not fit"));
    }
}
