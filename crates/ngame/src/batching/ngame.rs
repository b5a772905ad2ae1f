//! Batches of close points under the encoder as it is now, with clusters that grow: the paper's way.

use super::curriculum::Curriculum;
use super::kmeans::{KMeansOptions, cluster};
use super::random::Random;
use super::sampler::{Mined, Sampler, Views, Wants};
use crate::Result;
use crate::random::mix;

/// Clusters again every few epochs, and whenever the curriculum asks for larger clusters.
#[derive(Clone, Debug, PartialEq)]
pub struct Ngame {
    /// How large clusters are.
    pub curriculum: Curriculum,
    /// Clusters are made again after so many epochs (τ).
    pub refresh: usize,
    /// The epochs of the run.
    pub n_epochs: usize,
    /// How clusters are made.
    pub kmeans: KMeansOptions,
}

impl Sampler for Ngame {
    fn wants(&self, epoch: usize) -> Option<Wants> {
        let size = self.cluster_size(epoch);
        let changed = epoch == 0 || size != self.cluster_size(epoch - 1);
        match size {
            1 if changed => Some(Wants::Nothing),
            1 => None,
            _ => (changed || epoch.is_multiple_of(self.refresh.max(1))).then_some(Wants::Points),
        }
    }

    fn mine(&self, epoch: usize, views: &Views<'_>) -> Result<Mined> {
        let cluster_size = self.cluster_size(epoch);
        if cluster_size == 1 {
            return Random.mine(epoch, views);
        }
        let seed = mix(self.kmeans.seed, &[epoch as u64]);
        let clusters =
            cluster(views.points()?, cluster_size, &KMeansOptions { seed, ..self.kmeans });
        Ok(Mined { clusters, cluster_size, negatives: None })
    }

    fn cluster_size(&self, epoch: usize) -> usize {
        self.curriculum.cluster_size(epoch, self.n_epochs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batching::{Batches, Clusters};
    use crate::data::Csr;
    use crate::encoder::{VectorMatrix, VectorType};

    fn sampler(start: usize, doublings: Vec<f64>, refresh: usize) -> Ngame {
        let curriculum = Curriculum { start, doublings, most: 64 };
        Ngame { curriculum, refresh, n_epochs: 8, kmeans: KMeansOptions::default() }
    }

    #[test]
    fn it_looks_when_clusters_are_old_or_too_small() {
        let wants = |sampler: Ngame| (0..8).map(move |epoch| sampler.wants(epoch));
        let (points, nothing) = (Some(Wants::Points), Some(Wants::Nothing));
        let growing = wants(sampler(1, vec![0.25, 0.75], 4)).collect::<Vec<_>>();
        assert_eq!(growing, [nothing, None, points, None, points, None, points, None]);
        let fixed = wants(sampler(8, vec![], 3)).collect::<Vec<_>>();
        assert_eq!(fixed, [points, None, None, points, None, None, points, None]);
    }

    #[test]
    fn clusters_of_one_are_random_batches() {
        let not_negative = Csr::empty(100, 1);
        let views =
            Views { n_points: 100, points: None, labels: None, not_negative: &not_negative };
        let ours = sampler(1, vec![], 5).mine(0, &views).unwrap();
        let random = Random.mine(0, &views).unwrap();
        let draw = |mined: &Mined| Batches::draw(&mined.clusters, mined.cluster_size, 16, 3, 7);
        assert_eq!(draw(&ours), draw(&random));
    }

    #[test]
    fn it_needs_the_vectors_it_asked_for() {
        let not_negative = Csr::empty(10, 1);
        let vectors = VectorMatrix::zeros(9, 4, VectorType::F32);
        let mut views =
            Views { n_points: 10, points: None, labels: None, not_negative: &not_negative };
        assert!(sampler(8, vec![], 3).mine(0, &views).is_err());
        views.points = Some(&vectors);
        assert!(sampler(8, vec![], 3).mine(0, &views).is_err());
        let vectors = VectorMatrix::zeros(10, 4, VectorType::F32);
        views.points = Some(&vectors);
        let mined = sampler(8, vec![], 3).mine(0, &views).unwrap();
        assert_eq!(mined.clusters.iter().map(<[u32]>::len).collect::<Vec<_>>(), [5, 5]);
        assert_ne!(mined.clusters, Clusters::singletons(10));
    }
}
