//! A batch put together: its distinct texts packed as tokens, and what its points are compared with.

use ngame_nn::Batch;

use super::config::{LossKind, Mode, TrainConfig};
use super::corpus::Corpus;
use crate::batching::NegativeLists;
use crate::loss::Targets;

/// The texts of a batch and their roles, in buffers that are reused from batch to batch.
#[derive(Debug)]
pub(super) struct BatchTexts {
    mode: Mode,
    /// What is added to the scores of every target of the corpus; empty where nothing is.
    offsets_of_targets: Vec<f32>,
    ids: Vec<u32>,
    offsets: Vec<usize>,
    texts: Slots,   // The texts to encode.
    targets: Slots, // The targets that are columns of the scores.
    /// The row of every point's text among the texts.
    pub(super) point_rows: Vec<u32>,
    /// The row of every target's text among the texts; empty where targets are no texts.
    pub(super) target_rows: Vec<u32>,
    /// What the targets are to the points.
    pub(super) roles: Targets,
}

/// Some of many numbers, in the order in which they came, with their places.
#[derive(Debug)]
struct Slots {
    numbers: Vec<u32>,
    place: Vec<u32>, // u32::MAX where a number has none
}

impl Slots {
    fn new(n: usize) -> Self {
        Self { numbers: Vec::new(), place: vec![u32::MAX; n] }
    }

    fn clear(&mut self) {
        for number in self.numbers.drain(..) {
            self.place[number as usize] = u32::MAX;
        }
    }

    /// The place of a number, which gets one if it has none.
    fn put(&mut self, number: u32) -> u32 {
        let place = &mut self.place[number as usize];
        if *place == u32::MAX {
            *place = self.numbers.len() as u32;
            self.numbers.push(number);
        }
        *place
    }

    fn find(&self, number: u32) -> Option<u32> {
        Some(self.place[number as usize]).filter(|&place| place != u32::MAX)
    }
}

impl BatchTexts {
    /// Buffers for batches of a corpus.
    pub(super) fn new(corpus: &Corpus, config: &TrainConfig) -> Self {
        let loss = &config.loss;
        let offsets_of_targets = match (loss.kind, loss.log_q) {
            (LossKind::Softmax, log_q) if log_q > 0.0 => {
                // Scores are divided by the temperature before they are logits.
                let offset = |drawn: f32| -log_q * loss.temperature * drawn.max(1e-3).ln();
                corpus.draws_of_targets().into_iter().map(offset).collect()
            }
            _ => Vec::new(),
        };
        Self {
            mode: config.mode,
            offsets_of_targets,
            ids: Vec::new(),
            offsets: Vec::new(),
            texts: Slots::new(corpus.tokens.n_texts()),
            targets: Slots::new(corpus.n_targets()),
            point_rows: Vec::new(),
            target_rows: Vec::new(),
            roles: Targets::default(),
        }
    }

    /// Puts a batch together: every point draws one of its positives, by the seed, the epoch and the
    /// point alone, and mined negatives join the targets.
    pub(super) fn fill(
        &mut self,
        corpus: &Corpus,
        points: &[u32],
        negatives: Option<&NegativeLists>,
        seed: u64,
        epoch: usize,
    ) {
        self.texts.clear();
        self.targets.clear();
        self.roles.clear();
        self.point_rows.clear();
        self.target_rows.clear();
        for &point in points {
            let row = self.texts.put(corpus.point_text[point as usize]);
            self.point_rows.push(row);
            self.targets.put(corpus.draw_positive(point, seed, epoch));
        }
        if let Some(lists) = negatives {
            for &point in points {
                lists.get(point as usize).for_each(|target| {
                    self.targets.put(target);
                });
            }
        }
        for &point in points {
            let positive = corpus.draw_positive(point, seed, epoch);
            let column = self.targets.put(positive);
            let columns = |row: &[u32]| -> Vec<u32> {
                row.iter()
                    .filter(|&&target| target != positive)
                    .filter_map(|&target| self.targets.find(target))
                    .collect()
            };
            let own = corpus.positives.row(point as usize);
            let others = columns(own);
            // What is neither positive nor negative: spared, but not its own.
            let spared = corpus.not_negative.row(point as usize);
            let ignored: Vec<u32> = match spared.len() == own.len() {
                true => Vec::new(),
                false => {
                    let mut ignored = columns(spared);
                    ignored.retain(|column| !others.contains(column));
                    ignored
                }
            };
            self.roles.push(column, others, ignored);
        }
        if !self.offsets_of_targets.is_empty() {
            let offsets = self.targets.numbers.iter();
            let offsets = offsets.map(|&target| self.offsets_of_targets[target as usize]);
            self.roles.offsets.extend(offsets);
        }
        if self.mode == Mode::Modular {
            for &target in &self.targets.numbers {
                let row = self.texts.put(target);
                self.target_rows.push(row);
            }
        }
        self.pack(corpus);
    }

