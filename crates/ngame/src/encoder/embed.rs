//! Many texts to vectors, on all threads.
//!
//! Texts come in windows. Those of a window are tokenised, sorted by length and cut into chunks of
//! about equally many tokens; a chunk is what one thread embeds in one go. Memory stays at one
//! window, however many texts there are, and the number of threads never shows in a result.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use ngame_nn::{Batch, Frozen};
use rayon::prelude::*;

use super::text_source::TextSource;
use super::vectors::{RowMut, VectorMatrix, VectorSink, VectorType};
use crate::data::Texts;
use crate::error::{InputError, InputErrorKind, Place};
use crate::progress::{Event, Observer, StopOnly};
use crate::tokens::{TokenStore, Tokenizer, tokenize};
use crate::{Error, Result};

/// Texts that are in memory at once: many enough that those of a chunk, neighbours in the order of
/// length, are about equally long.
const WINDOW_TEXTS: usize = 32_768;

/// Bytes of text that are in memory at once, for windows of long texts.
const WINDOW_BYTES: usize = 32 << 20;

/// Tokens that a thread embeds in one go: many enough to keep a matrix product busy, few enough for
/// what a layer computes to stay in the processor's cache and for a window to feed every thread. A
/// longer text is a chunk of its own.
const CHUNK_TOKENS: usize = 1_024;

/// An encoder with its weights packed for answering.
pub struct Embedder {
    tokenizer: Arc<Tokenizer>,
    frozen: Box<dyn Frozen>,
    max_tokens: usize,
    stand_in: u32,
    vocabulary_size: usize,
    workspaces: Mutex<Vec<Workspace>>,
}

/// How much was embedded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Embedded {
    /// Texts.
    pub n_texts: u64,
    /// Their tokens, special tokens included.
    pub n_tokens: u64,
}

/// What a thread needs for a chunk, kept from chunk to chunk.
#[derive(Default)]
struct Workspace {
    ids: Vec<u32>,
    offsets: Vec<usize>,
    vectors: Vec<f32>,
    inner: Vec<f32>,
}

/// Some texts of a store, by their place in the window, and the rows for their vectors.
struct Chunk<'a> {
    texts: Vec<(usize, RowMut<'a>)>,
}

impl Embedder {
    /// An embedder of texts cut to `max_tokens` tokens. `vocabulary_size` is the encoder's: no id
    /// that reaches it lies beyond.
    pub(super) fn new(
        tokenizer: Arc<Tokenizer>,
        frozen: Box<dyn Frozen>,
        max_tokens: usize,
        vocabulary_size: usize,
    ) -> Self {
        let stand_in = tokenizer.stand_in();
        Self {
            tokenizer,
            frozen,
            max_tokens,
            stand_in,
            vocabulary_size,
            workspaces: Mutex::default(),
        }
    }

    /// The length of a vector.
    pub fn dim(&self) -> usize {
        self.frozen.dim()
    }

    /// The vector of one text, on this thread.
    pub fn embed_one(&self, text: &str) -> Result<Vec<f32>> {
        let mut workspace = self.take_workspace();
        workspace.ids.clear();
        self.tokenizer.encode(text, self.max_tokens, &mut workspace.ids)?;
        if workspace.ids.is_empty() {
            workspace.ids.push(self.stand_in);
        }
        workspace.offsets.clear();
        workspace.offsets.extend([0, workspace.ids.len()]);
        self.run(&mut workspace)?;
        let vector = workspace.vectors.clone();
        self.give_back(workspace);
        Ok(vector)
    }

    /// The vectors of texts in memory.
    pub fn embed_texts(
        &self,
        texts: &Texts,
        vector_type: VectorType,
        observer: &dyn Observer,
    ) -> Result<VectorMatrix> {
        let mut matrix = VectorMatrix::zeros(0, self.dim(), vector_type);
        self.embed(&mut texts.iter(), &mut matrix, observer)?;
        Ok(matrix)
    }

