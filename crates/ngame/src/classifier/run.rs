//! A run: epochs of one objective, each of which can be the last of a process and the first of another.

use ngame_nn::Schedule;

use super::classifiers::Classifiers;
use super::one_vs_all::{OneVsAll, OneVsAllTraining};
use super::sampled::{Sampled, SampledTraining};
use super::start::LogitStart;
use super::task::{StepAt, Task, Training, schedule};
use super::triplet::{ClassifierTriplet, TripletTraining};
use crate::data::Csr;
use crate::encoder::VectorMatrix;
use crate::progress::{Event, Observer};
use crate::{Error, Result};

/// What classifiers are trained for, and how.
#[derive(Clone, Debug, PartialEq)]
pub enum Objective {
    /// Every label against every point.
    OneVsAll(OneVsAll),
    /// The labels of a batch and some drawn at random.
    Sampled(Sampled),
    /// The paper's: hard positives and hard negatives among the labels of a batch.
    Triplet(ClassifierTriplet),
}

impl Objective {
    /// How often every point is seen.
    pub fn n_epochs(&self) -> usize {
        match self {
            Self::OneVsAll(options) => options.epochs,
            Self::Sampled(options) => options.epochs,
            Self::Triplet(options) => options.epochs,
        }
    }

    /// The same from another start. The paper's has none: its scores are cosines to the end.
    #[must_use]
    pub fn starting_at(self, start: LogitStart) -> Self {
        match self {
            Self::OneVsAll(options) => Self::OneVsAll(OneVsAll { start, ..options }),
            Self::Sampled(options) => Self::Sampled(Sampled { start, ..options }),
            Self::Triplet(_) => self,
        }
    }

    fn warmup(&self) -> f64 {
        match self {
            Self::OneVsAll(options) => options.warmup,
            Self::Sampled(options) => options.warmup,
            Self::Triplet(options) => options.warmup,
        }
    }
}

/// Classifiers under training. What it does is a function of what it was made of and of the epochs
/// done: a run that goes on from its [arrays](Self::arrays) ends with the same bytes as one that never
/// stopped, on any number of threads.
#[derive(Debug)]
pub struct ClassifierRun<'a> {
    task: Task<'a>,
    training: Box<dyn Training>,
    n_epochs: usize,
    epoch: usize,
    schedule: Schedule,
}

impl<'a> ClassifierRun<'a> {
    /// Before the first epoch. `points` are frozen unit vectors and `truth` says which labels they have;
    /// pairs in `not_negative` are not pushed apart though they are not true, as that of a point with
    /// the label that is the point itself; `labels` are the vectors to start from.
    ///
    /// # Panics
    /// If numbers of points, of labels or lengths of vectors do not agree.
    pub fn new(
        points: &'a VectorMatrix,
        truth: &'a Csr,
        not_negative: Option<&'a Csr>,
        labels: &VectorMatrix,
        objective: &Objective,
    ) -> Self {
        assert_eq!(points.dim(), labels.dim(), "vectors of one length");
        for pairs in [Some(truth), not_negative].into_iter().flatten() {
            assert_eq!(pairs.n_rows(), points.n_rows(), "a row of labels for every point");
            assert_eq!(pairs.n_columns() as usize, labels.n_rows(), "a column for every label");
        }
        let task = Task { points, truth, not_negative };
        let training: Box<dyn Training> = match objective {
            Objective::OneVsAll(options) => Box::new(OneVsAllTraining::new(&task, labels, options)),
            Objective::Sampled(options) => Box::new(SampledTraining::new(&task, labels, options)),
            Objective::Triplet(options) => Box::new(TripletTraining::new(&task, labels, options)),
        };
        let n_epochs = objective.n_epochs();
        let n_steps = (0..n_epochs).map(|epoch| training.n_batches(epoch) as u64).sum();
        let schedule = schedule(n_steps, objective.warmup());
        Self { task, training, n_epochs, epoch: 0, schedule }
    }

