//! What was asked of a training run: documented fields, unknown ones refused.

use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::model_config::{ClassifierConfig, FusionConfig, IndexConfig};
use super::preset::Preset;
use crate::error::{InputError, InputErrorKind, Place};
use crate::{Error, Result};

/// Everything that can be asked of a training run. Fields that are `None` are chosen by the plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// Whether the encoder is trained by itself or together with classifiers.
    pub mode: Mode,
    /// The encoder to start from.
    pub encoder: EncoderConfig,
    /// Which points share a batch.
    pub batching: BatchingConfig,
    /// What is minimised.
    pub loss: LossConfig,
    /// How it is minimised.
    pub optimiser: OptimiserConfig,
    /// The points held out to see how training goes, and to learn the fusion from.
    pub validation: ValidationConfig,
    /// The classifiers: the paper's M2.
    pub classifier: ClassifierConfig,
    /// How classifiers are searched.
    pub index: IndexConfig,
    /// How scores become one.
    pub fusion: FusionConfig,
    /// How long, on what, and how often it is saved.
    pub run: RunConfig,
}

/// What is trained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The encoder alone, with labels embedded from their texts: the paper's M1.
    #[default]
    Modular,
    /// The encoder and one classifier a label at once, labels' texts unused but for the start: what
    /// the paper compares itself with.
    Joint,
}

/// The encoder to start from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EncoderConfig {
    /// `bag`, or the folder of a BERT or DistilBERT model.
    pub start: String,
    /// Texts are cut after this many tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<usize>,
    /// How many layers of a transformer are trained, from the top; the others stay as they are, and
    /// what they make of texts is computed once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trained_layers: Option<usize>,
    /// The length of a vector, for a bag.
    pub dim: usize,
    /// The tokens of the vocabulary, for a bag.
    pub vocabulary: usize,
    /// The share of a bag's numbers that training drops.
    pub dropout: f32,
}

impl Default for EncoderConfig {
    fn default() -> Self {
        Self {
            start: "bag".to_owned(),
            max_tokens: None,
            trained_layers: None,
            dim: 384,
            vocabulary: 30_000,
            dropout: 0.2,
        }
    }
}

/// Which points share a batch, and which labels come to it besides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BatchingConfig {
    /// How batches are made.
    pub sampler: SamplerKind,
    /// The points of a batch (S).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_size: Option<usize>,
    /// The points of a cluster at the beginning (C).
    pub cluster_start: usize,
    /// Shares of the run after which the cluster size doubles.
    pub cluster_doublings: Vec<f64>,
    /// The cluster size at which doubling ends.
    pub cluster_most: usize,
    /// Epochs after which clusters, or mined negatives, are made again (τ).
    pub refresh: usize,
    /// The vectors that clusters are made of.
    pub embeddings: Embeddings,
    /// The mined negatives of a point (H), for the sampler `ann`.
    pub ann_negatives: usize,
    /// Ordered SGD: the share of a batch's points, those with the largest losses, that a step is
    /// made for. 1 is all of them.
    pub hardest: f64,
    /// Whether the text of every label is a training point too, with that label.
    pub label_points: bool,
}

impl Default for BatchingConfig {
    fn default() -> Self {
        Self {
            sampler: SamplerKind::Ngame,
            batch_size: None,
            cluster_start: 1,
            // The authors' doubling points, 10 to 200 of 300 epochs.
            cluster_doublings: [10, 20, 25, 50, 75, 100, 125, 150, 200]
                .map(|epoch| (f64::from(epoch) / 300.0 * 1e4).round() / 1e4)
                .to_vec(),
            cluster_most: 512,
            refresh: 5,
            embeddings: Embeddings::Captured,
            ann_negatives: 2,
            hardest: 1.0,
            label_points: true,
        }
    }
}

/// How batches are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SamplerKind {
    /// Clusters of points that are close under the current encoder.
    #[default]
    Ngame,
    /// Points at random.
    Random,
    /// Clusters of points that were close before training.
    Static,
    /// Points at random, with negatives from an index of all labels.
    Ann,
}

/// Where the vectors come from that clusters are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Embeddings {
    /// Those that training made of every point in the epoch before: free, but up to an epoch old.
    #[default]
    Captured,
    /// Made anew, by embedding all points.
    Recomputed,
}

