//! The folder of a run: what is needed to go on after a stop, beside the model to be.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::plan::TrainPlan;
use crate::atomic_file::FileAside;
use crate::encoder::TextEncoder;
use crate::error::{InputError, InputErrorKind, Place};
use crate::folder_aside::Existing;
use crate::{Error, Result};

/// `MODEL.run`: the plan, the encoder it starts from, checkpoints, the best weights, the metrics.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// The run folder of a model.
    pub fn of(model: &Path) -> Self {
        let mut name = model.file_name().unwrap_or_default().to_owned();
        name.push(".run");
        Self { path: model.with_file_name(name) }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a run was begun here.
    pub fn is_begun(&self) -> bool {
        self.plan_file().exists()
    }

    /// Begins a run: keeps the encoder it starts from and, last, the plan.
    pub(super) fn begin(&self, plan: &TrainPlan, encoder: &TextEncoder) -> Result<()> {
        self.remove()?;
        fs::create_dir_all(&self.path).map_err(|source| Error::io("create", &self.path, source))?;
        encoder.save(&self.start_folder(), Existing::Replace)?;
        write_whole(&self.plan_file(), plan.to_toml().as_bytes())
    }

    /// The plan of a run that was begun.
    pub fn plan(&self) -> Result<TrainPlan> {
        let path = self.plan_file();
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(InputError::new(InputErrorKind::MissingFile, Place::file(&self.path))
                    .expected("the folder of a run that was stopped")
                    .found("no plan.toml there")
                    .help("leave out --resume to begin a run")
                    .into());
            }
            Err(error) => return Err(Error::io("read", path, error)),
            Ok(text) => text,
        };
        let plan = TrainPlan::parse(&text).map_err(|found| -> Error {
            InputError::new(InputErrorKind::DamagedFile, Place::file(path))
                .expected("the plan that was written when the run began")
                .found(found)
                .help("begin anew with --force")
                .into()
        })?;
        plan.config.check()?; // Someone may have edited it.
        Ok(plan)
    }

    /// Removes everything.
    pub fn remove(&self) -> Result<()> {
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("remove", &self.path, error))
            }
            _ => Ok(()),
        }
    }

    fn plan_file(&self) -> PathBuf {
        self.path.join("plan.toml")
    }

    /// The encoder that training starts from.
    pub fn start_folder(&self) -> PathBuf {
        self.path.join("start")
    }

    /// The encoder, when its training is done: what comes after it starts here.
    pub(super) fn encoder(&self) -> PathBuf {
        self.path.join("encoder")
    }

    /// What lower layers, which are not trained, make of all tokens.
    pub(super) fn states(&self) -> PathBuf {
        self.path.join("states.npy")
    }

    /// The encoder of the last step, where another was better.
    pub(super) fn last_encoder(&self) -> PathBuf {
        self.path.join("encoder-last")
    }

    /// What is told of the encoder's training.
    pub(super) fn trained(&self) -> PathBuf {
        self.path.join("trained.json")
    }

    /// Classifiers, when their training is done, and on the way.
    pub(super) fn classifiers(&self, which: &str) -> PathBuf {
        self.path.join(format!("classifiers-{which}.bin"))
    }

    /// The sparse view, when its training is done.
    pub(super) fn lexical(&self, which: &str) -> PathBuf {
        self.path.join(format!("lexical-{which}.bin"))
    }

    /// How scores become one, when that is learnt.
    pub(super) fn fusion(&self) -> PathBuf {
        self.path.join("fusion.json")
    }

    /// The newest checkpoint.
    pub(super) fn checkpoint(&self) -> PathBuf {
        self.path.join("checkpoint.bin")
    }

    /// The checkpoint before the newest.
    pub(super) fn previous_checkpoint(&self) -> PathBuf {
        self.path.join("checkpoint.previous.bin")
    }

    /// The best weights so far.
    pub(super) fn best(&self) -> PathBuf {
        self.path.join("best.bin")
    }

    /// Steps and validations, one JSON object a line.
    pub(super) fn metrics(&self) -> PathBuf {
        self.path.join("metrics.jsonl")
    }
}

pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut aside = FileAside::create(path)?;
    aside.file().write_all(bytes).map_err(|source| Error::io("write", path, source))?;
    aside.finish()
}
