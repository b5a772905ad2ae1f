//! Which true labels a model misses, and at which stage it loses them.
//!
//! A true label of a point is missed if it is not among the first k predictions. Then one of three
//! things happened: training never saw the label; no view proposed it; or it was proposed and the
//! fusion ranked it too low. Of the labels that are right, each view is asked whether it would have
//! found them by itself: what carries the answers, and what could be left out.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Result;
use crate::data::Csr;
use crate::evaluation::Aligned;
use crate::metrics::LabelGroups;
use crate::prediction::{Predicted, PredictionOptions, Predictor};
use crate::progress::{Observer, StopOnly};
use crate::views::{Candidates, Column, Queries, ViewSays, scoring_views};

/// Where a true label was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Stage {
    /// No training point has it, or the model does not know it at all.
    #[serde(rename = "label never seen in training")]
    NeverSeen,
    /// No view proposed it.
    #[serde(rename = "not in any shortlist")]
    NotProposed,
    /// It was proposed, and ranked behind others.
    #[serde(rename = "in a shortlist but ranked low")]
    RankedLow,
}

impl Stage {
    /// All stages.
    pub const ALL: [Self; 3] = [Self::NeverSeen, Self::NotProposed, Self::RankedLow];

    /// What it is called in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::NeverSeen => "label never seen in training",
            Self::NotProposed => "not in any shortlist",
            Self::RankedLow => "in a shortlist but ranked low",
        }
    }
}

/// A true label that was missed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Miss {
    /// The point, by its position.
    pub point: u32,
    /// The label, by its number in the model; those that it does not know come behind.
    pub label: u32,
    /// Where it was lost.
    pub stage: Stage,
    /// Its rank in the prediction, from 1, if it is there at all.
    pub rank: Option<u32>,
    /// What each view says, by its name; a view that has nothing to say is not there.
    pub views: BTreeMap<&'static str, ViewSays>,
    /// The label's training points.
    pub training_points: u32,
    /// Head, torso, tail or unseen.
    pub band: String,
    /// The label that was predicted first instead, if there is one.
    pub first: Option<u32>,
}

/// What a view would have done alone, among the candidates of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ViewCarried {
    /// Right labels that are among its own first k.
    pub right: u64,
    /// Those that are among the first k of no other view.
    pub alone: u64,
    /// Missed labels that are among its own first k.
    pub missed: u64,
}

/// All misses, and their numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorAnalysis {
    /// How many predictions a point has.
    pub k: usize,
    /// True pairs.
    pub n_true: u64,
    /// Those that are among the predictions.
    pub n_right: u64,
    /// Right ones that no view has among its first k: the fusion alone found them.
    pub n_fused_alone: u64,
    /// Head, torso, tail, unseen.
    pub bands: Vec<String>,
    /// Misses by stage, as in [`Stage::ALL`], and band.
    pub by_stage: [Vec<u64>; 3],
    /// What each view carried, by its name.
    pub views: BTreeMap<&'static str, ViewCarried>,
    /// The misses themselves, by point and label.
    #[serde(skip)]
    pub misses: Vec<Miss>,
}

/// Looks for the true labels that a model's first `k` predictions miss.
pub fn analyse_errors(
    predictor: &Predictor,
    points: &Aligned<'_>,
    k: usize,
    observer: &dyn Observer,
) -> Result<ErrorAnalysis> {
    let model = predictor.model();
    let n_known = model.labels.texts.len();
    let mut counts = model.views.counts.clone();
    counts.resize(n_known + points.n_unknown, 0);
    let groups = LabelGroups::by_training_count(&counts);
    let mut found = Found::new(k, &model.fusion.columns, &counts, &groups);
    let texts = points.texts();
    let all = PredictionOptions { top: usize::MAX, threshold: 0.0 };
    let quiet = StopOnly(observer);
    let mut begin = 0;
    predictor.for_each_window(texts, Some(points.filter()), observer, &mut |vectors, window| {
        let rows: Vec<u32> = (begin as u32..(begin + window.len()) as u32).collect();
        let truth = points.truth().select(&rows);
        let mut known = Csr::new(n_known as u32);
        for row in truth.rows() {
            let n = row.partition_point(|&label| (label as usize) < n_known);
            known.push_row(&row[..n]);
        }
        // True labels that no view proposed are described too, so that one sees how far off they are.
        let queries = Queries {
            texts: &texts.select(&rows),
            vectors,
            extra: Some(&known),
            excluded: Some(&points.filter().select(&rows)),
            absent: None,
        };
        let fusion = &model.fusion;
        let described =
            model.views.candidates(queries, fusion.shortlists, &fusion.columns, &quiet)?;
        for (row, (proposed, described)) in window.iter().zip(&described).enumerate() {
            let point = begin + row;
            let ranked = predictor.rank(texts.get(point), proposed, all);
            found.add(point as u32, truth.row(row), &ranked, described);
        }
        begin += window.len();
        Ok(())
    })?;
    Ok(found.analysis)
}

