//! Parallel work that reports how far it is and can be stopped.

use std::ops::Range;

use rayon::prelude::*;

use crate::progress::{Event, Observer};
use crate::{Error, Result};

/// Runs something for `n` things, `size` of them at a time, side by side, each thread with room of its
/// own; the results are in order. Blocks do not depend on the number of threads, so neither does
/// anything made of them.
pub(super) fn in_blocks<T: Send, R>(
    (task, unit): (&'static str, &'static str),
    n: usize,
    size: usize,
    room: impl Fn() -> R + Sync + Send,
    run: impl Fn(Range<usize>, &mut R) -> T + Sync + Send,
    observer: &dyn Observer,
) -> Result<Vec<T>> {
    observer.event(Event::Started { task, total: Some(n as u64), unit });
    let results: Result<Vec<T>> = (0..n.div_ceil(size))
        .into_par_iter()
        .map_init(room, |room, block| {
            if observer.cancelled() {
                return Err(Error::Cancelled);
            }
            let range = block * size..n.min((block + 1) * size);
            let n_done = range.len() as u64;
            let result = run(range, room);
            observer.event(Event::Advanced(n_done));
            Ok(result)
        })
        .collect();
    let results = results?;
    observer.event(Event::Finished);
    Ok(results)
}
