//! Candidate labels of some texts, and the descriptor of each.

use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::descriptor::Column;
use super::votes::{Counted, Votes};
use crate::Result;
use crate::classifier::BIAS_UNIT;
use crate::data::{Csr, Texts};
use crate::encoder::VectorMatrix;
use crate::index::{AnyIndex, Index};
use crate::lexical::{Lexical, LexicalQuery, LexicalRoom};
use crate::progress::Observer;

/// All that is known of the labels.
pub struct Views {
    /// The vectors of the labels' texts: (labels, dim).
    pub embeddings: VectorMatrix,
    /// The labels' classifiers, each with its bias behind: (labels, dim + 1).
    pub classifiers: Arc<VectorMatrix>,
    /// What finds the classifiers that score highest.
    pub index: AnyIndex,
    /// The training points of every label.
    pub counts: Vec<u32>,
    /// The training points, if they vote.
    pub votes: Option<Votes>,
    /// What words say, if they are asked.
    pub lexical: Option<Lexical>,
}

/// Texts as the views see them: row `i` of everything is about text `i`.
#[derive(Clone, Copy, Debug)]
pub struct Queries<'a> {
    /// The texts themselves.
    pub texts: &'a Texts,
    /// Their vectors: (texts, dim).
    pub vectors: &'a VectorMatrix,
    /// Labels that are candidates whatever the views say.
    pub extra: Option<&'a Csr>,
    /// Labels that are none.
    pub excluded: Option<&'a Csr>,
    /// Labels that are none of any text: (labels).
    pub absent: Option<&'a [bool]>,
}

/// How many candidates each view proposes; where a setting names some, the others stay what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Shortlists {
    /// The labels whose classifiers score highest; none where classifiers take no part.
    pub classifier: usize,
    /// The nearest training points, all of whose labels are candidates.
    pub voters: usize,
    /// The labels whose words match best.
    pub lexical: usize,
}

impl Default for Shortlists {
    fn default() -> Self {
        Self { classifier: 100, voters: 30, lexical: 60 }
    }
}

/// The candidates of one text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidates {
    /// The labels, ascending.
    pub labels: Vec<u32>,
    /// Whether a view proposed the label; else it is there because it was asked for.
    pub found: Vec<bool>,
    /// The descriptor of each: (labels, columns).
    pub descriptors: Vec<f32>,
}

impl std::fmt::Debug for Views {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Views").field("n_labels", &self.counts.len()).finish_non_exhaustive()
    }
}

impl Views {
    /// Makes what single texts need, so that the first does not wait for it.
    pub fn prepare(&self) {
        self.index.prepare();
        if let Some(votes) = &self.votes {
            votes.index().prepare();
        }
    }

