//! Progress and cancellation: the library reports events and asks whether to go on.
//!
//! The library never prints and owns no progress bar. Whoever calls it passes an [`Observer`].

/// Something worth telling whoever waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
