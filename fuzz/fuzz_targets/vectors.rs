//! `.npy` files of vectors.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ngame::encoder::VectorMatrix;

fuzz_target!(|bytes: &[u8]| {
    ngame_fuzz::with_files(&["vectors.npy"], bytes, |folder| {
        if let Ok(matrix) = VectorMatrix::open(&folder.join("vectors.npy")) {
            for row in (0..matrix.n_rows()).take(100) {
                matrix.row(row).to_vec();
            }
        }
    });
});
