//! Labels added to a model and removed from it, without training.
//!
//! An added label is known by its text alone and is found at once; what the model says of other labels
//! stays the same to the last bit. A removed label is gone from every view.

use super::Model;
use crate::Result;
use crate::data::{Ids, Interner, Labels, NewLabels, Texts};
use crate::encoder::{Precision, VectorType};
use crate::error::{Error, InputError, InputErrorKind};
use crate::progress::Observer;

impl Model {
    /// The same model with more labels behind those it has.
    pub fn with_labels(self, new: &NewLabels, observer: &dyn Observer) -> Result<Self> {
        let ids = names(&self.labels);
        for (label, id) in new.ids().iter().enumerate() {
            if let Some(there) = ids.get(id) {
                let text = self.labels.texts.get(there as usize);
                return Err(InputError::new(InputErrorKind::DuplicateLabelId, new.place(label))
                    .expected("an id that no label of the model has")
                    .found(format!("`{id}`, which is the label \"{text}\" of the model"))
                    .help("give it another id, or remove the label of the model first")
                    .into());
            }
        }
        let n_labels = self.labels.texts.len() + new.texts().len();
        if u32::try_from(n_labels).is_err() {
            return Err(Error::Option {
                option: "labels",
                expected: format!("at most {} in all", u32::MAX),
                found: n_labels.to_string(),
            });
        }
        let embedder = self.encoder.embedder(Precision::F32);
        let vectors = embedder.embed_texts(new.texts(), VectorType::F32, observer)?;
        let views = self.views.with_labels(&self.labels.texts, new.texts(), &vectors);
        let mut points = self.points;
        if let Some(points) = &mut points {
            points.labels.widen(n_labels as u32);
        }
        let same_as_text = self.labels.ids == Ids::SameAsText && new.ids() == new.texts();
        let mut labels = self.labels;
        labels.texts.append(new.texts());
        labels.ids = if same_as_text {
            Ids::SameAsText
        } else {
            let mut all = ids.into_strings();
            all.append(new.ids());
            Ids::Own(all)
        };
        Ok(Self { labels, views, points, ..self })
    }

    /// The same model without some labels, given by their ids.
    pub fn without_labels(self, ids: &[String], observer: &dyn Observer) -> Result<Self> {
        let names = names(&self.labels);
        let n_labels = self.labels.texts.len();
        let mut is_removed = vec![false; n_labels];
        for id in ids {
            let Some(label) = names.get(id) else { return Err(unknown(id, &self.labels)) };
            is_removed[label as usize] = true;
        }
        let kept: Vec<u32> =
            (0..n_labels as u32).filter(|&label| !is_removed[label as usize]).collect();
        if kept.is_empty() {
            return Err(Error::Option {
                option: "ids",
                expected: "at least one label that stays".to_owned(),
                found: "all labels of the model".to_owned(),
            });
        }
        let n_trained = self.views.n_trained();
        let views = self.views.select(&kept, observer)?;
        let mut points = self.points;
        if let Some(points) = &mut points {
            points.labels = points.labels.select_columns(&kept);
        }
        let mut labels = self.labels;
        // A label that is called by its position would get another name.
        labels.ids = match labels.ids {
            Ids::SameAsText => Ids::SameAsText,
            Ids::Position | Ids::Own(_) => Ids::Own(names.into_strings().select(&kept)),
        };
        labels.texts = labels.texts.select(&kept);
        let mut records = self.records;
        records.n_removed += n_trained - views.n_trained();
        Ok(Self { labels, views, points, records, ..self })
    }
}

/// The labels by their ids. Ids of a model differ, as those of a data set do.
fn names(labels: &Labels) -> Interner {
    let mut names = Interner::default();
    for label in 0..labels.texts.len() {
        names.intern(&labels.id(label));
    }
    names
}

/// An id that no label has; if it is a label's text, that label's id is what was meant.
fn unknown(id: &str, labels: &Labels) -> Error {
    let meant = labels.texts.iter().position(|text| text == id);
    let found = match meant {
        Some(label) => format!("`{id}`, which is the text of the label `{}`", labels.id(label)),
        None => format!("`{id}`, which is none"),
    };
    Error::Option {
        option: "ids",
        expected: "ids of labels of the model, as `ngame labels list` shows them".to_owned(),
        found,
    }
}

impl Model {
    /// The labels whose id or text contains some words, in any case, by their numbers.
    pub fn search_labels(&self, words: &str) -> Vec<u32> {
        let wanted = words.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&wanted);
        let matches = |&label: &u32| {
            let label = label as usize;
            has(&self.labels.id(label)) || has(self.labels.texts.get(label))
        };
        (0..self.labels.texts.len() as u32).filter(matches).collect()
    }

    /// The texts of the labels that were added after training, each with its number.
    pub fn added_labels(&self) -> impl Iterator<Item = (u32, &str)> {
        let texts: &Texts = &self.labels.texts;
        (self.views.n_trained()..texts.len()).map(|label| (label as u32, texts.get(label)))
    }
}
