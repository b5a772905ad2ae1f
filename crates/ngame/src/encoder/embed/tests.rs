//! Chunks, order, rows without tokens, and stopping, with an encoder that can be seen through.

use proptest::prelude::*;

use super::*;
use crate::progress::Silent;
use crate::tokens::{VocabularyOptions, train_vocabulary};

/// Gives a text the vector (cos a, sin a), where a is the sum of its ids in degrees; the id `NONE`
/// makes it zero and `INFINITE` infinite.
struct Angles;

const NONE: u32 = 7;
const INFINITE: u32 = 8;

impl Frozen for Angles {
    fn dim(&self) -> usize {
        2
    }

    fn embed(&self, batch: Batch<'_>, workspace: &mut Vec<f32>, vectors: &mut [f32]) {
        workspace.resize(batch.n_tokens(), 0.0);
        for (text, vector) in vectors.chunks_mut(2).enumerate() {
            let ids = &batch.ids()[batch.rows(text)];
            vector.copy_from_slice(&angle(ids));
            if ids.contains(&NONE) {
                vector.fill(0.0);
            }
            if ids.contains(&INFINITE) {
                vector.fill(f32::INFINITY);
            }
        }
    }
}

fn angle(ids: &[u32]) -> [f32; 2] {
    let angle = (ids.iter().sum::<u32>() as f32).to_radians();
    [angle.cos(), angle.sin()]
}

fn tokenizer() -> Arc<Tokenizer> {
    let texts: Texts = ["ab abc bca cab"].into_iter().collect();
    let options = VocabularyOptions { size: 32, min_frequency: 1, ..Default::default() };
    Arc::new(train_vocabulary(&[&texts], &options, &Silent).unwrap())
}

fn embedder(tokenizer: &Arc<Tokenizer>, max_tokens: usize) -> Embedder {
    let frozen = Box::new(Angles);
    Embedder::new(Arc::clone(tokenizer), frozen, max_tokens, tokenizer.vocabulary_size())
}

#[test]
fn every_text_gets_its_own_vector_in_its_own_row() {
    let tokenizer = tokenizer();
    let embedder = embedder(&tokenizer, 16);
    let texts: Texts = (0..WINDOW_TEXTS + 100)
        .map(|n| ["", "b", "abc cab", "a b c a b c a b c a b c a b c a b c"][n * 7 % 4].to_owned())
        .collect();
    let matrix = embedder.embed_texts(&texts, VectorType::F32, &Silent).unwrap();
    assert_eq!((matrix.n_rows(), matrix.dim()), (texts.len(), 2));
    for index in (0..texts.len()).step_by(37).chain([texts.len() - 1]) {
        let mut ids = Vec::new();
        tokenizer.encode(texts.get(index), 16, &mut ids).unwrap();
        let expected = if ids.contains(&NONE) { [1.0, 0.0] } else { angle(&ids) };
        if ids.contains(&INFINITE) {
            continue;
        }
        assert_eq!(matrix.row(index).to_vec(), expected, "{index}");
        assert_eq!(embedder.embed_one(texts.get(index)).unwrap(), expected);
    }
    let store = tokenize(&texts, &tokenizer, 16, &Silent).unwrap();
    let mut from_store = VectorMatrix::zeros(0, 2, VectorType::F32);
    let embedded = embedder.embed_tokens(&store, &mut from_store, &Silent).unwrap();
    assert_eq!(from_store.all(), matrix.all());
    assert_eq!(embedded.n_texts, texts.len() as u64);
    assert_eq!(embedded.n_tokens, store.n_tokens() as u64);
}

#[test]
fn vectors_are_unit_rows_or_an_error() {
    let tokenizer = tokenizer();
    let embedder = embedder(&tokenizer, 16);
    let run = |ids: &[u32]| {
        let mut workspace =
            Workspace { ids: ids.to_vec(), offsets: vec![0, 1], ..Default::default() };
        embedder.run(&mut workspace).map(|()| workspace.vectors)
    };
    assert_eq!(run(&[90]).unwrap()[1], 1.0);
    assert_eq!(run(&[NONE]).unwrap(), [1.0, 0.0]);
    let error = run(&[INFINITE]).unwrap_err().to_string();
    assert!(error.contains("a vector with infinite numbers"), "{error}");
}

#[test]
fn ids_beyond_the_encoder_are_refused() {
    let tokenizer = tokenizer();
    let mut embedder = embedder(&tokenizer, 16);
    embedder.vocabulary_size -= 1;
    let texts: Texts = ["a"].into_iter().collect();
    let store = tokenize(&texts, &tokenizer, 16, &Silent).unwrap();
    let mut matrix = VectorMatrix::zeros(0, 2, VectorType::F32);
    let error = embedder.embed_tokens(&store, &mut matrix, &Silent).unwrap_err().to_string();
    assert!(error.contains("expected token ids below"), "{error}");
}

#[test]
fn stopping_leaves_no_rows() {
    struct Stop;
    impl Observer for Stop {
        fn event(&self, _: Event<'_>) {}
        fn cancelled(&self) -> bool {
            true
        }
    }
    let tokenizer = tokenizer();
    let embedder = embedder(&tokenizer, 16);
    let mut matrix = VectorMatrix::zeros(0, 2, VectorType::F32);
    let stopped = embedder.embed(&mut ["a", "b"].into_iter(), &mut matrix, &Stop);
    assert!(matches!(stopped, Err(Error::Cancelled)));
    assert_eq!(matrix.n_rows(), 0);
}

#[test]
fn no_texts_are_no_rows() {
    let tokenizer = tokenizer();
    let matrix = embedder(&tokenizer, 16).embed_texts(&Texts::new(), VectorType::F16, &Silent);
    assert_eq!(matrix.unwrap().n_rows(), 0);
}

proptest! {
    #[test]
    fn chunks_cover_all_and_stay_small(mut lengths in prop::collection::vec(1usize..3000, 0..200)) {
        lengths.sort_by_key(|&length| Reverse(length));
        let ranges = cut(&lengths);
        let covered: Vec<usize> = ranges.iter().cloned().flatten().collect();
        prop_assert_eq!(covered, (0..lengths.len()).collect::<Vec<_>>());
        for range in ranges {
            let n_tokens: usize = lengths[range.clone()].iter().sum();
            prop_assert!(n_tokens <= CHUNK_TOKENS || range.len() == 1);
        }
    }
}
