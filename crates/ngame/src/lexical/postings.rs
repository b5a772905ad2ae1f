//! Feature to labels: the labels a text scores with, in time proportional to the weights it touches.

use std::ops::Range;

use half::bf16;

use super::sparse::SparseRows;
use crate::metrics::TopK;

/// By feature, the labels that have a weight for it. A weight has two bytes: its rounding is far below
/// what tells labels apart.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Postings {
    /// Feature `f` is at `offsets[f]..offsets[f + 1]` of the two others.
    pub(super) offsets: Vec<u64>,
    /// Ascending for a feature.
    pub(super) labels: Vec<u32>,
    pub(super) weights: Vec<bf16>,
}

/// The labels whose scores are added up at a time. Their sums stay in the near caches however many labels
/// there are, where a sum for each of a million would be fetched from far away again and again.
const BLOCK: usize = 1 << 15;

/// The labels of a feature in a block that make going through another block worth while. Among very many
/// labels, or few that share anything, blocks are larger.
const FULL: usize = 8;

/// The labels of a block for a vector of so many features, whose lists together have so many labels.
pub(super) fn block_size(n_labels: usize, n_features: usize, n_shared: usize) -> usize {
    BLOCK.max(n_labels.saturating_mul(FULL * n_features) / n_shared.max(1))
}

/// A sum that nothing was added to. Sums begin at 0.0, and no sum of 0.0 and anything is -0.0.
const UNTOUCHED: f32 = -0.0;

/// Room for searches, kept from one to the next.
#[derive(Clone, Debug, Default)]
pub struct LexicalRoom {
    sums: Vec<f32>,                 // (labels of a block)
    touched: Vec<u32>,              // (labels of a block, and one), as places in the block
    left: Vec<(f32, Range<usize>)>, // (features of the vector): a value, and where its labels are left
}

impl Postings {
    /// Postings to which features are added.
    pub(super) fn of_no_feature() -> Self {
        Self { offsets: vec![0], labels: Vec::new(), weights: Vec::new() }
    }

    /// The weights of labels (rows), turned round.
    pub(super) fn new(by_label: &SparseRows, n_features: usize) -> Self {
        let (offsets, labels, weights) = by_label.transpose(n_features).into_parts();
        let weights = weights.into_iter().map(bf16::from_f32).collect();
        Self { offsets, labels, weights }
    }

    /// The same with no more than the heaviest `most` labels of a feature.
    pub(super) fn heaviest(&self, most: usize) -> Self {
        let mut kept = Self::of_no_feature();
        let mut order: Vec<u32> = Vec::new();
        for feature in 0..self.offsets.len() as u32 - 1 {
            let (labels, weights) = self.of(feature);
            if labels.len() <= most {
                kept.labels.extend(labels);
                kept.weights.extend(weights);
            } else {
                order.clear();
                order.extend(0..labels.len() as u32);
                let weight = |at: u32| weights[at as usize];
                order.select_nth_unstable_by(most, |&a, &b| {
                    weight(b).total_cmp(&weight(a)).then(a.cmp(&b))
                });
                order.truncate(most);
                order.sort_unstable();
                kept.labels.extend(order.iter().map(|&at| labels[at as usize]));
                kept.weights.extend(order.iter().map(|&at| weight(at)));
            }
            kept.offsets.push(kept.labels.len() as u64);
        }
        kept
    }

