//! Batches of points that were close before training began, and never again (TAS).

use super::kmeans::{KMeansOptions, cluster};
use super::sampler::{Mined, Sampler, Views, Wants};
use crate::Result;

/// Clusters once, under the encoder that training starts from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StaticClusters {
    /// How large clusters are, all the time.
    pub cluster_size: usize,
    /// How clusters are made.
    pub kmeans: KMeansOptions,
}

impl Sampler for StaticClusters {
    fn wants(&self, epoch: usize) -> Option<Wants> {
        (epoch == 0).then_some(Wants::Points)
    }

    fn mine(&self, _: usize, views: &Views<'_>) -> Result<Mined> {
        let clusters = cluster(views.points()?, self.cluster_size, &self.kmeans);
        Ok(Mined { clusters, cluster_size: self.cluster_size, negatives: None })
    }

    fn cluster_size(&self, _: usize) -> usize {
        self.cluster_size
    }
}
