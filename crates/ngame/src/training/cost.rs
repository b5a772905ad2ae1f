//! What the stages after the encoder will take: the work of each, times the seconds that a unit of it
//! takes two cores, and the memory of all.
//!
//! The factors are what `make bench-scale` fits to runs of many sizes on one machine; docs/SCALE.md tells how
//! well, and [`super::machine_speed`] by how much this machine differs. Only going through texts is measured
//! by itself, because it differs most between encoders.

use serde::{Deserialize, Serialize};

use crate::classifier::Objective;
use crate::encoder::VectorType;
use crate::index::{IndexKind, choose};
use crate::lexical::Overlap;

/// Threads that the factors were measured on.
const THREADS: f64 = 2.0;

/// Seconds of a point and a label that meet in a step of the classifiers, by number of their vectors;
/// and where only the hardest few of them move, for triplets (`make bench-classifier`, on a slower machine;
/// brought to this one's by what the others differ by).
const CLASSIFIERS: f64 = 9.4e-12;
const TRIPLETS: f64 = 4.2e-12;

/// Seconds of a label in a step of the classifiers: its vector is waited for, however long it is.
const LABEL_MET: f64 = 2.04e-7;

/// Seconds of a feature of a point in the sparse view; of the point, by the logarithm of how many there are,
/// because they stand in memory in no order; of a feature of it in a cluster that it is an example for; of a
/// label that it is compared with in looking for hard negatives; and of a feature of a label, by the logarithm
/// of how many there are, for the tree of labels.
const WORDS: [f64; 5] = [7.12e-7, 2.07e-6, 3.58e-8, 1.26e-9, 3.4e-8];

/// Labels that take as long to compare with as going to a piece of a list of labels.
const PIECE: f64 = 100.0;

/// Seconds of a held-out point, whose candidates are described and boosted; and of a label or a point
/// that it is compared with.
const FUSION: [f64; 2] = [6.3e-3, 2.0e-9];

/// Seconds of a number of an indexed vector, and of the vector however short it is: a search waits for memory.
/// Both times the logarithm of how many vectors there are.
const GRAPH: [f64; 2] = [1.82e-8, 3.21e-6];

/// Bytes of a run of these stages: of any; of a number of a vector; of a feature of a point and of one of a
/// label in the sparse view; of a held-out point in the fusion.
const MEMORY: [f64; 5] = [7.3e7, 20.4, 64.2, 176.5, 1.7e5];

/// Seconds of a test point, beside what its vector takes: 0.7 ms on packages, 1.1 on pages of documentation.
const EVALUATION: f64 = 9e-4;

/// Seconds of the stages after the encoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaterStages {
    /// All texts to vectors.
    pub vectors: f64,
    /// Classifiers, for the fusion and on all points.
    pub classifiers: f64,
    /// The sparse view, twice as well.
    pub words: f64,
    /// The fusion.
    pub fusion: f64,
    /// The index.
    pub index: f64,
    /// The test points.
    pub evaluation: f64,
}

/// What the work depends on.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    /// Points of the training split.
    pub(super) n_train: usize,
    /// Those of them that are held out.
    pub(super) n_held_out: usize,
    pub(super) n_labels: usize,
    /// Pairs of training points and labels.
    pub(super) n_pairs: usize,
    pub(super) n_test: usize,
    pub(super) dim: usize,
    /// How classifiers are trained, and whether once more on all points.
    pub(super) objective: Objective,
    pub(super) refit: bool,
    /// Seconds that going through a text takes here.
    pub(super) text: f64,
    /// What points and labels have in common, where the sparse view is trained.
    pub(super) overlap: Option<Overlap>,
    pub(super) has_votes: bool,
    pub(super) threads: usize,
    /// How many times the seconds of the machine of the factors this one takes.
    pub(super) slowness: f64,
}

