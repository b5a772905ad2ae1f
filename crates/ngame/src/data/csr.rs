//! Sparse matrices, row by row: which labels a point has, and with what score.
//!
//! Rows are sorted by column and hold a column at most once, so membership is a binary search and
//! two matrices of the same pairs are equal.

/// A sparse 0/1 matrix in compressed rows: point × label, or its transpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Csr {
    n_columns: u32,
    /// Row `i` is `columns[offsets[i]..offsets[i + 1]]`.
    offsets: Vec<u64>,
    columns: Vec<u32>,
}

impl Csr {
    /// A matrix without rows.
    pub fn new(n_columns: u32) -> Self {
        Self { n_columns, offsets: vec![0], columns: Vec::new() }
    }

    /// A matrix of `n_rows` empty rows.
    pub fn empty(n_rows: usize, n_columns: u32) -> Self {
        Self { n_columns, offsets: vec![0; n_rows + 1], columns: Vec::new() }
    }

    /// A matrix of pairs (row, column) in any order; duplicates count once.
    ///
    /// # Panics
    /// If a pair lies outside the matrix.
    pub fn from_pairs(n_rows: usize, n_columns: u32, mut pairs: Vec<(u32, u32)>) -> Self {
        pairs.sort_unstable();
        pairs.dedup();
        let mut csr = Self::new(n_columns);
        let mut pairs = pairs.into_iter().peekable();
        for row in 0..n_rows as u64 {
            let begin = csr.columns.len();
            while let Some((_, column)) = pairs.next_if(|&(r, _)| u64::from(r) == row) {
                csr.columns.push(column);
            }
            csr.check_and_close_row(begin);
        }
        assert!(pairs.next().is_none(), "a pair lies beyond the last row");
        csr
    }

    /// Where each row begins and the last one ends, and the columns of all rows.
    pub(crate) fn parts(&self) -> (&[u64], &[u32]) {
        (&self.offsets, &self.columns)
    }

    /// The matrix of such parts; `None` if they do not fit together.
    pub(crate) fn from_parts(n_columns: u32, offsets: Vec<u64>, columns: Vec<u32>) -> Option<Self> {
        let fits = offsets.first() == Some(&0)
            && offsets.last() == Some(&(columns.len() as u64))
            && offsets.is_sorted();
        let csr = Self { n_columns, offsets, columns };
        let ascends = |row: &[u32]| {
            row.is_sorted_by(|a, b| a < b) && row.last().is_none_or(|&last| last < n_columns)
        };
        (fits && csr.rows().all(ascends)).then_some(csr)
    }

    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// How many columns there are.
    pub fn n_columns(&self) -> u32 {
        self.n_columns
    }

    /// How many pairs there are.
    pub fn n_pairs(&self) -> u64 {
        self.columns.len() as u64
    }

    /// The columns of a row, ascending.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> &[u32] {
        &self.columns[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }

    /// The rows in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[u32]> + Clone {
        (0..self.n_rows()).map(|row| self.row(row))
    }

    /// Whether the pair is in the matrix.
    pub fn contains(&self, row: usize, column: u32) -> bool {
        self.row(row).binary_search(&column).is_ok()
    }

    /// Adds a row given in any order; returns how many of its columns were repeats.
    ///
    /// # Panics
    /// If a column lies outside the matrix.
    pub fn push_row(&mut self, columns: &[u32]) -> usize {
        let begin = self.columns.len();
        self.columns.extend_from_slice(columns);
        let sorted = self.columns[begin..].is_sorted_by(|a, b| a < b);
        if !sorted {
            self.columns[begin..].sort_unstable();
            let mut kept = begin;
            for index in begin..self.columns.len() {
                if index == begin || self.columns[index] != self.columns[kept - 1] {
                    self.columns[kept] = self.columns[index];
                    kept += 1;
                }
            }
            self.columns.truncate(kept);
        }
        let repeats = columns.len() - (self.columns.len() - begin);
        self.check_and_close_row(begin);
        repeats
    }

    /// Adds all rows of `other`, which has the same columns.
    pub(crate) fn append(&mut self, other: &Self) {
        assert_eq!(self.n_columns, other.n_columns, "matrices of the same columns");
        let base = self.columns.len() as u64;
        self.columns.extend_from_slice(&other.columns);
        self.offsets.extend(other.offsets[1..].iter().map(|offset| base + offset));
    }

    /// How many pairs each column has.
    pub fn column_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.n_columns as usize];
        for &column in &self.columns {
            counts[column as usize] += 1;
        }
        counts
    }

    /// The same pairs the other way round, in O(rows + columns + pairs).
    ///
    /// # Panics
    /// If there are more than `u32::MAX` rows.
    pub fn transpose(&self) -> Self {
        let n_columns = u32::try_from(self.n_rows()).expect("rows are counted in u32");
        let mut offsets = vec![0u64; self.n_columns as usize + 1];
        for &column in &self.columns {
            offsets[column as usize + 1] += 1;
        }
        for index in 1..offsets.len() {
            offsets[index] += offsets[index - 1];
        }
        let mut next = offsets.clone();
        let mut columns = vec![0; self.columns.len()];
        for (row, row_columns) in self.rows().enumerate() {
            for &column in row_columns {
                let slot = &mut next[column as usize];
                columns[*slot as usize] = row as u32;
                *slot += 1;
            }
        }
        Self { n_columns, offsets, columns }
    }

    /// The rows at `rows`, in that order.
    pub fn select(&self, rows: &[u32]) -> Self {
        let mut selected = Self::new(self.n_columns);
        for &row in rows {
            selected.columns.extend_from_slice(self.row(row as usize));
            selected.offsets.push(selected.columns.len() as u64);
        }
        selected
    }

    /// Some of the columns, which ascend, numbered anew from 0; the others are gone.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn select_columns(&self, columns: &[u32]) -> Self {
        let mut number = vec![None; self.n_columns as usize];
        for (new, &old) in columns.iter().enumerate() {
            number[old as usize] = Some(new as u32);
        }
        let mut selected = Self::new(columns.len() as u32);
        for row in self.rows() {
            selected.columns.extend(row.iter().filter_map(|&column| number[column as usize]));
            selected.offsets.push(selected.columns.len() as u64);
        }
        selected
    }

    /// Declares further columns, all of them empty.
    pub fn widen(&mut self, n_columns: u32) {
        assert!(n_columns >= self.n_columns, "a matrix only grows wider");
        self.n_columns = n_columns;
    }

    /// Gives spare memory back once no more rows will come.
    pub fn shrink_to_fit(&mut self) {
        self.offsets.shrink_to_fit();
        self.columns.shrink_to_fit();
    }

    /// How many bytes the matrix takes in memory.
    pub fn memory(&self) -> u64 {
        (self.offsets.capacity() * size_of::<u64>() + self.columns.capacity() * size_of::<u32>())
            as u64
    }

    fn check_and_close_row(&mut self, begin: usize) {
        if let Some(&last) = self.columns[begin..].last() {
            assert!(last < self.n_columns, "column {last} lies outside the matrix");
        }
        self.offsets.push(self.columns.len() as u64);
    }
}

/// A sparse matrix of scores: the labels a system predicted for each point.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredCsr {
    pattern: Csr,
    /// Beside `pattern.columns`.
    scores: Vec<f32>,
}

