//! Encoders trained, stopped and gone on with.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ngame::Error;
use ngame::data::{Dataset, ReadOptions, TextChoice};
use ngame::encoder::{Existing, Pooling, TextEncoder, TransformerConfig};
use ngame::progress::{Event, Observer, Silent, StepProgress, ValidationProgress};
use ngame::tokens::{VocabularyOptions, train_vocabulary};
use ngame::training::{
    Corpus, RunFolder, TrainConfig, TrainPlan, config_from, parse_setting, start_encoder, train,
};

fn sample() -> Dataset {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/debian-small");
    Dataset::read(&folder, &ReadOptions::default(), &Silent).unwrap()
}

/// A small run, saved after every step, with some settings on top.
fn config(settings: &[&str]) -> TrainConfig {
    let small = [
        "encoder.dim=32",
        "encoder.vocabulary=2000",
        "encoder.max_tokens=24",
        "batching.batch_size=200",
        "batching.cluster_start=4",
        "batching.cluster_doublings=[0.4]",
        "batching.refresh=2",
        "batching.label_points=false",
        "run.epochs=4",
        "run.checkpoint=0",
        "run.only=encoder",
    ];
    let settings: Vec<_> =
        small.iter().chain(settings).map(|setting| parse_setting(setting).unwrap()).collect();
    config_from(None, None, &settings).unwrap()
}

fn plan(dataset: &Dataset, settings: &[&str]) -> (TrainPlan, Corpus, TextEncoder) {
    let config = config(settings);
    let encoder = start_encoder(dataset, &config.encoder, 0, &Silent).unwrap();
    TrainPlan::new(dataset, TextChoice::Both, config, encoder, &Silent).unwrap()
}

/// Hears everything, and asks for a stop after so many steps.
#[derive(Default)]
struct Listener {
    stop_after: Option<u64>,
    steps: Mutex<Vec<StepProgress>>,
    validations: Mutex<Vec<ValidationProgress>>,
    notes: Mutex<Vec<String>>,
}

impl Observer for Listener {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Step(step) => self.steps.lock().unwrap().push(step.clone()),
            Event::Validated(found) => self.validations.lock().unwrap().push(found.clone()),
            Event::Note(note) => self.notes.lock().unwrap().push(note.to_owned()),
            _ => {}
        }
    }

    fn cancelled(&self) -> bool {
        self.stop_after.is_some_and(|most| self.steps.lock().unwrap().len() as u64 >= most)
    }
}

/// Trains from the beginning to the end, and returns what was heard.
fn straight(dataset: &Dataset, settings: &[&str], model: &Path) -> Listener {
    let (plan, corpus, encoder) = plan(dataset, settings);
    let listener = Listener::default();
    train(&plan, dataset, &corpus, encoder, model, Existing::Keep, &listener).unwrap();
    listener
}

/// Trains the same, but stops after every `stride` steps and goes on.
fn with_stops(dataset: &Dataset, settings: &[&str], model: &Path, stride: u64) {
    let (plan, corpus, encoder) = plan(dataset, settings);
    let stopping = || Listener { stop_after: Some(stride), ..Default::default() };
    let result = train(&plan, dataset, &corpus, encoder, model, Existing::Keep, &stopping());
    assert!(matches!(result, Err(Error::Cancelled)), "{result:?}");
    let folder = RunFolder::of(model);
    let mut n_stops = 1;
    loop {
        assert!(!model.exists() && folder.is_begun());
        match folder.resume(dataset, model, Existing::Keep, &stopping()) {
            Err(Error::Cancelled) => n_stops += 1,
            result => break drop(result.unwrap()),
        }
        assert!(n_stops < 100, "it never ends");
    }
    assert!(n_stops > 2, "{n_stops}");
}

fn weights(model: &Path) -> Vec<u8> {
    std::fs::read(model.join("encoder/model.safetensors")).unwrap()
}

