//! Candidates in order, best first, each with a probability.
//!
//! Trained labels are ranked among themselves, whatever was added. Labels added after training take
//! their places between them by their fused scores, but for one rule: a text that *is* the text of an
//! added label has that label first. The trees of the fusion learnt what scores mean for labels that
//! training points have; an added label has none, and all there is to know of it is its text. Nothing
//! can speak louder for it than that very text.

use std::collections::HashMap;

use super::predictor::{Predicted, PredictionOptions};
use crate::fusion::Fusion;
use crate::metrics::top_k;
use crate::model::Model;
use crate::views::Candidates;

/// The added labels by their texts.
#[derive(Debug, Default)]
pub(super) struct AddedTexts {
    labels: HashMap<String, Vec<u32>>,
}

impl AddedTexts {
    pub(super) fn new(model: &Model) -> Self {
        let mut labels: HashMap<String, Vec<u32>> = HashMap::new();
        for (label, text) in model.added_labels() {
            labels.entry(plain(text)).or_default().push(label);
        }
        Self { labels }
    }

    /// The added labels that have this text, but for case and spaces.
    pub(super) fn of(&self, text: &str) -> &[u32] {
        if self.labels.is_empty() {
            return &[];
        }
        self.labels.get(&plain(text)).map_or(&[], Vec::as_slice)
    }
}

/// A text in lower case with single spaces.
fn plain(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ")
}

/// Ranks candidates, of which those from `n_trained` on were added and those in `same_text` have the
/// very text that is asked about.
pub(super) fn rank(
    fusion: &Fusion,
    candidates: &Candidates,
    n_trained: usize,
    same_text: &[u32],
    options: PredictionOptions,
) -> Vec<Predicted> {
    let scores = fusion.scores(&candidates.descriptors);
    let split = candidates.labels.partition_point(|&label| (label as usize) < n_trained);
    let sorted = |labels: &[u32], scores: &[f32]| {
        let mut best = Vec::new();
        top_k(labels, scores, &[], labels.len(), &mut best);
        best
    };
    let trained = sorted(&candidates.labels[..split], &scores[..split]);
    let mut ranked: Vec<Ranked> = trained
        .iter()
        .map(|&(label, score)| Ranked { label, score, probability: fusion.probability(score) })
        .collect();
    // Those that are too unlikely are told by their own probability, before neighbours lift it.
    let n_likely = ranked.partition_point(|found| found.probability >= options.threshold);
    lift(&mut ranked);
    ranked.truncate(n_likely);
    if split < candidates.labels.len() {
        let mut added = sorted(&candidates.labels[split..], &scores[split..]);
        // Stable: those of the same text come first, in their order.
        added.sort_by_key(|(label, _)| !same_text.contains(label));
        for (label, score) in added.into_iter().rev() {
            let is_first = same_text.contains(&label);
            let mut probability = fusion.probability(score);
            if let (true, Some(behind)) = (is_first, ranked.first()) {
                probability = probability.max(behind.probability.next_up());
            }
            if probability >= options.threshold {
                insert(&mut ranked, Ranked { label, score, probability }, is_first);
            }
        }
    }
    ranked.truncate(options.top);
    ranked
        .into_iter()
        .map(|found| Predicted { label: found.label, score: found.probability })
        .collect()
}

#[derive(Clone, Copy, Debug)]
struct Ranked {
    label: u32,
    /// The fused score.
    score: f32,
    probability: f32,
}

/// Calibration has steps, and ranks would be lost on them: by the least bit, a label is always above the
/// one behind it. All candidates take part, however many are wanted, so that a label's probability
/// does not depend on how many are.
fn lift(ranked: &mut [Ranked]) {
    let mut above = 0.0f32;
    for found in ranked.iter_mut().rev() {
        found.probability = found.probability.max(above);
        above = found.probability.next_up();
    }
}