impl LaterStages {
    pub(super) fn of(sizes: &Sizes) -> Self {
        let Sizes { n_train, n_held_out, n_labels, n_test, dim, text, .. } = *sizes;
        let share = sizes.slowness * THREADS / sizes.threads.max(1) as f64;
        let vectors = text * (n_train + n_labels) as f64;
        // Without the points held out, then with them.
        let n_first = n_train.saturating_sub(n_held_out);
        let n_taught = if sizes.refit { n_first + n_train } else { n_first };
        let (n, l) = (n_train as f64, n_labels as f64);
        let words = |found: Overlap| {
            let [feature, point, cluster, compared, label] = WORDS;
            let of_feature = feature + cluster * found.clusters;
            let of_point = of_feature * found.features
                + point * n.max(1.0).log2()
                + compared * (found.compared + PIECE * found.listed);
            let of_label = label * found.features * l.max(1.0).log2();
            of_point * (n_first + n_train) as f64 + of_label * 2.0 * l
        };
        let fusion = FUSION[0] + FUSION[1] * (n + l);
        let of_points = if sizes.has_votes { graph(n_train, dim) } else { 0.0 };
        Self {
            vectors,
            classifiers: share * sizes.classifiers_of_a_point() * n_taught as f64,
            words: share * sizes.overlap.map_or(0.0, words),
            fusion: share * fusion * n_held_out as f64,
            index: share * (graph(n_labels, dim + 1) + of_points),
            evaluation: (text + share * EVALUATION) * n_test as f64,
        }
    }

    /// Seconds of all of them.
    pub fn sum(&self) -> f64 {
        let Self { vectors, classifiers, words, fusion, index, evaluation } = self;
        vectors + classifiers + words + fusion + index + evaluation
    }
}

/// Seconds of a graph of so many vectors, where they are worth one.
fn graph(n_vectors: usize, dim: usize) -> f64 {
    match choose(n_vectors, dim, VectorType::F16) {
        IndexKind::Hnsw => {
            let hops = n_vectors as f64 * (n_vectors as f64).log2();
            hops * (GRAPH[0] * dim as f64 + GRAPH[1])
        }
        IndexKind::Exact => 0.0,
    }
}

impl Sizes {
    /// Seconds that classifiers take of a point, all epochs together.
    fn classifiers_of_a_point(&self) -> f64 {
        let n_epochs = self.objective.n_epochs();
        let (factor, met, batch_size) = match &self.objective {
            Objective::OneVsAll(options) => (CLASSIFIERS, self.n_labels as f64, options.batch_size),
            Objective::Sampled(options) => {
                let met = self.labels_met(options.batch_size, options.n_sampled);
                (CLASSIFIERS, met, options.batch_size)
            }
            Objective::Triplet(options) => {
                (TRIPLETS, self.labels_met(options.batch_size, 0), options.batch_size)
            }
        };
        let of_label = factor * self.dim as f64 + LABEL_MET / batch_size.max(1) as f64;
        n_epochs as f64 * met * of_label
    }

    /// The labels that a step of the classifiers looks at: those of its points, each once, and those
    /// drawn, as far as there are any.
    fn labels_met(&self, batch_size: usize, n_sampled: usize) -> f64 {
        let n_labels = self.n_labels.max(1) as f64;
        let of_points = batch_size as f64 * self.n_pairs as f64 / self.n_train.max(1) as f64;
        let own = n_labels * -(-of_points / n_labels).exp_m1();
        (own + n_sampled as f64).min(n_labels)
    }

