//! The labels that the points of a batch are compared with, and the columns they have there.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use crate::data::Csr;

/// No column.
const NONE: u32 = u32::MAX;

/// Labels of a batch as columns: first those of its points, then those drawn at random, both in order.
/// Filling it costs what the batch has, however many labels there are.
#[derive(Debug)]
pub(super) struct BatchLabels {
    column_of: Vec<u32>, // (labels)
    labels: Vec<u32>,    // (columns)
    n_own: usize,
}

impl BatchLabels {
    pub(super) fn new(n_labels: usize) -> Self {
        Self { column_of: vec![NONE; n_labels], labels: Vec::new(), n_own: 0 }
    }

    /// Takes all labels of some points.
    pub(super) fn fill(&mut self, truth: &Csr, points: &[u32]) {
        self.clear();
        for &point in points {
            for &label in truth.row(point as usize) {
                if self.column_of[label as usize] == NONE {
                    self.column_of[label as usize] = 0;
                    self.labels.push(label);
                }
            }
        }
        self.n_own = self.labels.len();
        self.number_from(0);
    }

    /// Adds so many others of a pool of different labels, all alike likely, or all there are.
    pub(super) fn sample(&mut self, pool: &[u32], n: usize, random: &mut ChaCha8Rng) {
        let begin = self.labels.len();
        // Drawing again what is there already takes too long where little is left to draw.
        if 2 * (begin + n) >= pool.len() {
            let free = |label: &u32| self.column_of[*label as usize] == NONE;
            let mut rest: Vec<u32> = pool.iter().copied().filter(free).collect();
            let n = n.min(rest.len());
            for at in 0..n {
                let chosen = random.random_range(at..rest.len());
                rest.swap(at, chosen);
            }
            self.labels.extend_from_slice(&rest[..n]);
        } else {
            while self.labels.len() < begin + n {
                let label = pool[random.random_range(0..pool.len())];
                if self.column_of[label as usize] == NONE {
                    self.column_of[label as usize] = 0;
                    self.labels.push(label);
                }
            }
        }
        self.number_from(begin);
    }

    /// The labels of all columns.
    pub(super) fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// How many of them the points themselves have.
    pub(super) fn n_own(&self) -> usize {
        self.n_own
    }

    /// The column of a label, if it is in the batch.
    pub(super) fn column(&self, label: u32) -> Option<u32> {
        Some(self.column_of[label as usize]).filter(|&column| column != NONE)
    }

    /// Puts the labels from a column on in order.
    fn number_from(&mut self, begin: usize) {
        self.labels[begin..].sort_unstable();
        for (column, &label) in self.labels.iter().enumerate().skip(begin) {
            self.column_of[label as usize] = column as u32;
        }
    }

    fn clear(&mut self) {
        for &label in &self.labels {
            self.column_of[label as usize] = NONE;
        }
        self.labels.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::generator;

    #[test]
    fn columns_are_the_points_labels_and_different_ones_of_the_pool() {
        let truth = Csr::from_pairs(3, 50, vec![(0, 7), (0, 3), (1, 7), (2, 40)]);
        let mut batch = BatchLabels::new(50);
        let pool: Vec<u32> = (0..50).filter(|label| label % 2 == 1).collect();
        for n in [0, 4, 10, 23, 100] {
            batch.fill(&truth, &[0, 1]);
            assert_eq!((batch.labels(), batch.n_own()), (&[3, 7][..], 2));
            batch.sample(&pool, n, &mut generator(1, &[n as u64]));
            let drawn = &batch.labels()[2..];
            assert_eq!(drawn.len(), n.min(23), "{drawn:?}");
            assert!(drawn.is_sorted_by(|a, b| a < b));
            assert!(drawn.iter().all(|label| pool.contains(label) && ![3, 7].contains(label)));
            for (column, &label) in batch.labels().iter().enumerate() {
                assert_eq!(batch.column(label), Some(column as u32));
            }
            assert_eq!(batch.column(40), None);
        }
    }

    #[test]
    fn every_label_of_the_pool_is_drawn_equally_often() {
        let truth = Csr::empty(1, 20);
        let pool: Vec<u32> = (0..20).collect();
        for n in [3, 15] {
            let mut batch = BatchLabels::new(20);
            let mut counts = [0.0; 20];
            for turn in 0..2000 {
                batch.fill(&truth, &[0]);
                batch.sample(&pool, n, &mut generator(2, &[turn]));
                batch.labels().iter().for_each(|&label| counts[label as usize] += 1.0);
            }
            let expected = 100.0 * n as f64;
            let off = |count: &f64| (count - expected).abs() / expected.sqrt();
            assert!(counts.iter().all(|count| off(count) < 4.5), "{counts:?}");
        }
    }
}
