//! Progress and cancellation: the library reports events and asks whether to go on.
//!
//! The library never prints and owns no progress bar. Whoever calls it passes an [`Observer`].

use serde::{Deserialize, Serialize};

/// Something worth telling whoever waits.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A piece of work begins.
    Started {
        /// What is being done, for people: "reading trn.json.gz".
        task: &'a str,
        /// How many units it will take, if known.
        total: Option<u64>,
        /// What a unit is, in the plural: "bytes", "texts".
        unit: &'static str,
    },
    /// So many more units of the running task are done.
    Advanced(u64),
    /// The running task is done.
    Finished,
    /// A training step is done.
    Step(&'a StepProgress),
    /// The encoder was tried on held-out points.
    Validated(&'a ValidationProgress),
    /// Something a user should know, in a sentence.
    Note(&'a str),
}

/// Where training stands after a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepProgress {
    /// The epoch, counted from 1.
    pub epoch: usize,
    /// The epochs of the run.
    pub n_epochs: usize,
    /// The step of the run, counted from 1.
    pub step: u64,
    /// The steps of the run.
    pub n_steps: u64,
    /// The mean loss of the batch.
    pub loss: f64,
    /// The share of triplets that still push: negatives within the margin, or above the positive.
    pub active: f64,
    /// The mean score of the negatives compared: the higher, the harder.
    pub hardness: f64,
    /// The points of a cluster.
    pub cluster_size: usize,
    /// The learning rate.
    pub learning_rate: f64,
    /// The length of the gradient.
    pub gradient: f64,
    /// Tokens trained on, a second.
    pub tokens_per_second: f64,
    /// Seconds of this step.
    pub step_seconds: f64,
    /// Those of them that the encoder's own passes took, there and back.
    pub encoder_seconds: f64,
    /// Seconds of training so far, mining and validation left out.
    pub seconds: f64,
    /// Seconds of mining so far.
    pub mining_seconds: f64,
    /// Seconds that the rest will take.
    pub seconds_left: f64,
}

/// How the encoder does on held-out points, by exact search of the labels' embeddings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidationProgress {
    /// The epoch, counted from 1.
    pub epoch: usize,
    /// The steps done.
    pub step: u64,
    /// Precision at 1.
    pub precision_1: f64,
    /// Precision at 5.
    pub precision_5: f64,
    /// Recall at 100.
    pub recall_100: f64,
    /// Whether it is the best so far.
    pub is_best: bool,
    /// Seconds of training so far, mining and validation left out.
    pub seconds: f64,
}

/// Listens to events and may ask for a stop.
pub trait Observer: Sync {
    /// Called for every event, from any thread.
    fn event(&self, event: Event<'_>);

    /// Asked between steps; `true` makes the work return [`crate::Error::Cancelled`] soon.
    fn cancelled(&self) -> bool {
        false
    }
}

/// An observer that hears nothing and never stops anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn event(&self, _: Event<'_>) {}
}

/// Passes on the wish to stop and nothing else: for work inside of work, whose progress nobody asked
/// for.
pub(crate) struct StopOnly<'a>(pub(crate) &'a dyn Observer);

impl Observer for StopOnly<'_> {
    fn event(&self, _: Event<'_>) {}

    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}
