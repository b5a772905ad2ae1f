//! The data set in memory: labels, and points in separate splits.

use std::borrow::Cow;

use super::csr::Csr;
use super::texts::Texts;

/// Texts and labels. Each split is a value of its own, so that what trains is handed the training
/// split and nothing else.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// What can be predicted.
    pub labels: Labels,
    /// The points to learn from.
    pub train: Split,
    /// The points to choose settings by, if the data set brings its own.
    pub valid: Option<Split>,
    /// The points to measure by, once.
    pub test: Option<Split>,
}

impl Dataset {
    /// How many labels there are.
    pub fn n_labels(&self) -> usize {
        self.labels.texts.len()
    }

    /// The splits there are, with their names.
    pub fn splits(&self) -> impl Iterator<Item = (&'static str, &Split)> {
        [("train", Some(&self.train)), ("valid", self.valid.as_ref()), ("test", self.test.as_ref())]
            .into_iter()
            .filter_map(|(name, split)| Some((name, split?)))
    }

    /// How many bytes the data set takes in memory.
    pub fn memory(&self) -> u64 {
        self.labels.ids.memory()
            + self.labels.texts.memory()
            + self.splits().map(|(_, split)| split.memory()).sum::<u64>()
    }
}

/// What can be predicted.
#[derive(Clone, Debug)]
pub struct Labels {
    /// The names users know the labels by.
    pub ids: Ids,
    /// The labels' texts; empty where a label has none.
    pub texts: Texts,
    /// How many words the labels' fields have.
    pub words: FieldWords,
}

impl Labels {
    /// The id of a label.
    pub fn id(&self, label: usize) -> Cow<'_, str> {
        self.ids.get(label, &self.texts)
    }
}

/// Some points: their texts, and which labels they have.
#[derive(Clone, Debug)]
pub struct Split {
    /// The names users know the points by.
    pub ids: Ids,
    /// The points' texts.
    pub texts: Texts,
    /// Which labels each point has: points × labels.
    pub by_point: Csr,
    /// Which points each label has: labels × points.
    pub by_label: Csr,
    /// Pairs that are removed from predictions before they are ranked: points × labels. Usually
    /// the label that is the point itself.
    pub filter: Csr,
    /// How many words the points' fields have.
    pub words: FieldWords,
    /// What was passed over while the rows were read.
    pub notes: RowNotes,
}

impl Split {
    /// How many points there are.
    pub fn n_points(&self) -> usize {
        self.texts.len()
    }

    /// The id of a point.
    pub fn id(&self, point: usize) -> Cow<'_, str> {
        self.ids.get(point, &self.texts)
    }

    /// The points at `points`, in that order.
    pub(crate) fn select(&self, points: &[u32]) -> Self {
        let by_point = self.by_point.select(points);
        Self {
            ids: self.ids.select(points),
            texts: self.texts.select(points),
            by_label: by_point.transpose(),
            by_point,
            filter: self.filter.select(points),
            words: self.words,
            notes: RowNotes::default(),
        }
    }

    fn memory(&self) -> u64 {
        self.ids.memory()
            + self.texts.memory()
            + self.by_point.memory()
            + self.by_label.memory()
            + self.filter.memory()
    }
}

/// How points or labels are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ids {
    /// By their position: the data has no ids.
    Position,
    /// By their text: labels that a user wrote out.
    SameAsText,
    /// By ids of their own.
    Own(Texts),
}

impl Ids {
    fn get<'a>(&'a self, index: usize, texts: &'a Texts) -> Cow<'a, str> {
        match self {
            Self::Position => Cow::Owned(index.to_string()),
            Self::SameAsText => Cow::Borrowed(texts.get(index)),
            Self::Own(ids) => Cow::Borrowed(ids.get(index)),
        }
    }

    fn select(&self, indices: &[u32]) -> Self {
        match self {
            Self::Position => Self::Position,
            Self::SameAsText => Self::SameAsText,
            Self::Own(ids) => Self::Own(ids.select(indices)),
        }
    }

    fn memory(&self) -> u64 {
        match self {
            Self::Position | Self::SameAsText => 0,
            Self::Own(ids) => ids.memory(),
        }
    }
}

/// How many words the rows of a file have, by field, whichever of the fields is used. Parts of a
/// split file keep the numbers of the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldWords {
    /// Rows counted.
    pub n_rows: usize,
    /// Words of titles.
    pub title: u64,
    /// Words of contents.
    pub content: u64,
}

impl FieldWords {
    pub(crate) fn add(&mut self, other: Self) {
        self.n_rows += other.n_rows;
        self.title += other.title;
        self.content += other.content;
    }
}

/// What a reader passed over, and counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowNotes {
    /// Labels that stood twice or more in one row; each counts once.
    pub repeated_labels: u64,
    /// Pairs whose relevance is zero or less; they are left out.
    pub irrelevant_pairs: u64,
}

impl RowNotes {
    pub(crate) fn add(&mut self, other: Self) {
        self.repeated_labels += other.repeated_labels;
        self.irrelevant_pairs += other.irrelevant_pairs;
    }
}
