//! From a data set to a model folder and its answers: whole runs, stopped runs, damaged folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ngame::Error;
use ngame::data::{Dataset, ReadOptions, ScoredCsr, TextChoice};
use ngame::encoder::Existing;
use ngame::metrics::{Task, evaluate};
use ngame::model::{Check, Manifest, Model};
use ngame::prediction::{PredictionOptions, Predictor};
use ngame::progress::{Event, Observer, Silent};
use ngame::training::{
    RunFolder, TrainPlan, Trained, config_from, parse_setting, start_encoder, train,
};
use ngame::views::View;

pub(crate) fn sample() -> Dataset {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/debian-small");
    let options = ReadOptions { text: TextChoice::Title, ..Default::default() };
    Dataset::read(&folder, &options, &Silent).unwrap()
}

/// A small run, saved after every step, with some settings on top.
pub(crate) fn run(
    dataset: &Dataset,
    settings: &[&str],
    model: &Path,
    observer: &dyn Observer,
) -> ngame::Result<Trained> {
    let small = [
        "encoder.dim=32",
        "encoder.vocabulary=3000",
        "batching.batch_size=200",
        "run.epochs=6",
        "run.checkpoint=0",
        "classifier.epochs=3",
        "validation.points=280",
    ];
    let settings: Vec<_> =
        small.iter().chain(settings).map(|setting| parse_setting(setting).unwrap()).collect();
    let config = config_from(None, None, &settings).unwrap();
    let encoder = start_encoder(dataset, &config.encoder, 0, &Silent).unwrap();
    let (plan, corpus, encoder) =
        TrainPlan::new(dataset, TextChoice::Title, config, encoder, &Silent).unwrap();
    train(&plan, dataset, &corpus, encoder, model, Existing::Keep, observer)
}

/// The files of a folder, by their paths in it.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    fn list(folder: &Path, prefix: &str, names: &mut Vec<String>) {
        for entry in fs::read_dir(folder.join(prefix)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                list(folder, &format!("{name}/"), names);
            } else {
                names.push(name);
            }
        }
    }
    let mut names = Vec::new();
    list(folder, "", &mut names);
    names.sort();
    names
}

#[test]
fn a_whole_run_leaves_a_model_that_answers() {
    let folder = tempfile::tempdir().unwrap();
    let (dataset, model) = (sample(), folder.path().join("model"));
    let trained = run(&dataset, &[], &model, &Silent).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no run folder is left");

    // Of all ways to score, the one that did best on held-out points was chosen.
    let fusion = trained.fusion.unwrap();
    let value = |at: usize| {
        let tried = &fusion.tried[at];
        let plain = tried.precision_1 + tried.precision_5;
        plain + tried.psprecision_1 + tried.psprecision_5
    };
    let chosen = fusion.tried.iter().position(|tried| tried.chosen).unwrap();
    assert!((0..fusion.tried.len()).all(|at| value(at) <= value(chosen)), "{:?}", fusion.tried);

    // What the folder answers is what was measured before it was written.
    let evaluation = trained.evaluation.unwrap();
    let predictor = Predictor::new(Model::open(&model).unwrap());
    let test = dataset.test.as_ref().unwrap();
    let options = PredictionOptions { top: 100, threshold: 0.0 };
    let filter = Some(&test.filter);
    let predictions = predictor.predict_matrix(&test.texts, options, filter, &Silent).unwrap();
    let task = Task { truth: &test.by_point, filter: None, inverse_propensities: None };
    let precision = evaluate(&predictions, &task, 5).precision;
    assert_eq!(precision, evaluation.fused.metrics.precision);
    assert!(precision[0] > 0.15, "{precision:?}");

    // One text is answered as many are.
    for point in [0, 17, 100] {
        let one =
            predictor.predict_one(test.texts.get(point), options, test.filter.row(point)).unwrap();
        assert!(one.is_sorted_by(|a, b| a.score > b.score), "ranks are kept by scores");
        let mut row: Vec<(u32, f32)> = one.iter().map(|found| (found.label, found.score)).collect();
        let mut matrix = ScoredCsr::new(dataset.n_labels() as u32);
        matrix.push_row(&mut row);
        assert_eq!(matrix.row(0), predictions.row(point));
        assert!(one.iter().all(|found| (-1e-6..=1.0).contains(&found.score)));
    }
    let sure = PredictionOptions { top: 100, threshold: 0.2 };
    let few = predictor.predict_one(test.texts.get(0), sure, &[]).unwrap();
    assert!(few.len() < 100 && few.iter().all(|found| found.score >= 0.2));

    // An explanation names training texts that have the label.
    let explained = predictor.explain(test.texts.get(0), options, &[]).unwrap();
    let labels: Vec<u32> = explained.iter().map(|(found, _)| found.label).collect();
    let plain = predictor.predict_one(test.texts.get(0), options, &[]).unwrap();
    assert_eq!(labels, plain.iter().map(|found| found.label).collect::<Vec<_>>());
    assert!(explained.iter().any(|(_, why)| !why.nearest.is_empty()));
}