/// What is minimised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LossConfig {
    /// The loss.
    pub kind: LossKind,
    /// How much higher a positive should score than a negative (γ), for triplets.
    pub margin: f32,
    /// Which labels of a batch are negatives.
    pub negatives: Negatives,
    /// How many, where the hardest are.
    pub top: usize,
    /// How far from the point at most (r), where the near ones are.
    pub radius: f32,
    /// Whether harder negatives count more, by the softmax of their scores, for triplets.
    pub softmax_weights: bool,
    /// Scores are divided by this in every softmax.
    pub temperature: f32,
    /// Whether all positives of a point in the batch are pulled, for the softmax.
    pub every_positive: bool,
    /// How much of the logarithm of how often a label is drawn its score is relieved of, for the softmax
    /// (logQ correction). Batches hold frequent labels more often; with 1, scores learn how likely a label
    /// is, with 0 how much likelier than elsewhere.
    pub log_q: f32,
    /// What scores are multiplied by before a logistic function.
    pub scale: f32,
    /// What is added then, for cross-entropy.
    pub bias: f32,
}

impl Default for LossConfig {
    fn default() -> Self {
        Self {
            kind: LossKind::Softmax,
            margin: 0.3,
            negatives: Negatives::All,
            top: 10,
            radius: 1.0,
            softmax_weights: true,
            temperature: 0.02,
            every_positive: true,
            log_q: 0.0,
            scale: 20.0,
            bias: -10.0,
        }
    }
}

/// The losses there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossKind {
    /// The margin a negative lacks, as in the paper.
    Triplet,
    /// Its square.
    SquaredTriplet,
    /// A smooth form of it.
    LogisticTriplet,
    /// Contrastive, with a point's other positives left out of the denominator.
    #[default]
    Softmax,
    /// Every label a yes-or-no question.
    CrossEntropy,
}

/// Which labels of a batch are negatives of a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Negatives {
    /// The hardest.
    Top,
    /// Those within the radius.
    Radius,
    /// All that are not its own.
    #[default]
    All,
}

/// How the loss is minimised: AdamW with warm-up and decay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptimiserConfig {
    /// The highest learning rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// The share of the run in which it rises.
    pub warmup: f64,
    /// How it falls then.
    pub decay: RateDecay,
    /// How much weights shrink a step, times the learning rate.
    pub weight_decay: f64,
    /// The longest gradient; longer ones are cut to it.
    pub max_norm: f64,
    /// Added to the deviation of the gradient.
    pub epsilon: f64,
}

impl Default for OptimiserConfig {
    fn default() -> Self {
        Self {
            learning_rate: None,
            warmup: 0.1,
            decay: RateDecay::Linear,
            weight_decay: 0.01,
            max_norm: 1.0,
            epsilon: 1e-6,
        }
    }
}

/// How the learning rate falls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateDecay {
    /// It does not.
    Constant,
    /// In a straight line.
    #[default]
    Linear,
    /// Along a cosine.
    Cosine,
}

/// The points held out of training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ValidationConfig {
    /// How many; a data set's own validation points come first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub points: Option<usize>,
    /// The share of them that is held out together with points whose texts are nearly the same.
    pub with_twins: f64,
    /// Epochs, or parts of one, from one look at them to the next.
    pub every: f64,
    /// What decides which encoder is the best so far.
    pub metric: ValidationMetric,
}

impl Default for ValidationConfig {
    fn default() -> Self {
        Self { points: None, with_twins: 0.5, every: 1.0, metric: ValidationMetric::Precision5 }
    }
}

/// What decides which encoder is best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ValidationMetric {
    /// Precision at 1.
    #[serde(rename = "P@1")]
    Precision1,
    /// Precision at 5.
    #[default]
    #[serde(rename = "P@5")]
    Precision5,
    /// Recall at 100.
    #[serde(rename = "R@100")]
    Recall100,
}

/// How long, on what, and how often it is saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunConfig {
    /// How often every point is seen by the encoder; 0 leaves it as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<usize>,
    /// The minutes that the whole run may take, where the epochs are left open.
    pub minutes: f64,
    /// The stage to stop after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only: Option<Stage>,
    /// Where all random choices come from.
    pub seed: u64,
    /// The memory for activations, in GiB.
    pub memory: f64,
    /// The minutes from one checkpoint to the next.
    pub checkpoint: f64,
}

/// A stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The encoder.
    Encoder,
}

impl Default for RunConfig {
    fn default() -> Self {
        Self { epochs: None, minutes: 40.0, only: None, seed: 0, memory: 2.0, checkpoint: 2.0 }
    }
}

