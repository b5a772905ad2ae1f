//! Growing a tree, level by level, on bins.
//!
//! Every node of a level chooses its best split from its histogram, its pairs are parted, and its
//! children's histograms are made for the next level: the smaller child's by visiting its pairs, the
//! larger child's by subtraction.

use rayon::prelude::*;

use super::binned::Binned;
use super::histogram::{Histogram, Member, Totals};
use super::tree::{Node, RegressionTree, TreeOptions};

/// The least gain of a split, as a share of its children's scores. Rounding alone makes gains of about
/// 1e-15 in nodes whose pairs are all alike.
const LEAST_GAIN: f64 = 1e-12;

/// A node that may yet be split.
struct Open<'a> {
    /// Its place in the tree.
    node: usize,
    members: &'a mut [Member],
    spare: &'a mut [Member], // As many as members.
    totals: Totals,
    /// None if the node has too few pairs, or is too deep, to be split.
    histogram: Option<Histogram>,
}

/// The two sides of a node, and what tells them apart.
#[derive(Clone, Copy, Debug)]
struct Split {
    feature: usize,
    bin: u8,
    gain: f64,
    left: Totals,
    right: Totals,
}

/// Grows a tree on some pairs, which it reorders, and some features, which ascend. Values are
/// multiplied by `rate`.
///
/// The same members in the same order give the same tree on any number of threads. Of equal gains the
/// lowest feature wins, then the lowest threshold.
pub(super) fn grow(
    binned: &Binned,
    features: &[usize],
    members: &mut [Member],
    spare: &mut [Member],
    options: &TreeOptions,
    rate: f64,
) -> RegressionTree {
    // Clamped, as a loaded tree is refused for values that are not finite.
    let value = |totals: &Totals| {
        ((totals.best_value(options.lambda) * rate) as f32).clamp(f32::MIN, f32::MAX)
    };
    let mut nodes = vec![Node::Leaf { value: 0.0 }];
    let histogram = Histogram::of(binned, features, members);
    let mut totals = Totals::default();
    histogram.column(0).iter().for_each(|bin| totals += *bin);
    let histogram = Some(histogram);
    let mut level = vec![Open { node: 0, members, spare, totals, histogram }];
    for depth in 0..=options.depth {
        let children_may_split = depth + 1 < options.depth;
        let splits: Vec<Option<Split>> = level
            .par_iter()
            .map(|open| {
                let histogram = open.histogram.as_ref().filter(|_| depth < options.depth)?;
                best_split(binned, features, histogram, &open.totals, options)
            })
            .collect();
        let mut parents = Vec::new();
        for (open, split) in level.into_iter().zip(splits) {
            if let Some(split) = split {
                let left = nodes.len();
                let threshold = binned.thresholds(split.feature)[usize::from(split.bin)];
                let feature = split.feature as u32;
                nodes[open.node] = Node::Split { feature, threshold, left: left as u32 };
                nodes.extend([Node::Leaf { value: 0.0 }; 2]);
                parents.push((open, split, left));
            } else {
                nodes[open.node] = Node::Leaf { value: value(&open.totals) };
            }
        }
        level = parents
            .into_par_iter()
            .flat_map_iter(|(open, split, left)| {
                part(binned, features, open, split, left, options, children_may_split)
            })
            .collect();
    }
    RegressionTree::from_nodes(nodes)
}