    /// The epochs of the run.
    pub fn n_epochs(&self) -> usize {
        self.n_epochs
    }

    /// The epochs done.
    pub fn epoch(&self) -> usize {
        self.epoch
    }

    /// Trains on every point once more. A run that was cancelled within an epoch is of no more use: go
    /// back to what was kept after the epoch before.
    pub fn run_epoch(&mut self, observer: &dyn Observer) -> Result<()> {
        let total = Some(self.task.points.n_rows() as u64);
        observer.event(Event::Started { task: "training classifiers", total, unit: "points" });
        let before: usize = (0..self.epoch).map(|epoch| self.training.n_batches(epoch)).sum();
        let batches = self.training.batches(&self.task, self.epoch);
        for batch in 0..batches.len() {
            if observer.cancelled() {
                return Err(Error::Cancelled);
            }
            let step = (before + batch) as u64;
            let at = StepAt { step, share: self.schedule.rate(step) };
            self.training.step(&self.task, batches.get(batch), at);
            observer.event(Event::Advanced(batches.get(batch).len() as u64));
        }
        observer.event(Event::Finished);
        self.epoch += 1;
        Ok(())
    }

    /// All there is to keep after an epoch, by name: together with the epochs done.
    pub fn arrays(&self) -> Vec<(&'static str, &[u8])> {
        self.training.arrays()
    }

    /// Goes on from what was kept after so many epochs. `None` if there is something that does not fit;
    /// then the run is of no more use.
    pub fn restore(
        &mut self,
        epochs_done: usize,
        get: impl Fn(&str) -> Option<Vec<u8>>,
    ) -> Option<()> {
        if epochs_done > self.n_epochs {
            return None;
        }
        for (name, array) in self.training.arrays_mut() {
            let kept = get(name)?;
            if kept.len() != array.len() {
                return None;
            }
            array.copy_from_slice(&kept);
        }
        self.epoch = epochs_done;
        Some(())
    }

    /// Runs the epochs that are left.
    pub fn run_to_end(mut self, observer: &dyn Observer) -> Result<Classifiers> {
        while self.epoch < self.n_epochs {
            self.run_epoch(observer)?;
        }
        Ok(self.finish())
    }