/// Layers of settings, the later over the earlier, as one config: a preset, a file, and settings
/// `a.b = value`.
pub fn config_from(
    preset: Option<Preset>,
    file: Option<&Path>,
    settings: &[(String, Value)],
) -> Result<TrainConfig> {
    let mut table = preset.map(Preset::settings).unwrap_or_default();
    if let Some(path) = file {
        let text =
            std::fs::read_to_string(path).map_err(|source| Error::io("read", path, source))?;
        let layer: Table = toml::from_str(&text).map_err(|error| not_a_config(path, &error))?;
        // Asked on its own, a mistake is told with its line in this file.
        toml::from_str::<TrainConfig>(&text).map_err(|error| not_a_config(path, &error))?;
        merge(&mut table, layer);
    }
    for (key, value) in settings {
        let mut layer = value.clone();
        for name in key.rsplit('.') {
            layer = Value::Table(Table::from_iter([(name.to_owned(), layer)]));
        }
        if let Value::Table(layer) = layer {
            TrainConfig::deserialize(layer.clone()).map_err(|error| Error::Setting {
                setting: key.clone(),
                problem: error.to_string(),
            })?;
            merge(&mut table, layer);
        }
    }
    let config = TrainConfig::deserialize(table).map_err(|error| Error::Setting {
        setting: "the settings together".to_owned(),
        problem: error.to_string(),
    })?;
    config.check()?;
    Ok(config)
}

/// `a.b=v` as a setting. A value that is not TOML is taken as a text.
pub fn parse_setting(setting: &str) -> std::result::Result<(String, Value), String> {
    let (key, value) = setting
        .split_once('=')
        .filter(|(key, _)| !key.trim().is_empty())
        .ok_or("expected NAME=VALUE, such as loss.margin=0.2")?;
    let value = value.trim();
    let parsed = toml::from_str::<Table>(&format!("value = {value}"))
        .ok()
        .and_then(|mut table| table.remove("value"));
    Ok((key.trim().to_owned(), parsed.unwrap_or_else(|| Value::String(value.to_owned()))))
}

impl TrainConfig {
    /// Refuses numbers that make no sense.
    pub(super) fn check(&self) -> Result<()> {
        let positive = |value: f64| value > 0.0 && value.is_finite();
        let share = |value: f64| (0.0..=1.0).contains(&value);
        let Self {
            batching, loss, optimiser, run, validation, encoder, classifier, fusion, ..
        } = self;
        let checks = [
            ("encoder.max_tokens", encoder.max_tokens != Some(0), "at least 1"),
            ("encoder.trained_layers", encoder.trained_layers != Some(0), "at least 1"),
            ("batching.batch_size", batching.batch_size.is_none_or(|n| n > 1), "at least 2"),
            ("batching.cluster_start", batching.cluster_start > 0, "at least 1"),
            (
                "batching.cluster_doublings",
                batching.cluster_doublings.iter().all(|&at| share(at)),
                "shares of the run, from 0 to 1",
            ),
            ("batching.refresh", batching.refresh > 0, "at least 1"),
            ("batching.ann_negatives", batching.ann_negatives <= 1_000, "at most 1,000"),
            (
                "batching.hardest",
                batching.hardest > 0.0 && batching.hardest <= 1.0,
                "above 0, at most 1",
            ),
            ("loss.margin", (0.0..=2.0).contains(&loss.margin), "from 0 to 2"),
            ("loss.top", loss.top > 0, "at least 1"),
            ("loss.radius", loss.radius > 0.0 && loss.radius <= 2.0, "above 0, at most 2"),
            ("loss.temperature", positive(loss.temperature.into()), "above 0"),
            ("loss.log_q", (0.0..=2.0).contains(&loss.log_q), "from 0 to 2"),
            ("loss.scale", positive(loss.scale.into()), "above 0"),
            ("loss.bias", loss.bias.is_finite(), "a number"),
            ("optimiser.learning_rate", optimiser.learning_rate.is_none_or(positive), "above 0"),
            ("optimiser.warmup", share(optimiser.warmup), "a share of the run, from 0 to 1"),
            (
                "optimiser.weight_decay",
                optimiser.weight_decay >= 0.0 && optimiser.weight_decay.is_finite(),
                "0 or more",
            ),
            ("optimiser.max_norm", optimiser.max_norm > 0.0, "above 0"),
            ("optimiser.epsilon", positive(optimiser.epsilon), "above 0"),
            ("validation.with_twins", share(validation.with_twins), "a share, from 0 to 1"),
            ("validation.every", positive(validation.every), "above 0"),
            (
                "classifier.epochs",
                classifier.epochs.is_none_or(|n| (1..=100_000).contains(&n)),
                "from 1 to 100,000",
            ),
            ("classifier.batch_size", classifier.batch_size.is_none_or(|n| n > 1), "at least 2"),
            ("classifier.learning_rate", classifier.learning_rate.is_none_or(positive), "above 0"),
            (
                "classifier.dropout",
                classifier.dropout.is_none_or(|rate| (0.0..1.0).contains(&rate)),
                "a share from 0 to below 1",
            ),
            ("classifier.margin", (0.0..=2.0).contains(&classifier.margin), "from 0 to 2"),
            ("classifier.n_sampled", classifier.n_sampled > 0, "at least 1"),
            ("index.recall", share(self.index.recall), "a share, from 0 to 1"),
            (
                "fusion.shortlists.classifier",
                (1..=100_000).contains(&fusion.shortlists.classifier),
                "from 1 to 100,000",
            ),
            (
                "fusion.shortlists.voters",
                (1..=100_000).contains(&fusion.shortlists.voters),
                "from 1 to 100,000",
            ),
            (
                "fusion.views",
                fusion.has_candidates(),
                "classifier, votes or lexical among them: embedding and frequency judge candidates, but propose none",
            ),
            ("fusion.method", fusion.has_scores(), "a method whose scores are among fusion.views"),
            ("run.epochs", run.epochs.is_none_or(|n| n <= 100_000), "from 0 to 100,000"),
            ("run.minutes", positive(run.minutes), "above 0"),
            ("run.memory", positive(run.memory), "above 0, in GiB"),
            (
                "run.checkpoint",
                (0.0..=1e6).contains(&run.checkpoint),
                "minutes from 0 to 1,000,000",
            ),
        ];
        match checks.into_iter().find(|(_, holds, _)| !holds) {
            None => Ok(()),
            Some((setting, _, expected)) => Err(Error::Setting {
                setting: setting.to_owned(),
                problem: format!("expected {expected}"),
            }),
        }
    }
}

