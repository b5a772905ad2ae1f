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
    let parts = lexical.parts();
    let (names, name_ends) = parts.features.parts();
    let arrays: Arrays<'_> = vec![
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
    ];
    array_file::write(output, &lexical.n_labels(), &arrays)
}

/// Reads the sparse view.
pub(crate) fn read(path: &Path, check: Check, help: &'static str) -> Result<Lexical> {
    let file = ArrayFile::<usize>::open(path, check, help)?;
    let parts = LexicalParts {
        features: Cow::Owned(read_texts(&file, path, "features", "feature_ends")?),
        inverse_frequencies: file.require::<f32>("inverse_frequencies", help)?.into(),
        offsets: file.require::<u64>("offsets", help)?.into(),
        labels: file.require::<u32>("labels", help)?.into(),
        weights: file.require::<bf16>("weights", help)?.into(),
        biases: file.require::<f32>("biases", help)?.into(),
        parents: file.require::<u32>("parents", help)?.into(),
        cluster_offsets: file.require::<u64>("cluster_offsets", help)?.into(),
        clusters: file.require::<u32>("clusters", help)?.into(),
        cluster_weights: file.require::<bf16>("cluster_weights", help)?.into(),
        cluster_biases: file.require::<f32>("cluster_biases", help)?.into(),
    };
    Lexical::from_parts(parts).map_err(|found| damaged(path, &found, help))
}
