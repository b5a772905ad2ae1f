//! Scores to ranks: the k best labels of a point, chosen without sorting all of them.
//!
//! The order is total, so a ranking is a function of its scores and of nothing else: the higher
//! score first, of equal scores the lower label id first, and labels whose score is not a number
//! last. `0.0` and `-0.0` are equal scores.

/// Fewer candidates than this are not worth a selection in between.
const SMALLEST_BUFFER: usize = 32;

/// Writes the `k` best of the labels `columns`, scored by the `scores` beside them, into `best`:
/// best first, without the labels in `excluded`. With fewer candidates there are fewer results.
///
/// `columns` may be in any order, each label at most once; `excluded` must ascend, as the rows of
/// a [`Csr`](crate::data::Csr) do. `best` is cleared first and is the only memory used, so it is
/// worth keeping from call to call.
///
/// # Panics
/// If there is not exactly one score to a label.
pub fn top_k(
    columns: &[u32],
    scores: &[f32],
    excluded: &[u32],
    k: usize,
    best: &mut Vec<(u32, f32)>,
) {
    assert_eq!(columns.len(), scores.len(), "every label has a score");
    debug_assert!(excluded.is_sorted(), "the excluded labels ascend");
    best.clear();
    if k == 0 {
        return;
    }
    let mut top = TopK { k, worst_kept: u64::MAX, best: std::mem::take(best) };
    for (&label, &score) in columns.iter().zip(scores) {
        if excluded.is_empty() || excluded.binary_search(&label).is_err() {
            top.offer(label, score);
        }
    }
    *best = top.finish();
}

/// The best `k` of candidates that come one after the other.
///
/// Candidates gather in a buffer of twice the size wanted. When it is full, the better half stays,
/// and from then on only candidates better than the worst of that half may enter. Each selection is
/// paid for by the candidates that filled the buffer, so the whole is linear.
#[derive(Clone, Debug)]
pub struct TopK {
    k: usize,
    worst_kept: u64,
    best: Vec<(u32, f32)>,
}

impl TopK {
    /// Before the first candidate.
    pub fn new(k: usize) -> Self {
        Self { k, worst_kept: u64::MAX, best: Vec::new() }
    }

    /// Whether a candidate would be looked at: false for one that is worse than `k` others. For those
    /// who must ask elsewhere whether it is one at all.
    #[inline]
    pub fn may_enter(&self, label: u32, score: f32) -> bool {
        self.k > 0 && rank_key(label, score) <= self.worst_kept
    }

    /// One more candidate.
    #[inline]
    pub fn offer(&mut self, label: u32, score: f32) {
        if !self.may_enter(label, score) {
            return;
        }
        self.best.push((label, score));
        if self.best.len() == self.k.saturating_mul(2).max(SMALLEST_BUFFER) {
            self.worst_kept = keep_best(&mut self.best, self.k);
        }
    }

    /// The best, best first.
    pub fn finish(mut self) -> Vec<(u32, f32)> {
        if self.best.len() > self.k {
            keep_best(&mut self.best, self.k);
        }
        self.best.sort_unstable_by_key(|&(label, score)| rank_key(label, score));
        self.best
    }
}

/// Drops all but the `k` best, in no order, and returns the key of the worst of those.
fn keep_best(candidates: &mut Vec<(u32, f32)>, k: usize) -> u64 {
    let by_rank = |&(label, score): &(u32, f32)| rank_key(label, score);
    let worst = by_rank(candidates.select_nth_unstable_by_key(k - 1, by_rank).1);
    candidates.truncate(k);
    worst
}

