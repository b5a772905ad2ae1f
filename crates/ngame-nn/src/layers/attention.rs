//! Multi-head self-attention, text by text: no token sees another text, and there is no padding to
//! mask.
//!
//! For every text and head: S = Q Kᵀ / sqrt(head dim), P = softmax of the rows of S, some of P is
//! dropped, context = P V. Nothing but Q, K and V is kept: scores of short texts are cheaper to make
//! again than to store. The way back, with P' what dropout left of P:
//!
//! d_V = P'ᵀ d_context,  d_P' = d_context Vᵀ,
//! d_S = P * (d_P - rowsum(P * d_P)),  d_Q = d_S K / sqrt(head dim),  d_K = d_Sᵀ Q / sqrt(head dim).

use std::cell::RefCell;

use super::dropout::{Mask, Site};
use crate::batch::Batch;
use crate::encoder::Dropout;
use crate::kernels::math::{exp, largest, sum};
use crate::kernels::small_product::{Scattered, padded, small_product};
use crate::kernels::{Arithmetic, Level, kernel};

/// The tokens below which a batch is not split between threads any further.
const GRAIN: usize = 128;

thread_local! {
    /// Scores and transposed copies of one head; grows to the longest text a thread has met.
    static WORKSPACE: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// What all texts of a batch have in common.
#[derive(Clone, Copy)]
pub(crate) struct Attention {
    pub(crate) dim: usize,
    pub(crate) n_heads: usize,
    pub(crate) layer: usize,
    pub(crate) dropout: Dropout,
    pub(crate) rate: f32,
}

impl Attention {
    /// For answering.
    pub(crate) fn without_dropout(dim: usize, n_heads: usize) -> Self {
        Self { dim, n_heads, layer: 0, dropout: Dropout::Off, rate: 0.0 }
    }

    fn mask(&self, head: usize) -> Option<Mask> {
        Mask::new(self.dropout, self.rate, Site::Attention { layer: self.layer, head })
    }
}

/// Writes the context of every token.
pub(crate) fn forward(
    level: Level,
    attention: Attention,
    batch: Batch<'_>,
    bias: &[f32],        // (3 dim)
    qkv: &mut [f32],     // (tokens, 3 dim), the bias is added to it
    context: &mut [f32], // (tokens, dim)
) {
    if let Some((left, right)) = batch.halves(GRAIN) {
        let (qkv_left, qkv_right) = qkv.split_at_mut(left.n_tokens() * 3 * attention.dim);
        let (context_left, context_right) = context.split_at_mut(left.n_tokens() * attention.dim);
        rayon::join(
            || forward(level, attention, left, bias, qkv_left, context_left),
            || forward(level, attention, right, bias, qkv_right, context_right),
        );
        return;
    }
    add_bias(level, bias, qkv);
    attend_texts(level, attention, batch, qkv, context);
}

/// Writes the context of every token, on this thread. The bias is in `qkv` already.
pub(crate) fn attend_texts(
    level: Level,
    attention: Attention,
    batch: Batch<'_>,
    qkv: &[f32],         // (tokens, 3 dim)
    context: &mut [f32], // (tokens, dim)
) {
    let dim = attention.dim;
    WORKSPACE.with_borrow_mut(|workspace| {
        for text in 0..batch.n_texts() {
            let rows = batch.rows(text);
            let qkv = &qkv[rows.start * 3 * dim..rows.end * 3 * dim];
            let context = &mut context[rows.start * dim..rows.end * dim];
            let first_row = batch.first_token() + rows.start;
            attend(level, attention, first_row, qkv, context, workspace);
        }
    });
}

/// Writes the gradient by Q, K and V of every token.
pub(crate) fn backward(
    level: Level,
    attention: Attention,
    batch: Batch<'_>,
    qkv: &[f32],       // (tokens, 3 dim)
    d_context: &[f32], // (tokens, dim)
    d_qkv: &mut [f32], // (tokens, 3 dim)
) {
    if let Some((left, right)) = batch.halves(GRAIN) {
        let (qkv_left, qkv_right) = qkv.split_at(left.n_tokens() * 3 * attention.dim);
        let (d_context_left, d_context_right) = d_context.split_at(left.n_tokens() * attention.dim);
        let (d_qkv_left, d_qkv_right) = d_qkv.split_at_mut(left.n_tokens() * 3 * attention.dim);
        rayon::join(
            || backward(level, attention, left, qkv_left, d_context_left, d_qkv_left),
            || backward(level, attention, right, qkv_right, d_context_right, d_qkv_right),
        );
        return;
    }
    let dim = attention.dim;
    WORKSPACE.with_borrow_mut(|workspace| {
        for text in 0..batch.n_texts() {
            let rows = batch.rows(text);
            let qkv = &qkv[rows.start * 3 * dim..rows.end * 3 * dim];
            let d_qkv = &mut d_qkv[rows.start * 3 * dim..rows.end * 3 * dim];
            let d_context = &d_context[rows.start * dim..rows.end * dim];
            let first_row = batch.first_token() + rows.start;
            attend_backward(level, attention, first_row, qkv, d_context, d_qkv, workspace);
        }
    });
}

kernel! {
    /// Adds a vector to every row.
    fn add_bias<A>(
        bias: &[f32],     // (width)
        rows: &mut [f32], // (rows, width)
    ) {
        for row in rows.chunks_exact_mut(bias.len()) {
            for (value, bias) in row.iter_mut().zip(bias) {
                *value += bias;
            }
        }
    }
}

kernel! {
    /// All heads of one text.
    fn attend<A>(
        attention: Attention,
        first_row: usize,
        qkv: &[f32],         // (tokens, 3 dim)
        context: &mut [f32], // (tokens, dim)
        workspace: &mut Vec<f32>,
    ) {
        let Attention { dim, n_heads, .. } = attention;
        let (tokens, head_dim) = (context.len() / dim, dim / n_heads);
        let mut workspace = Workspace::new(workspace, tokens, head_dim);
        for head in 0..n_heads {
            let q = &qkv[head * head_dim..];
            let k = &qkv[dim + head * head_dim..];
            let v = &qkv[2 * dim + head * head_dim..];
            let w = workspace.parts();
            probabilities::<A>((tokens, head_dim), (q, k), 3 * dim, w.transposed, w.scores);
            drop_rows(attention.mask(head), first_row, tokens, w.scores);
            let scores = plain(w.scores, padded(tokens));
            let sizes = (tokens, head_dim, tokens);
            let context = (&mut context[head * head_dim..], dim);
            product::<A>(sizes, 1.0, scores, (v, 3 * dim), context, (w.wide, w.result));
        }
    }
}

kernel! {
    /// All heads of one text, the way back.
    fn attend_backward<A>(
        attention: Attention,
        first_row: usize,
        qkv: &[f32],       // (tokens, 3 dim)
        d_context: &[f32], // (tokens, dim)
        d_qkv: &mut [f32], // (tokens, 3 dim)
        workspace: &mut Vec<f32>,
    ) {
        let Attention { dim, n_heads, .. } = attention;
        let (tokens, head_dim) = (d_context.len() / dim, dim / n_heads);
        let width = padded(tokens);
        let scale = 1.0 / (head_dim as f32).sqrt();
        let square = (tokens, head_dim, tokens);
        let mut workspace = Workspace::new(workspace, tokens, head_dim);
        for head in 0..n_heads {
            let mask = attention.mask(head);
            let q = &qkv[head * head_dim..];
            let k = &qkv[dim + head * head_dim..];
            let v = &qkv[2 * dim + head * head_dim..];
            let d_out = &d_context[head * head_dim..];
            let w = workspace.parts();

            // d_P' = d_context Vᵀ, and the dropped ones of d_P are 0.
            probabilities::<A>((tokens, head_dim), (q, k), 3 * dim, w.transposed, w.scores);
            transpose(v, 3 * dim, (tokens, head_dim), w.transposed, width);
            let sizes = (tokens, width, head_dim);
            small_product::<A>(sizes, 1.0, plain(d_out, dim), (w.transposed, width), (w.d_scores, width));
            drop_rows(mask, first_row, tokens, w.d_scores);

            // d_S = P * (d_P - rowsum(P * d_P)).
            for (p, d) in w.scores.chunks_exact(width).zip(w.d_scores.chunks_exact_mut(width)) {
                let total = sum(width, |i| p[i] * d[i]);
                for (d, p) in d.iter_mut().zip(p) {
                    *d = p * (*d - total);
                }
            }

            // d_V = P'ᵀ d_context.
            drop_rows(mask, first_row, tokens, w.scores);
            let d_v = (&mut d_qkv[2 * dim + head * head_dim..], 3 * dim);
            let scores = flipped(w.scores, width);
            product::<A>(square, 1.0, scores, (d_out, dim), d_v, (w.wide, w.result));

            // d_Q = d_S K / sqrt(head dim), d_K = d_Sᵀ Q / sqrt(head dim).
            let d_q = (&mut d_qkv[head * head_dim..], 3 * dim);
            let d_scores = plain(w.d_scores, width);
            product::<A>(square, scale, d_scores, (k, 3 * dim), d_q, (w.wide, w.result));
            let d_k = (&mut d_qkv[dim + head * head_dim..], 3 * dim);
            let d_scores = flipped(w.d_scores, width);
            product::<A>(square, scale, d_scores, (q, 3 * dim), d_k, (w.wide, w.result));
        }
    }
}

/// Fills `scores` with the softmax of Q Kᵀ / sqrt(head dim); the padding columns are 0.
#[inline(always)]
fn probabilities<A: Arithmetic>(
    (tokens, head_dim): (usize, usize),
    (q, k): (&[f32], &[f32]), // (tokens, head dim), rows `stride` apart
    stride: usize,
    transposed: &mut [f32], // (head dim, padded tokens)
    scores: &mut [f32],     // (tokens, padded tokens)
) {
    let width = padded(tokens);
    transpose(k, stride, (tokens, head_dim), transposed, width);
    let scale = 1.0 / (head_dim as f32).sqrt();
    let sizes = (tokens, width, head_dim);
    small_product::<A>(sizes, scale, plain(q, stride), (transposed, width), (scores, width));
    for row in scores.chunks_exact_mut(width) {
        row[tokens..].fill(f32::NEG_INFINITY);
        let largest = largest(row);
        for score in row.iter_mut() {
            *score = exp::<A>(*score - largest);
        }
        row[tokens..].fill(0.0);
        let share = 1.0 / sum(width, |i| row[i]);
        for score in row.iter_mut() {
            *score *= share;
        }
    }
}

/// Drops scores; the row of a score is its token's place in the whole batch.
#[inline(always)]
fn drop_rows(mask: Option<Mask>, first_row: usize, tokens: usize, scores: &mut [f32]) {
    if let Some(mask) = mask {
        for (row, scores) in scores.chunks_exact_mut(padded(tokens)).enumerate() {
            mask.apply(first_row + row, scores);
        }
    }
}

fn plain(values: &[f32], stride: usize) -> Scattered<'_> {
    Scattered { values, row_stride: stride, column_stride: 1 }
}

