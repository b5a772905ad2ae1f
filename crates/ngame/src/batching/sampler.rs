//! What all samplers have in common: now and then they look at vectors, and say which points belong
//! together and which labels a point should meet besides.

use std::fmt::Debug;

use super::clusters::Clusters;
use crate::data::Csr;
use crate::encoder::VectorMatrix;
use crate::{Error, Result};

/// Says which points share batches and which negatives are added.
///
/// A sampler has no state: what it found is [`Mined`], kept by whoever trains and written into
/// checkpoints.
pub trait Sampler: Debug + Send + Sync {
    /// What it wants to look at before an epoch; nothing where what was mined before still holds.
    /// Epoch 0 always wants something, be it [`Wants::Nothing`].
    fn wants(&self, epoch: usize) -> Option<Wants>;

    /// Looks, and says what it found.
    fn mine(&self, epoch: usize, views: &Views<'_>) -> Result<Mined>;

    /// About how many points a cluster has in an epoch.
    fn cluster_size(&self, epoch: usize) -> usize;

    /// The mined negatives of a point: so many texts of labels are added to a batch.
    fn n_negatives(&self) -> usize {
        0
    }
}

/// What a sampler looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// Nothing at all.
    Nothing,
    /// Vectors of all points, under an encoder that may be up to an epoch old.
    Points,
    /// Vectors of all points and of all labels.
    PointsAndLabels,
}

/// What there is to look at.
#[derive(Clone, Copy, Debug)]
pub struct Views<'a> {
    /// How many points there are.
    pub n_points: usize,
    /// One unit vector a point, if it was asked for.
    pub points: Option<&'a VectorMatrix>,
    /// One unit vector a label, if it was asked for.
    pub labels: Option<&'a VectorMatrix>,
    /// The labels that are no negatives of a point: points × labels.
    pub not_negative: &'a Csr,
}

impl<'a> Views<'a> {
    /// The points' vectors.
    pub(super) fn points(&self) -> Result<&'a VectorMatrix> {
        self.points.filter(|points| points.n_rows() == self.n_points).ok_or(Error::Option {
            option: "sampler",
            expected: format!("the vectors of {} points", self.n_points),
            found: "others, or none".to_owned(),
        })
    }
}

/// What a sampler found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mined {
    /// Which points belong together.
    pub clusters: Clusters,
    /// About how many points a cluster has.
    pub cluster_size: usize,
    /// Labels that are hard for a point and not its own.
    pub negatives: Option<NegativeLists>,
}

/// As many negatives for every point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NegativeLists {
    labels: Vec<u32>, // (points, each); u32::MAX where a point has fewer
    each: usize,
}

impl NegativeLists {
    /// Lists of `each` labels, back to back; `u32::MAX` fills up short ones.
    ///
    /// # Panics
    /// If there are not whole lists.
    pub fn new(labels: Vec<u32>, each: usize) -> Self {
        assert!(each > 0 && labels.len().is_multiple_of(each), "whole lists");
        Self { labels, each }
    }

    /// The labels of a point, the hardest first.
    pub fn get(&self, point: usize) -> impl Iterator<Item = u32> {
        let list = &self.labels[point * self.each..(point + 1) * self.each];
        list.iter().copied().filter(|&label| label != u32::MAX)
    }

    /// All lists, back to back.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// The length of a list.
    pub fn each(&self) -> usize {
        self.each
    }
}