#[test]
fn training_learns_and_leaves_a_model_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (dataset, model) = (sample(), folder.path().join("model"));
    let settings = ["run.epochs=8", "optimiser.learning_rate=0.01"];
    let heard = straight(&dataset, &settings, &model);
    let steps = heard.steps.into_inner().unwrap();
    let (first, last) = (&steps[0], &steps[steps.len() - 1]);
    assert_eq!((last.step, last.n_steps as usize), (last.n_steps, steps.len()));
    assert!(last.loss < 0.7 * first.loss, "from {} to {}", first.loss, last.loss);
    assert_eq!((first.cluster_size, last.cluster_size), (4, 8));
    let validations = heard.validations.into_inner().unwrap();
    assert_eq!(validations.len(), 8);
    let best = validations.iter().map(|found| found.precision_5).fold(0.0, f64::max);
    assert!(best > 1.3 * validations[0].precision_5, "{validations:?}");
    assert!(validations[7].recall_100 > 0.3, "{validations:?}");
    let lines = std::fs::read_to_string(model.join("metrics.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), steps.len() + 8);
    assert!(model.join("plan.toml").exists());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no run folder is left");
    let encoder = TextEncoder::load(&model.join("encoder")).unwrap();
    assert_eq!((encoder.dim(), encoder.max_tokens()), (32, 24));
}

#[test]
fn a_run_with_stops_ends_with_the_same_bytes() {
    let dataset = sample();
    for settings in [
        &["batching.sampler=ngame"][..],
        &["batching.sampler=ngame", "batching.embeddings=recomputed", "batching.hardest=0.5"],
        &["batching.sampler=random", "batching.label_points=true"],
        &["batching.sampler=static"],
        &["batching.sampler=ann"],
        &["mode=joint"],
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("straight"), folder.path().join("stopped"));
        straight(&dataset, settings, &one);
        with_stops(&dataset, settings, &other, 5);
        assert!(weights(&one) == weights(&other), "{settings:?}");
        let steps = |model: &Path| -> Vec<u64> {
            let lines = std::fs::read_to_string(model.join("metrics.jsonl")).unwrap();
            let values = lines.lines().map(|line| serde_json::from_str(line).unwrap());
            values.map(|value: serde_json::Value| value["step"].as_u64().unwrap()).collect()
        };
        assert_eq!(steps(&one), steps(&other), "every step is logged once");
    }
}

#[test]
fn long_texts_are_cut_where_epochs_would_not_fit_the_time() {
    let dataset = sample();
    let transformer = || {
        let options = VocabularyOptions { size: 2_000, ..Default::default() };
        let tokenizer = train_vocabulary(&[&dataset.train.texts], &options, &Silent).unwrap();
        let config = TransformerConfig {
            vocabulary_size: tokenizer.vocabulary_size(),
            dim: 8,
            n_layers: 2,
            n_heads: 2,
            feed_forward_dim: 16,
            max_positions: 64,
            n_token_types: 2,
            layer_norm_epsilon: 1e-12,
            dropout: 0.1,
            attention_dropout: 0.1,
            pooling: Pooling::Mean,
        };
        TextEncoder::new_transformer(config, tokenizer, 64, 0).unwrap()
    };
    let plan = |settings: &[&str]| {
        let only = ["encoder.start=made", "run.only=encoder"];
        let settings = only.iter().chain(settings).map(|setting| parse_setting(setting).unwrap());
        let config = config_from(None, None, &settings.collect::<Vec<_>>()).unwrap();
        let (plan, corpus, encoder) =
            TrainPlan::new(&dataset, TextChoice::Both, config, transformer(), &Silent).unwrap();
        let longest = (0..corpus.tokens.n_texts()).map(|text| corpus.tokens.len(text)).max();
        assert_eq!(plan.config.encoder.max_tokens, Some(encoder.max_tokens()));
        assert_eq!(longest, Some(encoder.max_tokens()), "the corpus is cut as the encoder is");
        let about_tokens = plan.choices.iter().filter(|one| one.setting == "encoder.max_tokens");
        let why: Vec<String> = about_tokens.map(|one| one.why.clone()).collect();
        (encoder.max_tokens(), why.join("; "))
    };
    // Nothing fits into no time.
    let (cut, why) = plan(&["run.minutes=1e-9"]);
    assert_eq!((cut, why.contains("fewer than 3 epochs")), (32, true), "{why}");
    let (whole, why) = plan(&["run.minutes=1e6"]);
    assert_eq!((whole, why.contains("95 % of the texts")), (64, true), "{why}");
    // Whoever says how many epochs there are, or how long texts are, has the time.
    assert_eq!(plan(&["run.minutes=1e-9", "run.epochs=1"]).0, 64);
    assert_eq!(plan(&["run.minutes=1e-9", "encoder.max_tokens=40"]).0, 40);
}

