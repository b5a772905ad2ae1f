//! Text to features, in any language and script, without word lists.
//!
//! A word is a run of letters and digits, lower-cased. What is written together of several words gives
//! each of them and the whole: `GetCurrentFiber` is *get*, *current*, *fiber* and *getcurrentfiber*;
//! `libfoo-bar-dev` is *libfoo*, *bar*, *dev* and *libfoo-bar-dev*. Two words in a row are a feature
//! too. Scripts that put no spaces between words (Chinese, Japanese, Thai) give pairs of characters
//! instead, as search engines do without a dictionary. A pictograph is a word of its own.
//!
//! Long words give their beginnings as well, `geol*` and `geolog*` of *geologischen*: the forms of a word
//! and what is composed with it have them in common, in any language that changes words at their ends.

use std::ops::Range;

/// What may stand between the words of a whole.
const JOINTS: [char; 7] = ['-', '_', '.', ':', '+', '/', '\''];

/// A whole of fewer words is not worth a feature: two words in a row are one already.
const SMALLEST_WHOLE: usize = 3;

/// How long the beginnings of words are, in characters; a longer word gives them.
const BEGINNINGS: [usize; 2] = [4, 6];

/// What marks a beginning. No other feature holds it.
const CUT: char = '*';

/// Cuts texts into features, one text after the other; holds the memory for it.
#[derive(Clone, Debug)]
pub(super) struct Splitter {
    /// Whether long words give their beginnings.
    beginnings: bool,
    /// The words of the text so far, lower-cased, back to back.
    lower: String,
    /// Those words in order, as ranges of `lower`; an empty one where no pair may reach across.
    words: Vec<Range<usize>>,
    /// A feature that does not stand in the text as it is.
    joined: String,
}

/// Whether a feature is the beginning of longer words.
pub(super) fn is_beginning(feature: &str) -> bool {
    feature.ends_with(CUT)
}

/// What a character is to words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A letter or digit of a script with spaces, or a mark on one.
    Spaced,
    /// A letter of a script without spaces.
    Unspaced,
    /// A sign that is a word by itself.
    Pictograph,
    /// What stands between words.
    Between,
}

impl Splitter {
    /// What gives words, or their beginnings too.
    pub(super) fn new(beginnings: bool) -> Self {
        Self { beginnings, lower: String::new(), words: Vec::new(), joined: String::new() }
    }

    /// Calls `each` with every feature of a text, repeats included.
    pub(super) fn for_each_feature(&mut self, text: &str, mut each: impl FnMut(&str)) {
        self.lower.clear();
        self.words.clear();
        let mut whole = Whole::default();
        let mut begin = 0;
        while let Some(first) = text[begin..].chars().next() {
            let kind = kind_of(first);
            let end = match kind {
                Kind::Pictograph => begin + first.len_utf8(),
                _ => text[begin..].find(|c| kind_of(c) != kind).map_or(text.len(), |n| begin + n),
            };
            let run = &text[begin..end];
            match kind {
                Kind::Spaced => {
                    self.add_word(run, &mut each);
                    whole.extend(begin..end);
                }
                Kind::Between if run.len() == 1 && run.starts_with(JOINTS) => {}
                _ => {
                    self.finish(&mut whole, text, &mut each);
                    match kind {
                        Kind::Unspaced => pairs_of_characters(run, &mut each),
                        Kind::Pictograph => each(run),
                        _ => {}
                    }
                    if kind == Kind::Unspaced {
                        self.words.push(0..0);
                    }
                }
            }
            begin = end;
        }
        self.finish(&mut whole, text, &mut each);
        self.for_each_pair(each);
    }

    /// A run of letters and digits: the words in it, and itself if there are several.
    fn add_word(&mut self, run: &str, each: &mut impl FnMut(&str)) {
        let whole = self.lower.len();
        let mut begin = 0;
        let mut n_words = 0;
        for end in inner_boundaries(run).chain([run.len()]) {
            let from = self.lower.len();
            self.lower.extend(run[begin..end].chars().flat_map(char::to_lowercase));
            each(&self.lower[from..]);
            if self.beginnings {
                self.add_beginnings(from, each);
            }
            self.words.push(from..self.lower.len());
            begin = end;
            n_words += 1;
        }
        if n_words > 1 {
            each(&self.lower[whole..]);
        }
    }

