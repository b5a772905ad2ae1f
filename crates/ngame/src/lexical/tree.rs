//! A tree of labels: labels of similar texts in clusters, clusters in larger ones.
//!
//! Clusters are of equal size, by halving again and again (balanced 2-means, as in Parabel: Prabhu et
//! al., 2018); a node has many children, so that the tree is shallow and one wrong turn costs little
//! (Bonsai: Khandagale, Xiao and Babbar, 2020).

use std::sync::{Mutex, MutexGuard, PoisonError};

use rand::RngExt;
use rayon::prelude::*;

use super::sparse::SparseRows;
use crate::progress::{Event, Observer};
use crate::random::generator;
use crate::{Error, Result};

/// What the first two members of a split are drawn for.
const SPLIT: u64 = 22;

/// The most rounds of a split.
const MOST_ROUNDS: usize = 20;

/// The fewest labels of a piece of parallel work.
const PIECE: usize = 256;

/// The parent of what hangs on the root.
const ROOT: u32 = u32::MAX;

/// Labels are the nodes below `n_labels`, clusters those from there on; a cluster comes after the one
/// it hangs on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LabelTree {
    n_labels: usize,
    parents: Vec<u32>, // (labels, then clusters)
}

impl LabelTree {
    /// Puts labels into clusters of at most `leaf` by their mean texts, and clusters into larger ones
    /// as long as a node would have more than `branches` children.
    pub(super) fn grow(
        means: &SparseRows, // (labels, features)
        n_features: usize,
        leaf: usize,
        branches: usize,
        seed: u64,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let n_labels = means.n_rows();
        let mut parents = vec![ROOT; n_labels];
        let mut labels: Vec<u32> = (0..n_labels as u32).collect();
        let mut level = vec![(ROOT, &mut labels[..])];
        let splitter = Splitter { means, n_features, seed, observer, rooms: Mutex::default() };
        while !level.is_empty() {
            let (task, unit) = ("growing the tree of labels", "labels");
            observer.event(Event::Started { task, total: Some(n_labels as u64), unit });
            let divided: Vec<(u32, Vec<&mut [u32]>)> = level
                .into_par_iter()
                .map(|(parent, labels)| {
                    let n_parts = Shape::of(labels.len(), leaf, branches).children;
                    (parent, splitter.divide(labels, n_parts))
                })
                .collect();
            if observer.cancelled() {
                return Err(Error::Cancelled);
            }
            observer.event(Event::Finished);
            level = Vec::new();
            for (parent, parts) in divided {
                if parts.len() == 1 {
                    parts[0].iter().for_each(|&label| parents[label as usize] = parent);
                    continue;
                }
                for part in parts {
                    let cluster = parents.len() as u32;
                    parents.push(parent);
                    level.push((cluster, part));
                }
            }
        }
        Ok(Self { n_labels, parents })
    }

    /// A tree of these parents, labels first; what is wrong with them, if anything.
    pub(super) fn from_parents(n_labels: usize, parents: Vec<u32>) -> Result<Self, String> {
        if parents.len() < n_labels {
            return Err(format!("{n_labels} labels, but a tree of {}", parents.len()));
        }
        for (node, &parent) in parents.iter().enumerate() {
            let end = if node < n_labels { parents.len() } else { node };
            if parent != ROOT && !(n_labels..end).contains(&(parent as usize)) {
                return Err(format!("node {node} of the tree hangs on {parent}"));
            }
        }
        Ok(Self { n_labels, parents })
    }

    /// The same tree with more labels behind those it has, each in a cluster or on the root.
    pub(super) fn with_labels(&self, clusters: &[Option<usize>]) -> Self {
        let n_labels = self.n_labels + clusters.len();
        let labels = (0..self.n_labels as u32).map(|label| self.cluster_of(label));
        self.of(n_labels, labels.chain(clusters.iter().copied()))
    }