#[test]
fn upper_layers_are_trained_alone_and_a_run_with_stops_ends_with_the_same_bytes() {
    let dataset = sample();
    let folder = tempfile::tempdir().unwrap();
    let start = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/encoder/bert");
    let from = format!("encoder.start={}", start.display());
    let settings = &[
        from.as_str(),
        "encoder.max_tokens=20",
        "encoder.trained_layers=1",
        "optimiser.learning_rate=0.01",
    ];
    let (one, other) = (folder.path().join("straight"), folder.path().join("stopped"));
    let heard = straight(&dataset, settings, &one);
    let steps = heard.steps.into_inner().unwrap();
    assert!(steps[steps.len() - 1].loss < 0.95 * steps[0].loss, "it learns");
    with_stops(&dataset, settings, &other, 5);
    assert!(weights(&one) == weights(&other));
    let before = TextEncoder::load(&start).unwrap();
    let after = TextEncoder::load(&one.join("encoder")).unwrap();
    let last_layer = format!("encoder.layer.{}.", before.n_layers().unwrap() - 1);
    for tensor in before.parameters().layout().tensors() {
        let same = before.parameters().get(&tensor.name) == after.parameters().get(&tensor.name);
        assert_eq!(same, !tensor.name.starts_with(&last_layer), "{}", tensor.name);
    }
    // States of another shape are made again, and do not outlive the run.
    let (plan, corpus, encoder) = plan(&dataset, settings);
    let again = folder.path().join("again");
    let stopping = Listener { stop_after: Some(3), ..Default::default() };
    train(&plan, &dataset, &corpus, encoder, &again, Existing::Keep, &stopping).unwrap_err();
    let run = RunFolder::of(&again);
    std::fs::write(run.path().join("states.npy"), "damaged").unwrap();
    run.resume(&dataset, &again, Existing::Keep, &Silent).unwrap();
    assert!(weights(&one) == weights(&again));
    assert!(!again.join("states.npy").exists());
}

/// Asks for a stop the n-th time it is asked: in the middle of mining or validating, too.
struct StopAtAsk {
    left: AtomicUsize,
}

