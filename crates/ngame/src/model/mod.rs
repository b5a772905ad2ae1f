//! The model folder: everything a prediction needs, opened in a moment, never changed in place.
//!
//! ```text
//! manifest.json       what is there, with checksums         plan.toml        how it was trained
//! encoder/            a folder that transformers loads      metrics.jsonl    how training went
//! labels.bin          ids, texts, training counts           evaluation.json  what it reaches
//! embeddings.npy      vectors of the labels' texts          points.bin       training points: texts, labels
//! classifiers.npy     one vector and bias a label           points.npy       their vectors
//! classifiers.hnsw    its index, where it is large          points.hnsw      their index, where it is large
//! fusion.json         how scores become one               lexical.bin      weights of words for every label
//! ```
//!
//! A folder is written aside and renamed when it is whole. [`Manifest`] knows whether it still is.

mod gaps;
mod label_changes;
mod label_file;
pub(crate) mod lexical_file;
mod manifest;
mod point_file;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

pub use manifest::{Check, FileFacts, Manifest};
pub use point_file::Points;

use crate::array_file::{self, damaged};
use crate::data::Labels;
use crate::encoder::{Existing, TextEncoder, VectorMatrix};
use crate::error::{InputError, InputErrorKind, Place};
use crate::folder_aside::FolderAside;
use crate::fusion::Fusion;
use crate::index::AnyIndex;
use crate::views::{Views, Votes};
use crate::{Error, Result};
use label_file::HELP;
use manifest::{MANIFEST, ModelFacts};

/// A trained model.
#[derive(Debug)]
pub struct Model {
    /// What turns texts into vectors.
    pub encoder: TextEncoder,
    /// What can be predicted.
    pub labels: Labels,
    /// What is known of the labels.
    pub views: Views,
    /// How it becomes a score.
    pub fusion: Fusion,
    /// The beginnings of the training points' texts and their labels, if they vote.
    pub points: Option<Points>,
    /// Other files: the plan, how training went, what the model reaches.
    pub records: Records,
}

/// What is kept about a model beside the model itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// How it was trained, in TOML.
    pub plan: String,
    /// How training went, one JSON object a line.
    pub metrics: String,
    /// What it reached when it was trained, in JSON; empty if nobody looked.
    pub evaluation: String,
    /// Labels that it was trained with and that were removed since.
    pub n_removed: usize,
}

impl Model {
    /// Saves a model, whole or not at all.
    pub fn save(&self, folder: &Path, existing: Existing) -> Result<()> {
        let aside = Self::begin(folder, existing)?;
        self.encoder.write(&aside, "encoder/")?;
        let views = &self.views;
        aside.write("labels.bin", |out| label_file::write(out, &self.labels, &views.counts))?;
        aside.write("embeddings.npy", |out| views.embeddings.write_npy(out))?;
        aside.write("classifiers.npy", |out| views.classifiers.write_npy(out))?;
        views.index.save(&aside.path("classifiers.hnsw"))?;
        if let (Some(points), Some(votes)) = (&self.points, &views.votes) {
            aside.write("points.bin", |out| points.write(out))?;
            aside.write("points.npy", |out| votes.vectors().write_npy(out))?;
            votes.index().save(&aside.path("points.hnsw"))?;
        }
        if let Some(lexical) = &views.lexical {
            aside.write("lexical.bin", |out| lexical_file::write(out, lexical))?;
        }
        let fusion = serde_json::to_string(&self.fusion).expect("a fusion is names and numbers");
        let Records { plan, metrics, evaluation, n_removed } = &self.records;
        for (name, text) in [
            ("fusion.json", &fusion),
            ("plan.toml", plan),
            ("metrics.jsonl", metrics),
            ("evaluation.json", evaluation),
        ] {
            if !text.is_empty() {
                aside.write(name, |out| out.write_all(text.as_bytes()))?;
            }
        }
        let facts = ModelFacts {
            n_labels: self.labels.texts.len(),
            n_added: views.n_labels() - views.n_trained(),
            n_removed: *n_removed,
            n_points: self.points.as_ref().map_or(0, |points| points.texts.len()),
            dim: views.embeddings.dim(),
            index: views.index.facts(),
            points_index: views.votes.as_ref().map(|votes| votes.index().facts()),
        };
        let manifest = Manifest::of(&aside.path(""), facts)?;
        aside.write(MANIFEST, |out| out.write_all(manifest.to_json().as_bytes()))?;
        aside.finish()
    }

