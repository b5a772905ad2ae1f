//! What a config leaves open, decided: by the data, and by how fast the machine is.
//!
//! Every decision fixes a field of the config and is noted with its reason. They come in this order; some
//! look at what was decided before.

use serde::{Deserialize, Serialize};

use super::calibration::Estimate;
use super::config::TrainConfig;
use super::corpus::{Corpus, DistinctTexts};
use super::model_config::ObjectiveKind;
use crate::Result;
use crate::data::Dataset;
use crate::encoder::TextEncoder;
use crate::progress::Silent;
use crate::tokens::tokenize;

/// Texts that are looked at for their length.
const MEASURED_TEXTS: usize = 4_096;

/// The most epochs that are chosen for a user: twice as many gained nothing with a bag on one data set of
/// two, and half a point of P@1 on the other.
const MOST_EPOCHS: usize = 20;

/// Fewer epochs than these, and fewer layers are trained so that there are more: clusters have to follow
/// what the encoder learns.
const ENOUGH_EPOCHS: usize = 10;

/// The fewest layers that are chosen to be trained.
const FEWEST_LAYERS: usize = 2;

/// Fewer epochs than these, even of the fewest layers, and texts are cut shorter so that there are more.
const FEWEST_EPOCHS: usize = 3;

/// What texts may be cut to for that.
const SHORTER: [usize; 4] = [96, 64, 48, 32];

/// A setting that was left open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Its name.
    pub setting: String,
    /// What was chosen.
    pub value: String,
    /// Why.
    pub why: String,
}

/// What an epoch takes, for choices that depend on it.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    /// What a run takes that trains all layers.
    pub(super) estimate: Estimate,
    /// Seconds of going through all texts once.
    pub(super) forward: f64,
    /// The layers of the encoder, if it has any.
    pub(super) n_layers: Option<usize>,
}

impl Pace {
    /// What it takes where some of the layers are trained.
    pub(super) fn of_layers(&self, trained: Option<usize>) -> Estimate {
        match (self.n_layers, trained) {
            (Some(all), Some(n)) => self.estimate.of_layers(n.min(all), all, self.forward),
            _ => self.estimate,
        }
    }

    /// The same with texts cut so that this share of their tokens is left.
    fn of_texts(&self, share: f64) -> Self {
        let Self { estimate, forward, n_layers } = *self;
        Self { estimate: estimate.of_texts(share), forward: share * forward, n_layers }
    }
}

/// What was decided so far.
#[derive(Default)]
pub(super) struct Choices(pub(super) Vec<Choice>);

impl Choices {
    /// Notes a decision; it takes the place of an earlier one.
    fn note(&mut self, setting: &str, value: impl ToString, why: impl Into<String>) {
        self.0.retain(|choice| choice.setting != setting);
        let (setting, value, why) = (setting.to_owned(), value.to_string(), why.into());
        self.0.push(Choice { setting, value, why });
    }

    /// How long texts may be: most whole, the longest few cut.
    pub(super) fn max_tokens(
        &mut self,
        config: &mut TrainConfig,
        distinct: &DistinctTexts,
        encoder: &TextEncoder,
    ) -> Result<usize> {
        if let Some(max_tokens) = config.encoder.max_tokens {
            return Ok(max_tokens);
        }
        let texts = &distinct.texts;
        let every = texts.len().div_ceil(MEASURED_TEXTS).max(1);
        let sample: Vec<u32> = (0..texts.len() as u32).step_by(every).collect();
        let longest = encoder.max_tokens();
        let store = tokenize(&texts.select(&sample), encoder.tokenizer(), longest, &Silent)?;
        let mut lengths: Vec<usize> = (0..store.n_texts()).map(|text| store.len(text)).collect();
        lengths.sort_unstable();
        let (share, most) = if is_bag(config) { (0.99, longest) } else { (0.95, 128) };
        let at = (lengths.len() as f64 * share) as usize;
        let length = lengths.get(at.min(lengths.len().saturating_sub(1))).copied().unwrap_or(1);
        let chosen = length.next_multiple_of(8).max(16).min(most).min(longest);
        let why = format!("{:.0} % of the texts have at most {length} tokens", share * 100.0);
        self.note("encoder.max_tokens", chosen, why);
        config.encoder.max_tokens = Some(chosen);
        Ok(chosen)
    }

    /// How many points are held out.
    pub(super) fn held_out(&mut self, config: &mut TrainConfig, dataset: &Dataset) {
        config.validation.points.get_or_insert_with(|| match &dataset.valid {
            Some(valid) => valid.n_points(),
            None => {
                let n_train = dataset.train.n_points();
                let n = (n_train / 5).min(10_000);
                let why = format!("a fifth of {n_train} points, at most 10,000");
                self.note("validation.points", n, why);
                n
            }
        });
    }

    /// How many points a batch has.
    pub(super) fn batch_size(&mut self, config: &mut TrainConfig, n_points: usize) {
        let most = if is_bag(config) { 512 } else { 256 };
        config.batching.batch_size.get_or_insert_with(|| {
            let n = (n_points / 20).next_power_of_two().clamp(32, most);
            let why = "about 20 steps an epoch or more; smaller batches make more of them";
            self.note("batching.batch_size", n, why);
            n
        });
    }

    /// What classifiers are trained for.
    pub(super) fn objective(&mut self, config: &mut TrainConfig) {
        config.classifier.objective.get_or_insert_with(|| {
            let why = "the best on held-out points for its cost, whatever the number of labels";
            self.note("classifier.objective", "sampled", why);
            ObjectiveKind::Sampled
        });
    }

