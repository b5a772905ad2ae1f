//! Text to a sparse vector: TF-IDF of words, their beginnings, and pairs of words.
//!
//! A feature counts if enough training texts have it; one that only a single text has cannot tell
//! another text anything. Weights are `(1 + ln count) · (1 + ln((1 + n) / (1 + texts with it)))`,
//! scaled to unit length. Features that training did not see are passed over.

use std::cmp::Reverse;
use std::ops::Range;

use super::blocks::in_blocks;
use super::options::LexicalOptions;
use super::sparse::{SparseRows, normalise};
use super::words::{Splitter, is_beginning};
use crate::Result;
use crate::data::{Interner, Texts};
use crate::progress::{Observer, StopOnly};

/// Texts of a piece of parallel work. Fixed, so that numbers do not depend on the machine.
const BLOCK: usize = 1024;

/// Texts whose features are counted before they are added up: features of few texts take much memory.
const GROUP: usize = 16 * BLOCK;

/// The features that count, and how much each tells.
#[derive(Debug)]
pub(super) struct Features {
    names: Interner,
    /// By feature, how much it tells: the rarer, the more.
    inverse_frequencies: Vec<f32>,
    /// Whether beginnings of words are among them. Models of before there were any have none, and are
    /// not asked about what they could not know.
    beginnings: bool,
}

impl Features {
    /// The features of all texts of some collections: those that enough texts have, and if there are too
    /// many, the most frequent of them.
    pub(super) fn collect(
        collections: &[&Texts],
        options: &LexicalOptions,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let room = || Splitter::new(options.beginnings);
        let mut names = Interner::default();
        let mut counts: Vec<u32> = Vec::new();
        for texts in collections {
            for begin in (0..texts.len()).step_by(GROUP) {
                // Counted side by side, then added up in the order of the texts: a feature's number
                // is that of its first appearance.
                let n = GROUP.min(texts.len() - begin);
                let count = |range: Range<usize>, splitter: &mut Splitter| {
                    count(texts, begin + range.start..begin + range.end, splitter)
                };
                let what = ("counting words", "texts");
                let quiet = StopOnly(observer);
                for (block, block_counts) in in_blocks(what, n, BLOCK, room, count, &quiet)? {
                    for (name, count) in block.strings().iter().zip(block_counts) {
                        let (number, is_new) = names.intern(name);
                        if is_new {
                            counts.push(0);
                        }
                        counts[number as usize] += count;
                    }
                }
            }
        }
        let n_texts = collections.iter().map(|texts| texts.len()).sum();
        Ok(Self::choose(&names.into_strings(), &counts, n_texts, options))
    }

    /// The features that count, by how many texts have each.
    fn choose(names: &Texts, counts: &[u32], n_texts: usize, options: &LexicalOptions) -> Self {
        let count_of = |number: u32| counts[number as usize];
        let counts_enough = |&number: &u32| count_of(number) >= options.least_texts;
        let mut kept: Vec<u32> = (0..counts.len() as u32).filter(counts_enough).collect();
        kept.sort_by_key(|&number| Reverse(count_of(number)));
        kept.truncate(options.most_features);
        let inverse_frequency = |&number: &u32| {
            (((1.0 + n_texts as f64) / (1.0 + f64::from(count_of(number)))).ln() + 1.0) as f32
        };
        let inverse_frequencies = kept.iter().map(inverse_frequency).collect();
        let mut chosen = Interner::default();
        for &number in &kept {
            chosen.intern(names.get(number as usize));
        }
        Self::of(chosen, inverse_frequencies)
    }

    fn of(names: Interner, inverse_frequencies: Vec<f32>) -> Self {
        let beginnings = names.strings().iter().any(is_beginning);
        Self { names, inverse_frequencies, beginnings }
    }

    /// Features by name, each once, and how much each tells; what is wrong with them, if anything.
    pub(super) fn from_parts(names: &Texts, inverse_frequencies: Vec<f32>) -> Result<Self, String> {
        if names.len() != inverse_frequencies.len() {
            return Err(format!(
                "{} features, but weights for {}",
                names.len(),
                inverse_frequencies.len()
            ));
        }
        // Far above ln of any number of texts, and far below what could overflow in a sum.
        if !inverse_frequencies.iter().all(|&value| value > 0.0 && value < 1e6) {
            return Err("the weight of a feature is not a sensible number".to_owned());
        }
        if u32::try_from(names.len()).is_err() {
            return Err("more features than can be counted".to_owned());
        }
        let mut interner = Interner::default();
        match names.iter().find(|name| !interner.intern(name).1) {
            Some(name) => Err(format!("the feature `{}` is there twice", name.escape_debug())),
            None => Ok(Self::of(interner, inverse_frequencies)),
        }
    }

    /// How many features there are.
    pub(super) fn len(&self) -> usize {
        self.inverse_frequencies.len()
    }

    /// The features' names.
    pub(super) fn names(&self) -> &Texts {
        self.names.strings()
    }

    /// How much each feature tells.
    pub(super) fn inverse_frequencies(&self) -> &[f32] {
        &self.inverse_frequencies
    }

