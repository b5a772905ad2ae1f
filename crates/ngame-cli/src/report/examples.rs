//! Test points with the labels found for them: some right, some wrong.

use std::path::Path;

use ngame::data::{Dataset, Split};
use ngame::evaluation::align;
use ngame::model::Model;
use ngame::prediction::{PredictionOptions, Predictor};
use ngame::progress::Observer;

/// Points that are answered, spread over all.
const LOOKED_AT: usize = 400;

/// Examples of each kind.
const SHOWN: usize = 6;

/// Labels of an answer.
const TOP: usize = 5;

/// Some points.
#[derive(Debug)]
pub(super) struct Examples {
    /// Those whose first label is right.
    pub(super) right: Vec<Example>,
    /// Those whose first label is wrong.
    pub(super) wrong: Vec<Example>,
}

/// One point.
#[derive(Debug)]
pub(super) struct Example {
    pub(super) text: String,
    pub(super) found: Vec<Found>,
    /// True labels that were not found.
    pub(super) missed: Vec<String>,
}

/// A label of an answer.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) text: String,
    pub(super) probability: f32,
    pub(super) is_right: bool,
}

/// Answers some of the test points.
pub(super) fn find(
    folder: &Path,
    dataset: &Dataset,
    test: &Split,
    observer: &dyn Observer,
) -> anyhow::Result<Examples> {
    let model = Model::open(folder)?;
    let points = align(&model.labels, &dataset.labels, test);
    let predictor = Predictor::new(model);
    let labels = &predictor.model().labels;
    let stride = (test.n_points() / LOOKED_AT).max(1);
    let rows: Vec<u32> = (0..test.n_points() as u32).step_by(stride).take(LOOKED_AT).collect();
    let (texts, filter) = (points.texts().select(&rows), points.filter().select(&rows));
    let options = PredictionOptions { top: TOP, ..Default::default() };
    let answers = predictor.predict(&texts, options, Some(&filter), observer)?;
    let name = |label: u32| {
        let (labels, at) = match points.unknown(label) {
            Some(at) => (&dataset.labels, at as usize),
            None => (labels, label as usize),
        };
        match labels.texts.get(at).trim() {
            "" => labels.id(at).into_owned(),
            text => text.to_owned(),
        }
    };
    let (mut right, mut wrong) = (Vec::new(), Vec::new());
    for (place, answer) in answers.iter().enumerate() {
        let truth = points.truth().row(rows[place] as usize);
        let Some(first) = answer.first() else { continue };
        if truth.is_empty() {
            continue;
        }
        let found: Vec<Found> = answer
            .iter()
            .map(|one| Found {
                text: name(one.label),
                probability: one.score,
                is_right: truth.contains(&one.label),
            })
            .collect();
        let is_missed = |label: &&u32| !answer.iter().any(|one| one.label == **label);
        let missed = truth.iter().filter(is_missed).map(|&label| name(label)).collect();
        let kind = if truth.contains(&first.label) { &mut right } else { &mut wrong };
        kind.push(Example { text: texts.get(place).to_owned(), found, missed });
    }
    Ok(Examples { right: spread(right), wrong: spread(wrong) })
}

/// A few of many, from all over.
fn spread(examples: Vec<Example>) -> Vec<Example> {
    let stride = (examples.len() / SHOWN).max(1);
    examples.into_iter().step_by(stride).take(SHOWN).collect()
}
