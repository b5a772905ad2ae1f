//! The library's integration tests, one binary.

#![allow(clippy::unwrap_used)] // A test that fails may panic.

mod bad_input; // What a user gets wrong, and what they are told.
mod encoder_folders; // Encoders loaded, refused, saved.
mod encoder_vectors; // Our vectors against those of PyTorch and sentence-transformers.
mod folders; // Data sets as the tests need them, written to a temporary folder.
mod golden_metrics; // Our metrics against pyxclib's.
mod labels; // Labels that come and go.
mod old_models; // Folders that older builds wrote.
mod readers; // Every format, read back.
mod search_logs; // Logs of A/B tests, read back and measured.
mod tidy; // The rules of the house.
mod training;
mod whole_run; // Encoders trained, stopped and gone on with.
