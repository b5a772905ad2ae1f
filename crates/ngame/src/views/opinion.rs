//! What each view says of a candidate by itself.

use std::collections::BTreeMap;

use serde::Serialize;

use super::candidates::Candidates;
use super::descriptor::{Column, View};

/// Who scores labels, and where their scores stand. Words do so in three ways, which may differ: by what
/// training gave them to say, by the label's own text, and by the training texts that have them too.
const SCORES: [(&str, Column); 6] = [
    (View::Embedding.name(), Column::Embedding),
    (View::Classifier.name(), Column::Classifier),
    (View::Votes.name(), Column::Votes),
    (View::Lexical.name(), Column::Lexical),
    ("label-words", Column::LabelWords),
    ("word-votes", Column::WordVotes),
];

/// Where zero is not a low score but none: nothing in common, no votes.
const NONE_AT_ZERO: [Column; 3] = [Column::Votes, Column::LabelWords, Column::WordVotes];

/// What a view says of a label: its score, and its rank among the candidates of the text.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ViewSays {
    /// The view's own score.
    pub score: f32,
    /// The rank by it, from 1.
    pub rank: u32,
}

/// The views that score labels by some of these columns, by name, and which columns those are.
pub(crate) fn scoring_views(columns: &[Column]) -> Vec<(&'static str, usize)> {
    let place = |wanted| columns.iter().position(|&column| column == wanted);
    let found = SCORES.iter().filter_map(|&(name, column)| Some((name, place(column)?)));
    found.collect()
}

impl Candidates {
    /// What every view says of a label, by the view's name, where candidates are described by `columns`.
    pub fn opinions(&self, label: u32, columns: &[Column]) -> BTreeMap<&'static str, ViewSays> {
        let Ok(row) = self.labels.binary_search(&label) else { return BTreeMap::new() };
        let says = |(name, column): (&'static str, usize)| {
            let score = |row: usize| self.descriptors[row * columns.len() + column];
            let own = score(row);
            // A label without weights has no score either.
            let has_said =
                own.is_finite() && (own > 0.0 || !NONE_AT_ZERO.contains(&columns[column]));
            let n_above = (0..self.labels.len()).filter(|&other| score(other) > own).count();
            has_said.then_some((name, ViewSays { score: own, rank: n_above as u32 + 1 }))
        };
        scoring_views(columns).into_iter().filter_map(says).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_three_opinions_and_none_where_there_is_nothing_in_common() {
        let columns = [Column::Lexical, Column::LabelWords, Column::WordVotes];
        let candidates = Candidates {
            labels: vec![3, 8],
            found: vec![true; 2],
            descriptors: vec![-1.5, 0.0, 0.4, -2.0, 0.7, 0.1],
        };
        let says = |score, rank| ViewSays { score, rank };
        let first = candidates.opinions(3, &columns);
        let second = candidates.opinions(8, &columns);
        // Of weights, zero and less are scores as any other; of words in common, zero is none at all.
        assert_eq!(first, [("lexical", says(-1.5, 1)), ("word-votes", says(0.4, 1))].into());
        let all = [
            ("lexical", says(-2.0, 2)),
            ("label-words", says(0.7, 1)),
            ("word-votes", says(0.1, 2)),
        ];
        assert_eq!(second, all.into());
        assert_eq!(candidates.opinions(5, &columns), BTreeMap::new());
    }
}
