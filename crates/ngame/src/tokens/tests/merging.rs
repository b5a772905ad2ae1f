//! Learning by merging finds what counting everything anew finds.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::progress::Silent;
use crate::tokens::merges::{LearnedTokens, Limits, learn_tokens};

/// Learns by counting everything anew for every merge: slow, but plain to see.
fn learn_slowly(mut tokens: Vec<String>, words: &[(String, u64)], limits: Limits) -> Vec<String> {
    let id = |tokens: &[String], token: &str| tokens.iter().position(|t| t == token).unwrap();
    let mut spelled: Vec<(Vec<usize>, u64)> = Vec::new();
    for (word, count) in words {
        let token = |(at, c): (usize, char)| {
            id(&tokens, &if at == 0 { c.to_string() } else { format!("##{c}") })
        };
        spelled.push((word.chars().enumerate().map(token).collect(), *count));
    }
    while tokens.len() < limits.size {
        let mut counts: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for (word, count) in &spelled {
            for pair in word.windows(2) {
                *counts.entry((pair[0], pair[1])).or_default() += count;
            }
        }
        let most = counts.iter().max_by_key(|&(&pair, &count)| (count, Reverse(pair)));
        let Some((&pair, &count)) = most else { break };
        if count < limits.min_frequency {
            break;
        }
        let token = format!("{}{}", tokens[pair.0], tokens[pair.1].trim_start_matches("##"));
        if !tokens.contains(&token) {
            tokens.push(token.clone());
        }
        let merged = id(&tokens, &token);
        for (word, _) in &mut spelled {
            let mut at = 0;
            while at + 1 < word.len() {
                if (word[at], word[at + 1]) == pair {
                    word.splice(at..at + 2, [merged]);
                }
                at += 1;
            }
        }
    }
    tokens
}

fn characters() -> Vec<String> {
    let characters = ["a", "b", "c"];
    let continuing = characters.map(|character| format!("##{character}"));
    characters.map(str::to_owned).into_iter().chain(continuing).collect()
}

fn learn(words: &[(&str, u64)], size: usize, min_frequency: u64) -> LearnedTokens {
    let words: Vec<_> = words.iter().map(|&(word, count)| (word.to_owned(), count)).collect();
    learn_tokens(characters(), &words, Limits { size, min_frequency }, &Silent).unwrap()
}

proptest! {
    #[test]
    fn learning_is_counting_anew_for_every_merge(
        words in prop::collection::btree_map("[abc]{1,9}", 1u64..4, 0..12),
        size in 0usize..60,
        min_frequency in 0u64..4,
    ) {
        let words: Vec<(String, u64)> = words.into_iter().collect();
        let limits = Limits { size, min_frequency };
        let learned = learn_tokens(characters(), &words, limits, &Silent).unwrap();
        prop_assert_eq!(learned.tokens, learn_slowly(characters(), &words, limits));
    }
}

#[test]
fn the_most_frequent_pair_comes_first_and_equals_by_id() {
    let learned = learn(&[("ab", 2), ("ba", 2), ("ca", 3)], 100, 1);
    assert_eq!(learned.tokens[6..], ["ca", "ab", "ba"]);
    assert_eq!(learned.merges, [(2, 3), (0, 4), (1, 3)]);
}

#[test]
fn repeated_characters_are_merged_from_the_left() {
    let learned = learn(&[("aaaaa", 5)], 100, 1);
    assert_eq!(learned.tokens[6..], ["##aa", "aaa", "aaaaa"]);
}

#[test]
fn limits_are_kept() {
    assert_eq!(learn(&[("abc", 2)], 7, 1).tokens.len(), 7);
    assert_eq!(learn(&[("abc", 2)], 100, 3).tokens.len(), 6);
    assert_eq!(learn(&[("abc", 2)], 0, 1).tokens.len(), 6);
}
