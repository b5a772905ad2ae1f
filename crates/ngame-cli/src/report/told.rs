//! What a folder tells about a model or a run.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use ngame::evaluation::Evaluation;
use ngame::fusion::Tried;
use ngame::model::{Check, Manifest, Model};
use ngame::training::{History, TrainPlan};

use super::examples::Examples;

/// One model or run.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) name: String,
    pub(super) plan: Option<TrainPlan>,
    pub(super) history: History,
    /// What a finished model has; a run under way has none of it.
    pub(super) model: Option<ModelTold>,
    pub(super) examples: Option<Examples>,
}

/// What a finished model tells.
#[derive(Debug)]
pub(super) struct ModelTold {
    pub(super) bytes: u64,
    pub(super) n_labels: usize,
    pub(super) n_points: usize,
    pub(super) dim: usize,
    pub(super) views: Vec<&'static str>,
    pub(super) tried: Vec<Tried>,
    pub(super) evaluation: Option<Evaluation>,
}

impl Told {
    /// Reads a model folder, an encoder's, or that of a run.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Self> {
        let name = name_of(folder, 1);
        if folder.join("manifest.json").exists() {
            let (manifest, model) = (Manifest::open(folder, Check::Quick)?, Model::open(folder)?);
            return Ok(Self {
                name,
                plan: TrainPlan::parse(&model.records.plan).ok(),
                history: History::parse(&model.records.metrics),
                examples: None,
                model: Some(ModelTold {
                    bytes: manifest.bytes(),
                    n_labels: manifest.n_labels,
                    n_points: manifest.n_points,
                    dim: manifest.dim,
                    views: model.fusion.views.iter().map(|view| view.name()).collect(),
                    evaluation: serde_json::from_str(&model.records.evaluation).ok(),
                    tried: model.fusion.tried,
                }),
            });
        }
        let (plan, metrics) = (folder.join("plan.toml"), folder.join("metrics.jsonl"));
        if !plan.exists() {
            bail!(
                "{}\n  expected: the folder of a model or of a run\n  found:    neither manifest.json nor plan.toml there\n  to do:    name what `ngame train --out` made, or MODEL.run while it trains",
                folder.display()
            );
        }
        let read = |path: &Path| {
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
        };
        let lines = if metrics.exists() { read(&metrics)? } else { String::new() };
        let plan = TrainPlan::parse(&read(&plan)?);
        Ok(Self {
            name,
            plan: plan.ok(),
            history: History::parse(&lines),
            model: None,
            examples: None,
        })
    }

    /// Seconds that training took, as far as it got.
    pub(super) fn seconds(&self) -> f64 {
        let stages: f64 = self.history.stages.iter().map(|stage| stage.seconds).sum();
        self.history.encoder_seconds() + self.history.mining_seconds() + stages
    }

    pub(super) fn evaluation(&self) -> Option<&Evaluation> {
        self.model.as_ref()?.evaluation.as_ref()
    }
}

/// Folders of the same name are called by more of their paths.
pub(super) fn tell_apart(all: &mut [Told], folders: &[PathBuf]) {
    for n_parts in 2..5 {
        let names: Vec<String> = all.iter().map(|told| told.name.clone()).collect();
        for (at, told) in all.iter_mut().enumerate() {
            if names.iter().filter(|&name| *name == names[at]).count() > 1 {
                told.name = name_of(&folders[at], n_parts);
            }
        }
    }
}

/// The last parts of a path.
fn name_of(folder: &Path, n_parts: usize) -> String {
    let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let parts: Vec<String> = whole
        .components()
        .filter(|part| matches!(part, std::path::Component::Normal(_)))
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    parts[parts.len().saturating_sub(n_parts)..].join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_one_name_are_told_apart() {
        let folders = ["a/x/model", "b/x/model", "other"].map(PathBuf::from);
        let told = |folder: &PathBuf| Told {
            name: name_of(folder, 1),
            plan: None,
            history: History::default(),
            model: None,
            examples: None,
        };
        let mut all: Vec<Told> = folders.iter().map(told).collect();
        tell_apart(&mut all, &folders);
        let names: Vec<&str> = all.iter().map(|told| told.name.as_str()).collect();
        assert_eq!(names, ["a/x/model", "b/x/model", "other"]);
    }

    #[test]
    fn another_folder_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let error = Told::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("neither manifest.json nor plan.toml") && error.contains("to do"));
    }
}