/// Puts an added label before all that score less, or before all there are; it comes before the added
/// ones that were put in so far. Its probability fits in between: at least what comes behind it and at
/// most what stands before it, which may leave no room but for a tie; ties go by the number of the
/// label, and an added one has the higher.
fn insert(ranked: &mut Vec<Ranked>, mut new: Ranked, is_first: bool) {
    let at = match is_first {
        true => 0,
        false => {
            let is_behind = |found: &Ranked| {
                found.score < new.score || (found.score == new.score && found.label > new.label)
            };
            ranked.iter().position(is_behind).unwrap_or(ranked.len())
        }
    };
    if let Some(behind) = ranked.get(at) {
        new.probability = new.probability.max(behind.probability.next_up());
    }
    if let Some(before) = at.checked_sub(1).and_then(|at| ranked.get(at)) {
        new.probability = new.probability.min(before.probability);
    }
    ranked.insert(at, new);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fusion::{Isotonic, Method};
    use crate::views::{Column, Shortlists, View};

    /// Scores of embeddings, of which those above 0.5 are right and others never.
    fn fusion() -> Fusion {
        Fusion {
            views: View::PAPER.to_vec(),
            columns: vec![Column::Embedding, Column::Classifier],
            shortlists: Shortlists::default(),
            logits: false,
            method: Method::Embedding,
            calibration: Isotonic::fit(&[0.0, 0.4, 0.6, 1.0], &[false, false, true, true]),
            tried: Vec::new(),
        }
    }

    fn ranked(scores: &[f32], n_trained: usize, same: &[u32], top: usize) -> Vec<(u32, f32)> {
        let candidates = Candidates {
            labels: (0..scores.len() as u32).collect(),
            found: vec![true; scores.len()],
            descriptors: scores.iter().flat_map(|&score| [score, 0.0]).collect(),
        };
        let options = PredictionOptions { top, threshold: 0.0 };
        let ranked = rank(&fusion(), &candidates, n_trained, same, options);
        ranked.into_iter().map(|found| (found.label, found.score)).collect()
    }

    #[test]
    fn ranks_on_a_step_are_kept_whatever_is_asked_for() {
        let all = ranked(&[0.7, 0.9, 0.1, 0.2], 4, &[], 9);
        assert_eq!(all.iter().map(|found| found.0).collect::<Vec<_>>(), [1, 0, 3, 2]);
        assert!(all.is_sorted_by(|a, b| a.1 > b.1), "{all:?}");
        assert_eq!(ranked(&[0.7, 0.9, 0.1, 0.2], 4, &[], 2), all[..2]);
    }

    #[test]
    fn added_labels_take_places_and_change_nothing_else() {
        let before = ranked(&[0.7, 0.9, 0.1, 0.2], 4, &[], 9);
        let scores = [0.7, 0.9, 0.1, 0.2, 0.8, 0.8, 0.95, 0.0, 0.7];
        for same in [&[][..], &[7], &[8, 7]] {
            let after = ranked(&scores, 4, same, 9);
            let kept: Vec<(u32, f32)> = after.iter().copied().filter(|found| found.0 < 4).collect();
            assert_eq!(kept, before);
            // By score, and where there is no room between two scores, by number: no rank is lost.
            assert!(after.is_sorted_by(|a, b| (b.1, a.0) < (a.1, b.0)), "{after:?}");
            let labels: Vec<u32> = after.iter().map(|found| found.0).collect();
            let rest = [6, 1, 4, 5, 0, 8, 3, 2, 7];
            let mut first: Vec<u32> = same.to_vec();
            first.sort_by(|a, b| b.cmp(a));
            let expected: Vec<u32> = first
                .iter()
                .chain(rest.iter().filter(|label| !same.contains(label)))
                .copied()
                .collect();
            assert_eq!(labels, expected);
        }
    }

    #[test]
    fn a_text_is_the_same_but_for_case_and_spaces() {
        let labels = HashMap::from([(plain("Red  Fox"), vec![3])]);
        let added = AddedTexts { labels };
        for text in ["red fox", " RED\tFOX "] {
            assert_eq!(added.of(text), [3], "{text}");
        }
        assert!(added.of("redfox").is_empty());
    }
}
