//! Random weights to start from.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;

/// Normal numbers by the method of Box and Muller.
pub(crate) fn fill_normal(random: &mut ChaCha8Rng, deviation: f32, values: &mut [f32]) {
    for value in values {
        let (u, v): (f32, f32) = (random.random(), random.random());
        let radius = (-2.0 * (1.0 - u).ln()).sqrt();
        *value = deviation * radius * (std::f32::consts::TAU * v).cos();
    }
}