/// A number that is smaller the better the rank: the score's place in the order of all scores,
/// then the label. Comparing whole numbers is several times faster than comparing two floats with
/// their special cases.
fn rank_key(label: u32, score: f32) -> u64 {
    const SIGN: u32 = 1 << 31;
    let descending = if score.is_nan() {
        u32::MAX
    } else {
        // Adding zero turns -0.0 into 0.0 and changes nothing else. The bits of positive floats
        // ascend with their value and those of negative floats descend, which is what is wanted
        // of the latter here; the former are turned round.
        let bits = (score + 0.0).to_bits();
        if bits & SIGN == 0 { !bits & !SIGN } else { bits }
    };
    u64::from(descending) << 32 | u64::from(label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Ordering;

    /// The documented order, written down without tricks.
    fn by_rank(a: &(u32, f32), b: &(u32, f32)) -> Ordering {
        match (a.1.is_nan(), b.1.is_nan()) {
            (false, false) => b.1.partial_cmp(&a.1).unwrap().then(a.0.cmp(&b.0)),
            (a_is_nan, b_is_nan) => a_is_nan.cmp(&b_is_nan).then(a.0.cmp(&b.0)),
        }
    }

    fn labels_of(columns: &[u32], scores: &[f32], excluded: &[u32], k: usize) -> Vec<u32> {
        let mut best = vec![(99, 9.9)];
        top_k(columns, scores, excluded, k, &mut best);
        best.into_iter().map(|(label, _)| label).collect()
    }

    #[test]
    fn the_order_is_score_then_label_then_not_a_number() {
        let columns = [0, 1, 2, 3, 4, 5, 6, 7];
        let scores = [f32::NAN, 0.5, -1.0, f32::INFINITY, 0.0, -0.0, f32::NEG_INFINITY, -f32::NAN];
        assert_eq!(labels_of(&columns, &scores, &[], 8), [3, 1, 4, 5, 2, 6, 0, 7]);
        assert_eq!(labels_of(&[5, 4], &[-0.0, 0.0], &[], 2), [4, 5]);
        assert_eq!(labels_of(&[4, 5], &[-0.0, 0.0], &[], 2), [4, 5]);
    }

    #[test]
    fn excluded_labels_give_way_to_the_next() {
        let (columns, scores) = ([1, 2, 3, 4], [0.4, 0.9, 0.7, 0.8]);
        assert_eq!(labels_of(&columns, &scores, &[], 2), [2, 4]);
        assert_eq!(labels_of(&columns, &scores, &[0, 2, 9], 2), [4, 3]);
        assert_eq!(labels_of(&columns, &scores, &[1, 2, 3, 4], 2), [0; 0]);
    }

    #[test]
    fn any_k_is_fine() {
        assert_eq!(labels_of(&[1, 2], &[0.1, 0.2], &[], 0), [0; 0]);
        assert_eq!(labels_of(&[1, 2], &[0.1, 0.2], &[], usize::MAX), [2, 1]);
        assert_eq!(labels_of(&[], &[], &[3], 5), [0; 0]);
    }

    /// Scores from a handful of values, so that ties are the rule, special values included.
    fn scores() -> impl Strategy<Value = f32> {
        prop_oneof![
            4 => (-4i8..4).prop_map(|n| f32::from(n) / 4.0),
            1 => any::<f32>(),
            1 => Just(f32::NAN),
            1 => Just(-0.0f32),
        ]
    }

    proptest! {
        #[test]
        fn top_k_is_a_prefix_of_the_full_sort(
            mut row in prop::collection::btree_map(0u32..400, scores(), 0..200)
                .prop_map(|row| row.into_iter().collect::<Vec<_>>()).prop_shuffle(),
            excluded in prop::collection::btree_set(0u32..400, 0..50),
            k in 0usize..60,
        ) {
            let (columns, scores): (Vec<u32>, Vec<f32>) = row.iter().copied().unzip();
            let excluded: Vec<u32> = excluded.into_iter().collect();
            let mut best = Vec::new();
            top_k(&columns, &scores, &excluded, k, &mut best);

            row.retain(|(label, _)| !excluded.contains(label));
            row.sort_by(by_rank);
            row.truncate(k);
            let bits = |row: &[(u32, f32)]| -> Vec<(u32, u32)> {
                row.iter().map(|&(label, score)| (label, score.to_bits())).collect()
            };
            prop_assert_eq!(bits(&best), bits(&row));
        }
    }
}
