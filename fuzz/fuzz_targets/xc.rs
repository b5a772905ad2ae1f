//! XC text folders.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ngame::data::{Dataset, ReadOptions, Summary};
use ngame::progress::Silent;

fuzz_target!(|bytes: &[u8]| {
    let names = ["trn_X.txt", "trn_X_Y.txt", "Y.txt", "tst_X.txt", "tst_X_Y.txt"];
    ngame_fuzz::with_files(&names, bytes, |folder| {
        if let Ok(dataset) = Dataset::read(folder, &ReadOptions::default(), &Silent) {
            Summary::new(&dataset);
        }
    });
});
