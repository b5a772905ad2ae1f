//! Both kinds of index, against each other and against damaged files.

use std::path::Path;
use std::sync::Arc;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::encoder::VectorType;
use crate::error::InputErrorKind;
use crate::metrics::top_k;
use crate::progress::Silent;

const DIM: usize = 24;

/// Random unit vectors, a few of them equal to others.
fn unit(seed: u64, n: usize) -> VectorMatrix {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut matrix = VectorMatrix::zeros(n, DIM, VectorType::F32);
    let mut vector = vec![0.0; DIM];
    for row in 0..n {
        if row % 10 != 9 {
            vector = (0..DIM).map(|_| random.random::<f32>() - 0.5).collect();
            let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            vector.iter_mut().for_each(|x| *x /= norm);
        }
        matrix.set(row, &vector);
    }
    matrix
}

fn small_hnsw() -> Hnsw {
    Hnsw::build(Arc::new(unit(1, 300)), &HnswOptions::default(), &Silent).unwrap()
}

#[test]
fn one_query_searched_exactly_is_a_sort_of_all_scores() {
    let queries = unit(2, 20);
    // Enough rows for two threads to share them.
    let many = unit(1, 30_000);
    for vectors in [many.to_f16(), many, VectorMatrix::zeros(0, DIM, VectorType::F32)] {
        let ids: Vec<u32> = (0..vectors.n_rows() as u32).collect();
        let index = ExactIndex::new(Arc::new(vectors));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        for query in 0..queries.n_rows() {
            let query = queries.row(query).to_vec();
            let mut scores = vec![0.0; ids.len()];
            index.vectors().as_rows().dots(&ids, &query, &mut scores);
            let mut best = Vec::new();
            top_k(&ids, &scores, &[], 10, &mut best);
            assert_eq!(index.search(&query, 10).unwrap(), best);
            assert_eq!(pool.install(|| index.search(&query, 10)).unwrap(), best);
        }
        let found = index.search_many(&queries, 10, &Silent).unwrap();
        assert_eq!(found.n_rows(), 20);
    }
}

#[test]
fn the_graph_finds_almost_all_of_the_nearest_in_both_widths() {
    let (vectors, queries) = (unit(1, 2_000), unit(2, 50));
    let exact = search_exact(&queries, &vectors, 10, None, &Silent).unwrap();
    for vectors in [vectors.to_f16(), vectors] {
        let index = Hnsw::build(&vectors, &HnswOptions::default(), &Silent).unwrap();
        let found = index.search_many(&queries, 10, &Silent).unwrap();
        let reached = recall(&found, &exact);
        assert!(reached >= 0.97, "{reached}");
        for query in 0..50 {
            let query = queries.row(query).to_vec();
            let found = index.search(&query, 10).unwrap();
            assert!(found.is_sorted_by(|a, b| a.1 >= b.1));
            for (id, score) in found {
                let product = ngame_nn::dot(&query, &vectors.row(id as usize).to_vec());
                assert!((score - product).abs() < 1e-5);
            }
        }
    }
}

#[test]
fn a_graph_is_the_same_on_any_number_of_threads() {
    let vectors = unit(1, 2_000);
    let options = HnswOptions { connectivity: 4, build_width: 32, ..Default::default() };
    let build = |n_threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| Hnsw::build(&vectors, &options, &Silent)).unwrap().graph
    };
    let alone = build(1);
    assert!(alone == build(2) && alone == build(7));
}

/// Whoever sorts rows by what they are about has neighbours that are added together.
#[test]
fn vectors_that_come_cluster_by_cluster_are_found() {
    const CLUSTER: usize = 200;
    let (noise, centres) = (unit(1, 2_000), unit(3, 10));
    let mut vectors = VectorMatrix::zeros(2_000, DIM, VectorType::F32);
    for row in 0..2_000 {
        let centre = centres.row(row / CLUSTER).to_vec();
        let near: Vec<f32> =
            noise.row(row).to_vec().iter().zip(&centre).map(|(n, c)| 0.2 * n + c).collect();
        vectors.set(row, &near);
    }
    let mut queries = VectorMatrix::zeros(50, DIM, VectorType::F32);
    for query in 0..50 {
        queries.set(query, &vectors.row(query * 40 + 7).to_vec());
    }
    let exact = search_exact(&queries, &vectors, 10, None, &Silent).unwrap();
    let options = HnswOptions { build_width: 32, search_width: 32, ..Default::default() };
    let index = Hnsw::build(&vectors, &options, &Silent).unwrap();
    let reached = recall(&index.search_many(&queries, 10, &Silent).unwrap(), &exact);
    assert!(reached >= 0.95, "{reached}");
}

#[test]
fn vectors_of_different_lengths_are_found_in_both_ways() {
    let (units, queries) = (unit(1, 2_000), unit(2, 50));
    let mut vectors = VectorMatrix::zeros(2_000, DIM, VectorType::F32);
    for row in 0..2_000 {
        let length = 0.5 + (row * 7919 % 1_000) as f32 / 500.0;
        let vector: Vec<f32> = units.row(row).to_vec().iter().map(|x| x * length).collect();
        vectors.set(row, &vector);
    }
    let exact = search_exact(&queries, &vectors, 10, None, &Silent).unwrap();
    for equal_lengths in [false, true] {
        let options = HnswOptions { equal_lengths, ..Default::default() };
        let mut index = Hnsw::build(&vectors, &options, &Silent).unwrap();
        let tuned = tune(&mut index, &queries, &exact, 10, 0.95).unwrap();
        assert!(tuned.reached >= 0.95, "{equal_lengths}: {tuned:?}");
    }
}

