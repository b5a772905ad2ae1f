//! Feature to labels: the labels a text scores with, in time proportional to the weights it touches.

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

/// Room for searches, kept from one to the next: a sum for every label.
#[derive(Clone, Debug, Default)]
pub struct LexicalRoom {
    sums: Vec<f32>, // (labels)
    is_touched: Vec<bool>,
    touched: Vec<u32>,
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
        let at = feature as usize;
        let range = self.offsets[at] as usize..self.offsets[at + 1] as usize;
        (&self.labels[range.clone()], &self.weights[range])
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
        let LexicalRoom { sums, is_touched, touched } = room;
        sums.resize(n_labels, 0.0);
        is_touched.resize(n_labels, false);
        for &(feature, value) in vector {
            let (labels, weights) = self.of(feature);
            for (&label, weight) in labels.iter().zip(weights) {
                let at = label as usize;
                sums[at] += value * weight.to_f32();
                if !is_touched[at] {
                    is_touched[at] = true;
                    touched.push(label);
                }
            }
        }
        let mut best = TopK::new(k);
        for label in touched.drain(..) {
            let at = label as usize;
            if !skip(label) {
                best.offer(label, sums[at] + bias(label));
            }
            sums[at] = 0.0;
            is_touched[at] = false;
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
    use super::*;

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
}
