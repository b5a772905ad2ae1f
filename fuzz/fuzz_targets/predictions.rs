//! Predictions of every kind, and the metrics of what was read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ngame::data::{Csr, read_predictions};
use ngame::metrics::{Task, evaluate};
use ngame::progress::Silent;

fuzz_target!(|bytes: &[u8]| {
    ngame_fuzz::with_files(&["p.txt"], bytes, |folder| {
        for n_points in 1..4 {
            let predictions = read_predictions(&folder.join("p.txt"), n_points, 5, None, &Silent);
            if let Ok(predictions) = predictions {
                let truth = Csr::from_pairs(n_points, 5, vec![(0, 1)]);
                let task = Task { truth: &truth, filter: None, inverse_propensities: None };
                evaluate(&predictions, &task, 5);
            }
        }
    });
});
