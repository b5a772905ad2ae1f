//! What each view says of a candidate by itself.

use std::collections::BTreeMap;

use serde::Serialize;

use super::candidates::Candidates;
use super::descriptor::{Column, View};

/// The views that score labels, and where their scores stand.
const SCORES: [(View, Column); 4] = [
    (View::Embedding, Column::Embedding),
    (View::Classifier, Column::Classifier),
    (View::Votes, Column::Votes),
    (View::Lexical, Column::Lexical),
];

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
    let found = SCORES.iter().filter_map(|&(view, column)| Some((view.name(), place(column)?)));
    found.collect()
}

impl Candidates {
    /// What every view says of a label, by the view's name, where candidates are described by `columns`.
    pub fn opinions(&self, label: u32, columns: &[Column]) -> BTreeMap<&'static str, ViewSays> {
        let Ok(row) = self.labels.binary_search(&label) else { return BTreeMap::new() };
        let says = |(name, column): (&'static str, usize)| {
            let score = |row: usize| self.descriptors[row * columns.len() + column];
            let own = score(row);
            // No votes are no opinion, and so is a label without weights.
            let has_said = own.is_finite() && (name != View::Votes.name() || own > 0.0);
            let n_above = (0..self.labels.len()).filter(|&other| score(other) > own).count();
            has_said.then_some((name, ViewSays { score: own, rank: n_above as u32 + 1 }))
        };
        scoring_views(columns).into_iter().filter_map(says).collect()
    }
}
