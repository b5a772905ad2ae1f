//! Model folders that older builds wrote: what they answered is what they answer.

use std::fs;
use std::path::Path;

use ngame::data::Texts;
use ngame::model::Model;
use ngame::prediction::{Predicted, PredictionOptions, Predictor};
use ngame::progress::Silent;

/// How far an answer may be from the one in the file, which has six digits. Processors add up in different
/// orders, and where probabilities rise steeply that is worth two units of the last of them.
const DIGITS: f32 = 3e-6;

#[test]
fn models_of_older_versions_answer_as_they_did() {
    for version in ["version-3", "version-4"] {
        answers_stay(version);
    }
}

fn answers_stay(version: &str) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/model");
    let predictor = Predictor::new(Model::open(&fixtures.join(version)).unwrap());
    let texts = fs::read_to_string(fixtures.join("texts.txt")).unwrap();
    let texts: Texts = texts.lines().collect();
    let options = PredictionOptions { top: 5, threshold: 0.0 };
    let found = predictor.predict(&texts, options, None, &Silent).unwrap();
    // One by one they are the same to the last bit, on any processor.
    for (text, at_once) in texts.iter().zip(&found) {
        assert_eq!(&predictor.predict_one(text, options, &[]).unwrap(), at_once, "{text}");
    }
    let answers = found.into_iter().enumerate().flat_map(|(row, found)| {
        let labels = &predictor.model().labels;
        let told = |one: Predicted| (row, labels.id(one.label as usize).into_owned(), one.score);
        found.into_iter().map(told).collect::<Vec<_>>()
    });
    let written = fs::read_to_string(fixtures.join(format!("{version}.tsv"))).unwrap();
    let mut lines = written.lines();
    for (row, id, score) in answers {
        let fields: Vec<&str> = lines.next().unwrap().split('\t').collect();
        assert_eq!((row.to_string().as_str(), id.as_str()), (fields[0], fields[1]));
        let expected: f32 = fields[2].parse().unwrap();
        assert!((score - expected).abs() <= DIGITS, "{row}, {id}: {score}, not {expected}");
    }
    assert_eq!(lines.next(), None);
}
