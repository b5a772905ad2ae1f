//! Who earns the score: metrics broken down by groups of labels, such as frequent and rare ones.
//!
//! Two ways to group are built in. Deciles hold equal shares of the training pairs, as in the
//! figure of the NGAME paper: the first decile may be a handful of very frequent labels and the
//! last one half of all labels. Head, torso and tail are cut at fixed training counts, so that
//! groups of different data sets can be compared.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::columns::ROWS_PER_CHUNK;
use super::evaluate::Task;
use crate::data::ScoredCsr;

/// Labels of at least this many training points are the head.
pub const HEAD_COUNT: u32 = 100;

/// Labels of at least this many training points, but fewer than the head's, are the torso. Those
/// of fewer, which the NGAME paper calls rare, are the tail; those of none are unseen.
pub const TORSO_COUNT: u32 = 10;

/// How many deciles there are.
const N_DECILES: u64 = 10;

/// A partition of the labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelGroups {
    /// The groups' names.
    pub names: Vec<String>,
    /// The group of each label, as an index into `names`.
    pub group_of: Vec<u16>,
}

impl LabelGroups {
    /// Ten groups of nearly equal numbers of training pairs, decile 1 the most frequent labels.
    ///
    /// Labels are ordered by training count, descending, of equal counts the lower id first, and
    /// a label is in the decile its first pair falls into. One with more than a tenth of all pairs
    /// leaves the next decile empty. Labels never seen in training are in decile 10.
    pub fn by_decile(label_counts: &[u32]) -> Self {
        let mut by_frequency: Vec<u32> = (0..label_counts.len() as u32).collect();
        by_frequency.sort_by_key(|&label| std::cmp::Reverse(label_counts[label as usize]));
        let n_pairs: u64 = label_counts.iter().map(|&count| u64::from(count)).sum();
        let mut group_of = vec![0; label_counts.len()];
        let mut n_before = 0;
        for label in by_frequency {
            let decile = (n_before * N_DECILES).checked_div(n_pairs).unwrap_or(N_DECILES);
            group_of[label as usize] = decile.min(N_DECILES - 1) as u16;
            n_before += u64::from(label_counts[label as usize]);
        }
        Self { names: (1..=N_DECILES).map(|decile| format!("decile {decile}")).collect(), group_of }
    }

    /// Head, torso, tail and unseen, by training count: at least [`HEAD_COUNT`], at least
    /// [`TORSO_COUNT`], at least one, and none.
    pub fn by_training_count(label_counts: &[u32]) -> Self {
        let group_of = label_counts
            .iter()
            .map(|&count| match count {
                HEAD_COUNT.. => 0,
                TORSO_COUNT.. => 1,
                1.. => 2,
                0 => 3,
            })
            .collect();
        Self { names: ["head", "torso", "tail", "unseen"].map(str::to_owned).to_vec(), group_of }
    }
}

/// What one group of labels is and contributes. The lists are for every k, k = 1 first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupMetrics {
    /// The group's name.
    pub name: String,
    /// How many labels it has.
    pub n_labels: u64,
    /// How many training pairs these have.
    pub n_training_pairs: u64,
    /// How many pairs of the truth are theirs.
    pub n_true_pairs: u64,
    /// How many of those were found among the first k.
    pub hits: Vec<u64>,
    /// Its part of precision at k: hits over k and over all rows. The parts of all groups add up
    /// to the precision of [`evaluate`](super::evaluate).
    pub precision: Vec<f64>,
    /// Recall inside the group: hits over true pairs, or 0 if there are none.
    pub recall: Vec<f64>,
}

/// The metrics of every group at 1 to `k`. `label_counts` are the labels' training counts.
///
/// # Panics
/// If the parts are about different numbers of points or labels, or if a label's group has no
/// name.
pub fn evaluate_groups(
    predictions: &ScoredCsr,
    task: &Task<'_>,
    groups: &LabelGroups,
    label_counts: &[u32],
    k: usize,
) -> Vec<GroupMetrics> {
    task.assert_fits(predictions);
    let n_labels = task.truth.n_columns() as usize;
    assert_eq!(groups.group_of.len(), n_labels, "every label is in a group");
    assert_eq!(label_counts.len(), n_labels, "every label has a training count");

    let mut metrics: Vec<GroupMetrics> = groups
        .names
        .iter()
        .map(|name| GroupMetrics {
            name: name.clone(),
            n_labels: 0,
            n_training_pairs: 0,
            n_true_pairs: 0,
            hits: vec![0; k],
            precision: Vec::new(),
            recall: Vec::new(),
        })
        .collect();
    for (&group, &count) in groups.group_of.iter().zip(label_counts) {
        metrics[usize::from(group)].n_labels += 1;
        metrics[usize::from(group)].n_training_pairs += u64::from(count);
    }
    for &label in task.truth.rows().flatten() {
        metrics[usize::from(groups.group_of[label as usize])].n_true_pairs += 1;
    }
    let hits = hits_by_rank(predictions, task, groups, k);
    for (group, hits_by_rank) in metrics.iter_mut().zip(hits.chunks(k.max(1))) {
        let mut total = 0;
        for (sum, &hits) in group.hits.iter_mut().zip(hits_by_rank) {
            total += hits;
            *sum = total;
        }
    }
    let n_rows = task.truth.n_rows();
    for group in &mut metrics {
        let shown = (1..=k as u64).map(|k| k * n_rows as u64);
        group.precision =
            group.hits.iter().zip(shown).map(|(&hits, shown)| share(hits, shown)).collect();
        group.recall = group.hits.iter().map(|&hits| share(hits, group.n_true_pairs)).collect();
    }
    metrics
}

