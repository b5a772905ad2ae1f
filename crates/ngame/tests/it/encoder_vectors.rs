//! Our vectors against those of PyTorch and sentence-transformers.

use std::path::{Path, PathBuf};

use ngame::data::Texts;
use ngame::encoder::{
    Existing, Precision, TextEncoder, TextLines, VectorFile, VectorMatrix, VectorType,
};
use ngame::progress::Silent;
use ngame_nn::Batch;
use safetensors::SafeTensors;

use crate::encoder_folders::fixture;

/// The cosine of two vectors.
fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

fn floats(golden: &SafeTensors<'_>, name: &str) -> Vec<f32> {
    let data = golden.tensor(name).unwrap().data();
    data.chunks(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

/// Whole numbers of 64 or 32 bits.
fn counts(golden: &SafeTensors<'_>, name: &str) -> Vec<usize> {
    let tensor = golden.tensor(name).unwrap();
    let width = tensor.dtype().bitsize() / 8;
    let number =
        |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
    tensor.data().chunks(width).map(number).collect()
}

#[test]
fn small_encoders_agree_with_pytorch() {
    for name in ["bert", "distilbert"] {
        let bytes = std::fs::read(fixture(name).join("golden.safetensors")).unwrap();
        let golden = SafeTensors::deserialize(&bytes).unwrap();
        let ids: Vec<u32> = counts(&golden, "ids").into_iter().map(|id| id as u32).collect();
        let offsets = counts(&golden, "offsets");
        let encoder = TextEncoder::load(&fixture(name)).unwrap();
        let frozen = encoder.encoder().freeze(encoder.parameters(), Precision::F32);
        let mut vectors = vec![0.0; (offsets.len() - 1) * encoder.dim()];
        frozen.embed(Batch::new(&ids, &offsets), &mut Vec::new(), &mut vectors);
        for (ours, theirs) in vectors.iter().zip(floats(&golden, "mean.unit")) {
            assert!((ours - theirs).abs() < 2e-5, "{name}: {ours} {theirs}");
        }
    }
}

/// The real encoder, which is too large for the repository.
fn minilm() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../encoders/all-MiniLM-L6-v2");
    let model = folder.join("model.safetensors");
    assert!(model.exists(), "{} is missing: run scripts/get-minilm", model.display());
    folder
}

/// The thousand texts of the fixture.
fn texts() -> Texts {
    let texts = std::fs::read_to_string(fixture("minilm").join("texts.txt")).unwrap();
    texts.lines().collect()
}

#[test]
fn a_real_encoder_agrees_with_sentence_transformers() {
    let encoder = TextEncoder::load(&minilm()).unwrap();
    let embedder = encoder.embedder(Precision::F32);
    let folder = tempfile::tempdir().unwrap();
    let mut file =
        VectorFile::create(&folder.path().join("v.npy"), embedder.dim(), VectorType::F32).unwrap();
    let mut lines = TextLines::open(&fixture("minilm").join("texts.txt")).unwrap();
    let embedded = embedder.embed(&mut lines, &mut file, &Silent).unwrap();
    let ours = file.finish().unwrap();
    let theirs = VectorMatrix::open(&fixture("minilm").join("vectors.npy")).unwrap();
    assert_eq!((ours.n_rows(), ours.dim()), (theirs.n_rows(), theirs.dim()));
    assert_eq!((ours.n_rows(), embedded.n_texts), (1000, 1000));
    for row in 0..ours.n_rows() {
        let cosine = cosine(&ours.row(row).to_vec(), &theirs.row(row).to_vec());
        assert!(cosine >= 0.99999, "row {row}: {cosine}");
    }
}

#[test]
fn a_real_encoder_of_sixteen_bits_stays_close_to_sentence_transformers() {
    let encoder = TextEncoder::load(&minilm()).unwrap();
    let theirs = VectorMatrix::open(&fixture("minilm").join("vectors.npy")).unwrap();
    for (precision, least) in [(Precision::F16, 0.99999), (Precision::Bf16, 0.9999)] {
        let embedder = encoder.embedder(precision);
        let ours = embedder.embed_texts(&texts(), VectorType::F32, &Silent).unwrap();
        for row in 0..ours.n_rows() {
            let cosine = cosine(&ours.row(row).to_vec(), &theirs.row(row).to_vec());
            assert!(cosine >= least, "{precision:?}, row {row}: {cosine}");
        }
    }
}

#[test]
fn a_saved_encoder_gives_the_same_vectors_on_any_number_of_threads() {
    let texts: Texts = texts().iter().take(100).collect();
    let folder = tempfile::tempdir().unwrap();
    let encoder = TextEncoder::load(&minilm()).unwrap();
    let saved = folder.path().join("saved");
    encoder.save(&saved, Existing::Keep).unwrap();
    let again = TextEncoder::load(&saved).unwrap();
    let bits = |encoder: &TextEncoder| -> Vec<u32> {
        let embedder = encoder.embedder(Precision::F32);
        let vectors = embedder.embed_texts(&texts, VectorType::F32, &Silent).unwrap();
        vectors.all().to_vec().iter().map(|number| number.to_bits()).collect()
    };
    let vectors = bits(&encoder);
    assert_eq!(bits(&again), vectors);
    let single = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(single.install(|| bits(&encoder)), vectors);
}

#[test]
fn sixteen_bits_are_close_and_one_text_is_as_many() {
    let encoder = TextEncoder::load(&fixture("bert")).unwrap();
    let exact = encoder.embedder(Precision::F32);
    let short = encoder.embedder(Precision::F16);
    let texts: Texts = ["red and round", "", "yellow"].into_iter().collect();
    let vectors = exact.embed_texts(&texts, VectorType::F16, &Silent).unwrap();
    for (row, text) in texts.iter().enumerate() {
        let one = exact.embed_one(text).unwrap();
        assert!(cosine(&one, &vectors.row(row).to_vec()) > 0.99999);
        assert!(cosine(&one, &short.embed_one(text).unwrap()) > 0.9999);
    }
}
