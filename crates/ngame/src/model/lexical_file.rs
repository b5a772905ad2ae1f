//! The sparse view in a model folder.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use half::bf16;

use super::label_file::read_texts;
use crate::Result;
use crate::array_file::{self, ArrayFile, Arrays, Check, damaged};
use crate::lexical::{Lexical, LexicalParts};

/// Writes the sparse view.
pub(crate) fn write(output: &mut dyn Write, lexical: &Lexical) -> io::Result<()> {
    array_file::write(output, &lexical.n_labels(), &arrays(&lexical.parts()))
}

fn arrays<'a>(parts: &'a LexicalParts<'_>) -> Arrays<'a> {
    let (names, name_ends) = parts.features.parts();
    vec![
        ("features", names),
        ("feature_ends", bytemuck::cast_slice(name_ends)),
        ("inverse_frequencies", bytemuck::cast_slice(&parts.inverse_frequencies)),
        ("offsets", bytemuck::cast_slice(&parts.offsets)),
        ("labels", bytemuck::cast_slice(&parts.labels)),
        ("weights", bytemuck::cast_slice(&parts.weights)),
        ("biases", bytemuck::cast_slice(&parts.biases)),
        ("parents", bytemuck::cast_slice(&parts.parents)),
        ("cluster_offsets", bytemuck::cast_slice(&parts.cluster_offsets)),
        ("clusters", bytemuck::cast_slice(&parts.clusters)),
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
    let numbers = |name| file.array::<u32>(name);
    let no_parents = || vec![u32::MAX; biases.len()].into();
    let no_clusters = || vec![0; offsets.len()].into();
    let parts = LexicalParts {
        features: Cow::Owned(read_texts(&file, path, "features", "feature_ends")?),
        inverse_frequencies: file.require::<f32>("inverse_frequencies", help)?.into(),
        offsets: offsets.into(),
        labels: file.require::<u32>("labels", help)?.into(),
        weights: file.require::<bf16>("weights", help)?.into(),
        biases: biases.into(),
        parents: numbers("parents").map_or_else(no_parents, Cow::from),
        cluster_offsets: file.array("cluster_offsets").map_or_else(no_clusters, Cow::from),
        clusters: numbers("clusters").unwrap_or_default().into(),
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
    fn a_file_without_clusters_is_a_view_without_clusters() {
        let texts: Texts = ["red apple", "blue plum", "green pear"].into_iter().collect();
        let truth = Csr::from_pairs(3, 3, vec![(0, 0), (1, 1), (2, 2)]);
        let options = LexicalOptions { least_texts: 1, cluster_size: 1, ..Default::default() };
        let lexical = Lexical::train(&texts, &truth, &texts, None, &options, &Silent).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let read_back = |keep: &dyn Fn(&str) -> bool| {
            let (path, parts) = (folder.path().join("lexical.bin"), lexical.parts());
            let mut kept = arrays(&parts);
            kept.retain(|(name, _)| keep(name));
            let mut bytes = Vec::new();
            array_file::write(&mut bytes, &3, &kept).unwrap();
            std::fs::write(&path, &bytes).unwrap();
            read(&path, Check::Whole, "").unwrap()
        };
        let all = read_back(&|_| true);
        let before = read_back(&|name| !name.starts_with("cluster") && name != "parents");
        let query = lexical.query("red apple");
        assert!(all.cluster_scores(&query, &[1])[0] < -0.1);
        assert_eq!(all.parts(), lexical.parts());
        assert_eq!(before.cluster_scores(&query, &[1]), [0.0]);
        assert_eq!(before.parts().weights, lexical.parts().weights);
    }
}
