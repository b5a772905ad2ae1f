//! What lies in each bin of each feature: all that a node has to know to choose its split.
//!
//! A node's histogram is the sum of its children's. So only the smaller child's pairs are visited, and
//! the larger child's histogram is what is left of the parent's.

use std::ops::{AddAssign, SubAssign};

use rayon::prelude::*;

use super::binned::{Binned, MOST_BINS};

/// Pairs summed by one thread at a time. Fixed, as sums depend on how they are cut.
const CHUNK: usize = 32_768;

/// A pair on its way down a tree, together with the slope and bend of its loss at its present score.
/// They travel along, so that the pairs of a node are read one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Member {
    /// The pair.
    pub(super) row: u32,
    /// The first derivative of its loss by its score.
    pub(super) gradient: f32,
    /// The second derivative, or an estimate that is not negative.
    pub(super) hessian: f32,
}

/// Sums over some pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Totals {
    /// Of first derivatives.
    pub(super) gradient: f64,
    /// Of second derivatives.
    pub(super) hessian: f64,
    /// The pairs.
    pub(super) count: u32,
}

impl Totals {
    /// What these pairs add to the gain of a split, up to a factor of two: the drop of their loss, as
    /// a parabola has it, when they all get their best value.
    pub(super) fn score(&self, lambda: f64) -> f64 {
        let bend = self.hessian + lambda;
        if bend > 0.0 { self.gradient * self.gradient / bend } else { 0.0 }
    }

    /// The value that is best for these pairs, as far as a parabola can tell.
    pub(super) fn best_value(&self, lambda: f64) -> f64 {
        let bend = self.hessian + lambda;
        if bend > 0.0 { -self.gradient / bend } else { 0.0 }
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.gradient += other.gradient;
        self.hessian += other.hessian;
        self.count += other.count;
    }
}

impl SubAssign for Totals {
    fn sub_assign(&mut self, other: Self) {
        self.gradient -= other.gradient;
        self.hessian -= other.hessian;
        self.count -= other.count;
    }
}

/// The totals of every bin of some features over the pairs of a node.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Histogram {
    columns: Vec<[Totals; MOST_BINS]>, // (features, bins)
}

impl Histogram {
    /// The histogram of some features of some pairs, summed in an order that the number of threads
    /// does not change.
    pub(super) fn of(binned: &Binned, features: &[usize], members: &[Member]) -> Self {
        let mut parts = members
            .par_chunks(CHUNK)
            .map(|chunk| Self::of_chunk(binned, features, chunk))
            .collect::<Vec<_>>()
            .into_iter();
        let mut whole = parts.next().unwrap_or_else(|| Self::empty(features.len()));
        for part in parts {
            for (bin, other) in whole.bins_mut().zip(part.columns.iter().flatten()) {
                *bin += *other;
            }
        }
        whole
    }

    /// Takes the pairs of one child away: the other child's are left.
    pub(super) fn subtract(&mut self, child: &Self) {
        for (bin, other) in self.bins_mut().zip(child.columns.iter().flatten()) {
            *bin -= *other;
        }
    }

    /// The totals of the bins of a feature, by its place among those it was made for.
    pub(super) fn column(&self, at: usize) -> &[Totals; MOST_BINS] {
        &self.columns[at]
    }

    fn empty(n_features: usize) -> Self {
        Self { columns: vec![[Totals::default(); MOST_BINS]; n_features] }
    }

    fn of_chunk(binned: &Binned, features: &[usize], members: &[Member]) -> Self {
        let mut histogram = Self::empty(features.len());
        for member in members {
            let gradient = f64::from(member.gradient);
            let hessian = f64::from(member.hessian);
            let bins = binned.row(member.row as usize);
            for (column, &feature) in histogram.columns.iter_mut().zip(features) {
                column[usize::from(bins[feature])] += Totals { gradient, hessian, count: 1 };
            }
        }
        histogram
    }

    fn bins_mut(&mut self) -> impl Iterator<Item = &mut Totals> {
        self.columns.iter_mut().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_the_parent_is_the_other_child() {
        // Gradients that sums of f64 hold exactly, and more pairs than fit one chunk.
        let n_rows = CHUNK + 5_000;
        let features: Vec<f32> = (0..2 * n_rows).map(|n| (n * 7 % 31) as f32).collect();
        let binned = Binned::new(&features, 2);
        let member = |row: usize| Member {
            row: row as u32,
            gradient: (row % 13) as f32 - 6.0,
            hessian: 0.25 * (row % 5) as f32,
        };
        let members: Vec<Member> = (0..n_rows).map(member).collect();
        let mut rest = Histogram::of(&binned, &[0, 1], &members);
        let column = rest.column(1);
        assert_eq!(column.iter().map(|bin| bin.count as usize).sum::<usize>(), n_rows);
        let of_bin = |member: &&Member| binned.row(member.row as usize)[1] == 3;
        let expected: f64 =
            members.iter().filter(of_bin).map(|member| f64::from(member.gradient)).sum();
        assert_eq!(column[3].gradient, expected);

        rest.subtract(&Histogram::of(&binned, &[0, 1], &members[..1_000]));
        assert_eq!(rest, Histogram::of(&binned, &[0, 1], &members[1_000..]));
    }
}
