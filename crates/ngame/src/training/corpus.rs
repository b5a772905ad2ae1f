//! A data set as training sees it: distinct texts as tokens, points, and what they are to be close to.
//!
//! Every distinct text has one number, so that a batch encodes it once, whoever brings it. What points
//! are compared with are *targets*: texts of labels when the encoder alone is trained, labels
//! themselves when each has a classifier of its own. Targets are numbered from 0; where they are texts,
//! they are the first texts.

use crate::baseline::NearestPoints;
use crate::data::{Csr, Dataset, Interner, Split, Texts};
use crate::error::{InputError, InputErrorKind, Place};
use crate::progress::Observer;
use crate::random::{generator, mix};
use crate::tokens::{TokenStore, Tokenizer, tokenize};
use crate::{Error, Result};
use rand::seq::SliceRandom;
use sha2::{Digest, Sha256};

use super::config::Mode;

/// What the random choice of held-out points is drawn for.
const HELD_OUT: u64 = 2;

/// What the choice of a positive is drawn for.
const POSITIVE: u64 = 3;

/// Texts, points and targets.
#[derive(Debug)]
pub struct Corpus {
    /// The tokens of every distinct text.
    pub tokens: TokenStore,
    /// What takes the place of the tokens of a text that has none.
    pub stand_in: u32,
    /// The text of every label.
    pub label_text: Vec<u32>,
    /// The number of distinct texts that labels have; they are the first texts.
    pub n_label_texts: usize,
    /// The text of every training point.
    pub point_text: Vec<u32>,
    /// The targets that a training point should be close to: points × targets.
    pub positives: Csr,
    /// The targets that are no negatives of it: its positives, its own text, its filter pairs.
    pub not_negative: Csr,
    /// The points of the training split that are trained on, by their positions there.
    pub trained: Vec<u32>,
    /// The text of every one of them.
    pub trained_text: Vec<u32>,
    /// The points held out to see how training goes.
    pub held_out: HeldOut,
    /// A digest of all texts and pairs.
    pub digest: String,
}

/// Points that training never sees.
#[derive(Clone, Debug)]
pub struct HeldOut {
    /// Their positions in the training split, unless they are a split of their own.
    pub points: Option<Vec<u32>>,
    /// The text of every point.
    pub text: Vec<u32>,
    /// Which labels it has.
    pub truth: Csr,
    /// Which labels do not count.
    pub filter: Csr,
}

/// The distinct texts of a data set and who has which, before they are tokens.
#[derive(Debug)]
pub(super) struct DistinctTexts {
    pub(super) texts: Texts,
    label_text: Vec<u32>,
    n_label_texts: usize,
    train_text: Vec<u32>,
    valid_text: Vec<u32>,
}

impl DistinctTexts {
    /// Finds them.
    pub(super) fn new(dataset: &Dataset) -> Self {
        let mut interner = Interner::default();
        let mut numbers = |texts: &Texts| -> Vec<u32> {
            texts.iter().map(|text| interner.intern(text).0).collect()
        };
        let label_text = numbers(&dataset.labels.texts);
        let n_label_texts = label_text.iter().max().map_or(0, |&last| last as usize + 1);
        let train_text = numbers(&dataset.train.texts);
        let valid_text = dataset.valid.as_ref().map_or(Vec::new(), |split| numbers(&split.texts));
        Self { texts: interner.into_strings(), label_text, n_label_texts, train_text, valid_text }
    }
}

/// What a corpus is made for.
#[derive(Clone, Copy, Debug)]
pub(super) struct CorpusOptions {
    pub(super) mode: Mode,
    pub(super) max_tokens: usize,
    pub(super) n_held_out: usize,
    /// The share of held-out points that are held out with their twins.
    pub(super) with_twins: f64,
    pub(super) label_points: bool,
    pub(super) seed: u64,
}