#[test]
fn the_papers_views_need_no_points() {
    let folder = tempfile::tempdir().unwrap();
    let (dataset, model) = (sample(), folder.path().join("model"));
    let settings = [
        "fusion.views=paper",
        "fusion.method=tree",
        "classifier.objective=triplet",
        "index.kind=hnsw",
    ];
    run(&dataset, &settings, &model, &Silent).unwrap();
    let opened = Model::open(&model).unwrap();
    assert_eq!(opened.fusion.views, View::PAPER);
    assert!(opened.points.is_none() && opened.views.votes.is_none());
    assert!(model.join("classifiers.hnsw").exists() && !model.join("points.npy").exists());
    let facts = opened.views.index.facts();
    assert!(!facts.exact && facts.recall >= 0.98, "{facts:?}");
    let methods: Vec<&str> = opened.fusion.tried.iter().map(|one| one.method.as_str()).collect();
    assert_eq!(methods, ["embedding", "classifier", "sum", "tree"]);
}

#[test]
fn any_view_can_be_switched_off() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = sample();
    // An encoder of one epoch does not carry classifiers far.
    for (views, methods, least) in [
        ("votes", &["tree", "boosted"][..], 0.1),
        ("lexical", &["tree", "boosted"], 0.2),
        ("embedding,votes", &["embedding", "tree", "boosted"], 0.1),
        ("classifier", &["classifier", "tree", "boosted"], 0.04),
    ] {
        let path = folder.path().join(views);
        let listed = views.replace(',', "\", \"");
        let setting = format!("fusion.views=[\"{listed}\"]");
        let trained = run(&dataset, &["run.epochs=1", &setting], &path, &Silent).unwrap();
        let fusion = trained.fusion.unwrap();
        let tried: Vec<&str> = fusion.tried.iter().map(|one| one.method.as_str()).collect();
        assert_eq!(tried, methods, "{views}");
        let precision = trained.evaluation.unwrap().fused.metrics.precision[0];
        assert!(precision > least, "{views}: {precision}");
        let opened = Model::open(&path).unwrap();
        let asks = |view: View| opened.fusion.views.contains(&view);
        assert_eq!(opened.views.votes.is_some(), asks(View::Votes), "{views}");
        assert_eq!(opened.views.lexical.is_some(), asks(View::Lexical), "{views}");
        // Classifiers that are not asked propose nothing: with votes, only labels of 30 points.
        assert_eq!(opened.fusion.shortlists.classifier > 0, asks(View::Classifier), "{views}");
    }
}

#[test]
fn an_encoder_can_be_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (dataset, model) = (sample(), folder.path().join("model"));
    let trained = run(&dataset, &["run.epochs=0"], &model, &Silent).unwrap();
    assert_eq!((trained.encoder.best, trained.encoder.seconds), (None, 0.0));
    // Words and classifiers do what they can with vectors that mean nothing.
    let fused = trained.evaluation.unwrap().fused.metrics.precision[0];
    assert!(fused > 0.15, "{fused}");
}

