//! Labels added to a model and removed from it.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use ngame::data::{Dataset, NewLabels, TextChoice, Texts};
use ngame::encoder::Existing;
use ngame::model::{Check, Manifest, Model};
use ngame::prediction::{PredictionOptions, Predictor};
use ngame::progress::Silent;

use crate::whole_run::{files, run, sample};

const ALL: PredictionOptions = PredictionOptions { top: 1_000, threshold: 0.0 };

/// Every label that a model finds for some texts, by id, with the bits of its score.
fn answers(model: Model, texts: &Texts) -> Vec<Vec<(String, u32)>> {
    let predictor = Predictor::new(model);
    let found = predictor.predict(texts, ALL, None, &Silent).unwrap();
    let labels = &predictor.model().labels;
    let named = |row: &Vec<ngame::prediction::Predicted>| {
        let one = |found: &ngame::prediction::Predicted| {
            (labels.id(found.label as usize).into_owned(), found.score.to_bits())
        };
        row.iter().map(one).collect()
    };
    found.iter().map(named).collect()
}

/// Test texts that no label has: each is the text of a new label.
fn new_labels(dataset: &Dataset, folder: &Path) -> NewLabels {
    let known: Vec<String> = dataset.labels.texts.iter().map(str::to_lowercase).collect();
    let texts = dataset.test.as_ref().unwrap().texts.iter();
    let mut lines = String::new();
    let fresh = texts.filter(|text| !known.contains(&text.to_lowercase()));
    for (number, text) in fresh.step_by(9).take(30).enumerate() {
        lines +=
            &format!("{}\n", serde_json::json!({ "id": format!("new-{number}"), "text": text }));
    }
    lines += "{\"id\": \"new-odd\", \"text\": \"zyxgrü 漢字 %%%\"}\n";
    let path = folder.join("labels.jsonl");
    fs::write(&path, lines).unwrap();
    NewLabels::read(&path, TextChoice::Title, &Silent).unwrap()
}

#[test]
fn added_labels_are_found_by_their_texts_and_change_no_other_answer() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = sample();
    let new = new_labels(&dataset, folder.path());
    assert!(new.texts().len() > 20);
    let texts = &dataset.test.as_ref().unwrap().texts;
    let paper = [
        "fusion.views=paper",
        "fusion.method=tree",
        "classifier.objective=triplet",
        "index.kind=hnsw",
    ];
    for (name, settings) in [("all", &[][..]), ("paper", &paper)] {
        let [before, after, again] =
            ["before", "after", "again"].map(|when| folder.path().join(format!("{name}-{when}")));
        run(&dataset, settings, &before, &Silent).unwrap();
        let model = Model::open(&before).unwrap().with_labels(&new, &Silent).unwrap();
        model.save(&after, Existing::Keep).unwrap();
        let manifest = Manifest::open(&after, Check::Whole).unwrap();
        assert_eq!(manifest.n_added, new.texts().len());
        assert_eq!(manifest.n_labels, dataset.n_labels() + new.texts().len());

        // Every new label is first for its own text.
        let predictor = Predictor::new(Model::open(&after).unwrap());
        for (id, text) in new.ids().iter().zip(new.texts().iter()) {
            for text in [text.to_owned(), text.to_uppercase()] {
                let one = predictor.predict_one(&text, PredictionOptions::default(), &[]).unwrap();
                let first = predictor.model().labels.id(one[0].label as usize).into_owned();
                assert_eq!(first, id, "{name}: {text}");
                assert!(one.is_sorted_by(|a, b| a.score >= b.score));
            }
        }
        // All others are found where they were, with the same scores to the last bit.
        let old = answers(Model::open(&before).unwrap(), texts);
        let with_new = answers(predictor.into_model(), texts);
        let (mut n_new, mut n_rare) = (0, 0);
        let by_label = &dataset.train.by_label;
        let is_rare = |label: &usize| by_label.row(*label).len() == 1;
        let rare: HashSet<String> = (0..dataset.n_labels())
            .filter(is_rare)
            .map(|label| dataset.labels.id(label).into_owned())
            .collect();
        for (old, with_new) in old.iter().zip(with_new) {
            let n_all = with_new.len();
            let kept: Vec<_> =
                with_new.into_iter().filter(|(id, _)| !id.starts_with("new-")).collect();
            n_new += n_all - kept.len();
            n_rare += kept.iter().filter(|(id, _)| rare.contains(id)).count();
            assert_eq!(&kept, old);
        }
        // Labels of no point are candidates nearly as often as those of one, which they are taken for.
        let [often, rarely] =
            [(n_new, new.texts().len()), (n_rare, rare.len())].map(|(n, of)| n as f64 / of as f64);
        assert!(often > 0.75 * rarely && rarely > 1.0, "{name}: {often} and {rarely} times");
        // Once they are removed again, the folder is what it was before they came.
        let ids: Vec<String> = new.ids().iter().map(str::to_owned).collect();
        let removed = Model::open(&after).unwrap().without_labels(&ids, &Silent).unwrap();
        removed.save(&again, Existing::Keep).unwrap();
        assert_eq!(files(&again), files(&before));
        for file in &files(&before) {
            let [a, b] = [&before, &again].map(|folder| fs::read(folder.join(file)).unwrap());
            assert!(a == b, "{name}: {file} differs");
        }
    }
}

