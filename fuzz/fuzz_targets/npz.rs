//! SciPy's sparse matrices.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ngame::data::read_label_matrix;
use ngame::progress::Silent;

fuzz_target!(|bytes: &[u8]| {
    ngame_fuzz::with_files(&["m.npz"], bytes, |folder| {
        let _ = read_label_matrix(&folder.join("m.npz"), &Silent);
    });
});