    /// The same tree of some of its labels; clusters stay, if without a label.
    pub(super) fn select(&self, labels: &[u32]) -> Self {
        self.of(labels.len(), labels.iter().map(|&label| self.cluster_of(label)))
    }

    /// The same clusters with other labels.
    fn of(&self, n_labels: usize, labels: impl Iterator<Item = Option<usize>>) -> Self {
        let clusters = (0..self.n_clusters()).map(|cluster| self.parent_of(cluster));
        let node = |cluster: Option<usize>| cluster.map_or(ROOT, |at| (n_labels + at) as u32);
        Self { n_labels, parents: labels.chain(clusters).map(node).collect() }
    }

    /// How many labels there are.
    pub(super) fn n_labels(&self) -> usize {
        self.n_labels
    }

    /// How many clusters there are.
    pub(super) fn n_clusters(&self) -> usize {
        self.parents.len() - self.n_labels
    }

    /// By node, the node it hangs on, or [`ROOT`]: labels first, then clusters.
    pub(super) fn parents(&self) -> &[u32] {
        &self.parents
    }

    /// The cluster that a label is in, if there are any.
    pub(super) fn cluster_of(&self, label: u32) -> Option<usize> {
        self.above(label as usize)
    }

    /// The cluster that a cluster is in, if any; it has a lower number.
    pub(super) fn parent_of(&self, cluster: usize) -> Option<usize> {
        self.above(self.n_labels + cluster)
    }

    fn above(&self, node: usize) -> Option<usize> {
        let parent = self.parents[node];
        (parent != ROOT).then(|| parent as usize - self.n_labels)
    }
}

/// A tree of so many labels: nodes of few enough children, as many on every level.
pub(super) struct Shape {
    pub(super) levels: u32,
    pub(super) children: usize,
}

impl Shape {
    pub(super) fn of(n_labels: usize, leaf: usize, branches: usize) -> Self {
        let n_leaves = n_labels.div_ceil(leaf);
        let mut levels = 1;
        while n_leaves > branches.saturating_pow(levels) {
            levels += 1;
        }
        let children = (n_leaves as f64).powf(1.0 / f64::from(levels)).ceil() as usize;
        Self { levels, children }
    }
}

/// Divides labels by their mean texts.
struct Splitter<'a> {
    means: &'a SparseRows, // (labels, features)
    n_features: usize,
    seed: u64,
    observer: &'a dyn Observer,
    rooms: Mutex<Vec<Room>>,
}

impl Splitter<'_> {
    /// Labels in so many parts, which differ by at most one in size.
    fn divide<'l>(&self, labels: &'l mut [u32], n_parts: usize) -> Vec<&'l mut [u32]> {
        if n_parts <= 1 {
            self.observer.event(Event::Advanced(labels.len() as u64));
            return vec![labels];
        }
        let n_left = n_parts / 2;
        let at = labels.len() * n_left / n_parts;
        let free = self.rooms().pop();
        let mut room = free.unwrap_or_else(|| Room::new(self.n_features));
        self.split(labels, at, &mut room);
        self.rooms().push(room);
        let (left, right) = labels.split_at_mut(at);
        let (mut parts, others) =
            rayon::join(|| self.divide(left, n_left), || self.divide(right, n_parts - n_left));
        parts.extend(others);
        parts
    }

    fn rooms(&self) -> MutexGuard<'_, Vec<Room>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sorts labels so that the first `at` are alike and the others are alike; some order if cancelled.
    fn split(&self, labels: &mut [u32], at: usize, room: &mut Room) {
        labels.sort_unstable();
        let n = labels.len();
        let mut random = generator(self.seed, &[SPLIT, u64::from(labels[0]), n as u64]);
        let first = labels[random.random_range(0..n)];
        // What tells the two halves apart: the difference of their means. At first, of some label and
        // the one least like it.
        room.left.set_row(self.means, first);
        room.right.clear();
        room.turn();
        room.score(self.means, labels);
        let least =
            room.scored.iter().min_by(|a, b| a.0.total_cmp(&b.0)).map_or(first, |&(_, l)| l);
        room.left.set_row(self.means, first);
        room.right.set_row(self.means, least);
        let mut before = f32::NEG_INFINITY;
        for _ in 0..MOST_ROUNDS {
            room.turn();
            room.score(self.means, labels);
            let scored = &mut room.scored;
            scored.par_sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            let sum = |half: &[(f32, u32)]| half.iter().map(|(score, _)| score).sum::<f32>();
            let gain = sum(&scored[..at]) - sum(&scored[at..]);
            for (slot, &(_, label)) in labels.iter_mut().zip(scored.iter()) {
                *slot = label;
            }
            if gain <= before * 1.0001 || self.observer.cancelled() {
                break;
            }
            before = gain;
            let Room { left, right, .. } = room;
            let (alike, others) = labels.split_at(at);
            rayon::join(|| left.set_mean(self.means, alike), || right.set_mean(self.means, others));
        }
    }
}

