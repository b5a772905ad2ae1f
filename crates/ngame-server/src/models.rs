//! The models that are served, and how one takes the place of another while requests go on.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use ngame::data::Labels;
use ngame::model::{Check, Manifest, Model};
use ngame::prediction::{PredictionOptions, Predictor};

use crate::card::card;
use crate::label_search::LabelSearch;
use crate::types::{ModelCard, ModelEntry};

/// A model that answers. Requests hold on to it: one that was replaced goes when its last answer is
/// out.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) predictor: Predictor,
    pub(crate) search: LabelSearch,
    card: ModelCard,
}

impl Served {
    /// Opens a model and tries it.
    fn open(name: &str, folder: &Path, check: Check) -> ngame::Result<Self> {
        let manifest = Manifest::open(folder, check)?;
        let model = Model::open(folder)?;
        let card = card(name, &manifest, &model);
        let predictor = Predictor::new(model);
        // The first answer finds files and memory cold: that is not for a user to wait for.
        let example = card.examples.first().map_or("", String::as_str);
        predictor.predict_one(example, PredictionOptions::default(), &[])?;
        Ok(Self { predictor, search: LabelSearch::default(), card })
    }

    pub(crate) fn labels(&self) -> &Labels {
        &self.predictor.model().labels
    }

    pub(crate) fn counts(&self) -> &[u32] {
        &self.predictor.model().views.counts
    }
}

/// The models, in the order they were named.
#[derive(Debug)]
pub(crate) struct Models {
    places: Vec<Place>,
}

/// Where a model lies and which one answers now.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) name: String,
    folder: PathBuf,
    current: RwLock<Arc<Served>>,
    reloads: AtomicU64,
    /// The manifest that the current model was opened with.
    seen: Mutex<Option<Seen>>,
}

/// What tells one manifest from another without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    bytes: u64,
    modified: Option<SystemTime>,
    /// A folder that was renamed into place has other files, however old they are.
    file: u64,
}

impl Models {
    /// Opens all models.
    pub(crate) fn open(named: &[(String, PathBuf)]) -> ngame::Result<Self> {
        let places: ngame::Result<Vec<Place>> = named
            .iter()
            .map(|(name, folder)| {
                let seen = Seen::of(folder);
                let served = Served::open(name, folder, Check::Quick)?;
                Ok(Place {
                    name: name.clone(),
                    folder: folder.clone(),
                    current: RwLock::new(Arc::new(served)),
                    reloads: AtomicU64::new(0),
                    seen: Mutex::new(seen),
                })
            })
            .collect();
        Ok(Self { places: places? })
    }

    /// The model of this name, or the first if none is named.
    pub(crate) fn find(&self, name: Option<&str>) -> Option<&Place> {
        match name {
            Some(name) => self.places.iter().find(|place| place.name == name),
            None => self.places.first(),
        }
    }

    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }
}

impl Place {
    /// The model that answers now.
    pub(crate) fn current(&self) -> Arc<Served> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the folder holds another model than the one that answers, and which.
    pub(crate) fn change(&self) -> Option<Seen> {
        let found = Seen::of(&self.folder)?;
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        (*seen != Some(found)).then_some(found)
    }

    /// Reads every byte of the folder, opens the model, tries it, and lets it answer from now on. If
    /// anything is wrong with it, the one before goes on answering.
    pub(crate) fn reload(&self) -> ngame::Result<()> {
        let seen = Seen::of(&self.folder);
        let served = Arc::new(Served::open(&self.name, &self.folder, Check::Whole)?);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, served);
        drop(current);
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        self.reloads.fetch_add(1, Ordering::Relaxed);
        // Memory is given back outside of the lock.
        drop(before);
        Ok(())
    }

    pub(crate) fn entry(&self) -> ModelEntry {
        let card = &self.current().card;
        ModelEntry {
            name: card.name.clone(),
            n_labels: card.n_labels,
            dim: card.dim,
            reloads: self.reloads.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn card(&self) -> ModelCard {
        let card = self.current().card.clone();
        ModelCard { reloads: self.reloads.load(Ordering::Relaxed), ..card }
    }
}

impl Seen {
    fn of(folder: &Path) -> Option<Self> {
        let facts = fs::metadata(folder.join("manifest.json")).ok()?;
        #[cfg(unix)]
        let file = std::os::unix::fs::MetadataExt::ino(&facts);
        #[cfg(not(unix))]
        let file = 0;
        Some(Self { bytes: facts.len(), modified: facts.modified().ok(), file })
    }
}
