//! Learning subwords: the pair of neighbouring symbols that is most frequent becomes a new token,
//! over and over (byte pair encoding, Sennrich et al. 2016).
//!
//! The `tokenizers` crate has a trainer that does this, but its result depends on the order of hash
//! tables whose seed is random: the queue may hold a pair twice, each time with other words, and
//! which comes first is anyone's guess. Here a pair is in the queue once, pairs of the same count
//! are taken in the order of their ids, and no hash table is ever iterated over.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use crate::progress::{Event, Observer};
use crate::{Error, Result};

/// What marks a token that continues a word.
pub(super) const CONTINUATION: &str = "##";

/// A vocabulary and how it was merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LearnedTokens {
    /// The tokens; the index of a token is its id.
    pub(super) tokens: Vec<String>,
    /// The pairs that were merged, first the most frequent.
    pub(super) merges: Vec<(u32, u32)>,
}

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The number of tokens wanted.
    pub(super) size: usize,
    /// Pairs seen less often are not merged.
    pub(super) min_frequency: u64,
}

/// Learns tokens from words and how often each occurs.
///
/// `tokens` has what is in the vocabulary from the start: for every character of a word, the
/// character itself or, if it is not the word's first, the character behind [`CONTINUATION`].
///
/// # Panics
/// If a character's token is missing.
pub(super) fn learn_tokens(
    tokens: Vec<String>,
    words: &[(String, u64)],
    limits: Limits,
    observer: &dyn Observer,
) -> Result<LearnedTokens> {
    let n_known = tokens.len();
    let mut learner = Learner::new(tokens, words);
    observer.event(Event::Started {
        task: "learning the vocabulary",
        total: Some(limits.size.saturating_sub(n_known) as u64),
        unit: "tokens",
    });
    let mut n_reported = n_known;
    while learner.tokens.len() < limits.size {
        if observer.cancelled() {
            return Err(Error::Cancelled);
        }
        let Some(pair) = learner.most_frequent_pair(limits.min_frequency) else { break };
        learner.merge(pair);
        if learner.tokens.len() >= n_reported + 100 {
            observer.event(Event::Advanced((learner.tokens.len() - n_reported) as u64));
            n_reported = learner.tokens.len();
        }
    }
    observer.event(Event::Finished);
    Ok(LearnedTokens { tokens: learner.tokens, merges: learner.merges })
}

/// Two neighbouring symbols.
type Pair = (u32, u32);

/// The state of learning.
struct Learner {
    tokens: Vec<String>,
    id_of_token: HashMap<String, u32>,
    merges: Vec<Pair>,
    merged: HashSet<Pair>,
    words: Vec<Word>,
    /// The symbols of all words, back to back; a word that shrinks leaves a gap behind it.
    symbols: Vec<u32>,
    pairs: Vec<PairState>,
    index_of_pair: HashMap<Pair, u32>,
    /// Pairs by count, then by ids, the smallest first; the last number is the pair's index.
    queue: BinaryHeap<(u64, Reverse<Pair>, u32)>,
}

/// A word as symbols, `symbols[begin..begin + length]`.
struct Word {
    begin: usize,
    length: usize,
    /// How often the word occurs.
    count: u64,
}

/// What is known of a pair.
struct PairState {
    pair: Pair,
    /// How often it occurs.
    count: u64,
    /// The words it occurs in, and some that it no longer occurs in; in no order, with repetitions.
    words: Vec<u32>,
    /// The count with which it stands in the queue; entries of another count are outdated.
    queued: u64,
}

impl Learner {
    fn new(tokens: Vec<String>, words: &[(String, u64)]) -> Self {
        let id_of_token: HashMap<String, u32> =
            tokens.iter().enumerate().map(|(id, token)| (token.clone(), id as u32)).collect();
        let mut learner = Self {
            tokens,
            id_of_token,
            merges: Vec::new(),
            merged: HashSet::new(),
            words: Vec::with_capacity(words.len()),
            symbols: Vec::new(),
            pairs: Vec::new(),
            index_of_pair: HashMap::new(),
            queue: BinaryHeap::new(),
        };
        for (text, count) in words {
            learner.add_word(text, *count);
        }
        for index in 0..learner.pairs.len() {
            learner.enqueue(index);
        }
        learner
    }

