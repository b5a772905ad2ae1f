//! What a fusion learns from: candidates of points, described by every view, and which of them are true.

use std::ops::Range;

use crate::views::Candidates;

/// Candidates of points whose labels are known.
#[derive(Clone, Debug)]
pub struct Examples {
    pub(super) labels: Vec<u32>,      // (pairs)
    pub(super) descriptors: Vec<f32>, // (pairs, columns)
    pub(super) is_true: Vec<bool>,    // (pairs)
    pub(super) found: Vec<bool>,      // (pairs): whether a view proposed the label.
    pub(super) offsets: Vec<usize>,   // (points + 1): where the pairs of each point begin.
}

impl Default for Examples {
    fn default() -> Self {
        Self {
            labels: Vec::new(),
            descriptors: Vec::new(),
            is_true: Vec::new(),
            found: Vec::new(),
            offsets: vec![0],
        }
    }
}

impl Examples {
    /// Adds a point: its candidates, among them all labels of its `own`.
    pub fn push(&mut self, candidates: &Candidates, own: &[u32]) {
        let is_own = |label: &u32| own.binary_search(label).is_ok();
        self.is_true.extend(candidates.labels.iter().map(is_own));
        self.labels.extend(&candidates.labels);
        self.found.extend(&candidates.found);
        self.descriptors.extend(&candidates.descriptors);
        self.offsets.push(self.labels.len());
    }

    /// How many points there are.
    pub fn n_points(&self) -> usize {
        self.offsets.len() - 1
    }

    /// How many pairs of a point and a candidate there are.
    pub fn n_pairs(&self) -> usize {
        self.labels.len()
    }

    pub(super) fn pairs(&self, point: usize) -> Range<usize> {
        self.offsets[point]..self.offsets[point + 1]
    }

    /// The candidates that views proposed, without the labels that are there because they are true.
    pub(super) fn proposed(&self, n_columns: usize) -> Self {
        let mut some = Self::default();
        for point in 0..self.n_points() {
            for pair in self.pairs(point).filter(|&pair| self.found[pair]) {
                some.labels.push(self.labels[pair]);
                some.is_true.push(self.is_true[pair]);
                some.found.push(true);
                some.descriptors
                    .extend(&self.descriptors[pair * n_columns..(pair + 1) * n_columns]);
            }
            some.offsets.push(some.labels.len());
        }
        some
    }

    /// Some of the points.
    pub(super) fn select(&self, n_columns: usize, keep: impl Fn(usize) -> bool) -> Self {
        let mut some = Self::default();
        for point in (0..self.n_points()).filter(|&point| keep(point)) {
            let range = self.pairs(point);
            some.labels.extend(&self.labels[range.clone()]);
            some.is_true.extend(&self.is_true[range.clone()]);
            some.found.extend(&self.found[range.clone()]);
            some.descriptors
                .extend(&self.descriptors[range.start * n_columns..range.end * n_columns]);
            some.offsets.push(some.labels.len());
        }
        some
    }
}