    /// What is wrong with postings of so many features and labels, if anything.
    pub(super) fn check(&self, n_features: usize, n_labels: usize) -> Result<(), String> {
        let n_offsets = self.offsets.len();
        if n_offsets != n_features + 1 {
            return Err(format!("{n_features} features, but {n_offsets} offsets"));
        }
        if self.labels.len() != self.weights.len() {
            let (labels, weights) = (self.labels.len(), self.weights.len());
            return Err(format!("{labels} labels of weights, but {weights} weights"));
        }
        let ends = (self.offsets[0], self.offsets[n_features]);
        if ends != (0, self.labels.len() as u64) || !self.offsets.is_sorted() {
            return Err("offsets that do not cover the weights".to_owned());
        }
        for feature in 0..n_features as u32 {
            let (labels, _) = self.of(feature);
            let fit = labels.last().is_none_or(|&label| (label as usize) < n_labels);
            if !fit || !labels.is_sorted_by(|a, b| a < b) {
                return Err(format!(
                    "the labels of feature {feature} do not ascend below {n_labels}"
                ));
            }
        }
        match self.weights.iter().all(|weight| weight.is_finite()) {
            true => Ok(()),
            false => Err("a weight is not a finite number".to_owned()),
        }
    }

    /// The labels and weights of a feature.
    pub(super) fn of(&self, feature: u32) -> (&[u32], &[bf16]) {
        let range = self.range(feature);
        (&self.labels[range.clone()], &self.weights[range])
    }

    /// Where the labels and weights of a feature are.
    fn range(&self, feature: u32) -> Range<usize> {
        let at = feature as usize;
        self.offsets[at] as usize..self.offsets[at + 1] as usize
    }

    /// The best `k` of so many labels that share a feature with a vector, each scored by its weights and
    /// its bias; those that `skip` names are left out.
    pub(super) fn search(
        &self,
        vector: &[(u32, f32)],
        n_labels: usize,
        bias: impl Fn(u32) -> f32,
        skip: impl Fn(u32) -> bool,
        k: usize,
        room: &mut LexicalRoom,
    ) -> Vec<(u32, f32)> {
        let LexicalRoom { sums, touched, left } = room;
        left.clear();
        left.extend(vector.iter().map(|&(feature, value)| (value, self.range(feature))));
        let n_shared: usize = left.iter().map(|(_, range)| range.len()).sum();
        let block = block_size(n_labels, left.len(), n_shared);
        sums.resize(n_labels.min(block), UNTOUCHED);
        touched.resize(sums.len() + 1, 0);
        let mut best = TopK::new(k);
        for first in (0..n_labels).step_by(block) {
            let mut n_touched = 0;
            for (value, range) in left.iter_mut() {
                let own = self.labels[range.clone()].iter().zip(&self.weights[range.clone()]);
                let mut n_own = 0;
                for (&label, weight) in own {
                    let at = label as usize - first;
                    let Some(sum) = sums.get_mut(at) else { break };
                    // Without a branch: which labels were met before is past guessing.
                    touched[n_touched] = at as u32;
                    n_touched += usize::from(sum.to_bits() == UNTOUCHED.to_bits());
                    *sum = (*sum + 0.0) + *value * weight.to_f32();
                    n_own += 1;
                }
                range.start += n_own;
            }
            for &at in &touched[..n_touched] {
                let label = first as u32 + at;
                let sum = std::mem::replace(&mut sums[at as usize], UNTOUCHED);
                let score = sum + bias(label);
                if best.may_enter(label, score) && !skip(label) {
                    best.offer(label, score);
                }
            }
        }
        best.finish()
    }

    /// Adds the weights of all labels to `sums`.
    pub(super) fn add_to(&self, vector: &[(u32, f32)], sums: &mut [f32]) {
        for &(feature, value) in vector {
            let (labels, weights) = self.of(feature);
            for (&label, weight) in labels.iter().zip(weights) {
                sums[label as usize] += value * weight.to_f32();
            }
        }
    }

