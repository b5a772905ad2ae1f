//! Some of the labels by themselves: in another process, on another machine, or because memory is
//! short.

use std::ops::Range;

use super::classifiers::Classifiers;
use super::run::{ClassifierRun, Objective};
use crate::Result;
use crate::data::Csr;
use crate::encoder::VectorMatrix;
use crate::progress::Observer;

/// Trains the classifiers of a range of labels, as if there were no others;
/// [`Classifiers::join`] puts parts together.
///
/// One-vs-all does not notice: a label's question does not depend on other labels, and parts of any
/// sizes have the bytes of a run of all labels. The other objectives compare labels of a part only with
/// labels of that part.
///
/// # Panics
/// As [`ClassifierRun::new`], and if there are no such labels.
pub fn train_part(
    points: &VectorMatrix,
    truth: &Csr,
    not_negative: Option<&Csr>,
    labels: &VectorMatrix,
    range: Range<usize>,
    objective: &Objective,
    observer: &dyn Observer,
) -> Result<Classifiers> {
    let truth = columns(truth, &range);
    let not_negative = not_negative.map(|pairs| columns(pairs, &range));
    let labels = VectorMatrix::from_f32(labels.rows(range).to_vec(), labels.dim());
    ClassifierRun::new(points, &truth, not_negative.as_ref(), &labels, objective)
        .run_to_end(observer)
}

/// The pairs whose column lies in a range, counted from its start.
fn columns(pairs: &Csr, range: &Range<usize>) -> Csr {
    assert!(range.end <= pairs.n_columns() as usize, "labels that there are");
    let (begin, end) = (range.start as u32, range.end as u32);
    let mut part = Csr::new(end - begin);
    let mut kept = Vec::new();
    for row in pairs.rows() {
        let from = row.partition_point(|&column| column < begin);
        let to = row.partition_point(|&column| column < end);
        kept.clear();
        kept.extend(row[from..to].iter().map(|column| column - begin));
        part.push_row(&kept);
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier::OneVsAll;
    use crate::classifier::toy::circle;
    use crate::progress::Silent;

    #[test]
    fn labels_trained_apart_are_the_same_as_together() {
        let n_labels = 552;
        let toy = circle(900, n_labels).without_points_of(&[3, 4, 300]);
        let objective =
            Objective::OneVsAll(OneVsAll { epochs: 2, batch_size: 100, ..Default::default() });
        let train = |range| {
            let filter = Some(&toy.truth);
            train_part(&toy.points, &toy.truth, filter, &toy.labels, range, &objective, &Silent)
                .unwrap()
        };
        let together = train(0..n_labels);
        for cuts in [&[0, 256, 552][..], &[0, 1, 3, 17, 100, 311, 551, 552]] {
            let parts = cuts.windows(2).map(|cut| train(cut[0]..cut[1])).collect();
            assert_eq!(Classifiers::join(parts), together);
        }
    }

    #[test]
    fn columns_are_cut_out() {
        let pairs = Csr::from_pairs(3, 9, vec![(0, 1), (0, 4), (1, 8), (2, 3), (2, 5)]);
        let expected = Csr::from_pairs(3, 3, vec![(0, 1), (2, 0), (2, 2)]);
        assert_eq!(columns(&pairs, &(3..6)), expected);
    }
}