impl Corpus {
    /// Tokenises the texts and finds points and targets.
    pub(super) fn new(
        dataset: &Dataset,
        distinct: DistinctTexts,
        tokenizer: &Tokenizer,
        options: CorpusOptions,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let digest = digest(dataset);
        let tokens = tokenize(&distinct.texts, tokenizer, options.max_tokens, observer)?;
        let DistinctTexts { texts, label_text, n_label_texts, train_text, valid_text } = distinct;
        let targets = Targets { mode: options.mode, label_text: &label_text, texts: &texts };
        let (kept, held_out) = match &dataset.valid {
            Some(valid) => (all(&dataset.train), held_out(valid, valid_text, None)),
            None => {
                let (kept, chosen) = hold_out(&dataset.train, options);
                let text: Vec<u32> = chosen.iter().map(|&at| train_text[at as usize]).collect();
                (kept, held_out(&dataset.train.select(&chosen), text, Some(chosen)))
            }
        };
        let n_targets = match options.mode {
            Mode::Modular => n_label_texts,
            Mode::Joint => label_text.len(),
        } as u32;
        let mut positives = Csr::new(n_targets);
        let mut not_negative = Csr::new(n_targets);
        let mut point_text = Vec::new();
        let train = &dataset.train;
        for &point in &kept {
            let point = point as usize;
            let own: Vec<u32> =
                train.by_point.row(point).iter().filter_map(|&label| targets.of(label)).collect();
            if own.is_empty() {
                continue; // Nothing to be close to.
            }
            let text = train_text[point];
            let mut spared = own.clone();
            spared.extend(train.filter.row(point).iter().filter_map(|&label| targets.of(label)));
            spared.extend(targets.same_text(text, n_label_texts));
            positives.push_row(&own);
            not_negative.push_row(&spared);
            point_text.push(text);
        }
        if options.label_points {
            for (label, &text) in label_text.iter().enumerate() {
                if let Some(target) = targets.of(label as u32).filter(|_| targets.has_text(text)) {
                    positives.push_row(&[target]);
                    not_negative.push_row(&[target]);
                    point_text.push(text);
                }
            }
        }
        if point_text.is_empty() {
            return Err(InputError::new(InputErrorKind::NoText, Place::file("the training split"))
                .expected("points with labels that have a text to be embedded")
                .found("none")
                .help("give the labels texts, or train with mode = \"joint\", which needs none")
                .into());
        }
        let stand_in = tokenizer.stand_in();
        let trained_text = kept.iter().map(|&point| train_text[point as usize]).collect();
        Ok(Self {
            tokens,
            stand_in,
            label_text,
            n_label_texts,
            point_text,
            positives,
            not_negative,
            trained: kept,
            trained_text,
            held_out,
            digest,
        })
    }

    /// The same points and targets, of the same texts as other tokens.
    pub(super) fn with_tokens(&self, tokens: TokenStore) -> Self {
        assert_eq!(tokens.n_texts(), self.tokens.n_texts(), "the same texts");
        Self {
            tokens,
            stand_in: self.stand_in,
            label_text: self.label_text.clone(),
            n_label_texts: self.n_label_texts,
            point_text: self.point_text.clone(),
            positives: self.positives.clone(),
            not_negative: self.not_negative.clone(),
            trained: self.trained.clone(),
            trained_text: self.trained_text.clone(),
            held_out: self.held_out.clone(),
            digest: self.digest.clone(),
        }
    }

    /// How many training points there are.
    pub fn n_points(&self) -> usize {
        self.point_text.len()
    }

    /// How many targets there are.
    pub fn n_targets(&self) -> usize {
        self.positives.n_columns() as usize
    }

    /// The positive that a point draws in an epoch, by the seed, the epoch and the point alone.
    pub fn draw_positive(&self, point: u32, seed: u64, epoch: usize) -> u32 {
        let positives = self.positives.row(point as usize);
        let drawn = mix(seed, &[POSITIVE, epoch as u64, u64::from(point)]);
        positives[(drawn % positives.len() as u64) as usize]
    }

    /// How often an epoch draws every target, on average.
    pub fn draws_of_targets(&self) -> Vec<f32> {
        let mut draws = vec![0.0; self.n_targets()];
        for row in self.positives.rows() {
            row.iter().for_each(|&target| draws[target as usize] += 1.0 / row.len() as f32);
        }
        draws
    }

