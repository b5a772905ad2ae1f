//! The vectors that everything after the encoder works with.

use super::corpus::Corpus;
use crate::Result;
use crate::encoder::{Precision, TextEncoder, VectorMatrix, VectorType};
use crate::progress::Observer;

/// Points take 16 bits a number beyond this many bytes of 32.
const WIDE: usize = 2 << 30;

/// Labels, training points and held-out points as the trained encoder sees them.
#[derive(Debug)]
pub(super) struct Vectors {
    pub(super) labels: VectorMatrix,   // (labels, dim)
    pub(super) points: VectorMatrix,   // (trained points, dim)
    pub(super) held_out: VectorMatrix, // (held-out points, dim)
}

impl Vectors {
    pub(super) fn new(
        corpus: &Corpus,
        encoder: &TextEncoder,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let embedder = encoder.embedder(Precision::F32);
        let embed = |texts: &[u32], vector_type| {
            embedder.embed_some(&corpus.tokens, texts, vector_type, observer)
        };
        let numbers = corpus.trained_text.len() * encoder.dim();
        let vector_type =
            if numbers * size_of::<f32>() > WIDE { VectorType::F16 } else { VectorType::F32 };
        Ok(Self {
            labels: embed(&corpus.label_text, VectorType::F32)?,
            points: embed(&corpus.trained_text, vector_type)?,
            held_out: embed(&corpus.held_out.text, VectorType::F32)?,
        })
    }
}
