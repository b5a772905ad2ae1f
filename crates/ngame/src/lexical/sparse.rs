//! Sparse vectors, row by row: texts as weighted features, labels as weights of features.

/// Sparse rows back to back.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SparseRows {
    /// Row `i` is at `offsets[i]..offsets[i + 1]` of the two others.
    offsets: Vec<u64>,
    /// Ascending in a row, each at most once.
    columns: Vec<u32>,
    weights: Vec<f32>,
}

/// One sparse row: columns that ascend, and their weights beside them.
pub(super) type Row<'a> = (&'a [u32], &'a [f32]);

impl SparseRows {
    /// No rows.
    pub(super) fn new() -> Self {
        Self { offsets: vec![0], columns: Vec::new(), weights: Vec::new() }
    }

    /// How many rows there are.
    pub(super) fn n_rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// A row.
    pub(super) fn row(&self, row: usize) -> Row<'_> {
        let range = self.offsets[row] as usize..self.offsets[row + 1] as usize;
        (&self.columns[range.clone()], &self.weights[range])
    }

    /// A row as pairs of column and weight.
    pub(super) fn entries(&self, row: usize) -> impl Iterator<Item = (u32, f32)> {
        let (columns, weights) = self.row(row);
        columns.iter().copied().zip(weights.iter().copied())
    }

    /// Adds a row, which ascends.
    pub(super) fn push(&mut self, row: &[(u32, f32)]) {
        debug_assert!(row.is_sorted_by(|a, b| a.0 < b.0), "columns ascend");
        self.columns.extend(row.iter().map(|&(column, _)| column));
        self.weights.extend(row.iter().map(|&(_, weight)| weight));
        self.offsets.push(self.columns.len() as u64);
    }

    /// Rows computed apart, in order.
    pub(super) fn join(parts: Vec<Self>) -> Self {
        let n_entries = parts.iter().map(|part| part.columns.len()).sum();
        let mut all = Self::new();
        all.columns.reserve_exact(n_entries);
        all.weights.reserve_exact(n_entries);
        all.offsets.reserve_exact(parts.iter().map(Self::n_rows).sum());
        for part in parts {
            let base = all.columns.len() as u64;
            all.columns.extend(part.columns);
            all.weights.extend(part.weights);
            all.offsets.extend(part.offsets[1..].iter().map(|offset| base + offset));
        }
        all
    }

    /// The same entries column by column: rows of the result are columns of this.
    pub(super) fn transpose(&self, n_columns: usize) -> Self {
        let mut offsets = vec![0u64; n_columns + 1];
        for &column in &self.columns {
            offsets[column as usize + 1] += 1;
        }
        for index in 1..offsets.len() {
            offsets[index] += offsets[index - 1];
        }
        let mut next = offsets.clone();
        let mut columns = vec![0; self.columns.len()];
        let mut weights = vec![0.0; self.columns.len()];
        for row in 0..self.n_rows() {
            let (row_columns, row_weights) = self.row(row);
            for (&column, &weight) in row_columns.iter().zip(row_weights) {
                let slot = &mut next[column as usize];
                columns[*slot as usize] = row as u32;
                weights[*slot as usize] = weight;
                *slot += 1;
            }
        }
        Self { offsets, columns, weights }
    }

    /// The arrays: offsets, columns, weights.
    pub(super) fn into_parts(self) -> (Vec<u64>, Vec<u32>, Vec<f32>) {
        (self.offsets, self.columns, self.weights)
    }
}

/// Adds up the weights of equal columns of entries in any order. The sort is stable, so weights add up
/// in the order they came, whatever the machine.
pub(super) fn merge(entries: &mut Vec<(u32, f32)>) {
    entries.sort_by_key(|&(column, _)| column);
    entries.dedup_by(|next, kept| {
        let equal = next.0 == kept.0;
        if equal {
            kept.1 += next.1;
        }
        equal
    });
}

/// Scales a vector to unit length; one without weights stays as it is.
pub(super) fn normalise(vector: &mut [(u32, f32)]) {
    let norm = vector.iter().map(|(_, weight)| weight * weight).sum::<f32>().sqrt();
    if norm > 0.0 {
        vector.iter_mut().for_each(|(_, weight)| *weight /= norm);
    }
}

/// Keeps the `n` entries of the greatest absolute weights that are at least `least`; of equal ones
/// those of the lower columns. The order of columns stays.
pub(super) fn prune(vector: &mut Vec<(u32, f32)>, n: usize, least: f32) {
    vector.retain(|(_, weight)| weight.abs() >= least);
    if vector.len() > n {
        let by_weight =
            |a: &(u32, f32), b: &(u32, f32)| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0));
        vector.select_nth_unstable_by(n, by_weight);
        vector.truncate(n);
        vector.sort_unstable_by_key(|&(column, _)| column);
    }
}
