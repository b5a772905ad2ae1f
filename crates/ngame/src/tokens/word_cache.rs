//! A cache from pieces of text to their token ids, and a pool of such caches.
//!
//! Words repeat: nineteen words of twenty in a large corpus have been tokenised before. Looking one
//! up takes tens of nanoseconds, tokenising it a few microseconds. A cache belongs to one thread at
//! a time, so looking up takes no lock; the [`WordCachePool`] lends caches out for a while.
//!
//! Memory is bounded. A full cache keeps what it has, because what comes first is mostly what comes
//! often, and later pieces are tokenised anew. Searching is bounded too: a piece lies within
//! [`PROBES`] slots of where its hash says or it is not stored, so that no choice of texts can make
//! looking up slow.

use std::num::NonZero;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

/// The memory that the caches of one tokenizer may take together, in bytes; more if there are so
/// many threads that each would get less than [`LEAST_MEMORY`].
const MEMORY: usize = 64 << 20;

/// The memory that is worth giving to a cache, in bytes: enough for the most frequent words.
const LEAST_MEMORY: usize = 4 << 20;

/// Longer pieces are rarely words and rarely repeat: they are not stored. In bytes, below 256.
const LONGEST_PIECE: usize = 64;

/// How many slots are searched for a piece.
const PROBES: usize = 16;

/// Slots in a cache that holds nothing yet; a power of two.
const FIRST_SLOTS: usize = 1 << 10;

/// Pieces of text and their token ids.
#[derive(Debug)]
pub(super) struct WordCache {
    /// An open-addressing table; its length is a power of two. Looking up waits for memory more
    /// than for anything else, so slots are small and a piece and its ids lie together.
    slots: Vec<Slot>,
    n_stored: usize,
    /// The records, back to back: length of the piece, number of ids, piece, ids. The first byte is
    /// unused, so that no record is at 0.
    records: Vec<u8>,
    /// The memory this cache may take, in bytes.
    memory: usize,
}

/// A place for one piece.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The half of the hash that does not choose the slot.
    tag: u32,
    /// Where the record begins; 0 means that the slot is free.
    record: u32,
}

/// What is stored of one piece.
struct Record<'a> {
    piece: &'a [u8],
    ids: &'a [[u8; 4]],
}

impl WordCache {
    /// An empty cache that will take at most `memory` bytes.
    fn new(memory: usize) -> Self {
        Self { slots: vec![Slot::default(); FIRST_SLOTS], n_stored: 0, records: vec![0], memory }
    }

    /// Appends the ids of a piece to `ids`, if they are stored; says whether they were.
    #[inline]
    pub(super) fn append(&self, piece: &str, ids: &mut Vec<u32>) -> bool {
        match self.find(hash(piece.as_bytes()), piece.as_bytes()) {
            Ok(record) => {
                ids.extend(record.ids.iter().map(|&id| u32::from_le_bytes(id)));
                true
            }
            Err(_) => false,
        }
    }

    /// Stores the ids of a piece, if it is not too long and there is room.
    pub(super) fn store(&mut self, piece: &str, ids: &[u32]) {
        if piece.len() > LONGEST_PIECE || ids.len() > u8::MAX.into() {
            return;
        }
        // Slots may take half of the memory. Doubling them at three quarters keeps searches short.
        if self.n_stored * 4 >= self.slots.len() * 3 {
            if self.slots.len() * 2 * size_of::<Slot>() > self.memory / 2 {
                return;
            }
            self.double_slots();
        }
        // Records may take a quarter: a growing vector may have as much again in reserve.
        if self.records.len() + 2 + piece.len() + size_of_val(ids) > self.memory / 4 {
            return;
        }
        let hash = hash(piece.as_bytes());
        let Err(Some(index)) = self.find(hash, piece.as_bytes()) else { return };
        // All of `MEMORY` is far below what a `u32` counts.
        self.slots[index] = Slot { tag: tag(hash), record: self.records.len() as u32 };
        self.records.extend([piece.len() as u8, ids.len() as u8]);
        self.records.extend_from_slice(piece.as_bytes());
        self.records.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
        self.n_stored += 1;
    }

