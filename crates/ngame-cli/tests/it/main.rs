//! The command as users run it, one binary.

#![allow(clippy::unwrap_used)] // A test that fails may panic.

mod command; // Runs `ngame` and looks at what it says.

mod analysis; // ngame evaluate --errors, ngame theory
mod check; // ngame check
mod demo; // ngame demo
mod embed; // ngame embed
mod labels; // ngame labels
mod metrics; // ngame metrics
mod model; // A model's life.
mod online_metrics; // ngame online-metrics
mod report; // ngame report
mod serve; // ngame serve
mod shell; // Help, completions, manual pages, exit codes, pipes.
mod train; // ngame train