    /// The candidates of every text, described by these columns.
    pub fn candidates(
        &self,
        queries: Queries<'_>,
        shortlists: Shortlists,
        columns: &[Column],
        observer: &dyn Observer,
    ) -> Result<Vec<Candidates>> {
        let vectors = queries.vectors;
        let longer = with_bias_unit(vectors);
        let is_asked = shortlists.classifier > 0;
        let search = |index: &dyn Index| {
            is_asked
                .then(|| index.search_many(&longer, shortlists.classifier, observer))
                .transpose()
        };
        let by_classifier = search(&self.index)?;
        let added = match self.added() {
            Some(added) => search(&added)?,
            None => None,
        };
        let (n_trained, n_labels) = (self.n_trained() as u32, self.n_labels() as u32);
        let nearest = match &self.votes {
            Some(votes) => Some(votes.index().search_many(vectors, shortlists.voters, observer)?),
            None => None,
        };
        let room = || [(); 2].map(|()| LexicalRoom::default()); // Of labels, and of points.
        let described =
            (0..vectors.n_rows()).into_par_iter().map_init(room, |[room, of_points], query| {
                let mut votes = Counted::default();
                let mut similarities = &[][..];
                if let (Some(voters), Some(nearest)) = (&self.votes, &nearest) {
                    let points;
                    (points, similarities) = nearest.row(query);
                    votes = voters.count(points, similarities);
                }
                let row =
                    |pairs: Option<&'_ Csr>| pairs.map_or(Vec::new(), |p| p.row(query).to_vec());
                let found = by_classifier.as_ref().map(|found| found.row(query));
                let (first, scores) = found.unwrap_or_default();
                let mut proposed = first.to_vec();
                if let Some(added) = &added {
                    let (labels, others) = added.row(query);
                    let bar = bar(scores, shortlists.classifier);
                    let found = labels.iter().zip(others).filter(|&(_, &score)| score >= bar);
                    proposed.extend(found.map(|(label, _)| label));
                }
                proposed.extend(votes.labels());
                let words = self.lexical.as_ref().map(|lexical| {
                    let words = lexical.query(queries.texts.get(query));
                    let k = shortlists.lexical;
                    let found = lexical.search_among(&words, 0..n_trained, k, room);
                    proposed.extend(found.iter().map(|&(label, _)| label));
                    if n_trained < n_labels {
                        let scores: Vec<f32> = found.iter().map(|&(_, score)| score).collect();
                        let bar = bar(&scores, k);
                        let found = lexical.search_among(&words, n_trained..n_labels, k, room);
                        let high = found.iter().filter(|&&(_, score)| score >= bar);
                        proposed.extend(high.map(|&(label, _)| label));
                    }
                    let nearest = lexical.nearest_points(&words, shortlists.voters, of_points);
                    let votes = Counted::by_words(&nearest, lexical.point_labels());
                    (words, votes)
                });
                proposed.sort_unstable();
                proposed.dedup();
                let mut labels = row(queries.extra);
                labels.extend(&proposed);
                labels.sort_unstable();
                labels.dedup();
                let excluded = row(queries.excluded);
                let is_absent = |label: u32| queries.absent.is_some_and(|a| a[label as usize]);
                labels.retain(|label| excluded.binary_search(label).is_err() && !is_absent(*label));
                let found =
                    labels.iter().map(|label| proposed.binary_search(label).is_ok()).collect();
                let longer = longer.row(query).to_vec();
                let words = words.as_ref().map(|(words, votes)| (words, votes));
                let said = Said { votes: &votes, similarities, words };
                let descriptors = self.describe(&longer, &labels, said, columns);
                Candidates { labels, found, descriptors }
            });
        Ok(described.collect())
    }

    /// The descriptors of some labels for a text, given its vector with a [`BIAS_UNIT`] behind it.
    fn describe(
        &self,
        longer: &[f32],
        labels: &[u32],
        said: Said<'_>,
        columns: &[Column],
    ) -> Vec<f32> {
        let n_trained = labels.partition_point(|&label| (label as usize) < self.n_trained());
        let (trained, added) = labels.split_at(n_trained);
        let mut best = Best::default();
        let mut descriptors = self.describe_some(longer, trained, said, &mut best, columns);
        // Added labels are compared with all, and trained ones never with those: what is said of them
        // stays what it was.
        descriptors.extend(self.describe_some(longer, added, said, &mut best, columns));
        descriptors
    }