    /// What cuts texts into these features.
    pub(super) fn splitter(&self) -> Splitter {
        Splitter::new(self.beginnings)
    }

    /// The vector of a text: features that ascend with their weights. Empty if no feature is known.
    pub(super) fn vector(&self, text: &str, splitter: &mut Splitter) -> Vec<(u32, f32)> {
        self.vector_and_coverage(text, splitter).0
    }

    /// The vector of a text, and the share of its features that are known, repeats included.
    pub(super) fn vector_and_coverage(
        &self,
        text: &str,
        splitter: &mut Splitter,
    ) -> (Vec<(u32, f32)>, f32) {
        let mut known = Vec::new();
        let mut n_features = 0;
        splitter.for_each_feature(text, |feature| {
            known.extend(self.names.get(feature));
            n_features += 1;
        });
        let coverage = known.len() as f32 / n_features.max(1) as f32;
        known.sort_unstable();
        let weight = |run: &[u32]| {
            let frequency = 1.0 + (run.len() as f32).ln();
            (run[0], frequency * self.inverse_frequencies[run[0] as usize])
        };
        let mut vector: Vec<(u32, f32)> = known.chunk_by(|a, b| a == b).map(weight).collect();
        normalise(&mut vector);
        (vector, coverage)
    }

    /// The vectors of many texts.
    pub(super) fn vectors(&self, texts: &Texts, observer: &dyn Observer) -> Result<SparseRows> {
        let rows = |range: Range<usize>, splitter: &mut Splitter| {
            let mut rows = SparseRows::new();
            range.for_each(|index| rows.push(&self.vector(texts.get(index), splitter)));
            rows
        };
        let what = ("weighting words", "texts");
        let room = || self.splitter();
        Ok(SparseRows::join(in_blocks(what, texts.len(), BLOCK, room, rows, observer)?))
    }
}

/// The features of some texts, and how many of the texts have each.
fn count(texts: &Texts, range: Range<usize>, splitter: &mut Splitter) -> (Interner, Vec<u32>) {
    let mut names = Interner::default();
    // By feature: how many texts have it, and the last of them.
    let mut counts: Vec<(u32, usize)> = Vec::new();
    for index in range {
        splitter.for_each_feature(texts.get(index), |feature| {
            let (number, is_new) = names.intern(feature);
            if is_new {
                counts.push((1, index));
            }
            let (count, last) = &mut counts[number as usize];
            *count += u32::from(*last != index);
            *last = index;
        });
    }
    (names, counts.into_iter().map(|(count, _)| count).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;

    fn collect(texts: &Texts, options: LexicalOptions) -> Features {
        Features::collect(&[texts], &options, &Silent).unwrap()
    }

    #[test]
    fn weights_are_those_of_scikit_learn() {
        let texts: Texts = ["red red apple", "green apple", "red wine"].into_iter().collect();
        let options = LexicalOptions { least_texts: 1, beginnings: false, ..Default::default() };
        let features = collect(&texts, options);
        let vector = features.vector("red red apple", &mut features.splitter());
        let named: Vec<(&str, f32)> = vector
            .iter()
            .map(|&(feature, weight)| (features.names().get(feature as usize), weight))
            .collect();
        // TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2)) gives the same.
        let expected = [
            ("red", 0.625_610_1),
            ("apple", 0.369_495_4),
            ("red red", 0.485_842),
            ("red apple", 0.485_842),
        ];
        for (name, weight) in expected {
            let found = named.iter().find(|&&(other, _)| other == name).unwrap().1;
            assert!((found - weight).abs() < 1e-6, "{name}: {found}");
        }
        assert_eq!(named.len(), 4);
        assert_eq!(features.vector("blue plums", &mut features.splitter()), []);
    }

    #[test]
    fn features_without_beginnings_are_not_asked_about_any() {
        let texts: Texts = ["geology", "geological"].into_iter().collect();
        let coverage = |beginnings| {
            let features = collect(&texts, LexicalOptions { beginnings, ..Default::default() });
            let names: Vec<String> = features.names().iter().map(str::to_owned).collect();
            let again =
                Features::from_parts(features.names(), features.inverse_frequencies.clone());
            let splitter = &mut features.splitter();
            let vector = features.vector_and_coverage("geologist", splitter);
            let again = again.unwrap();
            assert_eq!(again.vector_and_coverage("geologist", &mut again.splitter()), vector);
            (names, vector.1)
        };
        assert_eq!(coverage(true), (vec!["geol*".to_owned(), "geolog*".to_owned()], 2.0 / 3.0));
        assert_eq!(coverage(false), (vec![], 0.0));
    }

    #[test]
    fn rare_features_go_first() {
        let texts: Texts = ["a b", "a c", "a b"].into_iter().collect();
        let names = |least_texts, most_features| -> Vec<String> {
            let options = LexicalOptions { least_texts, most_features, ..Default::default() };
            let features = collect(&texts, options);
            features.names().iter().map(str::to_owned).collect()
        };
        assert_eq!(names(2, 100), ["a", "b", "a b"]);
        assert_eq!(names(1, 2), ["a", "b"]);
    }
}
