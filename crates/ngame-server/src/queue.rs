//! What waits: a bounded queue that hands out as much as can be done in one call.
//!
//! There is no timer. Whoever is free takes what is there: one request when little is asked, many
//! when much is, since they gather while the batch before them is computed.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A piece of work that can wait.
pub(crate) trait Waiting {
    /// Its texts.
    fn n_texts(&self) -> usize;

    /// Whether somebody still wants the answer.
    fn is_wanted(&self) -> bool;

    /// Whether both can be done in one call.
    fn goes_with(&self, other: &Self) -> bool;
}

/// The queue.
#[derive(Debug)]
pub(crate) struct Queue<J> {
    state: Mutex<State<J>>,
    arrived: Condvar,
    /// The most texts that wait.
    most: usize,
}

#[derive(Debug)]
struct State<J> {
    jobs: VecDeque<J>,
    n_texts: usize,
    closed: bool,
}

/// Why a job was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Too many texts wait.
    Full,
    /// Nothing is taken any more.
    Closed,
}

impl<J: Waiting> Queue<J> {
    /// A queue with room for so many texts.
    pub(crate) fn new(most: usize) -> Self {
        let state = State { jobs: VecDeque::new(), n_texts: 0, closed: false };
        Self { state: Mutex::new(state), arrived: Condvar::new(), most }
    }

    /// Takes a job in, or refuses it at once. An empty queue takes any: what is too large for it would
    /// otherwise never be done.
    pub(crate) fn push(&self, job: J) -> Result<(), Refused> {
        let mut state = self.lock();
        if state.closed {
            return Err(Refused::Closed);
        }
        if state.n_texts + job.n_texts() > self.most {
            // Those that nobody waits for any more make room first.
            state.drop_unwanted();
        }
        if state.n_texts > 0 && state.n_texts + job.n_texts() > self.most {
            return Err(Refused::Full);
        }
        state.n_texts += job.n_texts();
        state.jobs.push_back(job);
        drop(state);
        self.arrived.notify_one();
        Ok(())
    }

    /// Waits for work and takes the oldest job with all that go with it, of together at most
    /// `most_texts` texts. None when the queue is closed and empty.
    pub(crate) fn take(&self, most_texts: usize) -> Option<Vec<J>> {
        let mut state = self.lock();
        loop {
            state.drop_unwanted();
            if let Some(first) = state.jobs.pop_front() {
                return Some(state.gather(first, most_texts));
            }
            if state.closed {
                return None;
            }
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes nothing any more; what waits is still done.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }

    /// The texts that wait.
    pub(crate) fn n_texts(&self) -> usize {
        self.lock().n_texts
    }

    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<J: Waiting> State<J> {
    fn drop_unwanted(&mut self) {
        self.jobs.retain(Waiting::is_wanted);
        self.n_texts = self.jobs.iter().map(Waiting::n_texts).sum();
    }

    fn gather(&mut self, first: J, most_texts: usize) -> Vec<J> {
        let mut n_texts = first.n_texts();
        let mut batch = vec![first];
        let mut rest = VecDeque::with_capacity(self.jobs.len());
        for job in self.jobs.drain(..) {
            if job.goes_with(&batch[0]) && n_texts + job.n_texts() <= most_texts {
                n_texts += job.n_texts();
                batch.push(job);
            } else {
                rest.push_back(job);
            }
        }
        self.jobs = rest;
        self.n_texts -= n_texts;
        batch
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[derive(Debug, PartialEq)]
    struct Job {
        kind: char,
        n_texts: usize,
        wanted: bool,
    }

    impl Waiting for Job {
        fn n_texts(&self) -> usize {
            self.n_texts
        }
        fn is_wanted(&self) -> bool {
            self.wanted
        }
        fn goes_with(&self, other: &Self) -> bool {
            self.kind == other.kind
        }
    }

    fn job(kind: char, n_texts: usize) -> Job {
        Job { kind, n_texts, wanted: true }
    }

    #[test]
    fn what_goes_together_is_taken_together_and_the_rest_keeps_its_order() {
        let queue = Queue::new(100);
        for one in [job('a', 1), job('b', 2), job('a', 3), job('c', 1), job('a', 9), job('a', 1)] {
            queue.push(one).unwrap();
        }
        assert_eq!(queue.n_texts(), 17);
        assert_eq!(queue.take(5), Some(vec![job('a', 1), job('a', 3), job('a', 1)]));
        assert_eq!(queue.take(5), Some(vec![job('b', 2)]));
        assert_eq!(queue.take(5), Some(vec![job('c', 1)]));
        // One that is larger than a batch is a batch.
        assert_eq!(queue.take(5), Some(vec![job('a', 9)]));
        assert_eq!(queue.n_texts(), 0);
    }

    #[test]
    fn a_full_queue_refuses_at_once() {
        let queue = Queue::new(4);
        queue.push(job('a', 9)).unwrap();
        assert_eq!(queue.push(job('a', 1)), Err(Refused::Full));
        queue.take(1).unwrap();
        queue.push(job('a', 3)).unwrap();
        assert_eq!(queue.push(job('a', 2)), Err(Refused::Full));
        queue.push(job('a', 1)).unwrap();
    }

    #[test]
    fn what_nobody_wants_costs_nothing_and_takes_no_room() {
        let queue = Queue::new(4);
        queue.push(Job { wanted: false, ..job('a', 4) }).unwrap();
        queue.push(job('a', 3)).unwrap();
        queue.push(Job { wanted: false, ..job('a', 1) }).unwrap();
        assert_eq!(queue.take(9), Some(vec![job('a', 3)]));
        assert_eq!(queue.n_texts(), 0);
    }

    #[test]
    fn a_closed_queue_gives_what_it_has_and_wakes_who_waits() {
        let queue = Arc::new(Queue::new(4));
        let waiting = {
            let queue = Arc::clone(&queue);
            std::thread::spawn(move || (queue.take(9), queue.take(9)))
        };
        queue.push(job('a', 1)).unwrap();
        queue.close();
        assert_eq!(queue.push(job('a', 1)), Err(Refused::Closed));
        assert_eq!(waiting.join().unwrap(), (Some(vec![job('a', 1)]), None));
    }
}
