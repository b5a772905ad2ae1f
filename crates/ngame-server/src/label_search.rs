//! Labels by their words and by their ids.

use std::sync::OnceLock;

use ngame::data::{Ids, Labels};

/// Finds labels.
#[derive(Debug, Default)]
pub(crate) struct LabelSearch {
    /// The labels in the order of their ids, made when the first id is asked for: four bytes a label,
    /// where a table of the ids would hold all of them a second time.
    by_id: OnceLock<Vec<u32>>,
}

/// How well a label fits the words, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Same,
    Begins,
    BeginsWords,
    Contains,
}

impl LabelSearch {
    /// The label with this id.
    pub(crate) fn with_id(&self, labels: &Labels, id: &str) -> Option<u32> {
        let n_labels = labels.texts.len();
        if let Ids::Position = labels.ids {
            let position = id.parse::<usize>().ok().filter(|&position| position < n_labels)?;
            return (labels.id(position) == id).then_some(position as u32);
        }
        let by_id = self.by_id.get_or_init(|| {
            let mut sorted: Vec<u32> = (0..n_labels as u32).collect();
            sorted.sort_by(|&a, &b| labels.id(a as usize).cmp(&labels.id(b as usize)));
            sorted
        });
        let at = by_id.partition_point(|&label| labels.id(label as usize).as_ref() < id);
        by_id.get(at).copied().filter(|&label| labels.id(label as usize) == id)
    }

    /// The labels whose texts or ids hold all words of `query`: the best fits first, then the more
    /// frequent; and how many there are.
    pub(crate) fn with_words(
        labels: &Labels,
        counts: &[u32],
        query: &str,
        most: usize,
    ) -> (Vec<u32>, usize) {
        let query = query.trim().to_lowercase();
        let words: Vec<&str> = query.split_whitespace().collect();
        let mut lower = String::new();
        let mut found: Vec<(Fit, std::cmp::Reverse<u32>, u32)> = Vec::new();
        for (label, text) in labels.texts.iter().enumerate() {
            let fit = fit(text, &query, &words, &mut lower).or_else(|| {
                // Where the text is the id, it was just looked at.
                if matches!(labels.ids, Ids::SameAsText) {
                    return None;
                }
                fit(&labels.id(label), &query, &words, &mut lower)
            });
            let count = counts.get(label).copied().unwrap_or(0);
            found.extend(fit.map(|fit| (fit, std::cmp::Reverse(count), label as u32)));
        }
        let n_matches = found.len();
        if found.len() > most {
            found.select_nth_unstable(most);
            found.truncate(most);
        }
        found.sort_unstable();
        (found.into_iter().map(|(_, _, label)| label).collect(), n_matches)
    }
}

fn fit(text: &str, query: &str, words: &[&str], lower: &mut String) -> Option<Fit> {
    lower.clear();
    if text.is_ascii() {
        lower.push_str(text);
        lower.make_ascii_lowercase();
    } else {
        lower.extend(text.chars().flat_map(char::to_lowercase));
    }
    if !words.iter().all(|word| lower.contains(word)) {
        return None;
    }
    Some(match () {
        () if query.is_empty() => Fit::Contains,
        () if lower == query => Fit::Same,
        () if lower.starts_with(query) => Fit::Begins,
        () if words.iter().all(|word| begins_a_word(lower, word)) => Fit::BeginsWords,
        () => Fit::Contains,
    })
}

fn begins_a_word(text: &str, word: &str) -> bool {
    text.match_indices(word)
        .any(|(at, _)| !text[..at].chars().next_back().is_some_and(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use ngame::data::FieldWords;

    use super::*;

    fn labels(ids: Ids) -> Labels {
        let texts = ["photo viewer", "Viewer for photos", "interviewer", "VIEWER", "Größe", ""];
        Labels { ids, texts: texts.into_iter().collect(), words: FieldWords::default() }
    }

    #[test]
    fn the_best_fits_come_first() {
        let labels = labels(Ids::Position);
        let counts = [5, 9, 90, 1, 0, 7];
        let found = |query: &str, most| LabelSearch::with_words(&labels, &counts, query, most);
        assert_eq!(found("Viewer", 9), (vec![3, 1, 0, 2], 4));
        assert_eq!(found("viewer", 2), (vec![3, 1], 4));
        assert_eq!(found("photo view", 9), (vec![0, 1], 2));
        assert_eq!(found("GRÖSSE", 9).1, 0);
        assert_eq!(found("größe", 9), (vec![4], 1));
        assert_eq!(found("", 3), (vec![2, 1, 5], 6));
        assert_eq!(found("5", 3), (vec![5], 1));
    }

    #[test]
    fn ids_lead_to_their_labels_however_labels_are_called() {
        let own = ["b", "a", "d", "c", "e", "ä"].into_iter().collect();
        for ids in [Ids::Position, Ids::SameAsText, Ids::Own(own)] {
            let labels = labels(ids);
            let search = LabelSearch::default();
            for label in 0..6 {
                assert_eq!(search.with_id(&labels, &labels.id(label)), Some(label as u32));
            }
            for unknown in ["nothing", "6", "+1", "01", "-1"] {
                assert_eq!(search.with_id(&labels, unknown), None, "{unknown}");
            }
        }
    }
}