fn flipped(values: &[f32], stride: usize) -> Scattered<'_> {
    Scattered { values, row_stride: 1, column_stride: stride }
}

/// [`small_product`] for a head of any size: heads that are no whole column blocks go through padded
/// copies.
#[inline(always)]
fn product<A: Arithmetic>(
    (rows, columns, depth): (usize, usize, usize),
    scale: f32,
    a: Scattered<'_>,
    (b, b_stride): (&[f32], usize),
    (out, out_stride): (&mut [f32], usize),
    (wide, result): (&mut [f32], &mut [f32]), // (tokens, padded head dim) each
) {
    let width = padded(columns);
    if width == columns {
        small_product::<A>((rows, width, depth), scale, a, (b, b_stride), (out, out_stride));
        return;
    }
    for (row, wide) in wide.chunks_exact_mut(width).enumerate().take(depth) {
        wide[..columns].copy_from_slice(&b[row * b_stride..row * b_stride + columns]);
    }
    small_product::<A>((rows, width, depth), scale, a, (wide, width), (result, width));
    for (row, result) in result.chunks_exact(width).enumerate().take(rows) {
        out[row * out_stride..row * out_stride + columns].copy_from_slice(&result[..columns]);
    }
}

/// The side of the squares that are transposed in registers.
const SQUARE: usize = 4;