    /// The text of every target.
    pub fn target_texts(&self) -> Vec<u32> {
        match self.n_targets() == self.n_label_texts {
            true => (0..self.n_label_texts as u32).collect(),
            false => self.label_text.clone(),
        }
    }

    /// The tokens of a text, of which there is at least one.
    pub fn n_tokens(&self, text: u32) -> usize {
        self.tokens.len(text as usize).max(1)
    }
}

/// Which target a label is.
struct Targets<'a> {
    mode: Mode,
    label_text: &'a [u32],
    texts: &'a Texts,
}

impl Targets<'_> {
    /// The target of a label, if it can be one: a label without a text cannot be embedded.
    fn of(&self, label: u32) -> Option<u32> {
        match self.mode {
            Mode::Joint => Some(label),
            Mode::Modular => {
                Some(self.label_text[label as usize]).filter(|&text| self.has_text(text))
            }
        }
    }

    fn has_text(&self, text: u32) -> bool {
        !self.texts.get(text as usize).trim().is_empty()
    }

    /// The target that is a point's own text: its score is always 1, and says nothing.
    fn same_text(&self, text: u32, n_label_texts: usize) -> Option<u32> {
        (self.mode == Mode::Modular && (text as usize) < n_label_texts).then_some(text)
    }
}

fn all(split: &Split) -> Vec<u32> {
    (0..split.n_points() as u32).collect()
}

fn held_out(split: &Split, text: Vec<u32>, points: Option<Vec<u32>>) -> HeldOut {
    let (truth, filter) = (split.by_point.clone(), split.filter.clone());
    HeldOut { points, text, truth, filter }
}

/// Texts at least this alike, by their words, are twins.
const TWINS: f32 = 0.5;

/// Texts that share a word which at most so many texts have are twins too: it is a name.
const NAME: usize = 10;

/// The most twins of a point that are looked for by likeness.
const MOST_TWINS: usize = 10;

/// The points that are kept and those held out, both in order.
///
/// Some are held out together with their twins, points whose texts are nearly the same or that share a
/// name. Without this, held-out points would tell how well a model knows what it has seen under the
/// same name; new points are often not like that, and what is learnt from held-out points has to hold
/// for both kinds.
fn hold_out(train: &Split, options: CorpusOptions) -> (Vec<u32>, Vec<u32>) {
    let n_points = train.n_points();
    let mut points: Vec<u32> = (0..n_points as u32).collect();
    points.shuffle(&mut generator(options.seed, &[HELD_OUT]));
    let n_held_out = options.n_held_out.min(n_points.saturating_sub(1));
    let n_with_twins = (n_held_out as f64 * options.with_twins).round() as usize;
    let mut is_chosen = vec![false; n_points];
    let mut n_chosen = 0;
    let nearest = (n_with_twins > 0).then(|| NearestPoints::new(train));
    for &point in &points {
        if n_chosen >= n_held_out {
            break;
        }
        n_chosen += usize::from(!std::mem::replace(&mut is_chosen[point as usize], true));
        if let Some(nearest) = nearest.as_ref().filter(|_| n_chosen <= n_with_twins) {
            let text = train.texts.get(point as usize);
            let alike = nearest.nearest(text, MOST_TWINS).into_iter();
            let alike = alike.filter(|&(_, similarity)| similarity >= TWINS).map(|(twin, _)| twin);
            let namesakes = nearest.sharing_rare_words(text, NAME);
            for twin in alike.chain(namesakes) {
                if n_chosen < n_with_twins && !is_chosen[twin as usize] {
                    is_chosen[twin as usize] = true;
                    n_chosen += 1;
                }
            }
        }
    }
    (0..n_points as u32).partition(|&point| !is_chosen[point as usize])
}

