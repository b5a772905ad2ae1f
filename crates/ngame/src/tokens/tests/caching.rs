//! Many texts at once, on any number of threads, and kept in files.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{encode, sample_texts, tokenizer};
use crate::Error;
use crate::data::Texts;
use crate::progress::{Event, Observer, Silent};
use crate::tokens::{TokenStore, Tokenizer, tokenize, tokenize_cached};

fn on_threads<T: Send>(n_threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap().install(work)
}

/// The files of a folder, in order.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn rows_are_those_of_single_texts_in_order_on_any_number_of_threads() {
    let texts = sample_texts();
    for name in ["lowercase", "byte-level"] {
        let tokenizer = tokenizer(name);
        let one = on_threads(1, || tokenize(&texts, &tokenizer, 16, &Silent).unwrap());
        let four = on_threads(4, || tokenize(&texts, &tokenizer, 16, &Silent).unwrap());
        assert_eq!(one, four);
        assert_eq!(one.n_texts(), texts.len());
        for (row, text) in one.iter().zip(texts.iter()) {
            assert_eq!(row.to_vec(), encode(&tokenizer, text, 16));
        }
    }
}

#[test]
fn no_texts_give_an_empty_store() {
    let store = tokenize(&Texts::new(), &tokenizer("lowercase"), 16, &Silent).unwrap();
    assert_eq!((store.n_texts(), store.n_tokens()), (0, 0));
}

#[test]
fn progress_counts_every_text() {
    #[derive(Default)]
    struct Counter(AtomicU64);
    impl Observer for Counter {
        fn event(&self, event: Event<'_>) {
            if let Event::Advanced(n) = event {
                self.0.fetch_add(n, Ordering::Relaxed);
            }
        }
    }
    let (texts, counter) = (sample_texts(), Counter::default());
    tokenize(&texts, &tokenizer("lowercase"), 16, &counter).unwrap();
    assert_eq!(counter.0.into_inner(), texts.len() as u64);
}

#[test]
fn a_stop_is_heard_and_leaves_no_file() {
    struct Stop;
    impl Observer for Stop {
        fn event(&self, _: Event<'_>) {}
        fn cancelled(&self) -> bool {
            true
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (texts, tokenizer) = (sample_texts(), tokenizer("lowercase"));
    assert!(matches!(tokenize(&texts, &tokenizer, 16, &Stop), Err(Error::Cancelled)));
    let cached = tokenize_cached(&texts, &tokenizer, 16, folder.path(), &Stop);
    assert!(matches!(cached, Err(Error::Cancelled)));
    assert_eq!(files(folder.path()).len(), 0);
}

/// An observer that fails the test when there is work to do.
struct Idle;

impl Observer for Idle {
    fn event(&self, event: Event<'_>) {
        panic!("{event:?}, although the result is in the cache");
    }
}

#[test]
fn the_second_time_comes_from_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("made/when/needed");
    let (texts, tokenizer) = (sample_texts(), tokenizer("lowercase"));
    let expected = tokenize(&texts, &tokenizer, 16, &Silent).unwrap();
    let first = on_threads(4, || tokenize_cached(&texts, &tokenizer, 16, &cache, &Silent).unwrap());
    let second = on_threads(1, || tokenize_cached(&texts, &tokenizer, 16, &cache, &Idle).unwrap());
    assert_eq!(first, expected);
    assert_eq!(second, expected);
    assert_eq!(second.memory(), 0);
    assert_eq!(files(&cache).len(), 1);
}

#[test]
fn anything_else_has_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let stored = |texts: &[&str], tokenizer: &Tokenizer, max_tokens: usize| {
        let texts: Texts = texts.iter().collect();
        tokenize_cached(&texts, tokenizer, max_tokens, folder.path(), &Silent).unwrap();
        files(folder.path()).len()
    };
    let (lowercase, cased) = (tokenizer("lowercase"), tokenizer("cased"));
    assert_eq!(stored(&["ab", "c"], &lowercase, 16), 1);
    assert_eq!(stored(&["ab", "c"], &lowercase, 16), 1);
    assert_eq!(stored(&["a", "bc"], &lowercase, 16), 2);
    assert_eq!(stored(&["abc"], &lowercase, 16), 3);
    assert_eq!(stored(&["ab", "c", ""], &lowercase, 16), 4);
    assert_eq!(stored(&["ab", "c"], &lowercase, 17), 5);
    assert_eq!(stored(&["ab", "c"], &cased, 16), 6);
    assert_eq!(stored(&[], &cased, 16), 7);
}

#[test]
fn a_damaged_file_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let (texts, tokenizer) = (sample_texts(), tokenizer("lowercase"));
    let run = || tokenize_cached(&texts, &tokenizer, 16, folder.path(), &Silent).unwrap();
    let expected = run();
    let [path] = &files(folder.path())[..] else { panic!("one file") };
    let whole = fs::read(path).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for damaged in [&whole[..whole.len() - 1], &whole[..20], &[], &flipped] {
        fs::remove_file(path).unwrap();
        fs::write(path, damaged).unwrap();
        assert_eq!(run(), expected);
        assert_eq!(fs::read(path).unwrap(), whole);
    }
    // A whole file under another's name is not taken for it.
    let others: Texts = ["other"].into_iter().collect();
    let key = *TokenStore::open(path).unwrap().key().unwrap();
    let other = tokenize(&others, &tokenizer, 16, &Silent).unwrap();
    other.save(path, [key[0] ^ 1; 32]).unwrap();
    assert_eq!(run(), expected);
}

#[test]
fn several_writers_at_once_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let (texts, tokenizer) = (sample_texts(), tokenizer("lowercase"));
    let expected = tokenize(&texts, &tokenizer, 16, &Silent).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let store = tokenize_cached(&texts, &tokenizer, 16, folder.path(), &Silent);
                assert_eq!(store.unwrap(), expected);
            });
        }
    });
    assert_eq!(files(folder.path()).len(), 1);
}