/// Puts one layer over another.
pub(super) fn merge(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

fn not_a_config(path: &Path, error: &toml::de::Error) -> Error {
    InputError::new(InputErrorKind::WrongType, Place::file(path))
        .expected("settings as `ngame train --dry-run` prints them")
        .found(error.to_string().trim().replace('\n', " "))
        .help("mend the line; `ngame train --help` names the settings")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(all: &[&str]) -> Vec<(String, Value)> {
        all.iter().map(|setting| parse_setting(setting).unwrap()).collect()
    }

    #[test]
    fn later_layers_win_and_leave_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("train.toml");
        std::fs::write(&file, "[loss]\nmargin = 0.2\ntop = 5\n[run]\nseed = 3\n").unwrap();
        let settings = settings(&["loss.margin=0.1", "encoder.start=my/folder", "run.epochs = 7"]);
        let config = config_from(Some(Preset::LfAmazon131K), Some(&file), &settings).unwrap();
        assert_eq!((config.loss.margin, config.loss.top, config.run.seed), (0.1, 5, 3));
        assert_eq!((config.encoder.start.as_str(), config.run.epochs), ("my/folder", Some(7)));
        assert_eq!(config.batching.batch_size, Some(350), "the preset's");
    }

    #[test]
    fn one_shortlist_can_be_set_without_the_others() {
        let settings = settings(&["fusion.shortlists.classifier=300"]);
        let shortlists = config_from(None, None, &settings).unwrap().fusion.shortlists;
        let others = crate::views::Shortlists::default();
        assert_eq!((shortlists.classifier, shortlists.voters), (300, others.voters));
    }

    #[test]
    fn a_config_comes_back_as_it_was_written() {
        let config = config_from(None, None, &settings(&["run.epochs=3"])).unwrap();
        let text = toml::to_string(&config).unwrap();
        assert_eq!(toml::from_str::<TrainConfig>(&text).unwrap(), config);
    }

    #[test]
    fn mistakes_are_named() {
        let told =
            |setting: &str| config_from(None, None, &settings(&[setting])).unwrap_err().to_string();
        assert!(told("loss.margn=0.2").contains("margn"), "{}", told("loss.margn=0.2"));
        assert!(told("loss.margin=wide").contains("loss.margin"), "{}", told("loss.margin=wide"));
        for setting in [
            "batching.hardest=0",
            "batching.ann_negatives=1000000000000",
            "run.checkpoint=inf",
            "run.epochs=1000000000000",
            "run.minutes=nan",
            "validation.every=0",
        ] {
            let name = setting.split('=').next().unwrap();
            assert!(told(setting).starts_with(name), "{}", told(setting));
        }
        assert!(parse_setting("=3").is_err() && parse_setting("x").is_err());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("train.toml");
        std::fs::write(&file, "[loss]\nmargin = \"x\"\n").unwrap();
        let error = config_from(None, Some(&file), &[]).unwrap_err().to_string();
        assert!(error.contains("train.toml") && error.contains("line 2"), "{error}");
    }
}
