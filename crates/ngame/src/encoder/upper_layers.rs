//! The upper layers of a transformer as an encoder of its own, and what the layers below make of texts.
//!
//! See [`ngame_nn::TokenStates`] for the idea. Here it meets texts: the states of all tokens go to a file
//! of 16-bit rows, in the order of a token store, and texts become rows of places in that file.

use std::sync::Arc;

use half::f16;
use ngame_nn::{Batch, TokenStates, Transformer};
use rayon::prelude::*;

use super::config::Architecture;
use super::text_encoder::{Origin, TextEncoder};
use super::vectors::{RowMut, Vector, VectorMatrix, VectorSink};
use crate::progress::{Event, Observer};
use crate::tokens::TokenStore;
use crate::{Error, Result};

/// Tokens whose states are made before they are written.
const WINDOW_TOKENS: usize = 1 << 16;

/// Tokens that a thread takes at once.
const CHUNK_TOKENS: usize = 512;

impl TokenStates for VectorMatrix {
    fn n_tokens(&self) -> usize {
        self.n_rows()
    }

    fn state(&self, token: u32) -> &[f16] {
        match self.row(token as usize) {
            Vector::F16(row) => row,
            Vector::F32(_) => unreachable!("states are kept in 16 bits"),
        }
    }
}

/// Some texts one after the other, and the rows for the states of their tokens.
struct Chunk<'a> {
    ids: Vec<u32>,
    offsets: Vec<usize>,
    rows: Vec<RowMut<'a>>, // (tokens)
}

impl TextEncoder {
    /// How many layers it has; none if it is a bag.
    pub fn n_layers(&self) -> Option<usize> {
        match &self.architecture {
            Architecture::Transformer(_, config) => Some(config.n_layers),
            Architecture::Bag(_) => None,
        }
    }

    fn transformer(&self) -> Transformer {
        match &self.architecture {
            Architecture::Transformer(_, config) => Transformer::new(config.clone()),
            Architecture::Bag(_) => unreachable!("a bag has no layers to part"),
        }
    }

    /// Hands what the layers below `first_layer` make of every token to a sink, text by text. A text
    /// without tokens has the state of a token that stands in.
    pub(crate) fn write_states(
        &self,
        first_layer: usize,
        tokens: &TokenStore,
        sink: &mut dyn VectorSink,
        observer: &dyn Observer,
    ) -> Result<()> {
        let lower = self.transformer().lower(&self.parameters, first_layer);
        let dim = self.dim();
        let total = Some(tokens.n_texts() as u64);
        observer.event(Event::Started { task: "going through lower layers", total, unit: "texts" });
        let mut texts = 0..tokens.n_texts();
        while !texts.is_empty() {
            let (mut end, mut n_tokens) = (texts.start, 0);
            while end < texts.end && n_tokens < WINDOW_TOKENS {
                n_tokens += tokens.len(end).max(1);
                end += 1;
            }
            let window = texts.start..end;
            texts.start = end;
            sink.append(n_tokens, &mut |rows| {
                let mut chunks = Vec::new();
                let mut rows = rows.into_iter();
                let mut chunk = Chunk { ids: Vec::new(), offsets: vec![0], rows: Vec::new() };
                for text in window.clone() {
                    let begin = chunk.ids.len();
                    tokens.get(text).append_to(&mut chunk.ids);
                    if chunk.ids.len() == begin {
                        chunk.ids.push(self.tokenizer.stand_in());
                    }
                    chunk.offsets.push(chunk.ids.len());
                    chunk.rows.extend(rows.by_ref().take(chunk.ids.len() - begin));
                    if chunk.ids.len() >= CHUNK_TOKENS || text + 1 == window.end {
                        let next = Chunk { ids: Vec::new(), offsets: vec![0], rows: Vec::new() };
                        chunks.push(std::mem::replace(&mut chunk, next));
                    }
                }
                chunks.into_par_iter().try_for_each_init(
                    || (Vec::new(), Vec::new()),
                    |(workspace, states), Chunk { ids, offsets, rows }| {
                        if observer.cancelled() {
                            return Err(Error::Cancelled);
                        }
                        states.resize(ids.len() * dim, 0.0);
                        lower.states(Batch::new(&ids, &offsets), workspace, states);
                        for (mut row, state) in rows.into_iter().zip(states.chunks_exact(dim)) {
                            row.set(state);
                        }
                        observer.event(Event::Advanced(offsets.len() as u64 - 1));
                        Ok(())
                    },
                )
            })?;
        }
        observer.event(Event::Finished);
        Ok(())
    }