/// `out[c][r] = rows[r][c]`, square by square, and what is left over value by value.
#[inline(always)]
fn transpose(
    rows: &[f32], // (tokens, head dim), rows `stride` apart
    stride: usize,
    (tokens, head_dim): (usize, usize),
    out: &mut [f32], // (head dim, width)
    width: usize,
) {
    let (whole_rows, whole_columns) = (tokens - tokens % SQUARE, head_dim - head_dim % SQUARE);
    for r in (0..whole_rows).step_by(SQUARE) {
        for c in (0..whole_columns).step_by(SQUARE) {
            let mut square = [[0.0; SQUARE]; SQUARE];
            for (i, square) in square.iter_mut().enumerate() {
                square.copy_from_slice(&rows[(r + i) * stride + c..][..SQUARE]);
            }
            for j in 0..SQUARE {
                let column: [f32; SQUARE] =
                    [square[0][j], square[1][j], square[2][j], square[3][j]];
                out[(c + j) * width + r..][..SQUARE].copy_from_slice(&column);
            }
        }
    }
    for r in 0..tokens {
        let first = if r < whole_rows { whole_columns } else { 0 };
        for c in first..head_dim {
            out[c * width + r] = rows[r * stride + c];
        }
    }
}

/// The buffers of one head.
struct Workspace<'a> {
    buffer: &'a mut [f32],
    squares: usize,    // tokens * padded tokens
    transposed: usize, // head dim * padded tokens
    wide: usize,       // tokens * padded head dim
}

