//! What clusters of labels say about a text.
//!
//! A cluster answers an easier question than a label, from far more points: is any of my labels right?
//! It learns from the points of the cluster it lies in, those of its own labels against the others. What
//! a label's clusters say together is the sum over its path to the root of `-max(0, 1 - score)²`, the
//! logarithm of how sure each is (Parabel's reading of a squared hinge): 0 where all are sure.

use std::ops::Range;

use super::blocks::in_blocks;
use super::dual::{Question, Stop};
use super::options::LexicalOptions;
use super::postings::Postings;
use super::sparse::{SparseRows, prune};
use super::tree::LabelTree;
use crate::Result;
use crate::data::Csr;
use crate::progress::Observer;
use crate::random::generator;

/// What the order of examples is drawn for.
const ORDER: u64 = 23;

/// A tree of labels, with weights and a bias for every cluster.
#[derive(Debug)]
pub(super) struct Clusters {
    pub(super) tree: LabelTree,
    /// By feature, the clusters that have a weight for it.
    pub(super) postings: Postings,
    pub(super) biases: Vec<f32>, // (clusters)
}

impl Clusters {
    /// Grows a tree of labels by their mean texts and trains its clusters.
    pub(super) fn train(
        points: &SparseRows, // (points, features)
        means: &SparseRows,  // (labels, features)
        by_label: &Csr,      // (labels, points)
        n_features: usize,
        options: &LexicalOptions,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let (leaf, branches) = (options.cluster_size, options.branches);
        let tree = LabelTree::grow(means, n_features, leaf, branches, options.seed, observer)?;
        let own = points_of(&tree, by_label);
        let mut all: Vec<u32> = by_label.rows().flatten().copied().collect();
        all.sort_unstable();
        all.dedup();
        let solve = |range: Range<usize>, question: &mut Question| {
            let (mut rows, mut biases) = (SparseRows::new(), Vec::new());
            for cluster in range {
                let reached = tree.parent_of(cluster).map_or(&all, |parent| &own[parent]);
                question.clear();
                for &point in reached {
                    let is_yes = own[cluster].binary_search(&point).is_ok();
                    question.push(points.row(point as usize), is_yes, options.cost);
                }
                let mut random = generator(options.seed, &[ORDER, cluster as u64]);
                let (mut weights, bias) = question.solve(Stop::of(options), &mut random);
                prune(&mut weights, usize::MAX, options.least_cluster_weight);
                rows.push(&weights);
                biases.push(bias);
            }
            (rows, biases)
        };
        let what = ("training clusters of the sparse view", "clusters");
        let room = || Question::new(n_features);
        // Clusters near the root take long: each is a piece of work of its own.
        let parts = in_blocks(what, tree.n_clusters(), 1, room, solve, observer)?;
        let (rows, biases): (Vec<SparseRows>, Vec<Vec<f32>>) = parts.into_iter().unzip();
        let postings = Postings::new(&SparseRows::join(rows), n_features);
        Ok(Self { tree, postings, biases: biases.concat() })
    }

    /// The smallest cluster that a vector speaks for most, if there are clusters.
    pub(super) fn home(&self, vector: &[(u32, f32)]) -> Option<usize> {
        let agreements = self.agreements(vector);
        let mut has_clusters = vec![false; agreements.len()];
        let parents = (0..agreements.len()).filter_map(|cluster| self.tree.parent_of(cluster));
        parents.for_each(|parent| has_clusters[parent] = true);
        let smallest = (0..agreements.len()).filter(|&cluster| !has_clusters[cluster]);
        smallest.max_by(|&a, &b| agreements[a].total_cmp(&agreements[b]).then(b.cmp(&a)))
    }

    /// By cluster, what it and the clusters it lies in say together about a vector; 0 at most.
    pub(super) fn agreements(&self, vector: &[(u32, f32)]) -> Vec<f32> {
        let mut scores = self.biases.clone();
        self.postings.add_to(vector, &mut scores);
        for cluster in 0..scores.len() {
            let above = self.tree.parent_of(cluster).map_or(0.0, |parent| scores[parent]);
            scores[cluster] = above + agreement(scores[cluster]);
        }
        scores
    }
}

/// How sure a score is, as a logarithm: 0 from 1 on, the lower the further it is from there.
pub(super) fn agreement(score: f32) -> f32 {
    let lacking = (1.0 - score).max(0.0);
    -lacking * lacking
}

/// The points of every cluster: those of its labels, ascending.
fn points_of(tree: &LabelTree, by_label: &Csr) -> Vec<Vec<u32>> {
    let mut points: Vec<Vec<u32>> = vec![Vec::new(); tree.n_clusters()];
    for label in 0..tree.n_labels() as u32 {
        if let Some(cluster) = tree.cluster_of(label) {
            points[cluster].extend(by_label.row(label as usize));
        }
    }
    // A cluster has a higher number than the one it lies in.
    for cluster in (0..tree.n_clusters()).rev() {
        let mut own = std::mem::take(&mut points[cluster]);
        own.sort_unstable();
        own.dedup();
        if let Some(parent) = tree.parent_of(cluster) {
            points[parent].extend(&own);
        }
        points[cluster] = own;
    }
    points
}
