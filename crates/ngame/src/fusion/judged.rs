//! What ways to score reach on points they have not seen, and which of them is best.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::examples::Examples;
use super::fused::Tried;
use crate::metrics::top_k;

/// What the ways are called that are one score alone.
pub(super) const EMBEDDING: &str = "embedding";
pub(super) const CLASSIFIER: &str = "classifier";

/// What a way to score is chosen by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aim {
    /// Right labels at the top, however frequent they are.
    Precision,
    /// Both.
    #[default]
    Balanced,
    /// Rare labels count more.
    Tail,
}

/// What scores reach among the labels that views proposed.
pub(super) fn judge(method: &str, examples: &Examples, scores: &[f32], weights: &[f64]) -> Tried {
    const K: usize = 5;
    // Hits, weighted hits, and the most that weighted hits could be, at 1 and at 5.
    let judged = (0..examples.n_points()).into_par_iter().map(|point| {
        let own = || examples.pairs(point).filter(|&pair| examples.is_true[pair]);
        let mut most: Vec<f64> =
            own().map(|pair| weights[examples.labels[pair] as usize]).collect();
        most.sort_unstable_by(|a, b| b.total_cmp(a));
        let found = || examples.pairs(point).filter(|&pair| examples.found[pair]);
        let labels: Vec<u32> = found().map(|pair| examples.labels[pair]).collect();
        let scores: Vec<f32> = found().map(|pair| scores[pair]).collect();
        let mut best = Vec::new();
        top_k(&labels, &scores, &[], K, &mut best);
        let hit = |label: u32| own().any(|pair| examples.labels[pair] == label);
        [1, K].map(|k| {
            let hits = best.iter().take(k).filter(|&&(label, _)| hit(label));
            let weighted: f64 = hits.clone().map(|&(label, _)| weights[label as usize]).sum();
            [hits.count() as f64, weighted, most.iter().take(k).sum()].map(|sum| sum / k as f64)
        })
    });
    let rows: Vec<[[f64; 3]; 2]> = judged.collect();
    let total = |k: usize, column: usize| rows.iter().map(|row| row[k][column]).sum::<f64>();
    let n = examples.n_points().max(1) as f64;
    Tried {
        method: method.to_owned(),
        precision_1: total(0, 0) / n,
        precision_5: total(1, 0) / n,
        psprecision_1: total(0, 1) / total(0, 2).max(1e-12),
        psprecision_5: total(1, 1) / total(1, 2).max(1e-12),
        chosen: false,
    }
}

impl Tried {
    /// What is to be as high as possible.
    fn value(&self, aim: Aim) -> f64 {
        let weighted = self.psprecision_1 + self.psprecision_5;
        match aim {
            Aim::Precision => self.plain(),
            Aim::Balanced => self.plain() + weighted,
            Aim::Tail => weighted,
        }
    }

    /// How many right labels are at the top.
    fn plain(&self) -> f64 {
        self.precision_1 + self.precision_5
    }
}

/// The way that the aim asks for, of those that put at least as many right labels at the top as either
/// score alone. Fewer would be too high a price for rare labels, unless these are all that is asked for.
pub(super) fn best(tried: &[Tried], aim: Aim) -> usize {
    let is_part = |way: &&Tried| [EMBEDDING, CLASSIFIER].contains(&way.method.as_str());
    let floor = match aim {
        Aim::Tail => f64::NEG_INFINITY,
        Aim::Precision | Aim::Balanced => {
            tried.iter().filter(is_part).map(Tried::plain).fold(f64::NEG_INFINITY, f64::max)
        }
    };
    let mut best = None;
    for (at, way) in tried.iter().enumerate().filter(|(_, way)| way.plain() >= floor) {
        let value = way.value(aim);
        // A later one is more complicated, so it has to be better, not as good.
        if best.is_none_or(|(_, most)| value > most) {
            best = Some((at, value));
        }
    }
    best.expect("the part that is the floor is one").0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(method: &str, plain: f64, weighted: f64) -> Tried {
        Tried {
            method: method.to_owned(),
            precision_1: plain,
            precision_5: 0.0,
            psprecision_1: weighted,
            psprecision_5: 0.0,
            chosen: false,
        }
    }

    #[test]
    fn a_fusion_behind_one_of_its_parts_is_chosen_for_rare_labels_only() {
        let mut tried =
            [way("embedding", 0.2, 0.4), way("classifier", 0.5, 0.2), way("boosted", 0.4, 0.5)];
        assert_eq!(best(&tried, Aim::Balanced), 1, "0.9 in all, but 0.4 is below 0.5");
        assert_eq!(best(&tried, Aim::Precision), 1);
        assert_eq!(best(&tried, Aim::Tail), 2);
        tried[2] = way("boosted", 0.5, 0.5);
        assert_eq!(best(&tried, Aim::Balanced), 2);
        assert_eq!(best(&tried, Aim::Precision), 1, "no better, and more complicated");
    }

    #[test]
    fn what_has_no_parts_is_chosen_by_what_it_reaches() {
        assert_eq!(best(&[way("tree", 0.3, 0.3), way("boosted", 0.2, 0.5)], Aim::Balanced), 1);
    }
}