    /// The record of a piece or, if it is not stored, the index of the slot it could take, if any.
    #[inline]
    fn find(&self, hash: u64, piece: &[u8]) -> Result<Record<'_>, Option<usize>> {
        let mask = self.slots.len() - 1;
        for step in 0..PROBES {
            let index = (hash as usize).wrapping_add(step) & mask;
            let slot = self.slots[index];
            if slot.record == 0 {
                return Err(Some(index));
            }
            if slot.tag == tag(hash) {
                let record = self.record(slot);
                if record.piece == piece {
                    return Ok(record);
                }
            }
        }
        Err(None)
    }

    /// The record of a taken slot.
    #[inline]
    fn record(&self, slot: Slot) -> Record<'_> {
        let record = &self.records[slot.record as usize..];
        let (piece_length, n_ids) = (usize::from(record[0]), usize::from(record[1]));
        let (piece, rest) = record[2..].split_at(piece_length);
        Record { piece, ids: &rest.as_chunks::<4>().0[..n_ids] }
    }

    /// Makes room for twice as many pieces. A piece that finds no slot near its hash is forgotten.
    fn double_slots(&mut self) {
        let slots = vec![Slot::default(); self.slots.len() * 2];
        let old_slots = std::mem::replace(&mut self.slots, slots);
        self.n_stored = 0;
        for slot in old_slots.into_iter().filter(|slot| slot.record > 0) {
            let piece = self.record(slot).piece;
            if let Err(Some(index)) = self.find(hash(piece), piece) {
                self.slots[index] = slot;
                self.n_stored += 1;
            }
        }
    }
}

/// The half of a hash that tells apart the pieces in neighbouring slots.
#[inline]
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// A fast hash of a piece: not for secrets, and the same in every process.
#[inline]
fn hash(piece: &[u8]) -> u64 {
    // Odd constants with no pattern to them: the fractional parts of the golden ratio and of the
    // square root of three.
    const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
    const SECOND: u64 = 0xbb67_ae85_84ca_a73b;
    /// Multiplies to 128 bits and folds the halves, so that every bit reaches every other.
    #[inline]
    fn mix(left: u64, right: u64) -> u64 {
        let product = u128::from(left) * u128::from(right);
        product as u64 ^ (product >> 64) as u64
    }
    let mut state = FIRST ^ piece.len() as u64;
    let (words, rest) = piece.as_chunks::<8>();
    for &word in words {
        state = mix(state ^ u64::from_le_bytes(word), SECOND);
    }
    let last = rest.iter().rev().fold(0, |last, &byte| last << 8 | u64::from(byte));
    mix(state ^ last, SECOND)
}

/// The caches of one tokenizer that no thread is using just now.
#[derive(Debug)]
pub(super) struct WordCachePool {
    idle: Mutex<Vec<WordCache>>,
    /// How many caches are kept: as many as there can be busy threads.
    most: usize,
}

impl Default for WordCachePool {
    fn default() -> Self {
        let most = available_parallelism().map_or(1, NonZero::get);
        Self { idle: Mutex::default(), most }
    }
}

impl WordCachePool {
    /// Lends a cache out, until the loan is dropped. A new one if all others are in use.
    pub(super) fn lend(&self) -> Loan<'_> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let memory = (MEMORY / self.most).max(LEAST_MEMORY);
        Loan { cache: Some(idle.unwrap_or_else(|| WordCache::new(memory))), pool: self }
    }
}

/// A cache that goes back to its pool when dropped.
#[derive(Debug)]
pub(super) struct Loan<'a> {
    /// There until the loan is dropped.
    cache: Option<WordCache>,
    pool: &'a WordCachePool,
}

impl Deref for Loan<'_> {
    type Target = WordCache;

    fn deref(&self) -> &WordCache {
        self.cache.as_ref().expect("a loan holds its cache until it is dropped")
    }
}

