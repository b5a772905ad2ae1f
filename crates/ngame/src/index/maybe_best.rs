//! Which vectors may be among the best, by bounds of their scores.

/// With fewer than this, nothing is looked at again.
const LEAST_ROOM: usize = 256;

/// Bounds that are looked at together: a group without hope is passed over at once.
const TOGETHER: usize = 16;

/// Vectors that may be among the `k` best.
#[derive(Clone, Debug)]
pub(super) struct MaybeBest {
    k: usize,
    /// At least `k` vectors score as much.
    reached: f32,
    /// Those that may be, with their bounds.
    found: Vec<(u32, f32, f32)>,
    /// How many there may be before those are dropped that cannot be any more.
    room: usize,
    /// How many may be left then. Where all vectors are nearly the same, bounds tell none from another.
    most: usize,
    is_lost: bool,
}

impl MaybeBest {
    /// None yet. If ever more than `most` are left, all are given up.
    pub(super) fn new(k: usize, most: usize) -> Self {
        let room = k.saturating_mul(4).max(LEAST_ROOM);
        Self { k, reached: f32::NEG_INFINITY, found: Vec::new(), room, most, is_lost: false }
    }

    /// More vectors, numbered from `first`, whose scores lie between bounds; those `excluded` do not
    /// count. Bounds that are no numbers say nothing.
    pub(super) fn offer(&mut self, first: u32, low: &[f32], high: &[f32], excluded: &[u32]) {
        if self.k == 0 || self.is_lost {
            return;
        }
        let groups =
            low.chunks(TOGETHER).zip(high.chunks(TOGETHER)).zip((first..).step_by(TOGETHER));
        for ((low, high), first) in groups {
            // Without a way out in between, so that it takes a few instructions.
            let reached = self.reached;
            if high.iter().fold(true, |none, &high| none & (high < reached)) {
                continue;
            }
            for ((&low, &high), id) in low.iter().zip(high).zip(first..) {
                let has_hope = high >= self.reached || high.is_nan();
                if has_hope && (excluded.is_empty() || excluded.binary_search(&id).is_err()) {
                    self.push(id, low, high);
                }
            }
        }
    }

    fn push(&mut self, id: u32, low: f32, high: f32) {
        self.found.push((id, if low.is_nan() { f32::NEG_INFINITY } else { low }, high));
        if self.found.len() >= self.room {
            self.drop_hopeless();
            // Where bounds are wide, many stay; looking at them again for every new one would take long.
            self.room = self.room.max(2 * self.found.len());
            if self.found.len() > self.most {
                (self.is_lost, self.found) = (true, Vec::new());
                self.reached = f32::INFINITY;
            }
        }
    }

    fn drop_hopeless(&mut self) {
        if self.found.len() <= self.k {
            return;
        }
        let descending = |a: &(u32, f32, f32), b: &(u32, f32, f32)| b.1.total_cmp(&a.1);
        let kth = self.found.select_nth_unstable_by(self.k - 1, descending).1.1;
        self.reached = self.reached.max(kth);
        let reached = self.reached;
        self.found.retain(|one| one.2 >= reached || one.2.is_nan());
    }

    /// Whether too many were left at some time; the best may be any vectors then.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Those left, by their numbers.
    pub(super) fn finish(mut self) -> Vec<u32> {
        self.drop_hopeless();
        let mut ids: Vec<u32> = self.found.into_iter().map(|one| one.0).collect();
        ids.sort_unstable();
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_among_the_best_is_left_out_and_nothing_else() {
        let high: Vec<f32> = (0..5_000).map(|i| ((i * 7919) % 5_000) as f32).collect();
        let low: Vec<f32> = high.iter().map(|high| high - 2.5).collect();
        let mut maybe = MaybeBest::new(10, usize::MAX);
        maybe.offer(100, &low[..1_700], &high[..1_700], &[]);
        maybe.offer(1_800, &low[1_700..], &high[1_700..], &[]);
        let kept: Vec<f32> = maybe.finish().iter().map(|&id| high[id as usize - 100]).collect();
        // The tenth of all scores at least 4,990 - 2.5.
        assert_eq!(kept.len(), 12);
        assert!(kept.iter().all(|&high| high >= 4_987.5), "{kept:?}");
    }

    #[test]
    fn excluded_vectors_do_not_raise_the_bar() {
        let scores = [5.0, 4.0, 3.0, 2.0, 1.0];
        let mut maybe = MaybeBest::new(2, usize::MAX);
        maybe.offer(7, &scores, &scores, &[7, 8]);
        assert_eq!(maybe.finish(), [9, 10]);
    }

    #[test]
    fn bounds_that_are_no_numbers_keep_a_vector() {
        let mut maybe = MaybeBest::new(1, usize::MAX);
        maybe.offer(0, &[f32::NAN, 1.0, 0.0], &[f32::NAN, 1.0, 0.5], &[]);
        assert_eq!(maybe.finish(), [0, 1]);
    }

    #[test]
    fn vectors_that_bounds_cannot_tell_apart_are_given_up() {
        let (low, high) = (vec![0.0; 10_000], vec![1.0; 10_000]);
        let mut maybe = MaybeBest::new(3, 2_000);
        maybe.offer(0, &low[..1_900], &high[..1_900], &[]);
        assert!(!maybe.is_lost());
        maybe.offer(1_900, &low, &high, &[]);
        assert!(maybe.is_lost() && maybe.found.is_empty());
        let mut maybe = MaybeBest::new(3, usize::MAX);
        maybe.offer(0, &low, &high, &[]);
        assert_eq!((maybe.is_lost(), maybe.finish().len()), (false, 10_000));
    }
}