impl Observer for StopAtAsk {
    fn event(&self, _: Event<'_>) {}

    fn cancelled(&self) -> bool {
        let less = |left: usize| left.checked_sub(1);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err()
    }
}

#[test]
fn a_stop_in_the_middle_of_mining_or_validating_changes_nothing() {
    let dataset = sample();
    let folder = tempfile::tempdir().unwrap();
    let settings = &["batching.embeddings=recomputed", "validation.every=0.5"];
    let (one, other) = (folder.path().join("straight"), folder.path().join("stopped"));
    straight(&dataset, settings, &one);
    let (plan, corpus, encoder) = plan(&dataset, settings);
    let stopping = |asks: usize| StopAtAsk { left: AtomicUsize::new(asks) };
    let mut result = train(&plan, &dataset, &corpus, encoder, &other, Existing::Keep, &stopping(3));
    let run = RunFolder::of(&other);
    let mut n_stops = 0;
    // A resumed run tokenises first, which asks as well. Every try gets a little further.
    while let Err(error) = result {
        assert!(matches!(error, Error::Cancelled), "{error}");
        n_stops += 1;
        result = run.resume(&dataset, &other, Existing::Keep, &stopping(8 + n_stops));
        assert!(n_stops < 300, "it never ends");
    }
    assert!(n_stops > 10, "{n_stops}");
    assert!(weights(&one) == weights(&other));
    let lines = |model: &Path| -> Vec<(String, u64)> {
        let text = std::fs::read_to_string(model.join("metrics.jsonl")).unwrap();
        let values = text.lines().map(|line| serde_json::from_str(line).unwrap());
        values
            .map(|value: serde_json::Value| {
                (value["kind"].as_str().unwrap().to_owned(), value["step"].as_u64().unwrap())
            })
            .collect()
    };
    assert_eq!(lines(&one), lines(&other), "every step and every validation once");
}

#[test]
fn every_loss_falls() {
    let dataset = sample();
    for settings in [
        &["loss.kind=triplet", "loss.softmax_weights=false", "loss.negatives=all"][..],
        &["loss.kind=triplet", "loss.negatives=radius", "loss.radius=1.3"],
        &["loss.kind=squared-triplet"],
        &["loss.kind=logistic-triplet"],
        &["loss.kind=softmax", "loss.negatives=all", "loss.every_positive=true"],
        &["loss.kind=cross-entropy"],
    ] {
        let folder = tempfile::tempdir().unwrap();
        // Random batches: growing clusters make negatives harder, and losses with them.
        let settings = [settings, &["batching.sampler=random", "run.epochs=10"]].concat();
        let heard = straight(&dataset, &settings, &folder.path().join("model"));
        let steps = heard.steps.into_inner().unwrap();
        let mean = |steps: &[StepProgress]| steps.iter().map(|step| step.loss).sum::<f64>();
        let n = 5;
        let (early, late) = (mean(&steps[..n]), mean(&steps[steps.len() - n..]));
        assert!(late < 0.9 * early, "{settings:?}: from {early} to {late}");
    }
}

#[test]
fn a_damaged_checkpoint_gives_way_to_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let (dataset, model) = (sample(), folder.path().join("model"));
    let (plan, corpus, encoder) = plan(&dataset, &[]);
    let stopping = Listener { stop_after: Some(4), ..Default::default() };
    train(&plan, &dataset, &corpus, encoder, &model, Existing::Keep, &stopping).unwrap_err();
    let run = RunFolder::of(&model);
    let newest = run.path().join("checkpoint.bin");
    let mut bytes = std::fs::read(&newest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&newest, bytes).unwrap();
    let listener = Listener::default();
    run.resume(&dataset, &model, Existing::Keep, &listener).unwrap();
    let notes = listener.notes.into_inner().unwrap();
    assert!(notes[0].contains("checkpoint.bin: the file is damaged"), "{notes:?}");
    let reference = folder.path().join("straight");
    straight(&dataset, &[], &reference);
    assert!(weights(&model) == weights(&reference));
}

#[test]
fn another_data_set_is_refused_on_resume() {
    let folder = tempfile::tempdir().unwrap();
    let (mut dataset, model) = (sample(), folder.path().join("model"));
    let (plan, corpus, encoder) = plan(&dataset, &[]);
    let stopping = Listener { stop_after: Some(1), ..Default::default() };
    train(&plan, &dataset, &corpus, encoder, &model, Existing::Keep, &stopping).unwrap_err();
    dataset.labels.texts = dataset.labels.texts.iter().map(|text| format!("{text}!")).collect();
    let result = RunFolder::of(&model).resume(&dataset, &model, Existing::Keep, &Silent);
    let told = result.unwrap_err().to_string();
    assert!(told.contains("the data set is not the one"), "{told}");
}

#[test]
fn a_rate_too_high_is_an_error_that_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let (dataset, model) = (sample(), folder.path().join("model"));
    let (plan, corpus, encoder) =
        plan(&dataset, &["optimiser.learning_rate=1e38", "optimiser.warmup=0"]);
    let result = train(&plan, &dataset, &corpus, encoder, &model, Existing::Keep, &Silent);
    let told = result.unwrap_err().to_string();
    assert!(told.contains("went astray in epoch 1, step "), "{told}");
    assert!(told.contains("learning_rate"), "{told}");
    assert!(!model.exists());
}

#[test]
fn a_plan_comes_back_as_it_was_written() {
    let (plan, ..) = plan(&sample(), &["run.epochs=10"]);
    let read: TrainPlan = toml::from_str(&plan.to_toml()).unwrap();
    assert_eq!(read, plan);
    assert_eq!(plan.cluster_sizes, [4, 4, 4, 4, 8, 8, 8, 8, 8, 8]);
    assert!(plan.estimate.seconds > 0.0 && plan.estimate.memory > 1 << 20);
    // 1,127 points in clusters of 4 and 8, 50 and 25 of them a batch.
    assert_eq!(plan.n_steps, 4 * 6 + 6 * 6);
    assert_eq!(plan.n_warmup_steps, 6);
}