#[test]
fn tuning_finds_a_narrow_width_or_says_what_was_reached() {
    let (vectors, queries) = (unit(1, 2_000), unit(2, 50));
    let exact = search_exact(&queries, &vectors, 10, None, &Silent).unwrap();
    let options = HnswOptions { connectivity: 4, build_width: 16, ..Default::default() };
    let mut index = Hnsw::build(&vectors, &options, &Silent).unwrap();
    let narrow = tune(&mut index, &queries, &exact, 10, 0.5).unwrap();
    let wide = tune(&mut index, &queries, &exact, 10, 0.9).unwrap();
    assert!(narrow.reached >= 0.5 && wide.reached >= 0.9);
    assert!(narrow.search_width <= wide.search_width);
    assert_eq!(index.search_width(), wide.search_width);
    let most = tune(&mut index, &queries, &exact, 10, 1.1).unwrap();
    assert!(most.reached < 1.1 && most.search_width == 2_000);
}

#[test]
fn eight_threads_find_what_one_does() {
    let (vectors, queries) = (unit(1, 1_000), unit(2, 40));
    let index = Hnsw::build(&vectors, &HnswOptions::default(), &Silent).unwrap();
    let search = || -> Vec<Vec<(u32, f32)>> {
        let one = |query: usize| index.search(&queries.row(query).to_vec(), 10).unwrap();
        (0..40).map(one).collect()
    };
    let alone = search();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(search)).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), alone);
        }
    });
}

#[test]
fn no_vectors_one_vector_and_more_wanted_than_there_are() {
    let query = [0.5; DIM];
    for n in [0, 1, 3] {
        let index = Hnsw::build(Arc::new(unit(1, n)), &HnswOptions::default(), &Silent).unwrap();
        assert_eq!(index.search(&query, 10).unwrap().len(), n);
        assert_eq!(index.search(&query, 0).unwrap().len(), 0);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index");
        index.save(&path).unwrap();
        let opened = Hnsw::open(&path, Arc::new(unit(1, n))).unwrap();
        assert_eq!(opened.search(&query, 2).unwrap(), index.search(&query, 2).unwrap());
    }
    let options = HnswOptions { connectivity: 1, ..Default::default() };
    let error = Hnsw::build(&unit(1, 2), &options, &Silent).unwrap_err();
    assert!(error.to_string().contains("from 2 to"), "{error}");
}

#[test]
fn a_saved_graph_is_the_same_when_opened_and_refuses_other_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let mut index = small_hnsw();
    index.set_search_width(77);
    index.save(&path).unwrap();
    let opened = Hnsw::open(&path, Arc::new(unit(1, 300))).unwrap();
    assert_eq!((&opened.graph, opened.search_width()), (&index.graph, 77));
    let others = [unit(1, 299), unit(2, 300), unit(1, 300).to_f16()];
    for other in others {
        let error = Hnsw::open(&path, Arc::new(other)).unwrap_err();
        assert_eq!(error.input_kind(), Some(InputErrorKind::CountMismatch), "{error}");
    }
}

/// What opening a file of these bytes says.
fn open(path: &Path, bytes: &[u8]) -> Result<Hnsw> {
    std::fs::write(path, bytes).unwrap();
    Hnsw::open(path, Arc::new(unit(1, 300)))
}

#[test]
fn damaged_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    small_hnsw().save(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for length in (0..200).chain((200..whole.len()).step_by(997)) {
        let error = open(&path, &whole[..length]).unwrap_err();
        assert!(error.input_kind().is_some(), "cut at {length}: {error}");
    }
    let error = open(&path, &[&whole[..], b"more"].concat()).unwrap_err();
    assert_eq!(error.input_kind(), Some(InputErrorKind::DamagedFile));
    for place in (0..200).chain((200..whole.len()).step_by(997)) {
        let mut flipped = whole.clone();
        flipped[place] ^= 1 << (place % 8);
        let error = open(&path, &flipped).unwrap_err();
        assert!(error.input_kind().is_some(), "flipped at {place}: {error}");
    }
    open(&path, &whole).unwrap();
}

#[test]
fn files_made_to_do_harm_are_refused_even_with_the_right_checksums() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    small_hnsw().save(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let mut refused = 0;
    // Every number of the header behind the version, and many of the body, as large as can be, and
    // somewhat too large.
    for place in (16..64).step_by(8).chain((160..whole.len()).step_by(4 * 7)) {
        for value in [u32::MAX, 1 << 31, 301, 33] {
            let mut harmful = whole.clone();
            harmful[place..place + 4].copy_from_slice(&value.to_le_bytes());
            graph_file::sign(&mut harmful);
            match open(&path, &harmful) {
                Err(error) => {
                    assert!(error.input_kind().is_some(), "{error}");
                    refused += 1;
                }
                // What is accepted can be searched.
                Ok(index) => {
                    assert!(index.search(&[0.1; DIM], 10).unwrap().len() <= 10);
                }
            }
        }
    }
    assert!(refused > 100, "{refused}");
}