/// Room for splits, kept from one to the next.
struct Room {
    direction: Scattered,
    left: Scattered,
    right: Scattered,
    scored: Vec<(f32, u32)>, // (labels)
}

impl Room {
    fn new(n_features: usize) -> Self {
        let [direction, left, right] = std::array::from_fn(|_| Scattered::new(n_features));
        Self { direction, left, right, scored: Vec::new() }
    }

    /// Points from the right half to the left one, and leaves neither.
    fn turn(&mut self) {
        self.direction.clear();
        for (half, sign) in [(&mut self.left, 1.0), (&mut self.right, -1.0)] {
            for &feature in &half.touched {
                self.direction.add(feature, sign * half.values[feature as usize]);
            }
            half.clear();
        }
    }

    /// Every label, and how far it is in the direction.
    fn score(&mut self, means: &SparseRows, labels: &[u32]) {
        let direction = &self.direction.values;
        let along = |label: u32| -> f32 {
            let entries = means.entries(label as usize);
            entries.map(|(feature, value)| direction[feature as usize] * value).sum()
        };
        let scored = labels.par_iter().with_min_len(PIECE).map(|&label| (along(label), label));
        scored.collect_into_vec(&mut self.scored);
    }
}

/// A sparse vector that stands in a dense one, and knows where. Features are many and most splits meet few:
/// those alone are read and cleared.
struct Scattered {
    values: Vec<f32>,  // (features)
    touched: Vec<u32>, // every feature that is not zero, some of them twice
}

impl Scattered {
    fn new(n_features: usize) -> Self {
        Self { values: vec![0.0; n_features], touched: Vec::new() }
    }

    fn clear(&mut self) {
        self.touched.drain(..).for_each(|feature| self.values[feature as usize] = 0.0);
    }

    fn add(&mut self, feature: u32, value: f32) {
        let sum = &mut self.values[feature as usize];
        if *sum == 0.0 {
            self.touched.push(feature);
        }
        *sum += value;
    }

    fn add_row(&mut self, rows: &SparseRows, row: u32) {
        rows.entries(row as usize).for_each(|(feature, value)| self.add(feature, value));
    }

    /// Becomes a row.
    fn set_row(&mut self, rows: &SparseRows, row: u32) {
        self.clear();
        self.add_row(rows, row);
    }

