//! Poisson weights: how often a row is drawn in a resample, drawn row by row.
//!
//! Drawing N rows out of N with replacement takes each row Binomial(N, 1/N) times, which for all
//! but tiny N is Poisson(1), and in the limit independently of the other rows. Drawing the Poisson
//! weights themselves needs no knowledge of N and no random access to rows.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

/// A weight is the number of thresholds that 16 random bits reach: the threshold at index n is the
/// probability of a weight of at most n, in units of 2⁻¹⁶, rounded. The distribution so rounded
/// has mean 1 exactly and variance 0.99997; its largest weight is 8.
const THRESHOLDS: [u16; 8] = [24109, 48219, 60273, 64292, 65296, 65497, 65531, 65535];

/// Keeps these draws apart from those of other modules that use the same seed.
const PURPOSE: u64 = u64::from_le_bytes(*b"poisson1");

/// Random weights of one chunk of rows in one group of resamples.
pub(super) struct PoissonWeights {
    generator: ChaCha8Rng,
    bytes: Vec<u8>,
}

impl PoissonWeights {
    /// Weights that are a function of these four numbers. `stream` tells apart sets of rows that
    /// are resampled under one seed but independently.
    pub(super) fn new(seed: u64, stream: u32, group: u32, chunk: u64) -> Self {
        let mut key = [0; 32];
        key[0..8].copy_from_slice(&PURPOSE.to_le_bytes());
        key[8..16].copy_from_slice(&seed.to_le_bytes());
        key[16..20].copy_from_slice(&stream.to_le_bytes());
        key[20..24].copy_from_slice(&group.to_le_bytes());
        key[24..32].copy_from_slice(&chunk.to_le_bytes());
        Self { generator: ChaCha8Rng::from_seed(key), bytes: Vec::new() }
    }

    /// Overwrites `weights` with independent Poisson(1) draws.
    pub(super) fn fill(&mut self, weights: &mut [f64]) {
        self.bytes.resize(weights.len() * 2, 0);
        self.generator.fill_bytes(&mut self.bytes);
        for (weight, &bits) in weights.iter_mut().zip(self.bytes.as_chunks::<2>().0) {
            let bits = u16::from_le_bytes(bits);
            let count: u16 = THRESHOLDS.iter().map(|&threshold| u16::from(bits >= threshold)).sum();
            *weight = f64::from(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_the_poisson_distribution() {
        let (mut probability, mut cumulative) = ((-1.0f64).exp(), 0.0);
        for (n, &threshold) in THRESHOLDS.iter().enumerate() {
            cumulative += probability;
            probability /= (n + 1) as f64;
            assert_eq!((cumulative * 65536.0).round(), f64::from(threshold), "weight {n}");
        }
    }

    #[test]
    fn the_rounded_distribution_has_mean_one_and_variance_nearly_one() {
        let reach = |threshold: u16| 65536 - u32::from(threshold);
        assert_eq!(THRESHOLDS.iter().map(|&threshold| reach(threshold)).sum::<u32>(), 65536);
        let square: u32 =
            (1..).step_by(2).zip(THRESHOLDS).map(|(odd, threshold)| odd * reach(threshold)).sum();
        assert!((f64::from(square) / 65536.0 - 2.0).abs() < 4e-5);
    }

    #[test]
    fn drawn_weights_have_the_distributions_frequencies() {
        let mut weights = vec![0.0; 1 << 18];
        PoissonWeights::new(7, 0, 0, 0).fill(&mut weights);
        let mut probability = (-1.0f64).exp();
        for n in 0..5 {
            let frequency = weights.iter().filter(|&&weight| weight == f64::from(n)).count() as f64
                / weights.len() as f64;
            let deviation = (probability * (1.0 - probability) / weights.len() as f64).sqrt();
            assert!((frequency - probability).abs() < 5.0 * deviation, "weight {n}: {frequency}");
            probability /= f64::from(n + 1);
        }
    }

    #[test]
    fn weights_stay_what_they_were_when_reports_were_written() {
        let mut weights = [0.0; 16];
        PoissonWeights::new(1, 2, 3, 4).fill(&mut weights);
        assert_eq!(
            weights.map(|weight| weight as u8),
            [0, 0, 1, 2, 1, 0, 0, 1, 1, 1, 0, 3, 0, 2, 3, 0]
        );
    }

    #[test]
    fn every_part_of_the_key_matters() {
        let draw = |seed, stream, group, chunk| {
            let mut weights = [0.0; 64];
            PoissonWeights::new(seed, stream, group, chunk).fill(&mut weights);
            weights
        };
        let draws = [
            draw(0, 0, 0, 0),
            draw(1, 0, 0, 0),
            draw(0, 1, 0, 0),
            draw(0, 0, 1, 0),
            draw(0, 0, 0, 1),
        ];
        for (index, one) in draws.iter().enumerate() {
            assert!(draws[..index].iter().all(|other| other != one));
        }
        assert_eq!(draws[0], draw(0, 0, 0, 0));
    }
}