/// A digest of the texts and pairs that training uses.
fn digest(dataset: &Dataset) -> String {
    let mut hash = Sha256::new();
    let mut add_texts = |texts: &Texts| {
        hash.update((texts.len() as u64).to_le_bytes());
        for text in texts.iter() {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
    };
    add_texts(&dataset.labels.texts);
    let splits = [Some(&dataset.train), dataset.valid.as_ref()];
    splits.iter().flatten().for_each(|split| add_texts(&split.texts));
    for split in splits.iter().flatten() {
        for pairs in [&split.by_point, &split.filter] {
            for row in pairs.rows() {
                hash.update((row.len() as u64).to_le_bytes());
                row.iter().for_each(|label| hash.update(label.to_le_bytes()));
            }
        }
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Corpus {
    /// Refuses another data set than the one a run began with.
    pub(super) fn check_digest(&self, expected: &str) -> Result<()> {
        if self.digest == expected {
            return Ok(());
        }
        Err(Error::Setting {
            setting: "--resume".to_owned(),
            problem:
                "the data set is not the one this run began with; use that one, or begin anew \
                      with --force"
                    .to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ReadOptions;
    use crate::progress::Silent;
    use crate::tokens::{VocabularyOptions, train_vocabulary};

    fn dataset(folder: &std::path::Path) -> Dataset {
        std::fs::write(
            folder.join("train.csv"),
            "text,labels\nred apple,a;b\nyellow banana,b\npear,c\nplum,d\n",
        )
        .unwrap();
        std::fs::write(
            folder.join("labels.csv"),
            "id,text\na,red apple\nb,some fruit\nc,some fruit\nd,\n",
        )
        .unwrap();
        Dataset::read(folder, &ReadOptions::default(), &Silent).unwrap()
    }

    fn corpus(mode: Mode, label_points: bool, n_held_out: usize) -> Result<Corpus> {
        let folder = tempfile::tempdir().unwrap();
        let dataset = dataset(folder.path());
        let distinct = DistinctTexts::new(&dataset);
        let options = VocabularyOptions { size: 60, ..Default::default() };
        let tokenizer = train_vocabulary(&[&distinct.texts], &options, &Silent)?;
        let options = CorpusOptions {
            mode,
            max_tokens: 16,
            n_held_out,
            with_twins: 0.5,
            label_points,
            seed: 1,
        };
        Corpus::new(&dataset, distinct, &tokenizer, options, &Silent)
    }

    #[test]
    fn texts_are_shared_and_labels_without_one_are_no_targets() {
        let corpus = corpus(Mode::Modular, false, 0).unwrap();
        // Texts: red apple, some fruit, the empty one, yellow banana, pear, plum.
        assert_eq!(corpus.tokens.n_texts(), 6);
        assert_eq!((corpus.label_text.as_slice(), corpus.n_label_texts), (&[0, 1, 1, 2][..], 3));
        assert_eq!(corpus.point_text, [0, 3, 4], "plum has no label with a text");
        let rows: Vec<&[u32]> = corpus.positives.rows().collect();
        assert_eq!(rows, [&[0, 1][..], &[1], &[1]]);
    }

    #[test]
    fn joint_training_has_a_target_for_every_label() {
        let corpus = corpus(Mode::Joint, false, 0).unwrap();
        assert_eq!(corpus.n_points(), 4);
        assert_eq!(corpus.positives.row(3), [3]);
        assert_eq!(corpus.not_negative.row(0), [0, 1]);
    }

    #[test]
    fn label_texts_can_be_points_too() {
        let corpus = corpus(Mode::Modular, true, 0).unwrap();
        assert_eq!(corpus.point_text, [0, 3, 4, 0, 1, 1]);
        assert_eq!(corpus.positives.row(5), [1]);
    }

    #[test]
    fn held_out_points_are_not_trained_on() {
        let corpus = corpus(Mode::Joint, false, 2).unwrap();
        assert_eq!((corpus.n_points(), corpus.held_out.text.len()), (2, 2));
        let mut texts = [corpus.point_text.clone(), corpus.held_out.text.clone()].concat();
        texts.sort_unstable();
        assert_eq!(texts, [0, 3, 4, 5]);
        assert_eq!(corpus.held_out.truth.n_rows(), 2);
    }
}