    /// Bytes that these stages take at most, all of them one after the other.
    pub(super) fn memory(&self) -> u64 {
        let (n, l) = (self.n_train as f64, self.n_labels as f64);
        let n_features = self.overlap.map_or(0.0, |found| found.features);
        let [fixed, number, of_point, of_label, held_out] = MEMORY;
        let vectors = fixed + number * (n + l) * self.dim as f64;
        let words = (of_point * n + of_label * l) * n_features;
        (vectors + words.max(held_out * self.n_held_out as f64)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier::{ClassifierTriplet, OneVsAll, Sampled};

    const OVERLAP: Overlap =
        Overlap { features: 16.0, compared: 4_000.0, listed: 32.0, clusters: 46.0 };

    fn sizes() -> Sizes {
        Sizes {
            n_train: 100_000,
            n_held_out: 10_000,
            n_labels: 50_000,
            n_pairs: 300_000,
            n_test: 20_000,
            dim: 384,
            objective: Objective::Sampled(Sampled { epochs: 10, ..Default::default() }),
            refit: true,
            text: 1e-3,
            overlap: Some(OVERLAP),
            has_votes: true,
            threads: 2,
            slowness: 1.0,
        }
    }

    #[test]
    fn a_step_meets_its_points_labels_once_and_no_more_than_there_are() {
        let met = sizes().labels_met(512, 2_048);
        // 1,536 labels of points are drawn from 50,000: few come twice.
        assert!((3_540.0..=3_584.0).contains(&met), "{met}");
        assert_eq!(Sizes { n_labels: 700, ..sizes() }.labels_met(512, 2_048), 700.0);
    }

    #[test]
    fn classifiers_take_what_their_objective_does() {
        let seconds =
            |objective, refit| LaterStages::of(&Sizes { objective, refit, ..sizes() }).classifiers;
        let triplet =
            |epochs| Objective::Triplet(ClassifierTriplet { epochs, ..Default::default() });
        let once = seconds(triplet(10), false);
        assert!((seconds(triplet(30), false) / once - 3.0).abs() < 1e-9);
        assert!((seconds(triplet(10), true) / once - 19.0 / 9.0).abs() < 1e-9, "90,000, then all");
        let sampled = seconds(Objective::Sampled(Sampled::default()), true);
        let one_vs_all = OneVsAll { epochs: Sampled::default().epochs, ..Default::default() };
        assert!(
            seconds(Objective::OneVsAll(one_vs_all), true) > 10.0 * sampled,
            "50,000 for 3,600"
        );
    }

    #[test]
    fn memory_grows_with_vectors_features_and_held_out_points() {
        let base = sizes().memory();
        assert!(base > 1 << 28, "{base}");
        for more in [
            Sizes { dim: 768, ..sizes() },
            Sizes { n_labels: 100_000, ..sizes() },
            Sizes { n_held_out: 20_000, ..sizes() },
        ] {
            assert!(more.memory() > base);
        }
        // Stages follow one another: here fusion needs more than the sparse view, with few held out less.
        let without_words = Sizes { overlap: None, ..sizes() };
        assert_eq!(without_words.memory(), base);
        let few = |sizes| Sizes { n_held_out: 100, ..sizes };
        assert!(few(without_words).memory() < few(sizes()).memory());
    }

    #[test]
    fn work_grows_with_what_it_depends_on_and_is_shared_by_threads() {
        let base = LaterStages::of(&sizes());
        let twice = Sizes { n_train: 200_000, n_pairs: 600_000, n_labels: 100_000, ..sizes() };
        let twice = LaterStages::of(&twice);
        assert!(twice.classifiers > 1.9 * base.classifiers && twice.words > 1.9 * base.words);
        assert!(twice.fusion < 1.5 * base.fusion, "it sees held-out points alone");
        for overlap in [
            Overlap { compared: 10.0 * OVERLAP.compared, ..OVERLAP },
            Overlap { features: 3.0 * OVERLAP.features, ..OVERLAP },
            Overlap { listed: 9.0 * OVERLAP.listed, ..OVERLAP },
            Overlap { clusters: 3.0 * OVERLAP.clusters, ..OVERLAP },
        ] {
            let more = LaterStages::of(&Sizes { overlap: Some(overlap), ..sizes() });
            assert!(more.words > 1.2 * base.words && more.words < 3.0 * base.words);
        }
        let four = LaterStages::of(&Sizes { threads: 4, ..sizes() });
        assert_eq!(four.fusion, base.fusion / 2.0);
        assert_eq!(four.vectors, base.vectors, "this was measured with the threads there are");
        let slow = LaterStages::of(&Sizes { slowness: 2.0, ..sizes() });
        assert_eq!(slow.fusion, 2.0 * base.fusion);
        assert_eq!([slow.words, slow.index], [2.0 * base.words, 2.0 * base.index]);
        assert_eq!(slow.vectors, base.vectors, "and so was the machine");
        assert_eq!(LaterStages::of(&Sizes { overlap: None, ..sizes() }).words, 0.0);
        let few = |has_votes| Sizes { n_labels: 20_000, has_votes, ..sizes() };
        assert_eq!(LaterStages::of(&few(false)).index, 0.0);
        let voting = LaterStages::of(&few(true));
        assert!(base.index > voting.index && voting.index > 0.0);
    }
}