/// How often a label of each group was right at each rank: (groups, k). Whole numbers add up to
/// the same whatever the order.
fn hits_by_rank(
    predictions: &ScoredCsr,
    task: &Task<'_>,
    groups: &LabelGroups,
    k: usize,
) -> Vec<u64> {
    let no_hits = || vec![0u64; groups.names.len() * k];
    (0..task.truth.n_rows())
        .into_par_iter()
        .with_min_len(ROWS_PER_CHUNK)
        .fold(
            || (no_hits(), Vec::new()),
            |(mut hits, mut ranked), row| {
                task.rank(predictions, row, k, &mut ranked);
                for (rank, &(label, _)) in ranked.iter().enumerate() {
                    if task.truth.contains(row, label) {
                        hits[usize::from(groups.group_of[label as usize]) * k + rank] += 1;
                    }
                }
                (hits, ranked)
            },
        )
        .map(|(hits, _)| hits)
        .reduce(no_hits, |mut hits, others| {
            for (sum, other) in hits.iter_mut().zip(others) {
                *sum += other;
            }
            hits
        })
}

/// A part of a whole; of nothing, nothing.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::super::evaluate;
    use super::super::tests::{Case, cases};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn deciles_hold_equal_numbers_of_pairs() {
        // 20 labels of one pair each: two a decile, lower ids first.
        let groups = LabelGroups::by_decile(&[1; 20]);
        assert_eq!(groups.group_of, (0..20).map(|label| label / 2).collect::<Vec<u16>>());
        assert_eq!(groups.names[0], "decile 1");
        // Of 100 pairs, 10 labels of 5 and 25 of 2: five deciles of 2 labels, five of 5.
        let counts: Vec<u32> = [[2; 25].as_slice(), &[5; 10]].concat();
        let groups = LabelGroups::by_decile(&counts);
        let n_in = |decile| groups.group_of.iter().filter(|&&group| group == decile).count();
        assert_eq!((0..10).map(n_in).collect::<Vec<_>>(), [2, 2, 2, 2, 2, 5, 5, 5, 5, 5]);
        assert_eq!(groups.group_of[25], 0);
    }

    #[test]
    fn odd_counts_still_have_deciles() {
        // One label has most pairs: it is decile 1, and those it takes the pairs of are empty.
        let groups = LabelGroups::by_decile(&[1, 98, 0, 1]);
        assert_eq!(groups.group_of, [9, 0, 9, 9]);
        assert_eq!(LabelGroups::by_decile(&[0, 0]).group_of, [9, 9]);
        assert_eq!(LabelGroups::by_decile(&[]).group_of, [0; 0]);
    }

    #[test]
    fn head_torso_and_tail_are_cut_at_fixed_counts() {
        let groups = LabelGroups::by_training_count(&[0, 1, 9, 10, 99, 100, 5000]);
        assert_eq!(groups.group_of, [3, 2, 2, 1, 1, 0, 0]);
    }

    #[test]
    fn groups_match_values_computed_by_hand() {
        let case = Case::new(
            4,
            &[(&[(0, 0.9), (1, 0.8), (3, 0.7)], &[0, 3]), (&[(1, 0.5), (0, 0.4)], &[0, 1, 2])],
        );
        let counts = [200, 20, 2, 0];
        let groups = LabelGroups::by_training_count(&counts);
        let metrics = evaluate_groups(&case.predictions, &case.task(), &groups, &counts, 3);
        let hits: Vec<&[u64]> = metrics.iter().map(|group| &group.hits[..]).collect();
        assert_eq!(hits, [[1, 2, 2], [1, 1, 1], [0, 0, 0], [0, 0, 1]]);
        assert_eq!(metrics[0].precision, [1.0 / 2.0, 2.0 / 4.0, 2.0 / 6.0]);
        assert_eq!(metrics[0].recall, [0.5, 1.0, 1.0]);
        assert_eq!((metrics[0].n_labels, metrics[0].n_training_pairs), (1, 200));
        assert_eq!((metrics[2].n_true_pairs, metrics[3].n_true_pairs), (1, 1));
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_precision(case in cases(), k in 0usize..8) {
            let counts = case.truth.column_counts();
            for groups in
                [LabelGroups::by_decile(&counts), LabelGroups::by_training_count(&counts)]
            {
                let parts = evaluate_groups(&case.predictions, &case.task(), &groups, &counts, k);
                let whole = evaluate(&case.predictions, &case.task(), k).precision;
                for (rank, whole) in whole.into_iter().enumerate() {
                    // The hits add up exactly; their quotients as exactly as quotients can.
                    let hits: u64 = parts.iter().map(|group| group.hits[rank]).sum();
                    let shown = (rank + 1) as u64 * case.truth.n_rows() as u64;
                    prop_assert_eq!(share(hits, shown), whole);
                    let sum: f64 = parts.iter().map(|group| group.precision[rank]).sum();
                    prop_assert!((sum - whole).abs() < 1e-12);
                }
                let n_true: u64 = parts.iter().map(|group| group.n_true_pairs).sum();
                prop_assert_eq!(n_true, case.truth.n_pairs());
            }
        }

        #[test]
        fn deciles_differ_by_less_than_their_largest_label(
            counts in prop::collection::vec(0u32..50, 50..300)
        ) {
            let groups = LabelGroups::by_decile(&counts);
            let n_pairs: u32 = counts.iter().sum();
            let largest = counts.iter().max().unwrap();
            let mut volumes = [0u32; 10];
            for (&group, &count) in groups.group_of.iter().zip(&counts) {
                volumes[usize::from(group)] += count;
            }
            for volume in volumes {
                prop_assert!(volume.abs_diff(n_pairs / 10) <= largest + 1, "{:?}", volumes);
            }
        }
    }
}