    /// The beginnings of the word that `lower` holds from here on; numbers have none that mean anything.
    fn add_beginnings(&mut self, from: usize, each: &mut impl FnMut(&str)) {
        let word = &self.lower[from..];
        if word.starts_with(char::is_numeric) {
            return;
        }
        for length in BEGINNINGS {
            let Some((end, _)) = word.char_indices().nth(length) else { return };
            self.joined.clear();
            self.joined.push_str(&word[..end]);
            self.joined.push(CUT);
            each(&self.joined);
        }
    }

    /// Ends what was written together, and gives it as a feature if it is of several words.
    fn finish(&mut self, whole: &mut Whole, text: &str, each: &mut impl FnMut(&str)) {
        let Whole { range, n_runs } = std::mem::take(whole);
        if n_runs >= SMALLEST_WHOLE {
            self.joined.clear();
            self.joined.extend(text[range].chars().flat_map(char::to_lowercase));
            each(&self.joined);
        }
    }

    /// Words in a row, two by two.
    fn for_each_pair(&mut self, mut each: impl FnMut(&str)) {
        for pair in self.words.windows(2).filter(|pair| pair.iter().all(|word| !word.is_empty())) {
            self.joined.clear();
            self.joined.push_str(&self.lower[pair[0].clone()]);
            self.joined.push(' ');
            self.joined.push_str(&self.lower[pair[1].clone()]);
            each(&self.joined);
        }
    }
}

/// Runs with nothing but single joints between them.
#[derive(Default)]
struct Whole {
    range: Range<usize>,
    n_runs: usize,
}

impl Whole {
    fn extend(&mut self, run: Range<usize>) {
        let begin = if self.n_runs == 0 { run.start } else { self.range.start };
        self.range = begin..run.end;
        self.n_runs += 1;
    }
}

/// Where a new word begins inside of a run: at a capital after a small letter, at the last of several
/// capitals if a small letter follows (`HTTPServer`), and between letters and digits.
fn inner_boundaries(run: &str) -> impl Iterator<Item = usize> {
    let mut chars = run.char_indices().map(|(_, c)| c);
    let mut before = chars.next();
    let next = chars.chain([' ']);
    run.char_indices().skip(1).zip(next.skip(1)).filter_map(move |((at, c), next)| {
        let previous = before.replace(c)?;
        let capital = c.is_uppercase() && (!previous.is_uppercase() || next.is_lowercase());
        let number = is_letter(previous) && c.is_numeric() || previous.is_numeric() && is_letter(c);
        (capital || number).then_some(at)
    })
}

fn is_letter(c: char) -> bool {
    c.is_alphabetic() && !c.is_numeric()
}

/// Characters two by two, or the only one.
fn pairs_of_characters(run: &str, each: &mut impl FnMut(&str)) {
    let mut starts = run.char_indices().map(|(at, _)| at).chain([run.len()]);
    let (mut first, mut second) = (starts.next().unwrap_or(0), starts.next().unwrap_or(0));
    let mut n_pairs = 0;
    for end in starts {
        each(&run[first..end]);
        (first, second) = (second, end);
        n_pairs += 1;
    }
    if n_pairs == 0 {
        each(&run[first..second]);
    }
}

