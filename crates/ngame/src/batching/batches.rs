//! The batches of an epoch: whole clusters, drawn at random.

use rand::seq::SliceRandom;

use super::clusters::Clusters;
use crate::random::generator;

/// What the random order of an epoch is drawn for.
const PURPOSE: u64 = 1;

/// All points once, batch by batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batches {
    points: Vec<u32>,
    ends: Vec<usize>,
}

impl Batches {
    /// Draws ⌈`batch_size` / `cluster_size`⌉ clusters for every batch until all are used; the last
    /// batch has what is left. Clusters of one point make random batches.
    pub fn draw(
        clusters: &Clusters,
        cluster_size: usize,
        batch_size: usize,
        seed: u64,
        epoch: usize,
    ) -> Self {
        let mut order: Vec<u32> = (0..clusters.n_clusters() as u32).collect();
        order.shuffle(&mut generator(seed, &[PURPOSE, epoch as u64]));
        let mut batches =
            Self { points: Vec::with_capacity(clusters.n_points()), ends: Vec::new() };
        for chosen in order.chunks(clusters_a_batch(cluster_size, batch_size)) {
            for &cluster in chosen {
                batches.points.extend_from_slice(clusters.get(cluster as usize));
            }
            batches.ends.push(batches.points.len());
        }
        batches
    }

    /// How many batches [`Batches::draw`] makes of so many points.
    pub fn count(n_points: usize, cluster_size: usize, batch_size: usize) -> usize {
        n_points.div_ceil(cluster_size).div_ceil(clusters_a_batch(cluster_size, batch_size))
    }

    /// How many batches there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The points of a batch.
    ///
    /// # Panics
    /// If there is no such batch.
    pub fn get(&self, batch: usize) -> &[u32] {
        let begin = batch.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.points[begin..self.ends[batch]]
    }
}

fn clusters_a_batch(cluster_size: usize, batch_size: usize) -> usize {
    batch_size.div_ceil(cluster_size).max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn batches_hold_whole_clusters_and_every_point_once(
            n in 1..500usize, cluster_size in 1..40usize, batch_size in 1..100usize,
            seed in 0..9u64, epoch in 0..9usize,
        ) {
            let clusters = Clusters::new((0..n as u32).collect(), n.div_ceil(cluster_size));
            let batches = Batches::draw(&clusters, cluster_size, batch_size, seed, epoch);
            prop_assert_eq!(batches.len(), Batches::count(n, cluster_size, batch_size));
            let mut seen = vec![None; n];
            for batch in 0..batches.len() {
                for &point in batches.get(batch) {
                    prop_assert_eq!(seen[point as usize].replace(batch), None);
                }
                let most = batch_size.div_ceil(cluster_size) * cluster_size;
                prop_assert!(batches.get(batch).len() <= most);
            }
            prop_assert!(seen.iter().all(Option::is_some));
            for cluster in clusters.iter() {
                let batch = seen[cluster[0] as usize];
                prop_assert!(cluster.iter().all(|&point| seen[point as usize] == batch));
            }
            prop_assert_eq!(&Batches::draw(&clusters, cluster_size, batch_size, seed, epoch), &batches);
        }
    }

    #[test]
    fn epochs_and_seeds_have_batches_of_their_own() {
        let clusters = Clusters::singletons(1000);
        let draw = |seed, epoch| Batches::draw(&clusters, 1, 10, seed, epoch);
        assert_ne!(draw(1, 0), draw(1, 1));
        assert_ne!(draw(1, 0), draw(2, 0));
    }
}