/// Asks for a stop when a file is there and it has been asked often enough since.
struct StopAfter {
    file: PathBuf,
    polls: AtomicU64,
    most_polls: u64,
}

impl Observer for StopAfter {
    fn event(&self, _: Event<'_>) {}

    fn cancelled(&self) -> bool {
        self.file.exists() && self.polls.fetch_add(1, Ordering::Relaxed) >= self.most_polls
    }
}

#[test]
fn a_run_that_is_stopped_in_every_stage_ends_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (dataset, straight) = (sample(), folder.path().join("straight"));
    run(&dataset, &[], &straight, &Silent).unwrap();
    let model = folder.path().join("stopped");
    let run_folder = RunFolder::of(&model);
    let stop_after = |stage: &str, most_polls| {
        let file = run_folder.path().join(stage);
        StopAfter { file, polls: AtomicU64::new(0), most_polls }
    };
    let result = run(&dataset, &[], &model, &stop_after("plan.toml", 10));
    assert!(matches!(result, Err(Error::Cancelled)));
    // At the first look after a stage is done, in the middle of the next one, and near its end.
    for (stage, most_polls) in [
        ("encoder", 0),
        ("encoder", 30),
        ("classifiers-held-out-checkpoint.bin", 2),
        ("classifiers-held-out.bin", 0),
        ("lexical-held-out.bin", 0),
        ("lexical-held-out.bin", 40),
        ("fusion.json", 0),
        ("classifiers-all.bin", 0),
        ("lexical-all.bin", 0),
    ] {
        let observer = stop_after(stage, most_polls);
        let result = run_folder.resume(&dataset, &model, Existing::Keep, &observer);
        assert!(matches!(result, Err(Error::Cancelled)), "{stage}: {result:?}");
    }
    run_folder.resume(&dataset, &model, Existing::Keep, &Silent).unwrap();
    // The plan and the log tell how long things took, and the manifest has their checksums.
    let timed = ["manifest.json", "metrics.jsonl", "plan.toml"];
    assert_eq!(files(&model), files(&straight));
    for name in files(&model).iter().filter(|name| !timed.contains(&name.as_str())) {
        let [a, b] = [&model, &straight].map(|folder| fs::read(folder.join(name)).unwrap());
        assert!(a == b, "{name} differs");
    }
}

#[test]
fn upper_layers_trained_alone_make_the_same_model_after_stops() {
    let folder = tempfile::tempdir().unwrap();
    let (dataset, straight) = (sample(), folder.path().join("straight"));
    let start = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/encoder/bert");
    let start = format!("encoder.start={}", start.display());
    let settings =
        [start.as_str(), "encoder.max_tokens=20", "encoder.trained_layers=1", "run.epochs=1"];
    run(&dataset, &settings, &straight, &Silent).unwrap();
    let model = folder.path().join("stopped");
    let run_folder = RunFolder::of(&model);
    let stop = |file: &str| StopAfter {
        file: run_folder.path().join(file),
        polls: AtomicU64::new(0),
        most_polls: 0,
    };
    run(&dataset, &settings, &model, &stop("encoder")).unwrap_err();
    // Without the states of the lower layers they are made again, by the encoder that was trained.
    fs::remove_file(run_folder.path().join("states.npy")).unwrap();
    let result = run_folder.resume(&dataset, &model, Existing::Keep, &stop("fusion.json"));
    assert!(matches!(result, Err(Error::Cancelled)), "{result:?}");
    run_folder.resume(&dataset, &model, Existing::Keep, &Silent).unwrap();
    for name in ["embeddings.npy", "classifiers.npy", "points.npy", "fusion.json"] {
        let [a, b] = [&model, &straight].map(|folder| fs::read(folder.join(name)).unwrap());
        assert!(a == b, "{name} differs");
    }
}

