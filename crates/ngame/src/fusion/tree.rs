//! A regression tree: questions of the form "is this feature at most that?" that end in a number.
//!
//! Trees suit scores of several views: they do not care how a view's scores are spread, only for
//! their order, and they know that a view which did not score a label says something, too.

use serde::{Deserialize, Serialize};

use super::binned::Binned;
use super::growth::grow;
use super::histogram::Member;

/// How a tree is grown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeOptions {
    /// The most questions on the way to a leaf.
    pub depth: usize,
    /// The fewest pairs of a leaf.
    pub min_leaf: usize,
    /// The least sum of second derivatives in a leaf; with squared error, the same as pairs. It keeps
    /// leaves whose pairs are all certain already from dividing by next to nothing.
    pub min_hessian: f64,
    /// Added to the sum of second derivatives: the larger, the smaller the values of small leaves.
    pub lambda: f64,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self { depth: 6, min_leaf: 20, min_hessian: 1e-3, lambda: 0.0 }
    }
}

/// A node of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Node {
    /// The end of a path.
    Leaf {
        /// The tree's answer.
        value: f32,
    },
    /// A question.
    Split {
        /// The feature asked for.
        feature: u32,
        /// Pairs with values up to this one go left, and so do those without a value.
        threshold: f32,
        /// The left child; the right one is next to it.
        left: u32,
    },
}

/// A tree that is grown or loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegressionTree {
    /// The root first, children after their parents.
    nodes: Vec<Node>,
}

impl RegressionTree {
    /// The tree whose answers have a small squared error: every leaf answers the mean of its pairs'
    /// targets, shrunk by `lambda`.
    ///
    /// # Panics
    /// If there is not exactly one target to a pair.
    pub fn fit(binned: &Binned, targets: &[f32], options: &TreeOptions) -> Self {
        assert_eq!(targets.len(), binned.n_rows(), "every pair has a target");
        // Half the squared error of the answer 0 has the slope -target and the bend 1.
        let member = |(row, target): (u32, &f32)| Member { row, gradient: -target, hessian: 1.0 };
        Self::descend(binned, (0..).zip(targets).map(member).collect(), options)
    }

    /// The tree whose answers, added to the present scores of pairs, lower their loss the most as far
    /// as first and second derivatives by the score tell: every leaf answers -G / (H + lambda), with
    /// the sums G and H over its pairs, and a split gains by G² / (H + lambda).
    ///
    /// Hessians must not be negative, and nothing may be infinite or not a number.
    ///
    /// # Panics
    /// If there is not exactly one gradient and hessian to a pair.
    pub fn fit_gradients(
        binned: &Binned,
        gradients: &[f32],
        hessians: &[f32],
        options: &TreeOptions,
    ) -> Self {
        assert_eq!(gradients.len(), binned.n_rows(), "every pair has a gradient");
        assert_eq!(hessians.len(), binned.n_rows(), "every pair has a hessian");
        let derivatives = gradients.iter().zip(hessians);
        let member = |(row, (&gradient, &hessian))| Member { row, gradient, hessian };
        Self::descend(binned, (0..).zip(derivatives).map(member).collect(), options)
    }

    fn descend(binned: &Binned, mut members: Vec<Member>, options: &TreeOptions) -> Self {
        let mut spare = vec![Member::default(); members.len()];
        let features: Vec<usize> = (0..binned.n_features()).collect();
        grow(binned, &features, &mut members, &mut spare, options, 1.0)
    }

    /// A tree of these nodes.
    pub(super) fn from_nodes(nodes: Vec<Node>) -> Self {
        Self { nodes }
    }

    /// Its nodes.
    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The answer for one pair's features.
    ///
    /// # Panics
    /// If features are missing that the tree asks for; "not a number" is a feature that is there. A
    /// tree from a file must have passed [`RegressionTree::check`].
    pub fn predict(&self, row: &[f32]) -> f32 {
        let mut node = 0;
        loop {
            match self.nodes[node] {
                Node::Leaf { value } => return value,
                Node::Split { feature, threshold, left } => {
                    // What is not a number is not above the threshold, either: it goes left.
                    let goes_right = row[feature as usize] > threshold;
                    node = left as usize + usize::from(goes_right);
                }
            }
        }
    }

