//! Trees laid out for answering: several pairs walk down a tree side by side, none waiting for another.

use super::tree::{Node, RegressionTree};

/// Pairs that walk side by side: enough to hide how long a step takes.
const ABREAST: usize = 8;

/// All nodes of all trees, one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FlatTrees {
    nodes: Vec<FlatNode>,
    trees: Vec<Tree>,
}

/// A question, or a leaf: a question that everything answers by staying where it is.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FlatNode {
    threshold: f32,
    feature: u32,
    left: u32,
    value: f32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Tree {
    root: u32,
    /// The most questions on the way to a leaf.
    depth: u32,
}

impl FlatTrees {
    /// Lays out trees that have passed [`RegressionTree::check`].
    pub(super) fn new(trees: &[RegressionTree]) -> Self {
        let mut flat = Self::default();
        for tree in trees {
            let root = flat.nodes.len() as u32;
            let nodes = tree.nodes();
            let mut depths = vec![0u32; nodes.len()];
            for (at, node) in nodes.iter().enumerate() {
                flat.nodes.push(match *node {
                    // Nothing is above infinity, so whoever comes here goes left, which is here.
                    Node::Leaf { value } => FlatNode {
                        threshold: f32::INFINITY,
                        feature: 0,
                        left: root + at as u32,
                        value,
                    },
                    Node::Split { feature, threshold, left } => {
                        let below = depths[at] + 1;
                        depths[left as usize..left as usize + 2].fill(below);
                        FlatNode { threshold, feature, left: root + left, value: 0.0 }
                    }
                });
            }
            flat.trees.push(Tree { root, depth: depths.into_iter().max().unwrap_or(0) });
        }
        flat
    }

    /// Adds the answers of all trees, in order, to the sums of pairs.
    ///
    /// # Panics
    /// If rows are shorter than the features that trees ask for.
    pub(super) fn add_answers(
        &self,
        rows: &[f32], // (pairs, features)
        n_features: usize,
        sums: &mut [f64], // (pairs)
    ) {
        for (rows, sums) in rows.chunks(ABREAST * n_features).zip(sums.chunks_mut(ABREAST)) {
            let mut starts = [0; ABREAST];
            for (place, start) in starts[..sums.len()].iter_mut().enumerate() {
                *start = place * n_features; // Where there are fewer, the first goes again.
            }
            for tree in &self.trees {
                let mut at = [tree.root; ABREAST];
                for _ in 0..tree.depth {
                    for (at, start) in at.iter_mut().zip(starts) {
                        let node = &self.nodes[*at as usize];
                        // What is not a number is not above the threshold, either: it goes left.
                        let goes_right = rows[start + node.feature as usize] > node.threshold;
                        *at = node.left + u32::from(goes_right);
                    }
                }
                for (sum, at) in sums.iter_mut().zip(at) {
                    *sum += f64::from(self.nodes[at as usize].value);
                }
            }
        }
    }
}
