//! The sparse view in a model folder.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use half::bf16;

use super::gaps;
use super::label_file::read_texts;
use crate::Result;
use crate::array_file::{self, ArrayFile, Arrays, Check, damaged};
use crate::lexical::{Lexical, LexicalParts};

/// Writes the sparse view.
pub(crate) fn write(output: &mut dyn Write, lexical: &Lexical) -> io::Result<()> {
    let parts = lexical.parts();
    array_file::write(output, &lexical.n_labels(), &arrays(&parts, &Gaps::of(&parts)))
}

/// Labels and clusters as a file holds them: most of it would be these, four bytes each.
struct Gaps {
    labels: Vec<u8>,
    clusters: Vec<u8>,
}

impl Gaps {
    fn of(parts: &LexicalParts<'_>) -> Self {
        Self {
            labels: gaps::encode(&parts.labels, &parts.offsets),
            clusters: gaps::encode(&parts.clusters, &parts.cluster_offsets),
        }
    }
}

fn arrays<'a>(parts: &'a LexicalParts<'_>, gaps: &'a Gaps) -> Arrays<'a> {
    let (names, name_ends) = parts.features.parts();
    vec![
        ("features", names),
        ("feature_ends", bytemuck::cast_slice(name_ends)),
        ("inverse_frequencies", bytemuck::cast_slice(&parts.inverse_frequencies)),
        ("offsets", bytemuck::cast_slice(&parts.offsets)),
        ("label_gaps", &gaps.labels),
        ("weights", bytemuck::cast_slice(&parts.weights)),
        ("biases", bytemuck::cast_slice(&parts.biases)),
        ("parents", bytemuck::cast_slice(&parts.parents)),
        ("cluster_offsets", bytemuck::cast_slice(&parts.cluster_offsets)),
        ("cluster_gaps", &gaps.clusters),
        ("cluster_weights", bytemuck::cast_slice(&parts.cluster_weights)),
        ("cluster_biases", bytemuck::cast_slice(&parts.cluster_biases)),
    ]
}

/// Reads the sparse view.
pub(crate) fn read(path: &Path, check: Check, help: &'static str) -> Result<Lexical> {
    let file = ArrayFile::<usize>::open(path, check, help)?;
    let biases = file.require::<f32>("biases", help)?;
    let offsets = file.require::<u64>("offsets", help)?;
    // Models of before there were clusters have none, and no fusion that asks for them.
    let no_parents = || vec![u32::MAX; biases.len()].into();
    let no_clusters = || vec![0; offsets.len()].into();
    let cluster_offsets: Cow<'_, [u64]> =
        file.array("cluster_offsets").map_or_else(no_clusters, Cow::from);
    let numbers = |whole, gaps, offsets| match file.array::<u8>(gaps) {
        Some(bytes) => gaps::decode(bytes, offsets)
            .map(Cow::from)
            .ok_or_else(|| damaged(path, &format!("`{gaps}` that do not fit their offsets"), help)),
        // Models of before there were gaps have the numbers themselves.
        None => Ok(file.array::<u32>(whole).unwrap_or_default().into()),
    };
    let parts = LexicalParts {
        features: Cow::Owned(read_texts(&file, path, "features", "feature_ends")?),
        inverse_frequencies: file.require::<f32>("inverse_frequencies", help)?.into(),
        labels: numbers("labels", "label_gaps", offsets)?,
        offsets: offsets.into(),
        weights: file.require::<bf16>("weights", help)?.into(),
        biases: biases.into(),
        parents: file.array::<u32>("parents").map_or_else(no_parents, Cow::from),
        clusters: numbers("clusters", "cluster_gaps", &cluster_offsets)?,
        cluster_offsets,
        cluster_weights: file.array::<bf16>("cluster_weights").unwrap_or_default().into(),
        cluster_biases: file.array::<f32>("cluster_biases").unwrap_or_default().into(),
    };
    Lexical::from_parts(parts).map_err(|found| damaged(path, &found, help))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Csr, Texts};
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
        let gaps = Gaps::of(&parts);
        let read_back = |keep: &dyn Fn(&str) -> bool, add: Arrays<'_>| {
            let path = folder.path().join("lexical.bin");
            let mut kept = arrays(&parts, &gaps);
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
        assert_eq!(before.parts().weights, parts.weights);

        let whole = vec![
            ("labels", bytemuck::cast_slice(&parts.labels)),
            ("clusters", bytemuck::cast_slice(&parts.clusters)),
        ];
        let before = read_back(&|name| !name.ends_with("gaps"), whole).unwrap();
        assert_eq!(before.parts(), parts);

        let error = read_back(&|name| name != "label_gaps", vec![("label_gaps", &[1, 2])]);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("`label_gaps` that do not fit their offsets"), "{error}");
    }
}