    /// Its layers from `first_layer` on, for texts of [places](TokenStore::places) in a table of
    /// states. It takes no other texts, and is not to be saved.
    pub(crate) fn upper(&self, first_layer: usize, states: VectorMatrix) -> Self {
        let upper = self.transformer().upper(first_layer, Arc::new(states));
        Self {
            parameters: self.parameters.part(ngame_nn::Encoder::layout(&upper)),
            encoder: Box::new(upper),
            tokenizer: Arc::clone(&self.tokenizer),
            architecture: self.architecture.clone(),
            max_tokens: self.max_tokens,
            origin: Origin::default(),
        }
    }

    /// Takes over the weights of its upper layers.
    pub(crate) fn set_upper(&mut self, upper: &Self) {
        self.parameters.set_part(&upper.parameters);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Texts;
    use crate::encoder::{Precision, VectorType};
    use crate::progress::Silent;
    use crate::tokens::{VocabularyOptions, tokenize, train_vocabulary};
    use ngame_nn::{Pooling, TransformerConfig};

    #[test]
    fn places_and_states_give_the_vectors_of_texts() {
        let words = ["red", "green", "blue", "stone", "leaf", "sky"];
        let text = |n: usize| {
            (0..n % 9).map(|word| words[(n * 7 + word * word) % 6]).collect::<Vec<_>>().join(" ")
        };
        // Enough tokens for several chunks, and texts without any.
        let texts: Texts = (0..700).map(text).collect();
        let options = VocabularyOptions { size: 60, ..Default::default() };
        let tokenizer = train_vocabulary(&[&texts], &options, &Silent).unwrap();
        let store = tokenize(&texts, &tokenizer, 12, &Silent).unwrap();
        let config = TransformerConfig {
            vocabulary_size: tokenizer.vocabulary_size(),
            dim: 16,
            n_layers: 3,
            n_heads: 2,
            feed_forward_dim: 32,
            max_positions: 12,
            n_token_types: 2,
            layer_norm_epsilon: 1e-5,
            dropout: 0.1,
            attention_dropout: 0.1,
            pooling: Pooling::Mean,
        };
        let mut whole = TextEncoder::new_transformer(config, tokenizer, 12, 5).unwrap();
        whole.parts_mut().1.values_mut().iter_mut().for_each(|value| *value *= 5.0);
        let mut states = VectorMatrix::zeros(0, 16, VectorType::F16);
        whole.write_states(2, &store, &mut states, &Silent).unwrap();
        let places = store.places();
        assert_eq!((places.n_tokens(), places.n_texts()), (states.n_rows(), 700));
        let mut upper = whole.upper(2, states);
        let some: Vec<u32> = (0..700).rev().collect();
        let embed = |encoder: &TextEncoder, store: &TokenStore| {
            let embedder = encoder.embedder(Precision::F32);
            embedder.embed_some(store, &some, VectorType::F32, &Silent).unwrap()
        };
        let alike = |a: &VectorMatrix, b: &VectorMatrix| {
            (0..700)
                .map(|row| ngame_nn::dot(&a.row(row).to_vec(), &b.row(row).to_vec()))
                .fold(1.0, f32::min)
        };
        let (expected, found) = (embed(&whole, &store), embed(&upper, &places));
        assert!(alike(&expected, &found) > 0.9999, "{}", alike(&expected, &found));
        // What the upper layers learn is the whole's.
        let values = upper.parts_mut().1.values_mut().iter_mut();
        values.step_by(3).for_each(|value| *value *= -1.0);
        whole.set_upper(&upper);
        let (changed, found) = (embed(&whole, &store), embed(&upper, &places));
        assert!(alike(&changed, &found) > 0.9999, "{}", alike(&changed, &found));
        assert!(alike(&changed, &expected) < 0.99, "{}", alike(&changed, &expected));
    }
}