struct Parts<'a> {
    scores: &'a mut [f32],     // (tokens, padded tokens)
    d_scores: &'a mut [f32],   // (tokens, padded tokens)
    transposed: &'a mut [f32], // (head dim, padded tokens)
    wide: &'a mut [f32],       // (tokens, padded head dim)
    result: &'a mut [f32],     // (tokens, padded head dim)
}

impl<'a> Workspace<'a> {
    fn new(buffer: &'a mut Vec<f32>, tokens: usize, head_dim: usize) -> Self {
        let squares = tokens * padded(tokens);
        let transposed = head_dim * padded(tokens);
        let wide = tokens * padded(head_dim);
        let len = 2 * squares + transposed + 2 * wide;
        if buffer.len() < len {
            buffer.resize(len, 0.0);
        }
        // Padding of transposed copies is multiplied like the rest: whatever an earlier text left
        // there must at least be finite.
        let buffer = &mut buffer[..len];
        buffer[2 * squares..].fill(0.0);
        Self { buffer, squares, transposed, wide }
    }

    fn parts(&mut self) -> Parts<'_> {
        let (scores, rest) = self.buffer.split_at_mut(self.squares);
        let (d_scores, rest) = rest.split_at_mut(self.squares);
        let (transposed, rest) = rest.split_at_mut(self.transposed);
        let (wide, result) = rest.split_at_mut(self.wide);
        Parts { scores, d_scores, transposed, wide, result }
    }
}
