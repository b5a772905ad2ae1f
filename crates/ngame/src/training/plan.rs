//! What will be done: every number fixed, with the reason for those that were left open.

use serde::{Deserialize, Serialize};

use super::calibration::{Estimate, calibrate};
use super::choices::{Choice, Choices, Pace};
use super::config::{Mode, SamplerKind, Stage, TrainConfig};
use super::corpus::{Corpus, CorpusOptions, DistinctTexts};
use super::cost::{LaterStages, Sizes};
use super::machine_speed::slowness;
use crate::Result;
use crate::batching::{
    Ann, Batches, Curriculum, KMeansOptions, Ngame, Random, Sampler, StaticClusters,
};
use crate::classifier::Objective;
use crate::data::{Dataset, TextChoice};
use crate::encoder::TextEncoder;
use crate::index::HnswOptions;
use crate::lexical::{LexicalOptions, Overlap};
use crate::progress::{Event, Observer};
use crate::random::mix;
use crate::views::View;

/// A config with every field fixed, and what follows from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainPlan {
    /// The threads. Another number gives other last digits.
    pub threads: usize,
    /// The steps of the run.
    pub n_steps: u64,
    /// Those in which the learning rate rises.
    pub n_warmup_steps: u64,
    /// The points of a cluster in every epoch.
    pub cluster_sizes: Vec<usize>,
    /// What it will take.
    pub estimate: Estimate,
    /// What it is made for.
    pub data: DataFacts,
    /// All settings.
    pub config: TrainConfig,
    /// What was left open, and how it was decided.
    #[serde(default)]
    pub choices: Vec<Choice>,
}

/// What a plan is made for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataFacts {
    /// Training points, label texts included where they are points.
    pub n_points: usize,
    /// Points held out.
    pub n_held_out: usize,
    /// Labels.
    pub n_labels: usize,
    /// Points of the training split, held out or not.
    pub n_train: u64,
    /// Which text of a row is used.
    pub text: TextChoice,
    /// Pairs of training points and targets.
    pub n_pairs: u64,
    /// A digest of all texts and pairs.
    pub digest: String,
}

impl TrainPlan {
    /// Fixes what a config leaves open, by looking at the data and at how fast the machine is.
    pub fn new(
        dataset: &Dataset,
        text: TextChoice,
        mut config: TrainConfig,
        mut encoder: TextEncoder,
        observer: &dyn Observer,
    ) -> Result<(Self, Corpus, TextEncoder)> {
        config.check()?;
        // Whoever says how many epochs there are has the time for them.
        let mut may_cut = config.encoder.max_tokens.is_none() && config.run.epochs.is_none();
        let mut choices = Choices::default();
        let (corpus, pace) = loop {
            let distinct = DistinctTexts::new(dataset);
            let max_tokens = choices.max_tokens(&mut config, &distinct, &encoder)?;
            encoder = encoder.with_max_tokens(max_tokens)?;
            choices.held_out(&mut config, dataset);
            let corpus = make_corpus(dataset, distinct, &encoder, &config, observer)?;
            choices.batch_size(&mut config, corpus.n_points());
            choices.objective(&mut config);
            observer.event(Event::Started { task: "measuring the machine", total: None, unit: "" });
            let (mut estimate, forward) = calibrate(&corpus, &encoder, &config);
            observer.event(Event::Finished);
            if config.run.only != Some(Stage::Encoder) {
                let sizes = sizes(dataset, &corpus, &encoder, &config, forward);
                estimate.later = LaterStages::of(&sizes);
                estimate.memory = estimate.memory.max(sizes.memory());
            }
            let pace = Pace { estimate, forward, n_layers: encoder.n_layers() };
            if may_cut && choices.shorter_texts(&mut config, &corpus, &pace) {
                may_cut = false; // Once: what was timed is timed anew, and a little off every time.
                continue;
            }
            break (corpus, pace);
        };
        choices.trained_layers(&mut config, &pace);
        choices.learning_rate(&mut config, encoder.n_layers());
        let mut estimate = pace.of_layers(config.encoder.trained_layers);
        let n_epochs = choices.epochs(&mut config, &estimate);
        estimate.seconds = estimate.seconds_before + estimate.seconds_per_epoch * n_epochs as f64;
        let mut plan = Self {
            threads: rayon::current_num_threads(),
            n_steps: 0,
            n_warmup_steps: 0,
            cluster_sizes: Vec::new(),
            estimate,
            data: DataFacts {
                n_points: corpus.n_points(),
                n_held_out: corpus.held_out.text.len(),
                n_labels: dataset.n_labels(),
                n_train: dataset.train.n_points() as u64,
                text,
                n_pairs: corpus.positives.n_pairs(),
                digest: corpus.digest.clone(),
            },
            config,
            choices: choices.0,
        };
        plan.lay_out_epochs();
        Ok((plan, corpus, encoder))
    }