    /// Becomes the mean of some rows, of unit length.
    fn set_mean(&mut self, rows: &SparseRows, chosen: &[u32]) {
        self.clear();
        chosen.iter().for_each(|&row| self.add_row(rows, row));
        self.touched.sort_unstable();
        self.touched.dedup();
        let values = &mut self.values;
        let square = |&feature: &u32| values[feature as usize] * values[feature as usize];
        let length = self.touched.iter().map(square).sum::<f32>().sqrt();
        if length > 0.0 {
            self.touched.iter().for_each(|&feature| values[feature as usize] /= length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;
    use proptest::prelude::*;

    /// Labels with a feature for their kind and one for every two kinds.
    fn of_kinds(kinds: &[u32]) -> SparseRows {
        let mut means = SparseRows::new();
        kinds.iter().for_each(|&kind| means.push(&[(kind, 0.8), (6 + kind / 2, 0.6)]));
        means
    }

    #[test]
    fn alike_labels_share_a_cluster() {
        let kinds: Vec<u32> = (0..40).map(|label| label % 4).collect();
        let tree = LabelTree::grow(&of_kinds(&kinds), 9, 10, 8, 1, &Silent).unwrap();
        assert_eq!((tree.n_labels(), tree.n_clusters()), (40, 4));
        for label in 0..40 {
            assert_eq!(tree.cluster_of(label), tree.cluster_of(label % 4));
        }
    }

    #[test]
    fn a_split_does_not_see_the_split_before() {
        let kinds: Vec<u32> = (0..30).map(|label| label * label % 6).collect();
        let means = of_kinds(&kinds);
        let rooms = Mutex::default();
        let splitter = Splitter { means: &means, n_features: 9, seed: 1, observer: &Silent, rooms };
        let split = |room: &mut Room| {
            let mut labels: Vec<u32> = (0..30).collect();
            splitter.split(&mut labels, 15, room);
            labels
        };
        let expected = split(&mut Room::new(9));
        for feature in 0..9 {
            let mut used = Room::new(9);
            used.left.add(feature, 100.0);
            used.turn();
            used.left.add(feature, 100.0);
            used.right.add((feature + 4) % 9, 100.0);
            assert_eq!(split(&mut used), expected, "after feature {feature}");
        }
    }

    #[test]
    fn few_labels_need_no_clusters() {
        let tree = LabelTree::grow(&of_kinds(&[0, 1, 2]), 9, 10, 8, 1, &Silent).unwrap();
        assert_eq!((tree.n_clusters(), tree.cluster_of(2)), (0, None));
        let tree = LabelTree::grow(&of_kinds(&[]), 0, 10, 8, 1, &Silent).unwrap();
        assert_eq!((tree.n_labels(), tree.n_clusters()), (0, 0));
    }

    #[test]
    fn parents_that_make_no_tree_are_refused() {
        let refused = |parents: &[u32]| LabelTree::from_parents(2, parents.to_vec()).is_err();
        assert!(!refused(&[2, 3, ROOT, 2]));
        assert!(refused(&[2]));
        assert!(refused(&[2, 4, ROOT, ROOT]), "there is no such cluster");
        assert!(refused(&[2, 1, ROOT, ROOT]), "a label is no cluster");
        assert!(refused(&[2, 3, 3, ROOT]), "clusters come after the one they hang on");
        assert!(refused(&[2, 3, ROOT, 3]), "nothing hangs on itself");
    }

    proptest! {
        #[test]
        fn a_tree_is_balanced_and_the_same_again(
            kinds in prop::collection::vec(0u32..6, 1..200),
            leaf in 1usize..12,
            branches in 2usize..6,
            seed in 0u64..100,
        ) {
            let means = of_kinds(&kinds);
            let grow = || LabelTree::grow(&means, 9, leaf, branches, seed, &Silent).unwrap();
            let tree = grow();
            prop_assert_eq!(&tree, &grow());
            let again = LabelTree::from_parents(tree.n_labels(), tree.parents().to_vec());
            prop_assert_eq!(again.as_ref(), Ok(&tree));
            let mut sizes = vec![0; tree.n_clusters()];
            let mut children = vec![0; tree.n_clusters()];
            (0..kinds.len() as u32).filter_map(|l| tree.cluster_of(l)).for_each(|c| sizes[c] += 1);
            (0..tree.n_clusters()).filter_map(|c| tree.parent_of(c)).for_each(|c| children[c] += 1);
            for (size, n_children) in sizes.into_iter().zip(children) {
                // A cluster has labels or clusters, never both and never neither.
                prop_assert!((size == 0) != (n_children == 0));
                prop_assert!(size <= leaf && n_children <= branches);
            }
        }
    }
}