impl DerefMut for Loan<'_> {
    fn deref_mut(&mut self) -> &mut WordCache {
        self.cache.as_mut().expect("a loan holds its cache until it is dropped")
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        let mut idle = self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // More threads than there are processors may have borrowed; what is too many is dropped.
        if idle.len() < self.pool.most {
            idle.extend(self.cache.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stand-in for a tokenizer: the ids of a piece are its bytes.
    fn ids_of(piece: &str) -> Vec<u32> {
        piece.bytes().map(u32::from).collect()
    }

    /// What is stored of a piece, after something that was there before.
    fn stored(cache: &WordCache, piece: &str) -> Option<Vec<u32>> {
        let mut ids = vec![99];
        cache.append(piece, &mut ids).then(|| ids.split_off(1))
    }

    #[test]
    fn what_is_stored_comes_back() {
        let mut cache = WordCache::new(1 << 20);
        // Among these are pieces that differ only in zero bytes or in length.
        let pieces =
            ["a", "word", "exactly8", "sixteen bytes ok", "ä", "\0", "\0\0", "a\0", "exactly8\0"];
        for piece in pieces {
            assert_eq!(stored(&cache, piece), None, "{piece:?}");
            cache.store(piece, &ids_of(piece));
            cache.store(piece, &[1, 2, 3]);
        }
        for piece in pieces {
            assert_eq!(stored(&cache, piece), Some(ids_of(piece)), "{piece:?}");
        }
        cache.store("nothing", &[]);
        assert_eq!(stored(&cache, "nothing"), Some(vec![]));
        cache.store("large", &[u32::MAX]);
        assert_eq!(stored(&cache, "large"), Some(vec![u32::MAX]));
    }

    #[test]
    fn long_pieces_are_not_stored() {
        let mut cache = WordCache::new(1 << 20);
        let longest = "x".repeat(LONGEST_PIECE);
        let longer = "x".repeat(LONGEST_PIECE + 1);
        cache.store(&longest, &[1]);
        cache.store(&longer, &[2]);
        cache.store("many", &[3; 256]);
        assert_eq!(stored(&cache, &longest), Some(vec![1]));
        assert_eq!(stored(&cache, &longer), None);
        assert_eq!(stored(&cache, "many"), None);
    }

    #[test]
    fn a_full_cache_keeps_what_came_first_within_its_memory() {
        let memory = 1 << 20;
        let mut cache = WordCache::new(memory);
        let pieces: Vec<String> = (0..60_000).map(|n| format!("piece{n}")).collect();
        pieces.iter().for_each(|piece| cache.store(piece, &ids_of(piece)));
        let used = cache.slots.capacity() * size_of::<Slot>() + cache.records.capacity();
        assert!(used <= memory, "{used}");
        assert!(cache.n_stored > 5_000, "{}", cache.n_stored);
        for piece in &pieces {
            assert!(stored(&cache, piece).is_none_or(|ids| ids == ids_of(piece)), "{piece}");
        }
        assert!(stored(&cache, "piece0").is_some());
        assert!(stored(&cache, "piece59999").is_none());
    }

    #[test]
    fn few_pieces_are_forgotten_while_growing() {
        let mut cache = WordCache::new(MEMORY);
        let pieces: Vec<String> = (0..100_000).map(|n| format!("{}", n * 7919)).collect();
        pieces.iter().for_each(|piece| cache.store(piece, &[1]));
        let n_found = pieces.iter().filter(|piece| stored(&cache, piece).is_some()).count();
        assert!(n_found > 95_000, "{n_found}");
    }

    #[test]
    fn loans_go_back_to_the_pool_filled() {
        let pool = WordCachePool::default();
        pool.lend().store("word", &[1]);
        let first = pool.lend();
        assert_eq!(stored(&first, "word"), Some(vec![1]), "the same cache comes back");
        assert_eq!(stored(&pool.lend(), "word"), None, "two loans at once are two caches");
    }
}
