//! The sparse view of a text: which labels its words speak for.

use std::borrow::Cow;

use half::bf16;

use super::clusters::{Clusters, agreement};
use super::features::Features;
use super::neighbours::Neighbours;
use super::options::LexicalOptions;
use super::postings::{LexicalRoom, Postings};
use super::train::train;
use super::tree::LabelTree;
use crate::Result;
use crate::data::{Csr, Texts};
use crate::progress::Observer;

/// A sparse weight vector and a bias for every label, over words, their beginnings, and pairs of words.
///
/// The score of a label is its bias plus its weights times the text's vector: near 1 or above where the
/// label is sure, near -1 where nothing speaks for it.
#[derive(Debug)]
pub struct Lexical {
    pub(super) features: Features,
    pub(super) postings: Postings,
    pub(super) biases: Vec<f32>, // (labels)
    pub(super) clusters: Clusters,
    pub(super) neighbours: Neighbours,
}

/// A text as a sparse vector of unit length.
#[derive(Clone, Debug, PartialEq)]
pub struct LexicalQuery {
    /// Ascending by feature.
    pub(super) vector: Vec<(u32, f32)>,
    coverage: f32,
}

impl LexicalQuery {
    /// The features the text has and their weights, ascending by feature.
    pub fn vector(&self) -> &[(u32, f32)] {
        &self.vector
    }

    /// The share of the text's features that training saw: a text of new words is a text to be careful
    /// with.
    pub fn coverage(&self) -> f32 {
        self.coverage
    }
}

/// Everything a [`Lexical`] is made of, as plain arrays: what a file holds.
#[derive(Clone, Debug, PartialEq)]
pub struct LexicalParts<'a> {
    /// The features' names.
    pub features: Cow<'a, Texts>,
    /// By feature, how much it tells.
    pub inverse_frequencies: Cow<'a, [f32]>,
    /// The weights of labels.
    pub labels: PostingParts<'a>,
    /// By label, its bias.
    pub biases: Cow<'a, [f32]>,
    /// The tree of labels: labels first, then clusters, what each hangs on; labels count from 0,
    /// clusters from the number of labels on, and `u32::MAX` is the root.
    pub parents: Cow<'a, [u32]>, // (labels + clusters)
    /// The weights of clusters.
    pub clusters: PostingParts<'a>,
    /// By cluster, its bias.
    pub cluster_biases: Cow<'a, [f32]>,
    /// The words of the labels' own texts.
    pub label_texts: PostingParts<'a>,
    /// The words of the training points.
    pub points: PostingParts<'a>,
    /// The labels of the training points: points × labels.
    pub truth: Cow<'a, Csr>,
}

/// Weights by feature, as plain arrays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PostingParts<'a> {
    /// Where those of every feature begin, and the end of the last.
    pub offsets: Cow<'a, [u64]>, // (features + 1)
    /// What has a weight, feature by feature, ascending: numbers of labels, clusters or points.
    pub numbers: Cow<'a, [u32]>,
    /// Their weights.
    pub weights: Cow<'a, [bf16]>,
}

impl PostingParts<'_> {
    /// No weight for any of so many features.
    pub fn none(n_features: usize) -> Self {
        Self { offsets: vec![0; n_features + 1].into(), ..Default::default() }
    }
}

impl<'a> From<&'a Postings> for PostingParts<'a> {
    fn from(postings: &'a Postings) -> Self {
        Self {
            offsets: (&postings.offsets).into(),
            numbers: (&postings.labels).into(),
            weights: (&postings.weights).into(),
        }
    }
}

impl From<PostingParts<'_>> for Postings {
    fn from(parts: PostingParts<'_>) -> Self {
        Self {
            offsets: parts.offsets.into_owned(),
            labels: parts.numbers.into_owned(),
            weights: parts.weights.into_owned(),
        }
    }
}

impl Lexical {
    /// Trains the weights of all labels on texts and which labels they have. Points are no negatives
    /// of the labels that `not_negative` pairs them with, as filter files do.
    ///
    /// # Panics
    /// If texts, labels and matrices differ in number.
    pub fn train(
        texts: &Texts,
        truth: &Csr, // (points, labels)
        label_texts: &Texts,
        not_negative: Option<&Csr>, // (points, labels)
        options: &LexicalOptions,
        observer: &dyn Observer,
    ) -> Result<Self> {
        assert_eq!(texts.len(), truth.n_rows(), "a row of labels for every text");
        assert_eq!(label_texts.len(), truth.n_columns() as usize, "a text for every label");
        if let Some(pairs) = not_negative {
            let shape = (pairs.n_rows(), pairs.n_columns());
            assert_eq!(shape, (truth.n_rows(), truth.n_columns()), "matrices of one shape");
        }
        let (features, postings, biases, clusters, neighbours) =
            train(texts, truth, label_texts, not_negative, options, observer)?;
        Ok(Self { features, postings, biases, clusters, neighbours })
    }

    /// A text as a sparse vector; words that training did not see are passed over.
    pub fn query(&self, text: &str) -> LexicalQuery {
        let splitter = &mut self.features.splitter();
        let (vector, coverage) = self.features.vector_and_coverage(text, splitter);
        LexicalQuery { vector, coverage }
    }