#[test]
fn damage_to_any_file_of_a_model_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (dataset, model) = (sample(), folder.path().join("model"));
    run(&dataset, &["index.kind=hnsw"], &model, &Silent).unwrap();
    Manifest::open(&model, Check::Whole).unwrap();
    let names = files(&model);
    assert!(names.len() > 10, "{names:?}");
    for name in &names {
        let path = model.join(name);
        let whole = fs::read(&path).unwrap();
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 0x10;
        let cut = &whole[..whole.len() - 1];
        for damaged in [&flipped[..], cut, &[]] {
            fs::write(&path, damaged).unwrap();
            let error = match Model::open(&model) {
                Err(error) => error.to_string(),
                // Only a manifest can be changed without a word, where the change says nothing.
                Ok(_) => {
                    assert_eq!(name, "manifest.json");
                    continue;
                }
            };
            let told = name == "manifest.json" || error.contains(name.as_str());
            assert!(told, "{name}: {error}");
            assert!(error.contains("expected:") || error.contains("cannot"), "{error}");
        }
        fs::remove_file(&path).unwrap();
        assert!(Model::open(&model).is_err(), "{name} is missing");
        fs::write(&path, whole).unwrap();
    }
    Model::open(&model).unwrap();
}

#[test]
fn labels_without_texts_and_points_without_labels_are_fine() {
    let folder = tempfile::tempdir().unwrap();
    let mut train = String::from("text,labels\n");
    for n in 0..120 {
        let fruit = ["apple", "banana", "cherry", "plum"][n % 4];
        train += &format!("a {fruit} number {n},{}\n", if n % 7 == 0 { "" } else { fruit });
    }
    fs::write(folder.path().join("train.csv"), train).unwrap();
    fs::write(folder.path().join("test.csv"), "text,labels\nmy apple,apple\na plum,plum\n")
        .unwrap();
    let labels = "id,text\napple,apple\nbanana,yellow fruit\ncherry,\nplum,\nunseen,never seen\n";
    fs::write(folder.path().join("labels.csv"), labels).unwrap();
    let dataset = Dataset::read(folder.path(), &ReadOptions::default(), &Silent).unwrap();
    let model = folder.path().join("model");
    let settings = ["validation.points=24", "classifier.epochs=20", "batching.batch_size=16"];
    run(&dataset, &settings, &model, &Silent).unwrap();
    let predictor = Predictor::new(Model::open(&model).unwrap());
    let best = |text: &str| {
        let found = predictor.predict_one(text, PredictionOptions::default(), &[]).unwrap();
        predictor.model().labels.id(found[0].label as usize).into_owned()
    };
    for (text, label) in [("apple", "apple"), ("a cherry number 2", "cherry")] {
        assert_eq!(best(text), label, "{text}");
    }
    for text in ["", "?", "\u{0}\u{ffff}", &"x ".repeat(5_000)] {
        predictor.predict_one(text, PredictionOptions::default(), &[]).unwrap();
    }
}

#[test]
fn fusion_learns_nothing_where_there_is_nothing_to_learn() {
    // Points with the labels of other points: held-out truth is noise, and so is the test's.
    let folder = tempfile::tempdir().unwrap();
    let mut dataset = sample();
    let n = dataset.train.n_points() as u32;
    let others: Vec<u32> = (0..n).map(|row| (row * 787 + 211) % n).collect();
    dataset.train.by_point = dataset.train.by_point.select(&others);
    dataset.train.by_label = dataset.train.by_point.transpose();
    let model = folder.path().join("model");
    let trained = run(&dataset, &[], &model, &Silent).unwrap();
    // Frequencies are all there is: the most frequent label has 7 % of the points.
    for tried in trained.fusion.unwrap().tried {
        assert!(tried.precision_1 < 0.12, "{tried:?}");
    }
}
