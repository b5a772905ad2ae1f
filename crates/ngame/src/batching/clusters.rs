//! A partition of points into clusters of equal size.

use std::ops::Range;

use crate::encoder::{Vector, VectorMatrix};

/// Points in clusters whose sizes differ by at most one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clusters {
    /// All points, cluster by cluster.
    order: Vec<u32>,
    n_clusters: usize,
}

impl Clusters {
    /// Every point alone.
    pub fn singletons(n_points: usize) -> Self {
        let n_points = u32::try_from(n_points).expect("points are counted in u32");
        Self { order: (0..n_points).collect(), n_clusters: n_points as usize }
    }

    /// The clusters that an order of all points is cut into.
    ///
    /// # Panics
    /// If the clusters outnumber the points, or points have no cluster.
    pub fn new(order: Vec<u32>, n_clusters: usize) -> Self {
        assert!(n_clusters <= order.len(), "no cluster is empty");
        assert_eq!(n_clusters == 0, order.is_empty(), "every point has a cluster");
        Self { order, n_clusters }
    }

    /// The same for an order that may be none: `None` unless it has every point once and clusters fit.
    pub fn checked(order: Vec<u32>, n_clusters: usize) -> Option<Self> {
        let mut seen = vec![false; order.len()];
        for &point in &order {
            let slot = seen.get_mut(point as usize)?;
            if std::mem::replace(slot, true) {
                return None;
            }
        }
        let fit = n_clusters <= order.len() && (n_clusters == 0) == order.is_empty();
        fit.then_some(Self { order, n_clusters })
    }

    /// How many points there are.
    pub fn n_points(&self) -> usize {
        self.order.len()
    }

    /// How many clusters there are.
    pub fn n_clusters(&self) -> usize {
        self.n_clusters
    }

    /// The points of a cluster.
    ///
    /// # Panics
    /// If there is no such cluster.
    pub fn get(&self, cluster: usize) -> &[u32] {
        assert!(cluster < self.n_clusters, "cluster {cluster} of {}", self.n_clusters);
        &self.order[places(self.order.len(), self.n_clusters, cluster..cluster + 1)]
    }

    /// The clusters in order; those of close points tend to be neighbours.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        (0..self.n_clusters).map(|cluster| self.get(cluster))
    }

    /// All points, cluster by cluster.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// All points, cluster by cluster.
    pub(super) fn into_order(self) -> Vec<u32> {
        self.order
    }

    /// The mean inner product of a point's vector with the unit mean of its cluster: how close
    /// together the points of a cluster are.
    pub fn mean_similarity(&self, vectors: &VectorMatrix) -> f64 {
        let mut sum = vec![0.0f64; vectors.dim()];
        let mut total = 0.0;
        for points in self.iter() {
            sum.fill(0.0);
            for &point in points {
                match vectors.row(point as usize) {
                    Vector::F32(row) => {
                        sum.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
                    }
                    Vector::F16(row) => {
                        sum.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x.to_f32()));
                    }
                }
            }
            // The sum over the points of x · s / |s| is |s|.
            total += sum.iter().map(|x| x * x).sum::<f64>().sqrt();
        }
        total / self.order.len().max(1) as f64
    }
}

/// Where in the order of all points some clusters lie: cluster `i` of `k` begins at `i n / k`, so that
/// sizes differ by at most one and any run of clusters knows its size.
pub(super) fn places(n_points: usize, n_clusters: usize, clusters: Range<usize>) -> Range<usize> {
    let begin = |cluster: usize| (cluster as u128 * n_points as u128 / n_clusters as u128) as usize;
    begin(clusters.start)..begin(clusters.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_orders_of_all_points_make_clusters() {
        assert_eq!(Clusters::checked(vec![2, 0, 1], 2), Some(Clusters::new(vec![2, 0, 1], 2)));
        for (order, n_clusters) in
            [(vec![0, 0, 1], 2), (vec![0, 3, 1], 2), (vec![0, 1], 3), (vec![0], 0), (vec![], 1)]
        {
            assert_eq!(Clusters::checked(order, n_clusters), None);
        }
    }
}