    /// Embeds all texts of a source; the rows of a sink are their vectors, in order.
    pub fn embed(
        &self,
        source: &mut dyn TextSource,
        sink: &mut dyn VectorSink,
        observer: &dyn Observer,
    ) -> Result<Embedded> {
        assert_eq!(sink.dim(), self.dim(), "the sink takes vectors of the encoder's length");
        let total = source.n_texts();
        observer.event(Event::Started { task: "embedding texts", total, unit: "texts" });
        let mut embedded = Embedded::default();
        loop {
            let mut window = Texts::new();
            source.next_texts(&mut window, WINDOW_TEXTS, WINDOW_BYTES)?;
            if window.is_empty() {
                break;
            }
            // The bar shows texts embedded, not tokenised.
            let store = tokenize(&window, &self.tokenizer, self.max_tokens, &StopOnly(observer))?;
            drop(window);
            sink.append(store.n_texts(), &mut |rows| {
                embedded.n_tokens += self.embed_window(&store, &|row| row, rows, observer)?;
                Ok(())
            })?;
            embedded.n_texts += store.n_texts() as u64;
        }
        observer.event(Event::Finished);
        Ok(embedded)
    }

    /// Embeds texts that were tokenised before, with this embedder's tokenizer; the rows of a sink
    /// are their vectors, in order. Rows longer than the encoder takes are cut.
    pub fn embed_tokens(
        &self,
        store: &TokenStore,
        sink: &mut dyn VectorSink,
        observer: &dyn Observer,
    ) -> Result<Embedded> {
        self.embed_chosen(store, store.n_texts(), &|row| row, sink, observer)
    }

    /// The same for some of the texts: row `i` is the vector of the text at `texts[i]`.
    pub fn embed_some(
        &self,
        store: &TokenStore,
        texts: &[u32],
        vector_type: VectorType,
        observer: &dyn Observer,
    ) -> Result<VectorMatrix> {
        let mut matrix = VectorMatrix::zeros(0, self.dim(), vector_type);
        let text = |row: usize| texts[row] as usize;
        self.embed_chosen(store, texts.len(), &text, &mut matrix, observer)?;
        Ok(matrix)
    }

    /// Embeds `n_texts` texts; `text` says which text a row is the vector of.
    fn embed_chosen(
        &self,
        store: &TokenStore,
        n_texts: usize,
        text: &dyn Fn(usize) -> usize,
        sink: &mut dyn VectorSink,
        observer: &dyn Observer,
    ) -> Result<Embedded> {
        assert_eq!(sink.dim(), self.dim(), "the sink takes vectors of the encoder's length");
        if store.vocabulary_size() > self.vocabulary_size {
            return Err(Error::Option {
                option: "tokens",
                expected: format!("token ids below {}, as the encoder has", self.vocabulary_size),
                found: format!("ids of a vocabulary of {}", store.vocabulary_size()),
            });
        }
        let total = Some(n_texts as u64);
        observer.event(Event::Started { task: "embedding texts", total, unit: "texts" });
        let mut embedded = Embedded::default();
        for begin in (0..n_texts).step_by(WINDOW_TEXTS) {
            let n_window = WINDOW_TEXTS.min(n_texts - begin);
            sink.append(n_window, &mut |rows| {
                let text = |row: usize| text(begin + row);
                embedded.n_tokens += self.embed_window(store, &text, rows, observer)?;
                Ok(())
            })?;
            embedded.n_texts += n_window as u64;
        }
        observer.event(Event::Finished);
        Ok(embedded)
    }

