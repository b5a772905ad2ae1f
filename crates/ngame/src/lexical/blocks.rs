//! Parallel work that reports how far it is and can be stopped.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::progress::{Event, Observer};
use crate::{Error, Result};

/// Runs something for `n` things, `size` of them at a time, side by side; the results are in order. Blocks
/// do not depend on the number of threads, so neither does anything made of them. A thread that has
/// nothing left takes blocks one by one from those that do, so that one heavy block holds up no other.
/// Room is made for as many blocks as run at once, and handed on from block to block.
pub(super) fn in_blocks<T: Send, R: Send>(
    (task, unit): (&'static str, &'static str),
    n: usize,
    size: usize,
    room: impl Fn() -> R + Sync + Send,
    run: impl Fn(Range<usize>, &mut R) -> T + Sync + Send,
    observer: &dyn Observer,
) -> Result<Vec<T>> {
    observer.event(Event::Started { task, total: Some(n as u64), unit });
    let rooms = Mutex::new(Vec::new());
    let rooms = || rooms.lock().unwrap_or_else(PoisonError::into_inner);
    let results: Result<Vec<T>> = (0..n.div_ceil(size))
        .into_par_iter()
        .with_max_len(1)
        .map(|block| {
            if observer.cancelled() {
                return Err(Error::Cancelled);
            }
            let range = block * size..n.min((block + 1) * size);
            let n_done = range.len() as u64;
            let free = rooms().pop();
            let mut room = free.unwrap_or_else(&room);
            let result = run(range, &mut room);
            rooms().push(room);
            observer.event(Event::Advanced(n_done));
            Ok(result)
        })
        .collect();
    let results = results?;
    observer.event(Event::Finished);
    Ok(results)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::progress::Silent;

    #[test]
    fn blocks_are_in_order_and_share_a_room_for_each_thread() {
        let n_rooms = AtomicUsize::new(0);
        let room = || n_rooms.fetch_add(1, Ordering::Relaxed);
        let run = |range: Range<usize>, _: &mut usize| range.collect::<Vec<_>>();
        let threads = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let blocks = threads.install(|| in_blocks(("", ""), 1_000, 7, room, run, &Silent));
        let blocks = blocks.unwrap();
        assert_eq!(blocks.concat(), (0..1_000).collect::<Vec<_>>());
        assert!(blocks[..142].iter().all(|block| block.len() == 7));
        assert!((1..=3).contains(&n_rooms.into_inner()));
    }
}