    /// How many different answers the tree has room for.
    pub fn n_leaves(&self) -> usize {
        self.nodes.iter().filter(|node| matches!(node, Node::Leaf { .. })).count()
    }

    /// Whether a tree that was loaded can be used with `n_features` features: every path ends, no
    /// question goes beyond the features, and all numbers are finite. Else says what is wrong.
    pub fn check(&self, n_features: usize) -> Result<(), String> {
        if self.nodes.is_empty() {
            return Err("the tree has no nodes".to_owned());
        }
        for (index, node) in self.nodes.iter().enumerate() {
            match *node {
                Node::Leaf { value } if !value.is_finite() => {
                    return Err(format!("node {index}: the value {value} is not finite"));
                }
                Node::Split { threshold, .. } if !threshold.is_finite() => {
                    return Err(format!("node {index}: the threshold {threshold} is not finite"));
                }
                Node::Split { feature, .. } if feature as usize >= n_features => {
                    return Err(format!(
                        "node {index}: feature {feature}, but there are {n_features}"
                    ));
                }
                // Children after their parents: no path is longer than the tree.
                Node::Split { left, .. }
                    if left as usize <= index || left as usize + 1 >= self.nodes.len() =>
                {
                    return Err(format!(
                        "node {index}: child {left}, expected one after it and before the last of {}",
                        self.nodes.len()
                    ));
                }
                Node::Leaf { .. } | Node::Split { .. } => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(value: f32) -> Node {
        Node::Leaf { value }
    }

    fn split(feature: u32, threshold: f32, left: u32) -> Node {
        Node::Split { feature, threshold, left }
    }

    #[test]
    fn what_is_missing_goes_left() {
        let nodes = vec![split(1, f32::MIN, 1), leaf(-1.0), split(0, 0.5, 3), leaf(2.0), leaf(3.0)];
        let tree = RegressionTree::from_nodes(nodes);
        assert_eq!(tree.check(2), Ok(()));
        let answers = [[9.0, f32::NAN], [0.5, -9.0], [0.6, 0.0], [f32::NAN, 1.0]];
        assert_eq!(answers.map(|row| tree.predict(&row)), [-1.0, 2.0, 3.0, 2.0]);
        assert_eq!(tree.n_leaves(), 3);
    }

    #[test]
    fn a_tree_reads_as_it_was_written() {
        let tree = RegressionTree::from_nodes(vec![split(0, 0.1, 1), leaf(-0.3), leaf(1e-9)]);
        let text = serde_json::to_string(&tree).unwrap();
        assert_eq!(serde_json::from_str::<RegressionTree>(&text).unwrap(), tree);
        assert!(serde_json::from_str::<RegressionTree>(&text.replace("left", "right")).is_err());
    }

    #[test]
    fn damaged_trees_are_refused() {
        let good = vec![split(0, 0.5, 1), leaf(1.0), split(1, 0.5, 3), leaf(2.0), leaf(3.0)];
        assert_eq!(RegressionTree::from_nodes(good.clone()).check(2), Ok(()));
        let cases = [
            (0, split(2, 0.5, 1), "feature 2, but there are 2"),
            (0, split(0, f32::NAN, 1), "the threshold NaN is not finite"),
            (0, split(0, f32::INFINITY, 1), "the threshold inf is not finite"),
            (0, split(0, 0.5, 0), "node 0: child 0, expected"),
            (2, split(0, 0.5, 2), "node 2: child 2, expected"),
            (2, split(0, 0.5, 1), "node 2: child 1, expected"),
            (2, split(0, 0.5, 4), "node 2: child 4, expected"),
            (2, split(0, 0.5, u32::MAX), "node 2: child 4294967295, expected"),
            (4, leaf(f32::NEG_INFINITY), "node 4: the value -inf is not finite"),
        ];
        for (index, node, expected) in cases {
            let mut nodes = good.clone();
            nodes[index] = node;
            let problem = RegressionTree::from_nodes(nodes).check(2).unwrap_err();
            assert!(problem.contains(expected), "{problem:?} should say {expected:?}");
        }
        assert!(RegressionTree::from_nodes(Vec::new()).check(2).is_err());
    }
}