    /// The best `k` labels for a text, best first; exact. Only labels that share a feature with the
    /// text are among them, so there may be fewer.
    pub fn search(
        &self,
        query: &LexicalQuery,
        k: usize,
        room: &mut LexicalRoom,
    ) -> Vec<(u32, f32)> {
        self.search_among(query, 0..self.n_labels() as u32, k, room)
    }

    /// Writes the scores of given labels, which ascend, into `out`; where nothing matches, the score
    /// is the label's bias.
    ///
    /// # Panics
    /// If there is no such label, or not one place in `out` for every label.
    pub fn scores(&self, query: &LexicalQuery, labels: &[u32], out: &mut [f32]) {
        assert_eq!(labels.len(), out.len(), "a place for every label");
        debug_assert!(labels.is_sorted(), "labels ascend");
        self.postings.sums(&query.vector, labels, out);
        for (&label, score) in labels.iter().zip(out) {
            *score += self.biases[label as usize];
        }
    }

    /// By label, what the clusters it lies in say together: 0 where all are sure that the text has one
    /// of their labels, the lower the less they are.
    pub fn cluster_scores(&self, query: &LexicalQuery, labels: &[u32]) -> Vec<f32> {
        let agreements = self.clusters.agreements(&query.vector);
        let score = |&label: &u32| {
            self.clusters.tree.cluster_of(label).map_or(0.0, |cluster| agreements[cluster])
        };
        labels.iter().map(score).collect()
    }

    /// What a label's own score and that of its clusters say together.
    pub fn path_score(own: f32, clusters: f32) -> f32 {
        clusters + agreement(own)
    }

    /// Writes how alike the text and the own texts of given labels, which ascend, are: cosines of their
    /// words.
    ///
    /// # Panics
    /// If there is not one place in `out` for every label.
    pub fn label_cosines(&self, query: &LexicalQuery, labels: &[u32], out: &mut [f32]) {
        assert_eq!(labels.len(), out.len(), "a place for every label");
        self.neighbours.labels.sums(&query.vector, labels, out);
    }

    /// The `k` training points that have most in common with the text, nearest first, and the cosine of
    /// each.
    pub fn nearest_points(
        &self,
        query: &LexicalQuery,
        k: usize,
        room: &mut LexicalRoom,
    ) -> Vec<(u32, f32)> {
        self.neighbours.nearest(&query.vector, k, room)
    }

    /// The labels of the training points: points × labels. Views that were trained before points were kept
    /// have no points.
    pub fn point_labels(&self) -> &Csr {
        &self.neighbours.truth
    }

    /// How many labels there are.
    pub fn n_labels(&self) -> usize {
        self.biases.len()
    }

    /// How many features there are.
    pub fn n_features(&self) -> usize {
        self.features.len()
    }

    /// How many weights all labels have together.
    pub fn n_weights(&self) -> usize {
        self.postings.labels.len()
    }

    /// What it is made of, to be saved.
    pub fn parts(&self) -> LexicalParts<'_> {
        LexicalParts {
            features: Cow::Borrowed(self.features.names()),
            inverse_frequencies: self.features.inverse_frequencies().into(),
            labels: (&self.postings).into(),
            biases: (&self.biases).into(),
            parents: self.clusters.tree.parents().into(),
            clusters: (&self.clusters.postings).into(),
            cluster_biases: (&self.clusters.biases).into(),
            label_texts: (&self.neighbours.labels).into(),
            points: (&self.neighbours.points).into(),
            truth: Cow::Borrowed(&self.neighbours.truth),
        }
    }

    /// Puts saved parts together again. Parts that do not fit one another are refused with what is
    /// wrong, so nothing read from a file can make a search panic.
    pub fn from_parts(parts: LexicalParts<'_>) -> Result<Self, String> {
        let features =
            Features::from_parts(&parts.features, parts.inverse_frequencies.into_owned())?;
        let postings = Postings::from(parts.labels);
        let biases = parts.biases.into_owned();
        postings.check(features.len(), biases.len())?;
        let cluster_biases = parts.cluster_biases.into_owned();
        if !biases.iter().chain(&cluster_biases).all(|bias| bias.is_finite()) {
            return Err("the bias of a label is not a finite number".to_owned());
        }
        let tree = LabelTree::from_parents(biases.len(), parts.parents.into_owned())?;
        let (n_clusters, n_biases) = (tree.n_clusters(), cluster_biases.len());
        if n_clusters != n_biases {
            return Err(format!("{n_clusters} clusters, but biases of {n_biases}"));
        }
        let cluster_postings = Postings::from(parts.clusters);
        cluster_postings.check(features.len(), n_clusters)?;
        let clusters = Clusters { tree, postings: cluster_postings, biases: cluster_biases };
        let neighbours = Neighbours {
            labels: parts.label_texts.into(),
            points: parts.points.into(),
            truth: parts.truth.into_owned(),
        };
        neighbours.check(features.len(), biases.len())?;
        Ok(Self { features, postings, biases, clusters, neighbours })
    }
}