    fn describe_some(
        &self,
        longer: &[f32],
        labels: &[u32],
        said: Said<'_>,
        best: &mut Best,
        columns: &[Column],
    ) -> Vec<f32> {
        let n = labels.len();
        let (mut embedding, mut classifier) = (vec![0.0; n], vec![0.0; n]);
        let [mut lexical, mut clusters, mut own_words] = [(); 3].map(|()| vec![f32::NAN; n]);
        if let (Some(view), Some((words, _))) = (&self.lexical, said.words) {
            view.scores(words, labels, &mut lexical);
            clusters = view.cluster_scores(words, labels);
            view.label_cosines(words, labels, &mut own_words);
        }
        let path = |(own, above): (&f32, &f32)| Lexical::path_score(*own, *above);
        let paths: Vec<f32> = lexical.iter().zip(&clusters).map(path).collect();
        let vector = &longer[..longer.len() - 1];
        self.embeddings.as_rows().dots(labels, vector, &mut embedding);
        self.classifiers.as_rows().dots(labels, longer, &mut classifier);
        best.add(&embedding, &classifier, &lexical, &paths);
        let neighbourhood =
            said.similarities.iter().sum::<f32>() / said.similarities.len().max(1) as f32;
        let mut descriptors = Vec::with_capacity(n * columns.len());
        for (at, &label) in labels.iter().enumerate() {
            let vote = said.votes.get(label);
            let by_words = said.words.map(|(_, votes)| votes);
            let word_vote = by_words.and_then(|votes| votes.get(label));
            descriptors.extend(columns.iter().map(|column| match column {
                Column::Embedding => embedding[at],
                Column::EmbeddingGap => best.embedding - embedding[at],
                Column::Classifier => classifier[at],
                Column::ClassifierGap => best.classifier - classifier[at],
                Column::Frequency => (self.seen_as(label) as f32).ln_1p(),
                Column::Votes => vote.map_or(0.0, |vote| vote.sum),
                Column::VoteShare => vote.map_or(0.0, |vote| said.votes.share(vote)),
                Column::NearestPoint => vote.map_or(f32::NAN, |vote| vote.nearest),
                Column::Familiarity => said.votes.familiarity,
                Column::Neighbourhood => neighbourhood,
                Column::Lexical => lexical[at],
                Column::LexicalGap => best.lexical - lexical[at],
                Column::Clusters => clusters[at],
                Column::LexicalPath => paths[at],
                Column::LexicalPathGap => best.path - paths[at],
                Column::Coverage => said.words.map_or(f32::NAN, |(words, _)| words.coverage()),
                Column::LabelWords => own_words[at],
                Column::WordVotes => word_vote.map_or(0.0, |vote| vote.sum),
                Column::WordVoteShare => {
                    by_words.zip(word_vote).map_or(0.0, |(votes, vote)| votes.share(vote))
                }
                Column::WordNearestPoint => word_vote.map_or(f32::NAN, |vote| vote.nearest),
                Column::WordFamiliarity => {
                    by_words.map_or(f32::NAN, |votes| votes.familiarity.max(0.0))
                }
            }));
        }
        descriptors
    }
}

/// What an added label must score to be proposed: as much as it would need for a place in the shortlist
/// of the trained ones, if it took part. It takes nobody's place; but labels that score less are none
/// that the fusion has learnt about.
fn bar(scores: &[f32], k: usize) -> f32 {
    if scores.len() < k {
        return f32::NEG_INFINITY; // There is a place left.
    }
    scores.iter().copied().fold(f32::INFINITY, f32::min)
}

/// The highest scores of a text's candidates.
struct Best {
    embedding: f32,
    classifier: f32,
    lexical: f32,
    path: f32,
}

impl Default for Best {
    fn default() -> Self {
        let none = f32::NEG_INFINITY;
        Self { embedding: none, classifier: none, lexical: none, path: none }
    }
}

impl Best {
    fn add(&mut self, embedding: &[f32], classifier: &[f32], lexical: &[f32], paths: &[f32]) {
        self.embedding = highest(self.embedding, embedding);
        self.classifier = highest(self.classifier, classifier);
        self.lexical = highest(self.lexical, lexical);
        self.path = highest(self.path, paths);
    }
}

fn highest(so_far: f32, scores: &[f32]) -> f32 {
    scores.iter().copied().fold(so_far, f32::max)
}

/// What some views say of a text.
#[derive(Clone, Copy)]
struct Said<'a> {
    votes: &'a Counted,
    /// Of the nearest training points.
    similarities: &'a [f32],
    /// The text's words, and the votes of the points that are nearest by them.
    words: Option<(&'a LexicalQuery, &'a Counted)>,
}