    /// Cuts texts of a transformer shorter, if there would not be time for enough epochs otherwise.
    /// Says whether it did.
    pub(super) fn shorter_texts(
        &mut self,
        config: &mut TrainConfig,
        corpus: &Corpus,
        pace: &Pace,
    ) -> bool {
        let (Some(max_tokens), Some(_)) = (config.encoder.max_tokens, pace.n_layers) else {
            return false;
        };
        let tokens_within = |most: usize| {
            (0..corpus.tokens.n_texts()).map(|text| corpus.tokens.len(text).min(most)).sum()
        };
        let trained = config.encoder.trained_layers.unwrap_or(FEWEST_LAYERS);
        let is_enough = |share: f64| {
            let estimate = pace.of_texts(share).of_layers(Some(trained));
            estimate.epochs_in(60.0 * config.run.minutes) >= FEWEST_EPOCHS
        };
        let Some(shorter) = shorter_texts(max_tokens, tokens_within, is_enough) else {
            return false;
        };
        let why = format!("longer texts would leave time for fewer than {FEWEST_EPOCHS} epochs");
        self.note("encoder.max_tokens", shorter, why);
        config.encoder.max_tokens = Some(shorter);
        true
    }

    /// How many layers are trained, from the top.
    pub(super) fn trained_layers(&mut self, config: &mut TrainConfig, pace: &Pace) {
        let Some(all) = pace.n_layers else { return };
        let (epochs_are_given, time) = (config.run.epochs.is_some(), 60.0 * config.run.minutes);
        config.encoder.trained_layers.get_or_insert_with(|| {
            let is_enough = |&n: &usize| {
                epochs_are_given || pace.of_layers(Some(n)).epochs_in(time) >= ENOUGH_EPOCHS
            };
            let n = (FEWEST_LAYERS..=all).rev().find(is_enough).unwrap_or(FEWEST_LAYERS.min(all));
            let why = match n == all {
                true => "all there are".to_owned(),
                false => format!(
                    "of {all}, from the top: more would leave time for fewer than {ENOUGH_EPOCHS} epochs"
                ),
            };
            self.note("encoder.trained_layers", n, why);
            n
        });
    }

    /// How large steps are.
    pub(super) fn learning_rate(&mut self, config: &mut TrainConfig, n_layers: Option<usize>) {
        let some_layers = n_layers > config.encoder.trained_layers;
        let (rate, why) = match is_bag(config) {
            true => (2e-3, "a bag starts from nothing and takes large steps"),
            false if some_layers => (6e-4, "a few layers alone can take larger steps than all"),
            false => (2e-4, "what the authors use for a pretrained encoder"),
        };
        config.optimiser.learning_rate.get_or_insert_with(|| {
            self.note("optimiser.learning_rate", rate, why);
            rate
        });
    }

    /// How many epochs there are.
    pub(super) fn epochs(&mut self, config: &mut TrainConfig, estimate: &Estimate) -> usize {
        let minutes = config.run.minutes;
        *config.run.epochs.get_or_insert_with(|| {
            let n = estimate.epochs_in(60.0 * minutes).clamp(1, MOST_EPOCHS);
            let why = format!(
                "an epoch takes about {:.1} s here, what comes after them {:.0} s, and run.minutes is {minutes}",
                estimate.seconds_per_epoch,
                estimate.later.sum()
            );
            self.note("run.epochs", n, why);
            n
        })
    }
}

fn is_bag(config: &TrainConfig) -> bool {
    config.encoder.start == "bag"
}

/// What to cut texts to so that there is enough time, which `is_enough` says of the share of tokens that
/// is left: as little as will do, the most where nothing does. None if they may stay.
fn shorter_texts(
    max_tokens: usize,
    tokens_within: impl Fn(usize) -> usize,
    is_enough: impl Fn(f64) -> bool,
) -> Option<usize> {
    if is_enough(1.0) {
        return None;
    }
    let all = tokens_within(max_tokens).max(1) as f64;
    let shorter: Vec<usize> = SHORTER.into_iter().filter(|&length| length < max_tokens).collect();
    let enough = shorter.iter().find(|&&length| is_enough(tokens_within(length) as f64 / all));
    enough.or(shorter.last()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_as_little_as_leaves_time_for_epochs() {
        // A hundred texts of 1 to 100 tokens.
        let within = |most: usize| (1..=100).map(|length: usize| length.min(most)).sum();
        let cut = |most_share: f64| shorter_texts(100, within, |share| share <= most_share);
        assert_eq!(cut(1.0), None);
        assert_eq!(cut(0.999), Some(96));
        assert_eq!(cut(0.9), Some(64));
        assert_eq!(cut(0.75), Some(48));
        assert_eq!(cut(0.6), Some(32));
        assert_eq!(cut(0.0), Some(32), "the most where nothing is enough");
        assert_eq!(shorter_texts(24, within, |_| false), None, "short ones stay");
    }

    #[test]
    fn a_later_decision_takes_the_place_of_an_earlier_one() {
        let mut choices = Choices::default();
        choices.note("encoder.max_tokens", 128, "most texts are no longer");
        choices.note("validation.points", 10, "a fifth");
        choices.note("encoder.max_tokens", 32, "no time for more");
        let values: Vec<&str> = choices.0.iter().map(|choice| choice.value.as_str()).collect();
        assert_eq!(values, ["10", "32"]);
    }
}
