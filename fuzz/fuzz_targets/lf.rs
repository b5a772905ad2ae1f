//! LF folders.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ngame::data::{Dataset, ReadOptions, Summary};
use ngame::progress::Silent;

fuzz_target!(|bytes: &[u8]| {
    let names = ["lbl.json", "trn.json", "tst.json", "filter_labels_test.txt"];
    ngame_fuzz::with_files(&names, bytes, |folder| {
        if let Ok(dataset) = Dataset::read(folder, &ReadOptions::default(), &Silent) {
            Summary::new(&dataset);
        }
    });
});