/// The split of a node that gains the most, if any gains.
fn best_split(
    binned: &Binned,
    features: &[usize],
    histogram: &Histogram,
    totals: &Totals,
    options: &TreeOptions,
) -> Option<Split> {
    let min_leaf = u32::try_from(options.min_leaf.max(1)).unwrap_or(u32::MAX);
    let before = totals.score(options.lambda);
    let mut best: Option<Split> = None;
    for (at, &feature) in features.iter().enumerate() {
        let mut left = Totals::default();
        // Behind the last threshold nothing is left for the right side.
        let bins = histogram.column(at).iter().take(binned.thresholds(feature).len());
        for (bin, here) in (0..=u8::MAX).zip(bins) {
            if here.count == 0 {
                continue; // The same two sides as at the threshold before.
            }
            left += *here;
            let mut right = *totals;
            right -= left;
            if right.count < min_leaf || right.hessian < options.min_hessian {
                break;
            }
            if left.count < min_leaf || left.hessian < options.min_hessian {
                continue;
            }
            let after = left.score(options.lambda) + right.score(options.lambda);
            let gain = after - before;
            if gain > LEAST_GAIN * after && best.is_none_or(|best| gain > best.gain) {
                best = Some(Split { feature, bin, gain, left, right });
            }
        }
    }
    best
}

/// Sends the pairs of a node to the left and right and opens both children, in that order.
fn part<'a>(
    binned: &Binned,
    features: &[usize],
    open: Open<'a>,
    split: Split,
    left_node: usize,
    options: &TreeOptions,
    children_may_split: bool,
) -> [Open<'a>; 2] {
    let Open { members, spare, histogram, .. } = open;
    let n_left = part_members(binned, members, spare, split);
    let (left_members, right_members) = members.split_at_mut(n_left);
    let (left_spare, right_spare) = spare.split_at_mut(n_left);
    let may_split =
        |members: &[Member]| children_may_split && members.len() / 2 >= options.min_leaf.max(1);
    let left_is_smaller = left_members.len() < right_members.len();
    let (smaller, larger) = match left_is_smaller {
        true => (&*left_members, &*right_members),
        false => (&*right_members, &*left_members),
    };
    let (mut of_smaller, mut of_larger) = (None, None);
    if may_split(larger) {
        let visited = Histogram::of(binned, features, smaller);
        of_larger = histogram.map(|mut histogram| {
            histogram.subtract(&visited);
            histogram
        });
        of_smaller = Some(visited).filter(|_| may_split(smaller));
    }
    let (of_left, of_right) = match left_is_smaller {
        true => (of_smaller, of_larger),
        false => (of_larger, of_smaller),
    };
    [
        Open {
            node: left_node,
            members: left_members,
            spare: left_spare,
            totals: split.left,
            histogram: of_left,
        },
        Open {
            node: left_node + 1,
            members: right_members,
            spare: right_spare,
            totals: split.right,
            histogram: of_right,
        },
    ]
}

