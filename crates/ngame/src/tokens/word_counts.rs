//! Counting words, and choosing the characters worth a token of their own.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use rayon::prelude::*;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{Normalizer, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};

use super::definition::LONGEST_WORD;
use super::merges::CONTINUATION;
use super::word_local::pieces;
use crate::progress::{Event, Observer};
use crate::{Error, Result};

/// Texts, or pieces of text, that one thread counts in one go.
const CHUNK: usize = 4096;

/// The words of texts in BERT's sense, each once, sorted, and how often each occurs.
///
/// Words longer than a tokenizer looks at are left out.
pub(super) fn count_words(
    texts: &[&str],
    normalizer: BertNormalizer,
    observer: &dyn Observer,
) -> Result<Vec<(String, u64)>> {
    observer.event(Event::Started {
        task: "counting words",
        total: Some(texts.len() as u64),
        unit: "texts",
    });
    // Pieces between spaces are counted first, so that each is cut into words only once: that is
    // the slow part. `word_local` explains why a piece can be cut by itself.
    let counted = texts
        .par_chunks(CHUNK)
        .map(|texts| {
            if observer.cancelled() {
                return Err(Error::Cancelled);
            }
            let mut counts = Counts::default();
            texts.iter().flat_map(|text| pieces(text)).for_each(|piece| counts.add(piece, 1));
            observer.event(Event::Advanced(texts.len() as u64));
            Ok(counts)
        })
        .try_reduce(Counts::default, |left, right| Ok(left.merge(right)))?;
    let words = counted
        .counted
        .par_chunks(CHUNK)
        .map(|pieces| {
            if observer.cancelled() {
                return Err(Error::Cancelled);
            }
            let mut counts = Counts::default();
            for &(piece, count) in pieces {
                add_words(piece, count, normalizer, &mut counts);
            }
            Ok(counts)
        })
        .try_reduce(Counts::default, |left, right| Ok(left.merge(right)))?;
    let mut words = words.counted;
    words.sort_unstable();
    observer.event(Event::Finished);
    Ok(words)
}

/// Cuts a piece of text into words and counts them.
fn add_words(piece: &str, count: u64, normalizer: BertNormalizer, counts: &mut Counts<String>) {
    let mut split = PreTokenizedString::from(piece);
    let cut = split
        .normalize(|part| normalizer.normalize(part))
        .and_then(|()| BertPreTokenizer.pre_tokenize(&mut split));
    cut.expect("BERT's normaliser and pre-tokenizer have no way to fail");
    for (word, _, _) in split.get_splits(OffsetReferential::Original, OffsetType::None) {
        if word.chars().count() <= LONGEST_WORD {
            counts.add(word.to_owned(), count);
        }
    }
}

/// Things and how often each was seen, in the order of first sight. Unlike that of a hash table,
/// this order is the same in every run, and merging in any grouping keeps it.
struct Counts<T> {
    counted: Vec<(T, u64)>,
    index: HashMap<T, usize>,
}

impl<T> Default for Counts<T> {
    fn default() -> Self {
        Self { counted: Vec::new(), index: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Counts<T> {
    fn add(&mut self, thing: T, count: u64) {
        if let Some(&index) = self.index.get(&thing) {
            self.counted[index].1 += count;
        } else {
            self.index.insert(thing.clone(), self.counted.len());
            self.counted.push((thing, count));
        }
    }

    fn merge(mut self, other: Self) -> Self {
        for (thing, count) in other.counted {
            self.add(thing, count);
        }
        self
    }
}

/// Characters worth tokens of their own, and the words that can be spelled with them.
pub(super) struct Alphabet {
    /// One token for each character that begins a word or stands alone, then one for each that
    /// continues a word, both in the order of the characters.
    pub(super) tokens: Vec<String>,
    /// The words made of these characters only.
    pub(super) words: Vec<(String, u64)>,
}

/// Chooses the most frequent characters (of equals, the first in Unicode), at most `n_tokens`
/// tokens of them.
///
/// Words with another character are left out: a tokenizer cannot spell them, so there is nothing to
/// learn from them.
pub(super) fn choose_alphabet(mut words: Vec<(String, u64)>, n_tokens: usize) -> Alphabet {
    let mut seen: BTreeMap<char, (u64, bool)> = BTreeMap::new();
    for (word, count) in &words {
        for (at, character) in word.chars().enumerate() {
            let (frequency, continues) = seen.entry(character).or_default();
            *frequency += count;
            *continues |= at > 0;
        }
    }
    let mut characters: Vec<(char, (u64, bool))> = seen.into_iter().collect();
    characters.sort_by_key(|&(character, (frequency, _))| (Reverse(frequency), character));
    let (mut begins, mut continues) = (BTreeSet::new(), BTreeSet::new());
    for (character, (_, also_continues)) in characters {
        if begins.len() + continues.len() + 1 + usize::from(also_continues) > n_tokens {
            break;
        }
        begins.insert(character);
        if also_continues {
            continues.insert(character);
        }
    }
    words.retain(|(word, _)| word.chars().all(|character| begins.contains(&character)));
    let tokens = begins.iter().map(char::to_string);
    let tokens = tokens.chain(continues.iter().map(|c| format!("{CONTINUATION}{c}"))).collect();
    Alphabet { tokens, words }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;

    fn owned(words: &[(&str, u64)]) -> Vec<(String, u64)> {
        words.iter().map(|&(word, count)| (word.to_owned(), count)).collect()
    }

    #[test]
    fn words_are_counted_as_bert_cuts_them() {
        let texts = ["Café, café", "cafe\u{301} 日本", "", "x\u{a0}y", &"z".repeat(101)];
        let counts = count_words(&texts, BertNormalizer::default(), &Silent).unwrap();
        let expected = [(",", 1), ("cafe", 3), ("x", 1), ("y", 1), ("日", 1), ("本", 1)];
        assert_eq!(counts, owned(&expected));
    }

    #[test]
    fn many_chunks_count_like_one() {
        let texts: Vec<String> = (0..3 * CHUNK).map(|n| format!("w{} w{}", n % 7, n % 5)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let counts = count_words(&texts, BertNormalizer::default(), &Silent).unwrap();
        assert_eq!(counts.len(), 7);
        assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), 6 * CHUNK as u64);
        assert!(counts.is_sorted());
    }

    #[test]
    fn the_alphabet_is_the_most_frequent_characters() {
        let words = owned(&[("ab", 5), ("b", 1), ("c", 3), ("d", 3), ("ea", 1)]);
        // a: 6 and b: 6 both begin and continue; c and d only begin.
        let alphabet = choose_alphabet(words.clone(), 5);
        assert_eq!(alphabet.tokens, ["a", "b", "c", "##a", "##b"]);
        assert_eq!(alphabet.words, owned(&[("ab", 5), ("b", 1), ("c", 3)]));
        let alphabet = choose_alphabet(words.clone(), 100);
        assert_eq!(alphabet.words, words);
        assert_eq!(choose_alphabet(words, 0).tokens, Vec::<String>::new());
    }
}
