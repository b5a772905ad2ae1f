//! How the sparse view is trained: what can be chosen, and what was found best.

use crate::{Error, Result};

/// How the sparse view is trained. The defaults were chosen on points held out of training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LexicalOptions {
    /// How many texts must have a feature for it to count: what one text alone has cannot tell
    /// another text anything.
    pub least_texts: u32,
    /// Whether the beginnings of long words are features too: where words change with their place in a
    /// sentence, as in German, they find much that whole words miss.
    pub beginnings: bool,
    /// The most features there may be; the most frequent stay.
    pub most_features: usize,
    /// What an error on a point costs, against long weight vectors: the higher, the closer to the
    /// training points.
    pub cost: f32,
    /// How often hard negatives are sought: first by the labels' mean texts, then by the weights
    /// trained so far. Weights meet in the second round what they wrongly rank high.
    pub rounds: usize,
    /// For how many labels, at most, a point becomes a hard negative in a round.
    pub n_hard: usize,
    /// Among how many labels of a feature, at most, hard negatives are sought: those for which it weighs
    /// most. Of a word that half of the labels have, the others would take most of the time and decide
    /// nothing.
    pub most_labels: usize,
    /// What all the points that are not close to a label count against it, as a multiple of `cost`:
    /// feature by feature those that have it, and all of them against the bias.
    pub background: f32,
    /// How much the labels' mean texts count beside the trained weights. Weights decide who comes
    /// first; mean texts order the many behind, of which training says little.
    pub mean: f32,
    /// The power of a label's number of points by which its mean text counts: 0 treats labels alike,
    /// 1 favours frequent labels as votes of similar points do.
    pub mean_power: f32,
    /// What the label's own text counts as one of its points, in training and in its mean text; 0
    /// leaves it out.
    pub label_text: f32,
    /// The most labels of a smallest cluster.
    pub cluster_size: usize,
    /// The most clusters that a cluster is divided into at once.
    pub branches: usize,
    /// Weights of clusters below this are dropped.
    pub least_cluster_weight: f32,
    /// Weights below this are dropped: they are many, and change no answer.
    pub least_weight: f32,
    /// The most weights of a label.
    pub most_weights: usize,
    /// The most passes over the examples of a label.
    pub most_passes: usize,
    /// How exactly a label's weights are solved for.
    pub tolerance: f32,
    /// Where random choices come from.
    pub seed: u64,
}

impl Default for LexicalOptions {
    fn default() -> Self {
        Self {
            least_texts: 2,
            beginnings: true,
            most_features: 2_000_000,
            cost: 1.0,
            rounds: 2,
            n_hard: 60,
            most_labels: 1000,
            background: 1.0,
            mean: 0.5,
            mean_power: 0.2,
            label_text: 0.5,
            cluster_size: 100,
            branches: 32,
            least_cluster_weight: 0.05,
            least_weight: 0.04,
            most_weights: 1000,
            most_passes: 10,
            tolerance: 0.1,
            seed: 0,
        }
    }
}

impl LexicalOptions {
    /// Refuses what training could not do anything with.
    pub(super) fn check(&self) -> Result<()> {
        let numbers = [
            ("cost", self.cost, f32::MIN_POSITIVE),
            ("background", self.background, 0.0),
            ("mean", self.mean, 0.0),
            ("mean_power", self.mean_power, 0.0),
            ("label_text", self.label_text, 0.0),
            ("least_cluster_weight", self.least_cluster_weight, 0.0),
            ("least_weight", self.least_weight, 0.0),
            ("tolerance", self.tolerance, f32::MIN_POSITIVE),
        ];
        for (name, value, least) in numbers {
            if !(value >= least && value <= 1e6) {
                let above = if least > 0.0 { "above 0" } else { "of 0 or more" };
                return Err(Error::Setting {
                    setting: format!("lexical.{name}"),
                    problem: format!("expected a number {above}, found {value}"),
                });
            }
        }
        let counts = [
            ("rounds", 1, self.rounds),
            ("most_features", 1, self.most_features),
            ("most_labels", 1, self.most_labels),
            ("cluster_size", 1, self.cluster_size),
            ("branches", 2, self.branches),
            ("most_weights", 1, self.most_weights),
            ("most_passes", 1, self.most_passes),
        ];
        match counts.into_iter().find(|&(_, least, count)| count < least) {
            None => Ok(()),
            Some((name, least, count)) => Err(Error::Setting {
                setting: format!("lexical.{name}"),
                problem: format!("expected a number of {least} or more, found {count}"),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senseless_options_are_refused_by_name() {
        LexicalOptions::default().check().unwrap();
        let refused = |options: LexicalOptions| options.check().unwrap_err().to_string();
        let options = LexicalOptions { cost: 0.0, ..Default::default() };
        assert_eq!(refused(options), "lexical.cost: expected a number above 0, found 0");
        let options = LexicalOptions { mean: f32::NAN, ..Default::default() };
        assert_eq!(refused(options), "lexical.mean: expected a number of 0 or more, found NaN");
        let options = LexicalOptions { rounds: 0, ..Default::default() };
        assert_eq!(refused(options), "lexical.rounds: expected a number of 1 or more, found 0");
    }
}