fn kind_of(c: char) -> Kind {
    if c.is_ascii() {
        return if c.is_ascii_alphanumeric() { Kind::Spaced } else { Kind::Between };
    }
    match c {
        // Thai, Lao, Tibetan; Myanmar; Khmer; kana; ideographs.
        '\u{e00}'..='\u{fff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{3041}'..='\u{30ff}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9d}'
        | '\u{20000}'..='\u{3ffff}' => Kind::Unspaced,
        // Marks that the standard library does not count as letters although words hold them:
        // accents set behind their letter, signs of Hebrew and Arabic, viramas and nuktas of the
        // scripts of India, joiners.
        '\u{300}'..='\u{36f}'
        | '\u{591}'..='\u{5bd}'
        | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}'
        | '\u{93c}'
        | '\u{94d}'
        | '\u{9bc}'
        | '\u{9cd}'
        | '\u{a3c}'
        | '\u{a4d}'
        | '\u{abc}'
        | '\u{acd}'
        | '\u{b4d}'
        | '\u{bcd}'
        | '\u{c4d}'
        | '\u{ccd}'
        | '\u{d4d}'
        | '\u{dca}'
        | '\u{200c}'
        | '\u{200d}' => Kind::Spaced,
        '\u{2600}'..='\u{27bf}' | '\u{1f000}'..='\u{1faff}' => Kind::Pictograph,
        _ if c.is_alphanumeric() => Kind::Spaced,
        _ => Kind::Between,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn features(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        Splitter::new(false).for_each_feature(text, |feature| found.push(feature.to_owned()));
        found
    }

    fn beginnings(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        Splitter::new(true).for_each_feature(text, |feature| {
            found.extend(is_beginning(feature).then(|| feature.to_owned()));
        });
        found
    }

    #[test]
    fn words_then_pairs() {
        assert_eq!(
            features("Red, round: Apple"),
            ["red", "round", "apple", "red round", "round apple"]
        );
        assert_eq!(features(""), [""; 0]);
        assert_eq!(features(" -- ?"), [""; 0]);
    }

    #[test]
    fn what_is_written_together_gives_its_words_and_the_whole() {
        let expected =
            ["get", "current", "fiber", "getcurrentfiber", "get current", "current fiber"];
        assert_eq!(features("GetCurrentFiber"), expected);
        let expected = ["libfoo", "bar", "dev", "libfoo-bar-dev", "libfoo bar", "bar dev"];
        assert_eq!(features("libfoo-bar-dev"), expected);
        let words = |text: &str| -> Vec<String> {
            features(text).into_iter().take_while(|feature| !feature.contains(' ')).collect()
        };
        assert_eq!(words("HTTPServer2"), ["http", "server", "2", "httpserver2"]);
        assert_eq!(words("JET_RECORDLIST"), ["jet", "recordlist"]);
        assert_eq!(words("python3-numpy"), ["python", "3", "python3", "numpy"]);
    }

    #[test]
    fn any_script_gives_features() {
        assert_eq!(features("Größe über ÄÖÜ")[..3], ["größe", "über", "äöü"]);
        assert_eq!(features("机器学习"), ["机器", "器学", "学习"]);
        assert_eq!(features("犬"), ["犬"]);
        assert_eq!(features("مرحبا بالعالم"), ["مرحبا", "بالعالم", "مرحبا بالعالم"]);
        assert_eq!(features("हिन्दी")[0], "हिन्दी");
        assert_eq!(features("e\u{301}te\u{301}"), ["e\u{301}te\u{301}"]);
        assert_eq!(features("🎉🎉 ok"), ["🎉", "🎉", "ok"]);
        assert!(features("ภาษาไทย").len() > 3);
        // No pair reaches across a script without spaces.
        assert_eq!(features("a 犬 b"), ["a", "犬", "b"]);
    }

    #[test]
    fn long_words_give_their_beginnings() {
        assert_eq!(beginnings("rock rocks"), ["rock*"]);
        assert_eq!(beginnings("Geology"), ["geol*", "geolog*"]);
        assert_eq!(beginnings("geologischen"), beginnings("Geologie"));
        // Of the words that are written together, not of the whole; of letters, not of bytes or digits.
        assert_eq!(beginnings("libfoo-QueryTable"), ["libf*", "quer*", "tabl*"]);
        assert_eq!(beginnings("Überflüsse 20261118"), ["über*", "überfl*"]);
        assert_eq!(beginnings("机器学习机器学习"), [""; 0]);
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in any::<String>()) {
            for feature in features(&text) {
                prop_assert!(!feature.is_empty() && !is_beginning(&feature));
            }
            for beginning in beginnings(&text) {
                prop_assert!(beginning.chars().count() > BEGINNINGS[0]);
            }
        }
    }
}
