//! Labels that holding points out left without any.
//!
//! In the finished model they have their points again: no label that had some is without. Held-out
//! points say of such labels that one without points can be right, and that its text is then all there
//! is to go by. A fusion that learnt from it would prefer the embedding for labels that do not exist.

use super::corpus::HeldOut;

/// Which labels are without points because all of theirs are held out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LostLabels {
    is_lost: Vec<bool>, // (labels)
}

impl LostLabels {
    /// The lost ones, given how many points each label kept and had. None are where held-out points
    /// come from elsewhere; and where they leave nothing else to most held-out points, what is learnt
    /// from them is better than nothing.
    pub(super) fn of(held_out: &HeldOut, kept: &[u32], had: &[u32]) -> Option<Self> {
        held_out.points.as_ref()?;
        let is_lost = kept.iter().zip(had).map(|(&kept, &had)| kept == 0 && had > 0).collect();
        let lost = Self { is_lost };
        let n_left = held_out.truth.rows().filter(|own| lost.leave_some(own)).count();
        (2 * n_left >= held_out.truth.n_rows()).then_some(lost)
    }

    /// Whether each label is lost.
    pub(super) fn as_slice(&self) -> &[bool] {
        &self.is_lost
    }

    /// Whether a point with these labels can still be answered: it has one that is not lost, or never
    /// had any.
    pub(super) fn leave_some(&self, own: &[u32]) -> bool {
        own.is_empty() || own.iter().any(|&label| !self.is_lost[label as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Csr;

    /// Two held-out points of a training split in which label 0 has 3 points, 1 has 1, and 2 none.
    fn held_out(pairs: Vec<(u32, u32)>, points: Option<Vec<u32>>) -> HeldOut {
        let truth = Csr::from_pairs(2, 3, pairs);
        HeldOut { points, text: vec![0, 1], truth, filter: Csr::empty(2, 3) }
    }

    #[test]
    fn a_label_is_lost_when_all_the_points_it_had_are_held_out() {
        let held_out = held_out(vec![(0, 0), (1, 0), (1, 1)], Some(vec![4, 7]));
        let lost = LostLabels::of(&held_out, &[1, 0, 0], &[3, 1, 0]).expect("some are lost");
        assert_eq!(lost.as_slice(), [false, true, false]);
        assert!(lost.leave_some(&[0, 1]) && !lost.leave_some(&[1]) && lost.leave_some(&[]));
    }

    #[test]
    fn held_out_points_of_their_own_split_lose_nothing() {
        let held_out = held_out(vec![(0, 0), (1, 1)], None);
        assert_eq!(LostLabels::of(&held_out, &[1, 0, 0], &[3, 1, 0]), None);
    }

    #[test]
    fn lost_labels_stay_where_most_points_have_no_others() {
        let only_lost = held_out(vec![(0, 1), (1, 1)], Some(vec![4, 7]));
        assert_eq!(LostLabels::of(&only_lost, &[3, 0, 0], &[3, 2, 0]), None);
        let half = held_out(vec![(0, 0), (1, 1)], Some(vec![4, 7]));
        assert!(LostLabels::of(&half, &[2, 0, 0], &[3, 1, 0]).is_some());
    }
}