    /// Writes the vector of `text(i)` into row `i`, for all rows, and returns the number of tokens.
    fn embed_window(
        &self,
        store: &TokenStore,
        text: &dyn Fn(usize) -> usize,
        rows: Vec<RowMut<'_>>,
        observer: &dyn Observer,
    ) -> Result<u64> {
        let mut texts: Vec<(usize, RowMut<'_>)> =
            rows.into_iter().enumerate().map(|(row, slot)| (text(row), slot)).collect();
        // The longest first: what is left at the end, when some threads have no more to do, is
        // short.
        texts.sort_by_key(|(text, _)| Reverse(store.len(*text)));
        let length = |text: usize| store.len(text).clamp(1, self.max_tokens);
        let lengths: Vec<usize> = texts.iter().map(|(text, _)| length(*text)).collect();
        let mut texts = texts.into_iter();
        let chunks: Vec<Chunk<'_>> = cut(&lengths)
            .into_iter()
            .map(|range| Chunk { texts: texts.by_ref().take(range.len()).collect() })
            .collect();
        chunks.into_par_iter().try_for_each(|chunk| self.embed_chunk(store, chunk, observer))?;
        Ok(lengths.iter().map(|&length| length as u64).sum())
    }

    fn embed_chunk(
        &self,
        store: &TokenStore,
        chunk: Chunk<'_>,
        observer: &dyn Observer,
    ) -> Result<()> {
        if observer.cancelled() {
            return Err(Error::Cancelled);
        }
        let mut workspace = self.take_workspace();
        let Workspace { ids, offsets, .. } = &mut workspace;
        ids.clear();
        offsets.clear();
        offsets.push(0);
        for (text, _) in &chunk.texts {
            let begin = ids.len();
            store.get(*text).append_to(ids);
            ids.truncate(begin + self.max_tokens);
            if ids.len() == begin {
                ids.push(self.stand_in);
            }
            offsets.push(ids.len());
        }
        self.run(&mut workspace)?;
        let n_texts = chunk.texts.len() as u64;
        let vectors = workspace.vectors.chunks(self.dim());
        for ((_, mut row), vector) in chunk.texts.into_iter().zip(vectors) {
            row.set(vector);
        }
        self.give_back(workspace);
        observer.event(Event::Advanced(n_texts));
        Ok(())
    }

    /// Writes the vectors of a workspace's texts, and sees to it that each has length 1.
    fn run(&self, workspace: &mut Workspace) -> Result<()> {
        let Workspace { ids, offsets, vectors, inner } = workspace;
        let dim = self.dim();
        vectors.resize((offsets.len() - 1) * dim, 0.0);
        self.frozen.embed(Batch::new(ids, offsets), inner, vectors);
        for vector in vectors.chunks_mut(dim) {
            let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            if !norm.is_finite() {
                return Err(not_finite());
            }
            // Only where the tokens of a text cancel out is there no direction: then any will do,
            // so long as it is always the same.
            if norm < 0.5 {
                vector.fill(0.0);
                vector[0] = 1.0;
            }
        }
        Ok(())
    }

    fn take_workspace(&self) -> Workspace {
        self.workspaces.lock().ok().and_then(|mut spare| spare.pop()).unwrap_or_default()
    }

    fn give_back(&self, workspace: Workspace) {
        if let Ok(mut spare) = self.workspaces.lock() {
            spare.push(workspace);
        }
    }
}

/// Weights that are finite can still be so large that what is computed from them is not.
fn not_finite() -> Error {
    InputError::new(InputErrorKind::DamagedFile, Place::file("the encoder's weights"))
        .expected("weights with which vectors come out finite")
        .found("a vector with infinite numbers")
        .help("use weights from before the training went astray, or train with a lower rate")
        .into()
}

/// Cuts lengths, which fall, into ranges of about [`CHUNK_TOKENS`] each.
fn cut(lengths: &[usize]) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let (mut begin, mut n_tokens) = (0, 0);
    for (index, &length) in lengths.iter().enumerate() {
        if n_tokens > 0 && n_tokens + length > CHUNK_TOKENS {
            ranges.push(begin..index);
            (begin, n_tokens) = (index, 0);
        }
        n_tokens += length;
    }
    if begin < lengths.len() {
        ranges.push(begin..lengths.len());
    }
    ranges
}

#[cfg(test)]
mod tests;
