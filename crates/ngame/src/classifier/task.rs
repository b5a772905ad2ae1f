//! What all objectives are given, and what each of them has to do.

use ngame_nn::{Decay, Schedule, drop_numbers};
use rayon::prelude::*;

use super::classifiers::Classifiers;
use crate::batching::Batches;
use crate::data::Csr;
use crate::encoder::VectorMatrix;
use crate::random::mix;

/// What the numbers that a step drops are drawn for.
const DROPOUT: u64 = 12;

/// Rows that a thread copies in one go.
const ROWS: usize = 64;

/// Points, frozen, and what they should find.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task<'a> {
    pub(super) points: &'a VectorMatrix,
    /// Points × labels.
    pub(super) truth: &'a Csr,
    /// Pairs that are no negatives though they are not true.
    pub(super) not_negative: Option<&'a Csr>,
}

impl Task<'_> {
    /// Labels that must not be pushed away from a point.
    pub(super) fn ignored(&self, point: u32) -> &[u32] {
        self.not_negative.map_or(&[], |pairs| pairs.row(point as usize))
    }

    /// Copies the vectors of a batch and drops some of their numbers.
    pub(super) fn gather(&self, points: &[u32], drop: Drop, out: &mut Vec<f32>) {
        let (rows, dim) = (self.points.as_rows(), self.points.dim());
        out.resize(points.len() * dim, 0.0);
        points
            .par_chunks(ROWS)
            .zip(out.par_chunks_mut(ROWS * dim))
            .for_each(|(points, out)| rows.gather(points, out));
        drop_numbers(mix(drop.seed, &[DROPOUT, drop.step]), drop.rate, dim, out);
    }
}

/// Which share of numbers a step drops.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drop {
    pub(super) rate: f32,
    pub(super) seed: u64,
    pub(super) step: u64,
}

/// Which step of the run it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepAt {
    /// Counted from 0.
    pub(super) step: u64,
    /// The share of the highest learning rates.
    pub(super) share: f32,
}

/// An objective under way.
pub(super) trait Training: std::fmt::Debug + Send {
    /// How many batches an epoch has.
    fn n_batches(&self, epoch: usize) -> usize;

    /// The batches of an epoch.
    fn batches(&mut self, task: &Task<'_>, epoch: usize) -> Batches;

    /// Trains on a batch of points.
    fn step(&mut self, task: &Task<'_>, points: &[u32], at: StepAt);

    /// All that steps change, by name.
    fn arrays(&self) -> Vec<(&'static str, &[u8])>;

    /// The same to be written.
    fn arrays_mut(&mut self) -> Vec<(&'static str, &mut [u8])>;

    /// What was learnt.
    fn finish(self: Box<Self>) -> Classifiers;
}

/// Learning rates that rise over a share of the steps and fall to zero at the end.
pub(super) fn schedule(n_steps: u64, warmup: f64) -> Schedule {
    let n_warmup_steps = (n_steps as f64 * warmup).round() as u64;
    Schedule { peak: 1.0, n_warmup_steps, n_steps, decay: Decay::Linear }
}