    /// Adds a word as one symbol a character, and counts its pairs.
    fn add_word(&mut self, text: &str, count: u64) {
        let begin = self.symbols.len();
        let mut token = String::new();
        for character in text.chars() {
            token.clear();
            if self.symbols.len() > begin {
                token.push_str(CONTINUATION);
            }
            token.push(character);
            self.symbols.push(self.id_of_token[&token]);
        }
        let word = self.words.len() as u32;
        self.words.push(Word { begin, length: self.symbols.len() - begin, count });
        for at in begin + 1..self.symbols.len() {
            self.add_pair((self.symbols[at - 1], self.symbols[at]), word, count);
        }
    }

    /// Counts a pair that was found in a word; gives its index.
    fn add_pair(&mut self, pair: Pair, word: u32, count: u64) -> u32 {
        let index = *self.index_of_pair.entry(pair).or_insert_with(|| {
            self.pairs.push(PairState { pair, count: 0, words: Vec::new(), queued: 0 });
            (self.pairs.len() - 1) as u32
        });
        let state = &mut self.pairs[index as usize];
        state.count += count;
        if state.words.last() != Some(&word) {
            state.words.push(word);
        }
        index
    }

    /// Takes back what [`Learner::add_pair`] counted, when a pair's symbol has been merged away.
    fn remove_pair(&mut self, pair: Pair, count: u64) {
        let index = self.index_of_pair[&pair] as usize;
        self.pairs[index].count -= count;
    }

    /// Puts a pair into the queue with its present count; the entry it had is outdated by that.
    fn enqueue(&mut self, index: usize) {
        let state = &mut self.pairs[index];
        state.queued = state.count;
        if state.count > 0 {
            self.queue.push((state.count, Reverse(state.pair), index as u32));
        }
    }

    /// The index of the most frequent pair, if it is frequent enough.
    fn most_frequent_pair(&mut self, min_frequency: u64) -> Option<usize> {
        while let Some((count, _, index)) = self.queue.pop() {
            let index = index as usize;
            let state = &self.pairs[index];
            if state.queued != count {
                continue; // Outdated: the pair stands elsewhere in the queue.
            }
            if state.count != count {
                self.enqueue(index); // It has become rarer since.
                continue;
            }
            return (count >= min_frequency).then_some(index);
        }
        None
    }

    /// Makes a token of a pair, and one symbol of it wherever it occurs.
    fn merge(&mut self, index: usize) {
        let pair = self.pairs[index].pair;
        let token = self.token_of(pair);
        if self.merged.insert(pair) {
            self.merges.push(pair);
        }
        let mut words = std::mem::take(&mut self.pairs[index].words);
        words.sort_unstable();
        words.dedup();
        let mut risen = Vec::new();
        for word in words {
            self.merge_in_word(word, pair, token, &mut risen);
        }
        let state = &mut self.pairs[index];
        (state.count, state.queued) = (0, 0);
        risen.sort_unstable();
        risen.dedup();
        for index in risen {
            self.enqueue(index as usize);
        }
    }

    /// The id of the token that a pair becomes, which another pair may have made before:
    /// `a` + `bc` and `ab` + `c` are the same.
    fn token_of(&mut self, (left, right): Pair) -> u32 {
        let right = &self.tokens[right as usize];
        let right = right.strip_prefix(CONTINUATION).unwrap_or(right);
        let token = format!("{}{right}", self.tokens[left as usize]);
        *self.id_of_token.entry(token).or_insert_with_key(|token| {
            self.tokens.push(token.clone());
            (self.tokens.len() - 1) as u32
        })
    }

    /// Merges a pair wherever it occurs in a word, from left to right, and keeps the counts of the
    /// pairs around it. The merged pair's own count is not kept: it will be zero.
    fn merge_in_word(&mut self, index: u32, pair: Pair, token: u32, risen: &mut Vec<u32>) {
        let Word { begin, length, count } = self.words[index as usize];
        let end = begin + length;
        let (mut read, mut write) = (begin, begin);
        while read < end {
            let symbol = self.symbols[read];
            if read + 1 == end || (symbol, self.symbols[read + 1]) != pair {
                self.symbols[write] = symbol;
                read += 1;
            } else {
                if write > begin {
                    let before = self.symbols[write - 1];
                    if (before, pair.0) != pair {
                        self.remove_pair((before, pair.0), count);
                    }
                    risen.push(self.add_pair((before, token), index, count));
                }
                if read + 2 < end {
                    let after = self.symbols[read + 2];
                    if (pair.1, after) != pair {
                        self.remove_pair((pair.1, after), count);
                    }
                    risen.push(self.add_pair((token, after), index, count));
                }
                self.symbols[write] = token;
                read += 2;
            }
            write += 1;
        }
        self.words[index as usize].length = write - begin;
    }
}
