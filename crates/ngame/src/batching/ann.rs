//! Random batches, to which every point brings the labels that an approximate index finds hardest for
//! it (ANCE). The labels found have to be embedded besides those of the batch, which is what it costs.

use rayon::prelude::*;

use super::clusters::Clusters;
use super::sampler::{Mined, NegativeLists, Sampler, Views, Wants};
use crate::index::{Hnsw, HnswOptions};
use crate::progress::Silent;
use crate::{Error, Result};

/// Searches an index of the labels' vectors again every few epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ann {
    /// The negatives of a point (H).
    pub negatives: usize,
    /// Negatives are searched again after so many epochs (τ).
    pub refresh: usize,
    /// The index over the labels.
    pub index: HnswOptions,
}

impl Sampler for Ann {
    fn wants(&self, epoch: usize) -> Option<Wants> {
        epoch.is_multiple_of(self.refresh.max(1)).then_some(Wants::PointsAndLabels)
    }

    fn mine(&self, _: usize, views: &Views<'_>) -> Result<Mined> {
        let points = views.points()?;
        let labels = views.labels.ok_or_else(|| Error::Option {
            option: "sampler",
            expected: "the vectors of all labels".to_owned(),
            found: "none".to_owned(),
        })?;
        let index = Hnsw::build(labels, &self.index, &Silent)?;
        let search = |point: usize| -> Result<Vec<u32>> {
            let spared = views.not_negative.row(point);
            let wanted = (self.negatives + spared.len()).min(labels.n_rows());
            let found = index.search(&points.row(point).to_vec(), wanted)?;
            let mut hardest: Vec<u32> = found
                .into_iter()
                .map(|(label, _)| label)
                .filter(|label| spared.binary_search(label).is_err())
                .take(self.negatives)
                .collect();
            hardest.resize(self.negatives, u32::MAX);
            Ok(hardest)
        };
        let lists: Result<Vec<Vec<u32>>> =
            (0..views.n_points).into_par_iter().map(search).collect();
        let negatives = match self.negatives {
            0 => None,
            each => Some(NegativeLists::new(lists?.concat(), each)),
        };
        let clusters = Clusters::singletons(views.n_points);
        Ok(Mined { clusters, cluster_size: 1, negatives })
    }

    fn cluster_size(&self, _: usize) -> usize {
        1
    }

    fn n_negatives(&self) -> usize {
        self.negatives
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Csr;
    use crate::encoder::VectorMatrix;

    #[test]
    fn negatives_are_the_nearest_labels_that_are_not_a_points_own() {
        // Labels and points on a quarter of a circle.
        let on_circle = |n: usize| {
            let numbers = (0..n).flat_map(|i| {
                let angle = i as f32 / n as f32;
                [angle.cos(), angle.sin()]
            });
            VectorMatrix::from_f32(numbers.collect(), 2)
        };
        let (points, labels) = (on_circle(50), on_circle(50));
        let own = (0..50).map(|point| (point, point)).collect();
        let not_negative = Csr::from_pairs(50, 50, own);
        let views = Views {
            n_points: 50,
            points: Some(&points),
            labels: Some(&labels),
            not_negative: &not_negative,
        };
        let ann = Ann { negatives: 2, refresh: 1, index: HnswOptions::default() };
        let mined = ann.mine(0, &views).unwrap();
        let lists = mined.negatives.unwrap();
        for point in 1..49 {
            let mut found: Vec<u32> = lists.get(point).collect();
            found.sort_unstable();
            assert_eq!(found, [point as u32 - 1, point as u32 + 1]);
        }
        assert_eq!(mined.clusters, Clusters::singletons(50));
    }
}
