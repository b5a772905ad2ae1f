//! How slow this machine is beside the one that costs were measured on.
//!
//! The factors of [`super::cost`] are seconds of one machine. What the stages there do most of the time,
//! looking up rows all over memory and multiplying matrices, is tried here for some hundredths of a second:
//! processors differ by a factor of two in it, and a time budget should hold on all of them.

use std::hint::black_box;
use std::time::Instant;

use ngame_nn::{Matrix, Rows, multiply_here};

use crate::random::mix;

/// Rows that are looked up, of `DIM` numbers: 64 MiB, more than near caches hold.
const ROWS: usize = 1 << 17;
const DIM: usize = 128;

/// How many rows are looked up at a time, and how often.
const LOOKED_UP: usize = 32;
const LOOKS: usize = 1_000;

/// Rows and columns of the matrices that are multiplied.
const SIDE: usize = 512;

/// The fastest of so many tries counts: what else runs on the machine makes the others slower.
const TRIES: usize = 5;

/// Seconds of looking up and of multiplying on the machine of `make bench-scale`'s record.
const OF_RECORD: [f64; 2] = [8.9e-4, 1.03e-3];

/// How many times the seconds of that machine a thread takes here.
pub(super) fn slowness() -> f64 {
    let numbers: Vec<f32> = (0..ROWS * DIM).map(|at| (at % 97) as f32 - 48.0).collect();
    let ids: Vec<u32> =
        (0..LOOKS * LOOKED_UP).map(|at| (mix(0, &[at as u64]) % ROWS as u64) as u32).collect();
    beside_the_record([seconds_of_looking_up(&numbers, &ids), seconds_of_multiplying(&numbers)])
}

/// The geometric mean of how many times the record's seconds each took: the stages do both, and a mean of
/// ratios must not depend on which machine is the measure.
fn beside_the_record([looking_up, multiplying]: [f64; 2]) -> f64 {
    (looking_up / OF_RECORD[0] * (multiplying / OF_RECORD[1])).sqrt()
}

/// Comparing a vector with rows from all over memory.
fn seconds_of_looking_up(numbers: &[f32], ids: &[u32]) -> f64 {
    let rows = Rows::f32(numbers, DIM);
    let mut scores = [0.0; LOOKED_UP];
    fastest(|| {
        for ids in ids.chunks_exact(LOOKED_UP) {
            rows.dots(ids, &numbers[..DIM], &mut scores);
            black_box(&scores);
        }
    })
}

/// A product of two matrices.
fn seconds_of_multiplying(numbers: &[f32]) -> f64 {
    let square = Matrix::new(&numbers[..SIDE * SIDE], SIDE, SIDE);
    let mut product = vec![0.0; SIDE * SIDE];
    fastest(|| {
        multiply_here(square, square, &mut product);
        black_box(&product);
    })
}

fn fastest(mut work: impl FnMut()) -> f64 {
    let seconds = |_| {
        let began = Instant::now();
        work();
        began.elapsed().as_secs_f64()
    };
    (0..TRIES).map(seconds).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_of_the_record_is_one_and_others_are_as_many_times_slower() {
        let [looking_up, multiplying] = OF_RECORD;
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-12;
        assert!(near(beside_the_record(OF_RECORD), 1.0));
        assert!(near(beside_the_record([2.0 * looking_up, 2.0 * multiplying]), 2.0));
        assert!(near(beside_the_record([looking_up / 2.0, 8.0 * multiplying]), 2.0));
    }
}