    /// Packs the tokens of all texts.
    fn pack(&mut self, corpus: &Corpus) {
        self.ids.clear();
        self.offsets.clear();
        self.offsets.push(0);
        for &text in &self.texts.numbers {
            let begin = self.ids.len();
            corpus.tokens.get(text as usize).append_to(&mut self.ids);
            if self.ids.len() == begin {
                self.ids.push(corpus.stand_in);
            }
            self.offsets.push(self.ids.len());
        }
    }

    /// The tokens.
    pub(super) fn batch(&self) -> Batch<'_> {
        Batch::new(&self.ids, &self.offsets)
    }

    /// The targets, one a column.
    pub(super) fn targets(&self) -> &[u32] {
        &self.targets.numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Csr;
    use crate::data::Texts;
    use crate::progress::Silent;
    use crate::tokens::{VocabularyOptions, tokenize, train_vocabulary};
    use crate::training::corpus::HeldOut;

    /// Four label texts; point 1 has the text of target 3, point 2 that of point 0.
    fn corpus() -> Corpus {
        let texts: Texts = ["one", "two", "", "four", "five"].into_iter().collect();
        let options = VocabularyOptions { size: 40, ..Default::default() };
        let tokenizer = train_vocabulary(&[&texts], &options, &Silent).unwrap();
        let tokens = tokenize(&texts, &tokenizer, 8, &Silent).unwrap();
        Corpus {
            tokens,
            stand_in: 0,
            label_text: vec![0, 1, 2, 3],
            n_label_texts: 4,
            point_text: vec![4, 3, 4],
            positives: Csr::from_pairs(3, 4, vec![(0, 0), (0, 1), (1, 0), (2, 1)]),
            not_negative: Csr::from_pairs(3, 4, vec![(0, 0), (0, 1), (1, 0), (1, 3), (2, 1)]),
            trained: vec![0, 1, 2],
            trained_text: vec![4, 3, 4],
            held_out: HeldOut {
                points: None,
                text: vec![],
                truth: Csr::new(4),
                filter: Csr::new(4),
            },
            digest: String::new(),
        }
    }

    #[test]
    fn distinct_texts_are_packed_once_and_roles_are_columns() {
        let corpus = corpus();
        let negatives = NegativeLists::new(vec![3, u32::MAX, 3], 1);
        let mut batch = BatchTexts::new(&corpus, &TrainConfig::default());
        for _ in 0..2 {
            batch.fill(&corpus, &[0, 1, 2], Some(&negatives), 5, 0);
            let targets = batch.targets().to_vec();
            assert!(targets.contains(&0) && targets.contains(&1) && targets.contains(&3));
            assert_eq!(targets.len(), 3);
            // Points share a text, and point 1 shares one with target 3.
            assert_eq!(batch.batch().n_texts(), 4);
            assert_eq!(batch.point_rows[0], batch.point_rows[2]);
            let column = |target: u32| targets.iter().position(|&t| t == target).unwrap();
            assert_eq!(batch.target_rows[column(3)], batch.point_rows[1]);
            let point = batch.roles.row(0);
            let other = if point.positive == column(0) { column(1) } else { column(0) };
            assert_eq!(point.other_positives, [other as u32]);
            assert_eq!(batch.roles.row(1).ignored, [column(3) as u32], "its own text");
            assert_eq!(batch.roles.row(2).positive, column(1));
        }
    }

    #[test]
    fn over_many_epochs_every_positive_is_drawn() {
        let corpus = corpus();
        let drawn: Vec<u32> = (0..50).map(|epoch| corpus.draw_positive(0, 1, epoch)).collect();
        assert!(drawn.contains(&0) && drawn.contains(&1));
    }

    #[test]
    fn what_is_drawn_more_often_is_relieved_of_more() {
        let corpus = corpus();
        // Point 0 draws one of two; the points 1 and 2 have no choice.
        assert_eq!(corpus.draws_of_targets(), [1.5, 1.5, 0.0, 0.0]);
        let mut config = TrainConfig::default();
        (config.loss.log_q, config.loss.temperature) = (1.0, 0.5);
        let mut batch = BatchTexts::new(&corpus, &config);
        for _ in 0..2 {
            batch.fill(&corpus, &[1, 2], None, 5, 0);
            assert_eq!(batch.targets(), [0, 1]);
            assert_eq!(batch.roles.offsets, [-0.5 * 1.5f32.ln(); 2]);
        }
        let mut batch = BatchTexts::new(&corpus, &TrainConfig::default());
        batch.fill(&corpus, &[1, 2], None, 5, 0);
        assert!(batch.roles.offsets.is_empty());
    }

    #[test]
    fn joint_batches_encode_points_only() {
        let corpus = corpus();
        let config = TrainConfig { mode: Mode::Joint, ..Default::default() };
        let mut batch = BatchTexts::new(&corpus, &config);
        batch.fill(&corpus, &[0, 2], None, 5, 0);
        assert_eq!((batch.batch().n_texts(), batch.target_rows.len()), (1, 0));
    }
}
