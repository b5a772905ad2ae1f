//! How large clusters are: small ones first, for easy negatives, then ever larger ones.

/// Cluster sizes over a run: a start, and the shares of the run after which the size doubles.
#[derive(Clone, Debug, PartialEq)]
pub struct Curriculum {
    /// The size at the beginning. 1 makes random batches.
    pub start: usize,
    /// When the size doubles, as shares of the run from 0 to 1, in any order. None: it stays.
    pub doublings: Vec<f64>,
    /// The size at which doubling ends.
    pub most: usize,
}

impl Curriculum {
    /// The cluster size in an epoch of a run. A share of the run that falls into the middle of an
    /// epoch counts from the epoch whose beginning is nearest, but never from the first: then there
    /// are no vectors yet that training made on its way.
    pub fn cluster_size(&self, epoch: usize, n_epochs: usize) -> usize {
        let begin = |share: f64| ((share * n_epochs as f64).round() as usize).max(1);
        let due = |share: &&f64| begin(**share) <= epoch;
        let n_doublings = self.doublings.iter().filter(due).count();
        let doubled = (self.start as u128) << n_doublings.min(64);
        doubled.min(self.most.max(self.start) as u128) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_double_on_time_and_stop_at_the_most() {
        let curriculum = Curriculum { start: 1, doublings: vec![0.1, 0.5, 0.6, 0.9], most: 8 };
        let sizes: Vec<usize> = (0..10).map(|epoch| curriculum.cluster_size(epoch, 10)).collect();
        assert_eq!(sizes, [1, 2, 2, 2, 2, 4, 8, 8, 8, 8]);
        let fixed = Curriculum { start: 16, doublings: vec![], most: 8 };
        assert_eq!(fixed.cluster_size(9, 10), 16);
    }

    #[test]
    fn short_runs_double_several_times_at_once() {
        let curriculum = Curriculum { start: 2, doublings: vec![0.2, 0.4, 0.6], most: 1 << 40 };
        assert_eq!(curriculum.cluster_size(0, 1), 2);
        assert_eq!((curriculum.cluster_size(0, 2), curriculum.cluster_size(1, 2)), (2, 16));
        let endless = Curriculum { start: 1, doublings: vec![0.0; 200], most: 64 };
        assert_eq!((endless.cluster_size(0, 3), endless.cluster_size(1, 3)), (1, 64));
    }
}
