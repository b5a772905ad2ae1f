//! A user's own JSON lines.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ngame::data::{Dataset, ReadOptions, SplitRequest, Summary};
use ngame::progress::Silent;

fuzz_target!(|bytes: &[u8]| {
    let split = SplitRequest::new(0.5, 0).ok();
    let options = ReadOptions { split, ..ReadOptions::default() };
    ngame_fuzz::with_files(&["train.jsonl", "labels.jsonl"], bytes, |folder| {
        if let Ok(dataset) = Dataset::read(folder, &options, &Silent) {
            Summary::new(&dataset);
        }
    });
});