    /// What was learnt so far.
    pub fn finish(self) -> Classifiers {
        self.training.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::classifier::toy::{Toy, circle, objectives};
    use crate::progress::Silent;

    /// The epochs done, and arrays by name.
    type Kept = (usize, Vec<(&'static str, Vec<u8>)>);

    fn run<'a>(toy: &'a Toy, objective: &Objective) -> ClassifierRun<'a> {
        ClassifierRun::new(&toy.points, &toy.truth, None, &toy.labels, objective)
    }

    fn trained(toy: &Toy, objective: &Objective) -> Classifiers {
        run(toy, objective).run_to_end(&Silent).unwrap()
    }

    #[test]
    fn every_objective_learns_what_embeddings_miss() {
        let toy = circle(600, 12);
        let before = toy.accuracy(&Classifiers::new(toy.labels.all().to_vec(), vec![0.0; 12], 1.0));
        assert!(before < 0.6, "{before}");
        for objective in objectives(60) {
            let after = toy.accuracy(&trained(&toy, &objective));
            assert!(after > 0.95, "{before} to {after}: {objective:?}");
        }
    }

    #[test]
    fn a_run_that_stops_after_every_epoch_ends_with_the_same_bytes() {
        let toy = circle(300, 40);
        for objective in objectives(4) {
            let straight = trained(&toy, &objective);
            let mut kept: Option<Kept> = None;
            for _ in 0..4 {
                let mut run = run(&toy, &objective);
                if let Some((epoch, arrays)) = &kept {
                    let get = |name: &str| {
                        arrays.iter().find(|(found, _)| *found == name).map(|found| found.1.clone())
                    };
                    run.restore(*epoch, get).unwrap();
                }
                run.run_epoch(&Silent).unwrap();
                let arrays = run.arrays();
                let copied = arrays.iter().map(|(name, bytes)| (*name, bytes.to_vec())).collect();
                kept = Some((run.epoch(), copied));
                if run.epoch() == run.n_epochs() {
                    assert_eq!(run.finish(), straight, "{objective:?}");
                }
            }
        }
    }

    #[test]
    fn arrays_that_do_not_fit_are_refused() {
        let toy = circle(60, 5);
        for objective in objectives(2) {
            let whole = run(&toy, &objective);
            let arrays: Vec<(&str, Vec<u8>)> =
                whole.arrays().into_iter().map(|(name, bytes)| (name, bytes.to_vec())).collect();
            let get = |name: &str| {
                arrays.iter().find(|(found, _)| *found == name).map(|found| found.1.clone())
            };
            assert_eq!(run(&toy, &objective).restore(2, get), Some(()));
            assert_eq!(run(&toy, &objective).restore(3, get), None);
            assert_eq!(run(&toy, &objective).restore(1, |_| None), None);
            assert_eq!(run(&toy, &objective).restore(1, |_| Some(vec![0; 3])), None);
        }
    }

    #[test]
    fn bytes_do_not_depend_on_the_number_of_threads() {
        let toy = circle(700, 300);
        for objective in objectives(2) {
            let on = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| trained(&toy, &objective))
            };
            assert_eq!(on(1), on(4), "{objective:?}");
        }
    }

    #[test]
    fn labels_without_points_keep_their_embeddings() {
        let toy = circle(300, 40).without_points_of(&[0, 7, 39]);
        for objective in objectives(3) {
            let trained = trained(&toy, &objective);
            let start = run(&toy, &objective).finish();
            for label in 0..40 {
                let vector = |of: &Classifiers| of.vectors()[label * 3..(label + 1) * 3].to_vec();
                let stays = [0, 7, 39].contains(&label);
                assert_eq!(vector(&trained) == vector(&start), stays, "{label}: {objective:?}");
                if stays {
                    assert_eq!(vector(&trained), toy.labels.row(label).to_vec());
                    assert_eq!(trained.biases()[label], start.biases()[label]);
                }
            }
        }
    }

    #[test]
    fn pairs_that_are_no_negatives_are_not_pushed_apart() {
        // Point 150 has label 6. No other pair is true, and none is a negative: only that label moves.
        let toy = circle(300, 12);
        let only = Csr::from_pairs(300, 12, vec![(150, 6)]);
        for objective in objectives(10) {
            let run = |not_negative| {
                ClassifierRun::new(&toy.points, &only, not_negative, &toy.labels, &objective)
            };
            let all = Csr::from_pairs(
                300,
                12,
                (0..300 * 12)
                    .map(|at| (at / 12, at % 12))
                    .filter(|&pair| pair != (150, 6))
                    .collect(),
            );
            let start = run(Some(&all)).finish();
            let end = run(Some(&all)).run_to_end(&Silent).unwrap();
            let point = toy.points.row(150).to_vec();
            for label in (0..12).filter(|&label| label != 6) {
                assert_eq!(end.score(label, &point), start.score(label, &point), "{objective:?}");
            }
        }
    }

    #[test]
    fn a_run_stops_when_it_is_asked_to() {
        struct StopAfter(AtomicUsize);
        impl Observer for StopAfter {
            fn event(&self, _: Event<'_>) {}
            fn cancelled(&self) -> bool {
                self.0.fetch_add(1, Ordering::Relaxed) >= 2
            }
        }
        let toy = circle(300, 12);
        for objective in objectives(3) {
            let stopped = run(&toy, &objective).run_to_end(&StopAfter(AtomicUsize::new(0)));
            assert!(matches!(stopped, Err(Error::Cancelled)));
        }
    }
}
