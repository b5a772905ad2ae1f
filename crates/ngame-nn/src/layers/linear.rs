//! Linear: y = x Wᵀ, with W (outputs, inputs) as PyTorch stores it.
//!
//! The bias is added by whatever comes next (GELU, LayerNorm, attention), which reads y anyway, and
//! its gradient is taken there.

use crate::gemm::{Matrix, multiply, multiply_add};

/// `y = x Wᵀ`.
pub(crate) fn forward(
    x: &[f32],      // (rows, inputs)
    weight: &[f32], // (outputs, inputs)
    y: &mut [f32],  // (rows, outputs)
    [rows, inputs, outputs]: [usize; 3],
) {
    multiply(Matrix::new(x, rows, inputs), Matrix::new(weight, outputs, inputs).transposed(), y);
}

/// `d_x = d_y W`.
pub(crate) fn backward_input(
    d_y: &[f32],     // (rows, outputs)
    weight: &[f32],  // (outputs, inputs)
    d_x: &mut [f32], // (rows, inputs)
    [rows, inputs, outputs]: [usize; 3],
) {
    multiply(Matrix::new(d_y, rows, outputs), Matrix::new(weight, outputs, inputs), d_x);
}

/// `d_x += d_y W`, for an x that went other ways too.
pub(crate) fn backward_input_add(
    d_y: &[f32],     // (rows, outputs)
    weight: &[f32],  // (outputs, inputs)
    d_x: &mut [f32], // (rows, inputs)
    [rows, inputs, outputs]: [usize; 3],
) {
    multiply_add(Matrix::new(d_y, rows, outputs), Matrix::new(weight, outputs, inputs), d_x);
}

/// `d_W += d_yᵀ x`.
pub(crate) fn backward_weight(
    d_y: &[f32],          // (rows, outputs)
    x: &[f32],            // (rows, inputs)
    d_weight: &mut [f32], // (outputs, inputs)
    [rows, inputs, outputs]: [usize; 3],
) {
    let d_y = Matrix::new(d_y, rows, outputs).transposed();
    multiply_add(d_y, Matrix::new(x, rows, inputs), d_weight);
}
