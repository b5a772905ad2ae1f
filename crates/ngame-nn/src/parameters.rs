//! Weights, gradients and moments as parallel flat buffers, with one layout that names their parts.
//!
//! An encoder describes its tensors once, in a [`Layout`]. [`Parameters`] and [`Gradients`] are one
//! allocation each over that layout; so are the moments of the optimiser. Whatever has to touch
//! everything (the optimiser, the norm of the gradient, saving) walks the layout.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::layers::embedding::scatter_add;
use crate::memory::zeros;

/// One named tensor and its place in the flat buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its name, as the BERT family of `transformers` spells it.
    pub name: String,
    /// Its shape, rows first.
    pub shape: Vec<usize>,
    /// Where it begins in the flat buffers.
    pub start: usize,
    /// Whether weight decay shrinks it: matrices yes, biases and LayerNorm no.
    pub decay: bool,
    /// Whether a step touches few of its rows (an embedding table): then gradients are kept, and
    /// optimisers may update, by row.
    pub by_row: bool,
}

impl Tensor {
    /// The number of values.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has no values at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its place in the flat buffers.
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.len()
    }

    /// The values of one row.
    pub fn row_len(&self) -> usize {
        self.shape[1..].iter().product()
    }
}

/// The tensors of an encoder, in the order of the flat buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    tensors: Vec<Tensor>,
    len: usize,
}

impl Layout {
    /// Adds a tensor behind the others and returns its place.
    pub(crate) fn add(&mut self, name: String, shape: &[usize], kind: Kind) -> Range<usize> {
        let tensor = Tensor {
            name,
            shape: shape.to_vec(),
            start: self.len,
            decay: matches!(kind, Kind::Matrix | Kind::Table),
            by_row: matches!(kind, Kind::Table | Kind::RowScalars),
        };
        let range = tensor.range();
        self.len = range.end;
        self.tensors.push(tensor);
        range
    }

    /// All tensors, in order.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }

    /// The values of all tensors together.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no tensor.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// What a tensor is for, which decides decay and how its gradient is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A dense matrix.
    Matrix,
    /// A bias, or the scale or shift of a LayerNorm.
    Vector,
    /// An embedding table of which a step uses few rows.
    Table,
    /// One number a row of an embedding table.
    RowScalars,
}

/// The weights of an encoder.
#[derive(Clone, Debug)]
pub struct Parameters {
    layout: Arc<Layout>,
    values: Vec<f32>,
}

impl Parameters {
    /// All zero.
    pub fn zeros(layout: &Arc<Layout>) -> Self {
        Self { layout: Arc::clone(layout), values: zeros(layout.len()) }
    }

    /// Names and places.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// All values, flat.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// All values, flat.
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// The tensors of a layout, which has some of the names of this one.
    ///
    /// # Panics
    /// If it has others, or other shapes.
    pub fn part(&self, layout: &Arc<Layout>) -> Self {
        let mut part = Self::zeros(layout);
        for tensor in layout.tensors() {
            let values = self.get(&tensor.name).expect("a tensor of the whole");
            part.values[tensor.range()].copy_from_slice(values);
        }
        part
    }

    /// Puts the tensors of a part in the place of its own.
    ///
    /// # Panics
    /// If it is a part of something else.
    pub fn set_part(&mut self, part: &Self) {
        for tensor in part.layout.tensors() {
            let values = self.get_mut(&tensor.name).expect("a tensor of the whole");
            values.copy_from_slice(&part.values[tensor.range()]);
        }
    }

    /// The values of one tensor, if there is one of this name.
    pub fn get(&self, name: &str) -> Option<&[f32]> {
        self.layout.tensor(name).map(|tensor| &self.values[tensor.range()])
    }

    /// The values of one tensor, if there is one of this name.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut [f32]> {
        let range = self.layout.tensor(name)?.range();
        Some(&mut self.values[range])
    }
}

/// The gradient of a loss with respect to all weights. Backward passes add to it; the optimiser's
/// step uses it up and leaves it at zero.
#[derive(Clone, Debug)]
pub struct Gradients {
    layout: Arc<Layout>,
    pub(crate) values: Vec<f32>,
    pub(crate) touched: Vec<TouchedRows>, // One for every tensor that is kept by row, in order.
    sorted: Vec<(u32, u32)>,              // (id, token), in order; kept for its memory.
}

impl Gradients {
    /// All zero.
    pub fn zeros(layout: &Arc<Layout>) -> Self {
        let tables = layout.tensors().iter().filter(|tensor| tensor.by_row);
        let touched = tables.map(|table| TouchedRows::new(table.shape[0])).collect();
        Self {
            layout: Arc::clone(layout),
            values: zeros(layout.len()),
            touched,
            sorted: Vec::new(),
        }
    }

    /// Names and places.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// All values, flat.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The gradient of one tensor, if there is one of this name.
    pub fn get(&self, name: &str) -> Option<&[f32]> {
        self.layout.tensor(name).map(|tensor| &self.values[tensor.range()])
    }

    /// Adds row i of `d_rows` to row `ids[i]` of the `table`-th of the tables kept by row.
    pub(crate) fn scatter_rows(&mut self, table: usize, ids: &[u32], d_rows: &[f32]) {
        let tensor = self.layout.tensors().iter().filter(|tensor| tensor.by_row).nth(table);
        let tensor = tensor.expect("an encoder knows its tables");
        self.sorted.clear();
        self.sorted.extend(ids.iter().zip(0..).map(|(&id, token)| (id, token)));
        self.sorted.par_sort_unstable();
        self.touched[table].touch(&self.sorted);
        let d_table = &mut self.values[tensor.range()];
        scatter_add(tensor.row_len(), &self.sorted, d_rows, d_table, 0);
    }

    /// The rows of the by-row tensors that may be other than zero, and the tensors themselves.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (&Tensor, &TouchedRows)> {
        self.layout.tensors().iter().filter(|tensor| tensor.by_row).zip(&self.touched)
    }
}

/// The rows of a table that got a gradient since the last step, in the order they first did.
#[derive(Clone, Debug)]
pub(crate) struct TouchedRows {
    rows: Vec<u32>,
    is_touched: Vec<bool>, // (rows of the table)
}

impl TouchedRows {
    fn new(n_rows: usize) -> Self {
        Self { rows: Vec::new(), is_touched: vec![false; n_rows] }
    }

    /// Notes that these rows have a gradient now.
    pub(crate) fn touch(&mut self, rows: &[(u32, u32)]) {
        for &(row, _) in rows {
            if !std::mem::replace(&mut self.is_touched[row as usize], true) {
                self.rows.push(row);
            }
        }
    }

    pub(crate) fn rows(&self) -> &[u32] {
        &self.rows
    }

    pub(crate) fn clear(&mut self) {
        for row in self.rows.drain(..) {
            self.is_touched[row as usize] = false;
        }
    }
}
