//! The numbers that describe a text and a label together.

use serde::{Deserialize, Serialize};

/// A side from which a text and a label are looked at. Each can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// How close the text is to the label's text.
    Embedding,
    /// What the label's classifier says.
    Classifier,
    /// How frequent the label is in training.
    Frequency,
    /// How many of the nearest training points have the label.
    Votes,
    /// What the words of the text say.
    Lexical,
}

impl View {
    /// All views.
    pub const ALL: [Self; 5] =
        [Self::Embedding, Self::Classifier, Self::Frequency, Self::Votes, Self::Lexical];

    /// The paper's.
    pub const PAPER: [Self; 3] = [Self::Embedding, Self::Classifier, Self::Frequency];

    /// Its name in settings and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Embedding => "embedding",
            Self::Classifier => "classifier",
            Self::Frequency => "frequency",
            Self::Votes => "votes",
            Self::Lexical => "lexical",
        }
    }

    /// The numbers it adds to a descriptor.
    pub fn columns(self) -> &'static [Column] {
        match self {
            Self::Embedding => &[Column::Embedding, Column::EmbeddingGap],
            Self::Classifier => &[Column::Classifier, Column::ClassifierGap],
            Self::Frequency => &[Column::Frequency],
            Self::Votes => &[
                Column::Votes,
                Column::VoteShare,
                Column::NearestPoint,
                Column::Familiarity,
                Column::Neighbourhood,
            ],
            Self::Lexical => &[
                Column::Lexical,
                Column::LexicalGap,
                Column::Clusters,
                Column::LexicalPath,
                Column::LexicalPathGap,
                Column::Coverage,
                Column::LabelWords,
                Column::WordVotes,
                Column::WordVoteShare,
                Column::WordNearestPoint,
                Column::WordFamiliarity,
            ],
        }
    }
}

/// One number of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Column {
    /// The inner product of the text's vector and that of the label's text.
    Embedding,
    /// How far that lies below the best candidate's.
    EmbeddingGap,
    /// The classifier's score.
    Classifier,
    /// How far that lies below the best candidate's.
    ClassifierGap,
    /// The logarithm of one more than the label's training points.
    Frequency,
    /// The votes of the nearest training points.
    Votes,
    /// Their share of all votes.
    VoteShare,
    /// The similarity of the nearest training point that has the label; missing where none of the
    /// nearest has it.
    NearestPoint,
    /// The similarity of the nearest training point, whatever its labels. It is the same for all labels
    /// of a text, and tells how far the other numbers are to be trusted: all views do better on texts
    /// like those they were trained on.
    Familiarity,
    /// The mean similarity of the nearest training points.
    Neighbourhood,
    /// The sparse classifier's score.
    Lexical,
    /// How far that lies below the best candidate's.
    LexicalGap,
    /// What the sparse classifiers of the clusters that the label lies in say together.
    Clusters,
    /// What those and the label's own say together: trees add poorly, so the sum is given to them.
    LexicalPath,
    /// How far that lies below the best candidate's.
    LexicalPathGap,
    /// The share of the text's features that training saw. As [`Self::Familiarity`], it
    /// is the same for all labels, and tells how far the others are to be trusted.
    Coverage,
    /// The cosine of the text's words and those of the label's own text.
    LabelWords,
    /// The votes of the training points with the most words in common.
    WordVotes,
    /// Their share of all such votes.
    WordVoteShare,
    /// The cosine of the nearest of those points that has the label; missing where none has it.
    WordNearestPoint,
    /// The cosine of the nearest of those points, whatever its labels.
    WordFamiliarity,
}
