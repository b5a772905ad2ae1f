//! The sparse view in a model folder.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use half::bf16;

use super::gaps;
use super::label_file::read_texts;
use crate::Result;
use crate::array_file::{self, ArrayFile, Arrays, Check, damaged};
use crate::data::Csr;
use crate::lexical::{Lexical, LexicalParts, PostingParts};

/// Writes the sparse view.
pub(crate) fn write(output: &mut dyn Write, lexical: &Lexical) -> io::Result<()> {
    let parts = lexical.parts();
    array_file::write(output, &lexical.n_labels(), &arrays(&parts, &Packed::all(&parts)))
}

/// Weights by feature as a file holds them: most of it would be the numbers, four bytes each.
struct Packed<'a> {
    names: &'static [&'static str; 3],
    parts: &'a PostingParts<'a>,
    gaps: Vec<u8>,
}

/// What the three arrays of each are called: offsets, numbers, weights.
const LABELS: [&str; 3] = ["offsets", "label_gaps", "weights"];
const CLUSTERS: [&str; 3] = ["cluster_offsets", "cluster_gaps", "cluster_weights"];
const LABEL_TEXTS: [&str; 3] = ["label_text_offsets", "label_text_gaps", "label_text_weights"];
const POINTS: [&str; 3] = ["point_offsets", "point_gaps", "point_weights"];

impl<'a> Packed<'a> {
    fn all(parts: &'a LexicalParts<'_>) -> [Self; 4] {
        let pack = |names, parts: &'a PostingParts<'_>| Packed {
            names,
            parts,
            gaps: gaps::encode(&parts.numbers, &parts.offsets),
        };
        [
            pack(&LABELS, &parts.labels),
            pack(&CLUSTERS, &parts.clusters),
            pack(&LABEL_TEXTS, &parts.label_texts),
            pack(&POINTS, &parts.points),
        ]
    }

