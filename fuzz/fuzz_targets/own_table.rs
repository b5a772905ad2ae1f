//! A user's own CSV and TSV.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ngame::data::{Dataset, ReadOptions, Summary};
use ngame::progress::Silent;

fuzz_target!(|bytes: &[u8]| {
    let names = ["train.csv", "labels.csv", "test.tsv", "valid.csv"];
    ngame_fuzz::with_files(&names, bytes, |folder| {
        if let Ok(dataset) = Dataset::read(folder, &ReadOptions::default(), &Silent) {
            Summary::new(&dataset);
        }
    });
});