    /// Begins a folder, and says at once if there must not be one.
    pub(crate) fn begin(folder: &Path, existing: Existing) -> Result<FolderAside> {
        // What `--only encoder` leaves has a plan and no manifest.
        let mark = if folder.join(MANIFEST).is_file() { MANIFEST } else { "plan.toml" };
        FolderAside::create(folder, existing, mark)
    }

    /// Opens a model: vectors and indices are mapped, not read.
    pub fn open(folder: &Path) -> Result<Self> {
        let manifest = Manifest::open(folder, Check::Quick)?;
        let file = |name: &str| folder.join(name);
        let has = |name: &str| manifest.files.contains_key(name);
        let encoder = TextEncoder::load(&file("encoder"))?;
        let (labels, counts) = label_file::read(&file("labels.bin"))?;
        let embeddings = VectorMatrix::open(&file("embeddings.npy"))?;
        let classifiers = Arc::new(VectorMatrix::open(&file("classifiers.npy"))?);
        fits(&file("classifiers.npy"), classifiers.n_rows(), labels.texts.len(), "labels")?;
        let n_trained = classifiers.n_rows().checked_sub(manifest.n_added).ok_or_else(|| {
            damaged(&file(MANIFEST), "more labels added than there are labels", HELP)
        })?;
        let index = AnyIndex::open(
            &file("classifiers.hnsw"),
            Arc::clone(&classifiers),
            n_trained,
            manifest.index,
        )?;
        let (mut votes, mut points) = (None, None);
        if has("points.bin") {
            let found = Points::read(&file("points.bin"))?;
            let vectors = Arc::new(VectorMatrix::open(&file("points.npy"))?);
            fits(&file("points.npy"), vectors.n_rows(), found.texts.len(), "points")?;
            fits(&file("points.npy"), vectors.dim(), encoder.dim(), "numbers a vector")?;
            fits(
                &file("points.bin"),
                found.labels.n_columns() as usize,
                labels.texts.len(),
                "labels",
            )?;
            let facts = manifest.points_index.ok_or_else(|| {
                damaged(&file(MANIFEST), "points without a word on their index", HELP)
            })?;
            let path = file("points.hnsw");
            let index = AnyIndex::open(&path, Arc::clone(&vectors), vectors.n_rows(), facts)?;
            votes = Some(Votes::new(index, vectors, found.labels.clone()));
            points = Some(found);
        }
        let n_labels = labels.texts.len();
        fits(&file("embeddings.npy"), embeddings.n_rows(), n_labels, "labels")?;
        fits(&file("embeddings.npy"), embeddings.dim(), encoder.dim(), "numbers a vector")?;
        fits(&file("classifiers.npy"), classifiers.dim(), encoder.dim() + 1, "numbers a vector")?;
        let mut lexical = None;
        if has("lexical.bin") {
            let found = lexical_file::read(&file("lexical.bin"), array_file::Check::Shape, HELP)?;
            fits(&file("lexical.bin"), found.n_labels(), n_labels, "labels")?;
            lexical = Some(found);
        }
        let fusion = read_fusion(&file("fusion.json"))?;
        let text = |name: &str| match has(name) {
            true => fs::read_to_string(file(name)).map_err(|e| Error::io("read", file(name), e)),
            false => Ok(String::new()),
        };
        let records = Records {
            plan: text("plan.toml")?,
            metrics: text("metrics.jsonl")?,
            evaluation: text("evaluation.json")?,
            n_removed: manifest.n_removed,
        };
        let views = Views { embeddings, classifiers, index, counts, votes, lexical };
        Ok(Self { encoder, labels, views, fusion, points, records })
    }
}

/// Refuses files that are each whole and do not belong together.
fn fits(path: &Path, found: usize, expected: usize, what: &str) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(InputError::new(InputErrorKind::CountMismatch, Place::file(path))
        .expected(format!("{expected} {what}, as the rest of the model has"))
        .found(found.to_string())
        .help(HELP)
        .into())
}

fn read_fusion(path: &Path) -> Result<Fusion> {
    let text = fs::read_to_string(path).map_err(|source| Error::io("read", path, source))?;
    let problem = |found: String| -> Error {
        InputError::new(InputErrorKind::DamagedFile, Place::file(path))
            .expected("how scores become one, as it was written")
            .found(found)
            .help(HELP)
            .into()
    };
    let fusion: Fusion = serde_json::from_str(&text).map_err(|error| problem(error.to_string()))?;
    fusion.check().map_err(problem)?;
    Ok(fusion)
}
