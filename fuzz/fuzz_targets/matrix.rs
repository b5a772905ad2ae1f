//! Sparse text matrices, label counts and filter pairs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ngame::data::{read_filter, read_label_counts, read_label_matrix};
use ngame::progress::Silent;

fuzz_target!(|bytes: &[u8]| {
    ngame_fuzz::with_files(&["m.txt", "c.txt", "f.txt"], bytes, |folder| {
        let _ = read_label_matrix(&folder.join("m.txt"), &Silent);
        let _ = read_label_counts(&folder.join("c.txt"), &Silent);
        let _ = read_filter(&folder.join("f.txt"), 5, 7, &Silent);
    });
});