#[test]
fn many_new_labels_do_not_crowd_out_the_old_ones() {
    let folder = tempfile::tempdir().unwrap();
    let (dataset, path) = (sample(), folder.path().join("model"));
    run(&dataset, &[], &path, &Silent).unwrap();
    let test = dataset.test.as_ref().unwrap();
    // Every third test text is a new label, and nobody asks for it: the others are asked.
    let lines: Vec<&str> = test.texts.iter().step_by(3).collect();
    let mut distinct: Vec<&str> = lines.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let file = folder.path().join("labels.txt");
    fs::write(&file, distinct.join("\n")).unwrap();
    let new = NewLabels::read(&file, TextChoice::Title, &Silent).unwrap();
    let asked: Vec<u32> = (0..test.texts.len() as u32).filter(|point| point % 3 != 0).collect();
    let texts = test.texts.select(&asked);
    let model = Model::open(&path).unwrap().with_labels(&new, &Silent).unwrap();
    let first_new = model.views.n_trained() as u32;
    let share_of_labels = new.texts().len() as f64 / model.labels.texts.len() as f64;
    let predictor = Predictor::new(model);
    let found = predictor.predict(&texts, PredictionOptions::default(), None, &Silent).unwrap();
    let all: Vec<u32> = found.iter().flatten().map(|found| found.label).collect();
    let share = all.iter().filter(|&&label| label >= first_new).count() as f64 / all.len() as f64;
    assert!(share_of_labels > 0.1 && share < 2.0 * share_of_labels, "{share} {share_of_labels}");
}

#[test]
fn removed_labels_are_gone_from_every_view() {
    let folder = tempfile::tempdir().unwrap();
    let (dataset, path) = (sample(), folder.path().join("model"));
    for kind in ["exact", "hnsw"] {
        run(&dataset, &[&format!("index.kind={kind}")[..]], &path, &Silent).unwrap();
        let texts = &dataset.test.as_ref().unwrap().texts;
        let before = answers(Model::open(&path).unwrap(), texts);
        // The first answers to the first texts, so that each would have been found.
        let mut ids: Vec<String> = before.iter().take(40).map(|row| row[0].0.clone()).collect();
        ids.sort();
        ids.dedup();
        let n_before = dataset.n_labels();
        let model = Model::open(&path).unwrap().without_labels(&ids, &Silent).unwrap();
        // In place of the old one: its files are mapped while the new ones are written.
        model.save(&path, Existing::Replace).unwrap();
        let model = Model::open(&path).unwrap();
        let manifest = Manifest::open(&path, Check::Whole).unwrap();
        assert_eq!((manifest.n_removed, manifest.n_labels), (ids.len(), n_before - ids.len()));
        assert_eq!(model.views.lexical.as_ref().unwrap().n_labels(), n_before - ids.len());
        let names: Vec<String> = (0..model.labels.texts.len())
            .map(|label| model.labels.id(label).into_owned())
            .collect();
        assert!(ids.iter().all(|id| !names.contains(id)));
        let facts = model.views.index.facts();
        assert!(facts.recall >= 0.95, "{facts:?}");
        // Who voted for it votes for its other labels still.
        let train = &dataset.train;
        let n_pairs = train.by_point.n_pairs();
        let n_gone: u64 = (0..n_before)
            .filter(|&label| ids.contains(&dataset.labels.id(label).into_owned()))
            .map(|label| train.by_label.row(label).len() as u64)
            .sum();
        assert_eq!(model.points.as_ref().unwrap().labels.n_pairs(), n_pairs - n_gone);
        assert_eq!(model.views.votes.as_ref().unwrap().labels().n_pairs(), n_pairs - n_gone);
        let after = answers(model, texts);
        for (before, after) in before.iter().zip(&after) {
            assert!(after.iter().all(|(id, _)| !ids.contains(id)));
            // Where a right answer was, there is another one.
            assert!(after.len() + ids.len() >= before.len().min(100));
        }
        fs::remove_dir_all(&path).unwrap();
    }
}

#[test]
fn mistakes_with_labels_are_told_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (dataset, path) = (sample(), folder.path().join("model"));
    run(&dataset, &["run.epochs=0"], &path, &Silent).unwrap();
    let file = folder.path().join("labels.jsonl");
    let (id, text) = (dataset.labels.id(17).into_owned(), dataset.labels.texts.get(17));
    let row = |id: &str| serde_json::json!({ "id": id, "text": "something" });
    fs::write(&file, format!("{}\n{}\n", row("fine"), row(&id))).unwrap();
    let new = NewLabels::read(&file, TextChoice::Title, &Silent).unwrap();
    let error = Model::open(&path).unwrap().with_labels(&new, &Silent).unwrap_err().to_string();
    assert!(error.contains("line 2") && error.contains(&id) && error.contains(text), "{error}");
    let remove = |ids: &[String]| {
        Model::open(&path).unwrap().without_labels(ids, &Silent).unwrap_err().to_string()
    };
    let error = remove(&[id.clone(), "no such".to_owned()]);
    assert!(error.contains("`no such`, which is none"), "{error}");
    let error = remove(&[text.to_owned()]);
    assert!(error.contains(&format!("the text of the label `{id}`")), "{error}");
    let all: Vec<String> =
        (0..dataset.n_labels()).map(|label| dataset.labels.id(label).into_owned()).collect();
    assert!(remove(&all).contains("at least one label"), "{}", remove(&all));
    // More labels added than there are is a manifest that nobody wrote.
    let manifest = path.join("manifest.json");
    let damaged = fs::read_to_string(&manifest).unwrap().replacen(
        "\"n_labels\"",
        "\"n_added\": 99999999,\n  \"n_labels\"",
        1,
    );
    fs::write(&manifest, damaged).unwrap();
    assert!(Model::open(&path).unwrap_err().to_string().contains("more labels added"));
}
