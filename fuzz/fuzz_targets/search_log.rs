//! Logs of A/B tests.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ngame::metrics::{Bootstrap, SearchLog, evaluate_online};
use ngame::progress::Silent;

fuzz_target!(|bytes: &[u8]| {
    let bootstrap = Bootstrap { resamples: 3, ..Bootstrap::default() };
    ngame_fuzz::with_files(&["log.csv", "log.jsonl"], bytes, |folder| {
        for name in ["log.csv", "log.jsonl"] {
            if let Ok(log) = SearchLog::read(&folder.join(name), &Silent) {
                let _ = evaluate_online(&log, &log.arms[0], &bootstrap);
            }
        }
    });
});