impl ScoredCsr {
    /// A matrix without rows.
    pub fn new(n_columns: u32) -> Self {
        Self { pattern: Csr::new(n_columns), scores: Vec::new() }
    }

    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        self.pattern.n_rows()
    }

    /// How many columns there are.
    pub fn n_columns(&self) -> u32 {
        self.pattern.n_columns
    }

    /// Which pairs have a score.
    pub fn pattern(&self) -> &Csr {
        &self.pattern
    }

    /// The columns of a row, ascending, and their scores beside them.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> (&[u32], &[f32]) {
        let range = self.pattern.offsets[row] as usize..self.pattern.offsets[row + 1] as usize;
        (&self.pattern.columns[range.clone()], &self.scores[range])
    }

    /// Adds a row given in any order, which it sorts; of a repeated column the highest score
    /// stays. Returns how many repeats there were.
    ///
    /// # Panics
    /// If a column lies outside the matrix.
    pub fn push_row(&mut self, row: &mut Vec<(u32, f32)>) -> usize {
        let n_given = row.len();
        if !row.is_sorted_by(|a, b| a.0 < b.0) {
            row.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
            row.dedup_by_key(|&mut (column, _)| column);
        }
        let begin = self.scores.len();
        self.pattern.columns.extend(row.iter().map(|&(column, _)| column));
        self.scores.extend(row.iter().map(|&(_, score)| score));
        self.pattern.check_and_close_row(begin);
        n_given - row.len()
    }

    /// Drops all rows from `n_rows` on.
    pub(crate) fn truncate(&mut self, n_rows: usize) {
        self.pattern.offsets.truncate(n_rows + 1);
        let n_pairs = self.pattern.offsets.last().map_or(0, |&end| end as usize);
        self.pattern.columns.truncate(n_pairs);
        self.scores.truncate(n_pairs);
    }

    /// The same pairs without those `keep` refuses, given their scores; the scores go.
    pub(crate) fn into_pattern_where(self, keep: impl Fn(f32) -> bool) -> Csr {
        if self.scores.iter().all(|&score| keep(score)) {
            return self.pattern;
        }
        let mut kept = Csr::new(self.pattern.n_columns);
        for row in 0..self.n_rows() {
            let (columns, scores) = self.row(row);
            let pairs = columns.iter().zip(scores).filter(|&(_, &score)| keep(score));
            kept.columns.extend(pairs.map(|(&column, _)| column));
            kept.offsets.push(kept.columns.len() as u64);
        }
        kept
    }

    /// Adds all rows of `other`, which has the same columns.
    pub(crate) fn append(&mut self, other: &Self) {
        self.pattern.append(&other.pattern);
        self.scores.extend_from_slice(&other.scores);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows_are_sorted_and_repeats_counted() {
        let mut csr = Csr::new(10);
        assert_eq!(csr.push_row(&[7, 3, 7, 3, 3]), 3);
        assert_eq!(csr.push_row(&[]), 0);
        assert_eq!(csr.push_row(&[1, 2]), 0);
        assert_eq!(csr.rows().collect::<Vec<_>>(), [&[3, 7][..], &[], &[1, 2]]);
        assert!(csr.contains(0, 7) && !csr.contains(1, 7));
    }

    #[test]
    fn of_a_repeated_prediction_the_highest_score_stays() {
        let mut scored = ScoredCsr::new(10);
        assert_eq!(scored.push_row(&mut vec![(4, 0.1), (2, 0.5), (4, 0.9)]), 1);
        assert_eq!(scored.row(0), (&[2, 4][..], &[0.5, 0.9][..]));
    }

    #[test]
    #[should_panic(expected = "outside the matrix")]
    fn a_column_outside_the_matrix_is_a_programmers_mistake() {
        Csr::new(3).push_row(&[3]);
    }

    proptest! {
        #[test]
        fn transposing_twice_gives_the_same_matrix(
            rows in prop::collection::vec(prop::collection::vec(0u32..20, 0..8), 0..30)
        ) {
            let mut csr = Csr::new(20);
            let mut pairs = Vec::new();
            for (index, row) in rows.iter().enumerate() {
                csr.push_row(row);
                pairs.extend(row.iter().map(|&column| (index as u32, column)));
            }
            prop_assert_eq!(&csr, &Csr::from_pairs(rows.len(), 20, pairs));
            let transposed = csr.transpose();
            prop_assert_eq!(transposed.n_rows(), 20);
            for (label, points) in transposed.rows().enumerate() {
                for (point, row) in rows.iter().enumerate() {
                    prop_assert_eq!(
                        points.contains(&(point as u32)), row.contains(&(label as u32)));
                }
            }
            prop_assert_eq!(csr, transposed.transpose());
        }
    }

    #[test]
    fn parts_come_back_and_parts_that_do_not_fit_are_refused() {
        let csr = Csr::from_pairs(3, 4, vec![(0, 1), (0, 3), (2, 0)]);
        let (offsets, columns) = csr.parts();
        let again = |offsets: &[u64], columns: &[u32]| {
            Csr::from_parts(4, offsets.to_vec(), columns.to_vec())
        };
        assert_eq!(again(offsets, columns), Some(csr.clone()));
        for offsets in [&[][..], &[1, 2, 2, 3], &[0, 2, 1, 3], &[0, 2, 2, 4], &[0, 9, 2, 3]] {
            assert_eq!(again(offsets, columns), None, "{offsets:?}");
        }
        for columns in [[3, 1, 0], [1, 1, 0], [1, 3, 4]] {
            assert_eq!(again(offsets, &columns), None, "{columns:?}");
        }
    }
}
