//! A bag encoder for answering: the residual layer packed, one thread a call.

use super::words::{Words, sum_text};
use super::{Bag, add_and_normalise};
use crate::batch::Batch;
use crate::encoder::{Frozen, Precision};
use crate::kernels::Level;
use crate::panels::{Epilogue, PackedLinear};
use crate::parameters::Parameters;

/// A bag encoder for answering.
pub(super) struct FrozenBag {
    level: Level,
    dim: usize,
    vectors: Vec<f32>,     // (vocabulary, dim)
    log_weights: Vec<f32>, // (vocabulary)
    residual: PackedLinear,
}

impl FrozenBag {
    pub(super) fn new(bag: &Bag, parameters: &Parameters, precision: Precision) -> Self {
        let weights = parameters.values();
        assert_eq!(weights.len(), bag.layout.len(), "weights of another encoder");
        let residual = (&weights[bag.weight.clone()], &weights[bag.bias.clone()]);
        // One product of D x D a text is a small part of the work: rounded rows would gain nothing.
        let precision = match precision {
            Precision::Bf16 => Precision::F16,
            other => other,
        };
        Self {
            level: bag.level,
            dim: bag.config.dim,
            vectors: weights[bag.words.clone()].to_vec(),
            log_weights: weights[bag.word_weights.clone()].to_vec(),
            residual: PackedLinear::pack(bag.level, &[residual], precision).remove(0),
        }
    }
}

impl Frozen for FrozenBag {
    fn dim(&self) -> usize {
        self.dim
    }

    fn embed(&self, batch: Batch<'_>, workspace: &mut Vec<f32>, vectors: &mut [f32]) {
        let (texts, dim) = (batch.n_texts(), self.dim);
        let longest = batch.longest();
        let len = 2 * texts * dim + texts + longest;
        if workspace.len() < len {
            workspace.resize(len, 0.0);
        }
        let (units, rest) = workspace[..len].split_at_mut(texts * dim);
        let (activated, rest) = rest.split_at_mut(texts * dim);
        let (norms, counts) = rest.split_at_mut(texts);
        let words = Words { vectors: &self.vectors, log_weights: &self.log_weights, dim };
        for (text, unit) in units.chunks_exact_mut(dim).enumerate() {
            let ids = &batch.ids()[batch.rows(text)];
            sum_text(self.level, words, ids, &mut counts[..ids.len()], unit);
        }
        self.residual.forward(units, texts, Epilogue::BiasGelu, &mut [], activated);
        if texts > 0 {
            add_and_normalise(self.level, units, activated, vectors, norms);
        }
    }
}
