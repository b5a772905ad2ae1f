//! The second stage: one classifier a label, on the trained encoder's vectors.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::checkpoint;
use super::run_folder::RunFolder;
use super::vectors::Vectors;
use crate::Result;
use crate::array_file::{ArrayFile, Check, damaged};
use crate::classifier::{ClassifierRun, Classifiers, Objective};
use crate::data::Csr;
use crate::encoder::VectorMatrix;
use crate::progress::{Event, Observer};

/// Classifiers that were trained along with the encoder.
pub(super) const JOINT: &str = "joint";

/// What to do about a file of a run that is not what was written.
const HELP: &str = "begin anew with --force";

/// What is known of classifiers beside their numbers.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Facts {
    scale: f32,
}

/// What classifiers are trained on.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassifierTask<'a> {
    pub(super) points: &'a VectorMatrix, // (points, dim)
    pub(super) truth: &'a Csr,           // points × labels
    pub(super) not_negative: &'a Csr,    // points × labels
    pub(super) start: &'a VectorMatrix,  // (labels, dim)
}

/// Trains classifiers, or takes those that this run trained before.
pub(super) fn train_classifiers(
    which: &str,
    task: ClassifierTask<'_>,
    objective: &Objective,
    checkpoint_minutes: f64,
    folder: &RunFolder,
    observer: &dyn Observer,
) -> Result<Classifiers> {
    let done = folder.classifiers(which);
    if done.exists() {
        return read_classifiers(&done);
    }
    let under_way = folder.classifiers(&format!("{which}-checkpoint"));
    let begin = || {
        let not_negative = Some(task.not_negative);
        ClassifierRun::new(task.points, task.truth, not_negative, task.start, objective)
    };
    let mut run = begin();
    if under_way.exists() && restore(&mut run, &under_way).is_none() {
        observer.event(Event::Note("a damaged checkpoint: classifiers are trained from the start"));
        run = begin();
    }
    let mut saved = Instant::now();
    while run.epoch() < run.n_epochs() {
        run.run_epoch(observer)?;
        if saved.elapsed() >= Duration::from_secs_f64(60.0 * checkpoint_minutes) {
            checkpoint::write(&under_way, &run.epoch(), &run.arrays())?;
            saved = Instant::now();
        }
    }
    let classifiers = run.finish();
    write_classifiers(&done, &classifiers)?;
    // It has done its duty; a kill in between leaves it without harm.
    let _ = std::fs::remove_file(under_way);
    Ok(classifiers)
}

fn restore(run: &mut ClassifierRun<'_>, path: &Path) -> Option<()> {
    let kept = checkpoint::read::<usize>(path).ok()?;
    run.restore(kept.state, |name| kept.array::<u8>(name).map(<[u8]>::to_vec))
}

pub(super) fn write_classifiers(path: &Path, classifiers: &Classifiers) -> Result<()> {
    let facts = Facts { scale: classifiers.scale() };
    let arrays = vec![
        ("vectors", bytemuck::cast_slice(classifiers.vectors())),
        ("biases", bytemuck::cast_slice(classifiers.biases())),
    ];
    checkpoint::write(path, &facts, &arrays)
}

pub(super) fn read_classifiers(path: &Path) -> Result<Classifiers> {
    let file = ArrayFile::<Facts>::open(path, Check::Whole, HELP)?;
    let vectors = file.require::<f32>("vectors", HELP)?.to_vec();
    let biases = file.require::<f32>("biases", HELP)?.to_vec();
    if biases.is_empty() || !vectors.len().is_multiple_of(biases.len()) {
        return Err(damaged(path, "vectors that do not fit the labels", HELP));
    }
    Ok(Classifiers::new(vectors, biases, file.state.scale))
}

/// The vectors that classifiers start from: those of the labels' texts, and where a label has none, the
/// mean of its points' vectors.
pub(super) fn start_vectors(vectors: &Vectors, has_text: &[bool], truth: &Csr) -> VectorMatrix {
    let dim = vectors.labels.dim();
    let mut start = VectorMatrix::from_f32(vectors.labels.all().to_vec(), dim);
    if has_text.iter().all(|has| *has) {
        return start;
    }
    let by_label = truth.transpose();
    for (label, _) in has_text.iter().enumerate().filter(|(_, has)| !**has) {
        let mut sum = vec![0.0; dim];
        vectors.points.as_rows().add_to(by_label.row(label), &mut sum);
        let norm = ngame_nn::dot(&sum, &sum).sqrt();
        if norm > 0.0 {
            sum.iter_mut().for_each(|number| *number /= norm);
            start.set(label, &sum);
        }
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classifiers_come_back_and_damage_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.bin");
        let classifiers = Classifiers::new(vec![1.0, 2.0, 3.0, 4.0], vec![0.5, -0.5], 10.0);
        write_classifiers(&path, &classifiers).unwrap();
        assert_eq!(read_classifiers(&path).unwrap(), classifiers);
        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 40;
        bytes[last] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let error = read_classifiers(&path).unwrap_err().to_string();
        assert!(error.contains("checksum") && error.contains(HELP), "{error}");
    }

    #[test]
    fn labels_without_text_start_at_the_mean_of_their_points() {
        let vectors = Vectors {
            labels: VectorMatrix::from_f32(vec![1.0, 0.0, 1.0, 0.0, 1.0, 0.0], 2),
            points: VectorMatrix::from_f32(vec![0.0, 1.0, 1.0, 0.0], 2),
            held_out: VectorMatrix::from_f32(Vec::new(), 2),
        };
        let truth = Csr::from_pairs(2, 3, vec![(0, 1)]);
        let start = start_vectors(&vectors, &[true, false, false], &truth);
        assert_eq!(start.row(0).to_vec(), [1.0, 0.0]);
        assert_eq!(start.row(1).to_vec(), [0.0, 1.0]);
        assert_eq!(start.row(2).to_vec(), [1.0, 0.0], "without points it keeps what it has");
    }
}