    /// Says how large clusters are in every epoch, and how many steps that makes.
    fn lay_out_epochs(&mut self) {
        let sampler = self.sampler();
        self.cluster_sizes =
            (0..self.n_epochs()).map(|epoch| sampler.cluster_size(epoch)).collect();
        self.n_steps = self.cluster_sizes.iter().map(|&size| self.n_batches(size) as u64).sum();
        self.n_warmup_steps = (self.n_steps as f64 * self.config.optimiser.warmup).round() as u64;
    }

    /// The corpus of a plan that was made before.
    pub(super) fn corpus(
        &self,
        dataset: &Dataset,
        encoder: &TextEncoder,
        observer: &dyn Observer,
    ) -> Result<Corpus> {
        let distinct = DistinctTexts::new(dataset);
        let corpus = make_corpus(dataset, distinct, encoder, &self.config, observer)?;
        corpus.check_digest(&self.data.digest)?;
        Ok(corpus)
    }

    /// The sampler.
    pub fn sampler(&self) -> Box<dyn Sampler> {
        let batching = &self.config.batching;
        let curriculum = Curriculum {
            start: batching.cluster_start,
            doublings: batching.cluster_doublings.clone(),
            // A cluster larger than a batch would make the batch larger than was asked for.
            most: batching.cluster_most.min(self.batch_size()),
        };
        let n_epochs = self.n_epochs();
        let kmeans = KMeansOptions { seed: mix(self.config.run.seed, &[5]), ..Default::default() };
        match batching.sampler {
            SamplerKind::Random => Box::new(Random),
            SamplerKind::Ngame => {
                Box::new(Ngame { curriculum, refresh: batching.refresh, n_epochs, kmeans })
            }
            // Static clusters have from the beginning the size that growing ones reach.
            SamplerKind::Static => {
                let cluster_size = curriculum.cluster_size(n_epochs, n_epochs);
                Box::new(StaticClusters { cluster_size, kmeans })
            }
            SamplerKind::Ann => Box::new(Ann {
                negatives: batching.ann_negatives,
                refresh: batching.refresh,
                index: HnswOptions::default(),
            }),
        }
    }

    /// The epochs of the run.
    pub fn n_epochs(&self) -> usize {
        self.config.run.epochs.unwrap_or(1)
    }

    /// The first layer that is trained, if there are others below.
    pub(super) fn first_layer(&self, encoder: &TextEncoder) -> Option<usize> {
        let trained = self.config.encoder.trained_layers?;
        encoder.n_layers()?.checked_sub(trained).filter(|&first| first > 0)
    }

    /// The points of a batch.
    pub fn batch_size(&self) -> usize {
        self.config.batching.batch_size.unwrap_or(2)
    }

    /// The batches of an epoch with clusters of this size.
    pub(super) fn n_batches(&self, cluster_size: usize) -> usize {
        Batches::count(self.data.n_points, cluster_size, self.batch_size())
    }

    /// What classifiers are asked for, and how.
    pub(super) fn objective(&self) -> Objective {
        self.config.classifier.objective(mix(self.config.run.seed, &[6]))
    }

    /// A plan that was written to a file.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string().trim().replace('\n', " "))
    }

    /// As it is written to a file.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a plan is numbers and names")
    }
}

fn make_corpus(
    dataset: &Dataset,
    distinct: DistinctTexts,
    encoder: &TextEncoder,
    config: &TrainConfig,
    observer: &dyn Observer,
) -> Result<Corpus> {
    let options = CorpusOptions {
        mode: config.mode,
        max_tokens: encoder.max_tokens(),
        n_held_out: config.validation.points.unwrap_or(0),
        with_twins: config.validation.with_twins,
        label_points: config.batching.label_points && config.mode == Mode::Modular,
        seed: config.run.seed,
    };
    Corpus::new(dataset, distinct, encoder.tokenizer(), options, observer)
}