/// What was found so far.
struct Found<'a> {
    analysis: ErrorAnalysis,
    columns: &'a [Column],
    counts: &'a [u32],
    groups: &'a LabelGroups,
}

impl<'a> Found<'a> {
    fn new(k: usize, columns: &'a [Column], counts: &'a [u32], groups: &'a LabelGroups) -> Self {
        let views = scoring_views(columns).into_iter();
        let no_misses = || vec![0; groups.names.len()];
        let analysis = ErrorAnalysis {
            k,
            n_true: 0,
            n_right: 0,
            n_fused_alone: 0,
            bands: groups.names.clone(),
            by_stage: [no_misses(), no_misses(), no_misses()],
            views: views.map(|(name, _)| (name, ViewCarried::default())).collect(),
            misses: Vec::new(),
        };
        Self { analysis, columns, counts, groups }
    }

    /// Adds a point: its true labels, all its predictions, and its candidates with the true ones among
    /// them.
    fn add(&mut self, point: u32, truth: &[u32], ranked: &[Predicted], described: &Candidates) {
        for &label in truth {
            let rank = ranked.iter().position(|found| found.label == label);
            let views = described.opinions(label, self.columns);
            let is_right = rank.is_some_and(|rank| rank < self.analysis.k);
            self.count(&views, is_right);
            if is_right {
                continue;
            }
            let training_points = self.counts[label as usize];
            let stage = match (training_points, rank) {
                (0, _) => Stage::NeverSeen,
                (_, None) => Stage::NotProposed,
                (_, Some(_)) => Stage::RankedLow,
            };
            let band = usize::from(self.groups.group_of[label as usize]);
            self.analysis.by_stage[stage as usize][band] += 1;
            self.analysis.misses.push(Miss {
                point,
                label,
                stage,
                rank: rank.map(|rank| rank as u32 + 1),
                views,
                training_points,
                band: self.groups.names[band].clone(),
                first: ranked.first().map(|found| found.label),
            });
        }
    }

    fn count(&mut self, views: &BTreeMap<&'static str, ViewSays>, is_right: bool) {
        let analysis = &mut self.analysis;
        analysis.n_true += 1;
        analysis.n_right += u64::from(is_right);
        let high = |says: &ViewSays| says.rank as usize <= analysis.k;
        let n_high = views.values().filter(|says| high(says)).count();
        analysis.n_fused_alone += u64::from(is_right && n_high == 0);
        for (name, _) in views.iter().filter(|(_, says)| high(says)) {
            let carried = analysis.views.entry(name).or_default();
            if is_right {
                carried.right += 1;
                carried.alone += u64::from(n_high == 1);
            } else {
                carried.missed += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [Column::Embedding, Column::Frequency, Column::Votes];

    #[test]
    fn misses_are_sorted_by_where_they_were_lost() {
        // Labels 0 to 4: frequent, rare, rare, never seen, and one the model does not know.
        let counts = [200, 5, 12, 0, 0];
        let groups = LabelGroups::by_training_count(&counts);
        let mut found = Found::new(1, &COLUMNS, &counts, &groups);
        let described = Candidates {
            labels: vec![0, 1, 2, 3],
            found: vec![true, true, false, true],
            descriptors: vec![0.9, 0.0, 2.0, 0.95, 0.0, 0.0, 0.1, 0.0, 0.0, 0.2, 0.0, f32::NAN],
        };
        let predicted = |label, score| Predicted { label, score };
        let ranked = [predicted(0, 0.8), predicted(1, 0.4), predicted(3, 0.1)];
        found.add(7, &[0, 1, 2, 3, 4], &ranked, &described);
        let ErrorAnalysis { n_true, n_right, misses, by_stage, views, n_fused_alone, .. } =
            found.analysis;
        assert_eq!((n_true, n_right, n_fused_alone), (5, 1, 0));
        let seen: Vec<(u32, Stage, Option<u32>, &str)> =
            misses.iter().map(|m| (m.label, m.stage, m.rank, m.band.as_str())).collect();
        assert_eq!(
            seen,
            [
                (1, Stage::RankedLow, Some(2), "tail"),
                (2, Stage::NotProposed, None, "torso"),
                (3, Stage::NeverSeen, Some(3), "unseen"),
                (4, Stage::NeverSeen, None, "unseen"),
            ]
        );
        assert_eq!(by_stage, [vec![0, 0, 0, 2], vec![0, 1, 0, 0], vec![0, 0, 1, 0]]);
        // The votes alone carried label 0; the embedding would have had label 1.
        let carried = |right, alone, missed| ViewCarried { right, alone, missed };
        assert_eq!(views["votes"], carried(1, 1, 0));
        assert_eq!(views["embedding"], carried(0, 0, 1));
        assert_eq!(misses[0].views["embedding"], ViewSays { score: 0.95, rank: 1 });
        // Nobody voted for label 1; nothing is known of a label that the model does not have.
        assert!(!misses[0].views.contains_key("votes") && misses[3].views.is_empty());
        assert_eq!((misses[0].first, misses[0].point), (Some(0), 7));
    }
}