    /// What the weights of given labels, which ascend, add up to; 0 where nothing matches. The same
    /// numbers as in a search: parts are added in the same order.
    pub(super) fn sums(&self, vector: &[(u32, f32)], labels: &[u32], out: &mut [f32]) {
        out.fill(0.0);
        for &(feature, value) in vector {
            let (own, weights) = self.of(feature);
            // The shorter list is walked, the longer one searched from where it stands.
            let mut from = 0;
            if own.len() < labels.len() {
                for (label, weight) in own.iter().zip(weights) {
                    from += labels[from..].partition_point(|other| other < label);
                    if labels.get(from) == Some(label) {
                        out[from] += value * weight.to_f32();
                    }
                }
            } else {
                for (label, sum) in labels.iter().zip(out.iter_mut()) {
                    from += own[from..].partition_point(|other| other < label);
                    if own.get(from) == Some(label) {
                        *sum += value * weights[from].to_f32();
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::random::generator;

    #[test]
    fn the_heaviest_labels_of_a_feature_stay_in_their_order() {
        let mut by_label = SparseRows::new();
        by_label.push(&[(0, 0.5), (1, 1.0)]);
        by_label.push(&[(0, 2.0)]);
        by_label.push(&[(0, -3.0), (1, 4.0)]);
        by_label.push(&[(0, 0.5)]);
        let postings = Postings::new(&by_label, 3);
        assert_eq!(postings.heaviest(4), postings);
        let kept = postings.heaviest(2);
        let of = |feature| (kept.of(feature).0.to_vec(), kept.of(feature).1.to_vec());
        // Of two that weigh the same, the first.
        assert_eq!(of(0), (vec![0, 1], [0.5, 2.0].map(bf16::from_f32).to_vec()));
        assert_eq!(of(1), (vec![0, 2], [1.0, 4.0].map(bf16::from_f32).to_vec()));
        assert_eq!(of(2), (vec![], vec![]));
        kept.check(3, 4).unwrap();
    }

    /// A search as it is defined: a sum for every label that shares a feature, all of them sorted.
    fn searched(
        postings: &Postings,
        vector: &[(u32, f32)],
        biases: &[f32],
        skip: impl Fn(u32) -> bool,
        k: usize,
    ) -> Vec<(u32, f32)> {
        let mut sums = std::collections::BTreeMap::new();
        for &(feature, value) in vector {
            let (labels, weights) = postings.of(feature);
            for (&label, weight) in labels.iter().zip(weights) {
                *sums.entry(label).or_insert(0.0) += value * weight.to_f32();
            }
        }
        let score = |(label, sum): (u32, f32)| (label, sum + biases[label as usize]);
        let mut all: Vec<_> =
            sums.into_iter().map(score).filter(|&(label, _)| !skip(label)).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        all.truncate(k);
        all
    }

    #[test]
    fn a_search_block_by_block_is_the_search_of_all() {
        let mut random = generator(3, &[]);
        let room = &mut LexicalRoom::default();
        // Of many blocks, of one, of a few labels, and of many again: the room is the same.
        for n_labels in [3 * BLOCK + 17, BLOCK, BLOCK - 1, 40, BLOCK + 1, 0] {
            let mut by_label = SparseRows::new();
            for label in 0..n_labels {
                let mut row: Vec<(u32, f32)> = (0..10)
                    .filter_map(|feature| {
                        let weight = random.random_range(-0.2..1.0);
                        random.random_ratio(1, 4 * (feature + 1)).then_some((feature, weight))
                    })
                    .collect();
                // The first and the last label of a block.
                if [0, BLOCK - 1].contains(&(label % BLOCK)) {
                    row.push((10, 0.5));
                }
                by_label.push(&row);
            }
            let postings = Postings::new(&by_label, 12);
            let biases: Vec<f32> = (0..n_labels).map(|_| random.random_range(-1.0..0.0)).collect();
            let bias = |label: u32| biases[label as usize];
            let skip = |label: u32| label % 7 == 3;
            // A feature that nothing has, one whose weights add up to nothing, and one that few have.
            for vector in [
                &[(0, 1.0), (3, 0.5), (10, 2.0), (11, 1.0)][..],
                &[(10, 1.0)],
                &[(2, 0.0)],
                &[(9, -1.0)],
                &[],
            ] {
                for k in [1, 50, 10 * BLOCK] {
                    let found = postings.search(vector, n_labels, bias, skip, k, room);
                    assert_eq!(found, searched(&postings, vector, &biases, skip, k));
                }
            }
        }
    }
}