/// What the cost of the stages after the encoder depends on; `forward` is what going through all texts once
/// takes.
fn sizes(
    dataset: &Dataset,
    corpus: &Corpus,
    encoder: &TextEncoder,
    config: &TrainConfig,
    forward: f64,
) -> Sizes {
    let views = config.fusion.views.views();
    Sizes {
        n_train: dataset.train.n_points(),
        n_held_out: corpus.held_out.text.len(),
        n_labels: dataset.n_labels(),
        n_pairs: dataset.train.by_point.n_pairs() as usize,
        n_test: dataset.test.as_ref().map_or(0, |test| test.n_points()),
        dim: encoder.encoder().dim(),
        objective: config.classifier.objective(config.run.seed),
        refit: config.classifier.refit,
        text: forward / corpus.tokens.n_texts().max(1) as f64,
        overlap: views.contains(&View::Lexical).then(|| {
            let (train, labels) = (&dataset.train, &dataset.labels.texts);
            let options = LexicalOptions { seed: config.run.seed, ..Default::default() };
            Overlap::estimate(&train.texts, &train.by_label, labels, &options)
        }),
        has_votes: views.contains(&View::Votes),
        threads: rayon::current_num_threads(),
        slowness: slowness(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::{Preset, config_from};

    /// The paper's data sets as it describes them: training points and labels (its table of statistics),
    /// points of a batch, epochs and tokens of a text (its table of settings).
    const PUBLISHED: [(Preset, usize, usize, usize, usize, usize); 5] = [
        (Preset::LfAmazonTitles131K, 294_805, 131_073, 1_600, 300, 32),
        (Preset::LfAmazonTitles1M3, 2_248_619, 1_305_265, 1_600, 300, 32),
        (Preset::LfAmazon131K, 294_805, 131_073, 350, 300, 128),
        (Preset::LfWikiSeeAlso320K, 693_082, 312_330, 350, 300, 128),
        (Preset::LfWikipedia500K, 1_813_391, 501_070, 256, 40, 256),
    ];

    #[test]
    fn the_papers_presets_are_sized_for_its_data_sets() {
        for (preset, n_train, n_labels, batch_size, n_epochs, max_tokens) in PUBLISHED {
            let config = config_from(Some(preset), None, &[]).unwrap();
            config.check().unwrap();
            assert_eq!(config.encoder.max_tokens, Some(max_tokens), "{preset}");
            assert!(!config.batching.label_points, "{preset}");
            let mut plan = TrainPlan {
                threads: 1,
                n_steps: 0,
                n_warmup_steps: 0,
                cluster_sizes: Vec::new(),
                estimate: Estimate::default(),
                data: DataFacts {
                    n_points: n_train,
                    n_held_out: 0,
                    n_labels,
                    n_train: n_train as u64,
                    text: TextChoice::Both,
                    n_pairs: 0,
                    digest: String::new(),
                },
                config,
                choices: Vec::new(),
            };
            plan.lay_out_epochs();
            assert_eq!((plan.batch_size(), plan.n_epochs()), (batch_size, n_epochs), "{preset}");
            let sizes = &plan.cluster_sizes;
            assert_eq!((sizes.len(), sizes[0]), (n_epochs, 1), "{preset}");
            assert!(sizes.windows(2).all(|pair| pair[0] <= pair[1]), "clusters only grow");
            assert!(sizes[n_epochs - 1] > 8 && sizes[n_epochs - 1] <= batch_size, "{preset}");
            if n_epochs == 300 {
                // "Cluster size C was doubled after every 25 epochs", refreshed every five.
                let grown = |epoch: usize| sizes[epoch + 4] / sizes[epoch - 1];
                assert!([50, 75, 100, 125].into_iter().all(|epoch| grown(epoch) >= 2), "{sizes:?}");
            }
            // Batches of whole clusters are up to a cluster larger than was asked for.
            let (fewest, most) = (n_train / (2 * batch_size), n_train / batch_size + 1);
            let mean = plan.n_steps as usize / n_epochs;
            assert!((fewest..=most).contains(&mean), "{preset}: {mean} steps an epoch");
            // It reads back as it was written.
            assert_eq!(TrainPlan::parse(&plan.to_toml()).unwrap(), plan);
        }
    }
}