/// Orders the pairs of a node: those of the left side first, the order of each side kept. Returns how
/// many go left.
fn part_members(
    binned: &Binned,
    members: &mut [Member],
    spare: &mut [Member],
    split: Split,
) -> usize {
    let (mut n_left, mut n_right) = (0, 0);
    for at in 0..members.len() {
        // Written to both sides, of which only one moves on: half of all guesses at a branch would
        // be wrong.
        let member = members[at];
        let goes_left = binned.row(member.row as usize)[split.feature] <= split.bin;
        members[n_left] = member;
        spare[n_right] = member;
        n_left += usize::from(goes_left);
        n_right += usize::from(!goes_left);
    }
    members[n_left..].copy_from_slice(&spare[..n_right]);
    n_left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squared(targets: &[f32]) -> Vec<Member> {
        let member = |(row, target): (u32, &f32)| Member { row, gradient: -target, hessian: 1.0 };
        (0..).zip(targets).map(member).collect()
    }

    #[test]
    fn leaves_answer_the_mean_of_their_pairs_and_ask_for_given_features_only() {
        let features: Vec<f32> = (0..3_000).map(|n| (n * 37 % 101) as f32).collect(); // (1000, 3)
        let targets: Vec<f32> = (0..1_000).map(|n| (n * 53 % 97) as f32).collect();
        let binned = Binned::new(&features, 3);
        let options = TreeOptions { depth: 4, min_leaf: 10, ..Default::default() };
        for chosen in [&[0, 1, 2][..], &[0, 2], &[1]] {
            // Every other pair.
            let mut members = squared(&targets);
            members.retain(|member| member.row % 2 == 0);
            let mut spare = members.clone();
            let tree = grow(&binned, chosen, &mut members, &mut spare, &options, 0.5);
            assert!(tree.n_leaves() >= 8, "{} leaves", tree.n_leaves());
            let asked = |node: &Node| match *node {
                Node::Split { feature, .. } => chosen.contains(&(feature as usize)),
                Node::Leaf { .. } => true,
            };
            assert!(tree.nodes().iter().all(asked), "{chosen:?}");
            let answer = |row: usize| tree.predict(&features[3 * row..3 * row + 3]);
            for row in (0..1_000).step_by(2) {
                let same = || (0..1_000).step_by(2).filter(|&other| answer(other) == answer(row));
                let mean = same().map(|row| targets[row]).sum::<f32>() / same().count() as f32;
                assert!(same().count() >= 10);
                assert!((answer(row) - 0.5 * mean).abs() < 1e-4, "half of {mean}: {}", answer(row));
            }
        }
    }

    #[test]
    fn of_equal_splits_the_lowest_feature_and_threshold_win() {
        // Both features tell the same; of the first, bins 1 to 3 are empty after the first split.
        let features = [0.0, 0.0, 0.0, 0.0, 4.0, 4.0, 4.0, 4.0, 1.0, 9.0, 2.0, 9.0]; // (6, 2)
        let tree = RegressionTree::fit(
            &Binned::new(&features, 2),
            &[0.0, 0.0, 1.0, 1.0, 1.0, 1.0],
            &TreeOptions { depth: 1, min_leaf: 1, ..Default::default() },
        );
        let expected = vec![
            Node::Split { feature: 0, threshold: 0.5, left: 1 },
            Node::Leaf { value: 0.0 },
            Node::Leaf { value: 1.0 },
        ];
        assert_eq!(tree, RegressionTree::from_nodes(expected));
    }

    #[test]
    fn nothing_is_split_that_has_nothing_to_gain() {
        let features: Vec<f32> = (0..100).map(|n| n as f32).collect();
        let binned = Binned::new(&features, 1);
        let free = TreeOptions { depth: 9, min_leaf: 0, min_hessian: 0.0, lambda: 0.0 };
        let alike = RegressionTree::fit(&binned, &[0.3; 100], &free);
        assert_eq!((alike.n_leaves(), alike.predict(&[5.0])), (1, 0.3));
        let rising: Vec<f32> = features.iter().map(|value| value * 0.1).collect();
        let leaves = |options| RegressionTree::fit(&binned, &rising, &options).n_leaves();
        assert_eq!(leaves(TreeOptions { depth: 0, ..free }), 1);
        assert_eq!(leaves(TreeOptions { depth: 3, ..free }), 8);
        assert_eq!(leaves(TreeOptions { depth: 20, ..free }), 100);
        assert_eq!(leaves(TreeOptions { min_leaf: 34, ..free }), 2);
        assert_eq!(leaves(TreeOptions { min_leaf: usize::MAX, ..free }), 1);
        assert_eq!(leaves(TreeOptions { min_hessian: 34.0, ..free }), 2);
        let empty = RegressionTree::fit(&Binned::new(&[], 2), &[], &free);
        assert_eq!((empty.n_leaves(), empty.predict(&[1.0, 2.0])), (1, 0.0));
    }

    #[test]
    fn lambda_shrinks_small_leaves_the_most() {
        let features = [0.0, 1.0, 1.0, 1.0];
        let options = TreeOptions { depth: 1, min_leaf: 1, min_hessian: 0.0, lambda: 1.0 };
        let tree = RegressionTree::fit_gradients(
            &Binned::new(&features, 1),
            &[4.0, -4.0, -4.0, -4.0],
            &[1.0; 4],
            &options,
        );
        assert_eq!((tree.predict(&[0.0]), tree.predict(&[1.0])), (-2.0, 3.0));
    }
}