/// Vectors with a [`BIAS_UNIT`] behind each, which meets the bias behind every classifier.
pub(crate) fn with_bias_unit(vectors: &VectorMatrix) -> VectorMatrix {
    let dim = vectors.dim();
    let mut longer = vec![BIAS_UNIT; vectors.n_rows() * (dim + 1)];
    for (row, longer) in longer.chunks_exact_mut(dim + 1).enumerate() {
        vectors.row(row).copy_to(&mut longer[..dim]);
    }
    VectorMatrix::from_f32(longer, dim + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::ExactIndex;
    use crate::lexical::LexicalOptions;
    use crate::progress::Silent;

    #[test]
    fn words_vote_and_call_labels_by_name() {
        let texts: Texts = ["red apple", "blue plum", "blue sky"].into_iter().collect();
        let labels: Texts = ["an apple", "plums", "sky"].into_iter().collect();
        let truth = Csr::from_pairs(3, 3, vec![(0, 0), (1, 1), (2, 2)]);
        let options = LexicalOptions { least_texts: 1, ..Default::default() };
        let lexical = Lexical::train(&texts, &truth, &labels, None, &options, &Silent).unwrap();
        let nothing = Arc::new(VectorMatrix::from_f32(vec![0.0; 6], 2));
        let views = Views {
            embeddings: VectorMatrix::from_f32(vec![1.0; 3], 1),
            index: AnyIndex::Exact(ExactIndex::new(Arc::clone(&nothing))),
            classifiers: nothing,
            counts: vec![1; 3],
            votes: None,
            lexical: Some(lexical),
        };
        let described = |text: &str, column| {
            let queries = Queries {
                texts: &[text].into_iter().collect(),
                vectors: &VectorMatrix::from_f32(vec![1.0], 1),
                extra: None,
                excluded: None,
                absent: None,
            };
            let found = views.candidates(queries, Shortlists::default(), &[column], &Silent);
            let found = found.unwrap().remove(0);
            assert_eq!(found.labels, [0, 1, 2]);
            found.descriptors
        };
        let names = described("the sky", Column::LabelWords);
        assert!(names[0] == 0.0 && names[1] == 0.0 && names[2] > 0.9, "{names:?}");
        let votes = described("blue plum", Column::WordVotes);
        assert!(votes[0] == 0.0 && votes[1] > 0.9 && votes[2] > 0.0, "{votes:?}");
        let shares = described("blue plum", Column::WordVoteShare);
        assert!((shares.iter().sum::<f32>() - 1.0).abs() < 1e-6 && shares[1] > 0.5, "{shares:?}");
        let nearest = described("blue plum", Column::WordNearestPoint);
        assert!(nearest[0].is_nan() && nearest[1..] == votes[1..], "{nearest:?}");
        assert_eq!(described("blue plum", Column::WordFamiliarity), [votes[1]; 3]);
        assert_eq!(described("unheard of", Column::WordFamiliarity), [0.0; 3]);
    }

    #[test]
    fn labels_that_are_absent_are_no_candidates_and_nothing_is_compared_with_them() {
        let classifiers = [0.9, 0.0, 0.5, 0.0, 0.2, 0.0]; // (3 labels, 1 number and a bias)
        let classifiers = Arc::new(VectorMatrix::from_f32(classifiers.to_vec(), 2));
        let views = Views {
            embeddings: VectorMatrix::from_f32(vec![1.0; 3], 1),
            index: AnyIndex::Exact(ExactIndex::new(Arc::clone(&classifiers))),
            classifiers,
            counts: vec![0, 2, 3],
            votes: None,
            lexical: None,
        };
        let found = |absent: Option<&[bool]>| {
            let queries = Queries {
                texts: &["a text"].into_iter().collect(),
                vectors: &VectorMatrix::from_f32(vec![1.0], 1),
                extra: Some(&Csr::from_pairs(1, 3, vec![(0, 0)])),
                excluded: None,
                absent,
            };
            let columns = [Column::ClassifierGap];
            let found = views.candidates(queries, Shortlists::default(), &columns, &Silent);
            found.unwrap().remove(0)
        };
        let all = found(None);
        assert_eq!((all.labels, all.descriptors[0]), (vec![0, 1, 2], 0.0));
        let rest = found(Some(&[true, false, false]));
        assert_eq!((rest.labels, rest.descriptors[0]), (vec![1, 2], 0.0));
    }
}
