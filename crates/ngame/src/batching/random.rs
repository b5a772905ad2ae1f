//! Random batches: the negatives of a point are whatever labels its batch happens to have (DPR).

use super::clusters::Clusters;
use super::sampler::{Mined, Sampler, Views, Wants};
use crate::Result;

/// Every point is a cluster of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Random;

impl Sampler for Random {
    fn wants(&self, epoch: usize) -> Option<Wants> {
        (epoch == 0).then_some(Wants::Nothing)
    }

    fn mine(&self, _: usize, views: &Views<'_>) -> Result<Mined> {
        let clusters = Clusters::singletons(views.n_points);
        Ok(Mined { clusters, cluster_size: 1, negatives: None })
    }

    fn cluster_size(&self, _: usize) -> usize {
        1
    }
}
