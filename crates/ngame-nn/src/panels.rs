//! A linear layer whose weight is packed once, for answering.

use half::f16;

use crate::encoder::Precision;
use crate::kernels::Level;
use crate::kernels::panel::{self, GROUP, Group, Halves, Product, Singles};

pub(crate) use crate::kernels::panel::Epilogue;

/// The weight (outputs, inputs) and the bias of a linear layer, packed for products with few rows or
/// many on one thread.
pub(crate) struct PackedLinear {
    level: Level,
    inputs: usize,
    outputs: usize,
    panels: Panels,
    bias: Vec<f32>, // (panels × outputs of a panel), zero where there is no output
}

/// (panels, inputs, groups of the level)
enum Panels {
    F32(Vec<Singles>),
    F16(Vec<Halves>),
}

pub static SLAB: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(256);
pub static BLOCK: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(65536);
pub static WORTH: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(3);
pub static SPREAD: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(3);
use std::sync::atomic::Ordering::Relaxed;

impl PackedLinear {
    /// Packs a weight and a bias.
    pub(crate) fn new(
        level: Level,
        weight: &[f32], // (outputs, inputs)
        bias: &[f32],   // (outputs)
        precision: Precision,
    ) -> Self {
        let outputs = bias.len();
        let inputs = weight.len() / outputs.max(1);
        assert_eq!(weight.len(), outputs * inputs, "one row a value of the bias");
        let groups = panel::groups(level);
        let panels = match precision {
            Precision::F32 => Panels::F32(pack(weight, inputs, groups, Singles)),
            Precision::F16 => Panels::F16(pack(weight, inputs, groups, |group| {
                Halves(group.map(|value| f16::from_f32(value).to_bits()))
            })),
        };
        let mut padded = bias.to_vec();
        padded.resize(outputs.next_multiple_of(groups * GROUP), 0.0);
        Self { level, inputs, outputs, panels, bias: padded }
    }

    pub(crate) fn forward(&self, x: &[f32], rows: usize, epilogue: Epilogue, y: &mut [f32]) {
        assert_eq!(y.len(), rows * self.outputs);
        match &self.panels {
            Panels::F32(panels) => self.product(panels, epilogue, x, y),
            Panels::F16(panels) => self.product(panels, epilogue, x, y),
        }
    }

    fn product<G: Group>(&self, panels: &[G], epilogue: Epilogue, x: &[f32], y: &mut [f32]) {
        let Self { level, inputs, outputs, ref bias, .. } = *self;
        panel::product(
            level,
            Product {
                panels,
                bias,
                inputs,
                outputs,
                epilogue,
                slab: SLAB.load(Relaxed),
                block: BLOCK.load(Relaxed),
                worth: WORTH.load(Relaxed),
                spread: SPREAD.load(Relaxed),
            },
            x,
            y,
        );
    }
}

/// The panels of a weight.
fn pack<G>(
    weight: &[f32], // (outputs, inputs)
    inputs: usize,
    groups: usize,
    group: impl Fn([f32; GROUP]) -> G,
) -> Vec<G> {
    let mut packed = Vec::new();
    for rows in weight.chunks(inputs.max(1) * groups * GROUP) {
        for k in 0..inputs {
            for g in 0..groups {
                let value = |j| rows.get((g * GROUP + j) * inputs + k).copied().unwrap_or(0.0);
                packed.push(group(std::array::from_fn(value)));
            }
        }
    }
    packed
}