    fn arrays(&'a self) -> Arrays<'a> {
        vec![
            (self.names[0], bytemuck::cast_slice(&self.parts.offsets)),
            (self.names[1], &self.gaps),
            (self.names[2], bytemuck::cast_slice(&self.parts.weights)),
        ]
    }
}

fn arrays<'a>(parts: &'a LexicalParts<'_>, packed: &'a [Packed<'a>]) -> Arrays<'a> {
    let (names, name_ends) = parts.features.parts();
    let (voter_offsets, votes) = parts.truth.parts();
    let mut arrays = vec![
        ("features", names),
        ("feature_ends", bytemuck::cast_slice(name_ends)),
        ("inverse_frequencies", bytemuck::cast_slice(&parts.inverse_frequencies)),
        ("biases", bytemuck::cast_slice(&parts.biases)),
        ("parents", bytemuck::cast_slice(&parts.parents)),
        ("cluster_biases", bytemuck::cast_slice(&parts.cluster_biases)),
        ("vote_offsets", bytemuck::cast_slice(voter_offsets)),
        ("votes", bytemuck::cast_slice(votes)),
    ];
    arrays.extend(packed.iter().flat_map(Packed::arrays));
    arrays
}

/// Reads the sparse view.
pub(crate) fn read(path: &Path, check: Check, help: &'static str) -> Result<Lexical> {
    let file = ArrayFile::<usize>::open(path, check, help)?;
    let biases = file.require::<f32>("biases", help)?;
    let inverse_frequencies = file.require::<f32>("inverse_frequencies", help)?;
    let postings = |[offsets, gaps, weights]: [&str; 3], whole| -> Result<PostingParts<'_>> {
        // Models of before there were clusters, words of labels or points have none, and no fusion that
        // asks for them.
        let Some(offsets) = file.array::<u64>(offsets) else {
            return Ok(PostingParts::none(inverse_frequencies.len()));
        };
        let numbers = match file.array::<u8>(gaps) {
            Some(bytes) => gaps::decode(bytes, offsets).map(Cow::from).ok_or_else(|| {
                damaged(path, &format!("`{gaps}` that do not fit their offsets"), help)
            })?,
            // Models of before there were gaps have the numbers themselves.
            None => file.array::<u32>(whole).unwrap_or_default().into(),
        };
        let weights = file.array::<bf16>(weights).unwrap_or_default().into();
        Ok(PostingParts { offsets: offsets.into(), numbers, weights })
    };
    let no_parents = || vec![u32::MAX; biases.len()].into();
    let vote_offsets = file.array::<u64>("vote_offsets").unwrap_or(&[0]).to_vec();
    let votes = file.array::<u32>("votes").unwrap_or_default().to_vec();
    let truth = Csr::from_parts(biases.len() as u32, vote_offsets, votes)
        .ok_or_else(|| damaged(path, "labels that do not fit the points", help))?;
    // What every version has.
    file.require::<u64>(LABELS[0], help)?;
    file.require::<bf16>(LABELS[2], help)?;
    let parts = LexicalParts {
        features: Cow::Owned(read_texts(&file, path, "features", "feature_ends")?),
        inverse_frequencies: inverse_frequencies.into(),
        labels: postings(LABELS, "labels")?,
        biases: biases.into(),
        parents: file.array::<u32>("parents").map_or_else(no_parents, Cow::from),
        clusters: postings(CLUSTERS, "clusters")?,
        cluster_biases: file.array::<f32>("cluster_biases").unwrap_or_default().into(),
        label_texts: postings(LABEL_TEXTS, "")?,
        points: postings(POINTS, "")?,
        truth: Cow::Owned(truth),
    };
    Lexical::from_parts(parts).map_err(|found| damaged(path, &found, help))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Texts;
    use crate::lexical::LexicalOptions;
    use crate::progress::Silent;

    #[test]
    fn files_of_before_are_read() {
        let texts: Texts = ["red apple", "blue plum", "green pear"].into_iter().collect();
        let truth = Csr::from_pairs(3, 3, vec![(0, 0), (1, 1), (2, 2)]);
        let options = LexicalOptions { least_texts: 1, cluster_size: 1, ..Default::default() };
        let lexical = Lexical::train(&texts, &truth, &texts, None, &options, &Silent).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let parts = lexical.parts();
        let packed = Packed::all(&parts);
        let read_back = |keep: &dyn Fn(&str) -> bool, add: Arrays<'_>| {
            let path = folder.path().join("lexical.bin");
            let mut kept = arrays(&parts, &packed);
            kept.retain(|(name, _)| keep(name));
            kept.extend(add);
            let mut bytes = Vec::new();
            array_file::write(&mut bytes, &3, &kept).unwrap();
            std::fs::write(&path, &bytes).unwrap();
            read(&path, Check::Whole, "")
        };
        let all = read_back(&|_| true, vec![]).unwrap();
        assert_eq!(all.parts(), parts);
        let query = lexical.query("red apple");
        assert!(all.cluster_scores(&query, &[1])[0] < -0.1);

        let without_clusters = |name: &str| !name.starts_with("cluster") && name != "parents";
        let before = read_back(&without_clusters, vec![]).unwrap();
        assert_eq!(before.cluster_scores(&query, &[1]), [0.0]);
        assert_eq!(before.parts().labels, parts.labels);

        let new = ["label_text", "point", "vote"];
        let without_neighbours = |name: &str| !new.iter().any(|new| name.starts_with(new));
        let before = read_back(&without_neighbours, vec![]).unwrap();
        assert_eq!(before.point_labels().n_rows(), 0);
        assert_eq!(before.parts().labels, parts.labels);

        let whole = vec![
            ("labels", bytemuck::cast_slice(&parts.labels.numbers)),
            ("clusters", bytemuck::cast_slice(&parts.clusters.numbers)),
        ];
        let before =
            read_back(&|name| !["label_gaps", "cluster_gaps"].contains(&name), whole).unwrap();
        assert_eq!(before.parts(), parts);

        let error = read_back(&|name| name != "label_gaps", vec![("label_gaps", &[1, 2])]);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("`label_gaps` that do not fit their offsets"), "{error}");
        let error = read_back(&|name| name != "votes", vec![("votes", &[9, 0, 0, 0])]);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("labels that do not fit the points"), "{error}");
    }
}
