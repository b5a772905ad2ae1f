//! Random numbers without state: every use has its own seed, made of the run's seed and of what it is
//! for. What is drawn for one thing never depends on what was drawn before, so a run that was
//! interrupted goes on as if it had not been.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

/// A generator for one purpose, named by some numbers.
pub(crate) fn generator(seed: u64, purpose: &[u64]) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(mix(seed, purpose))
}

/// One number out of several: every bit of each changes about half the bits of the result.
pub(crate) fn mix(seed: u64, purpose: &[u64]) -> u64 {
    // The multiplication tells the state from the part: a plain sum would be the same either way.
    let join = |state: u64, part: u64| state.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(part);
    purpose.iter().fold(scramble(seed), |state, &part| scramble(join(state, part)))
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood), one step on.
fn scramble(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_of_different_purposes_differ() {
        let mut seeds: Vec<u64> = (0..100)
            .flat_map(|a| (0..100).map(move |b| mix(7, &[a, b])))
            .chain((0..100).map(|a| mix(7, &[a])))
            .chain((0..100).filter(|&a| a != 7).map(|a| mix(a, &[7])))
            .collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 10_199);
    }
}
