//! The `ngame` command: parse the arguments, run one command, turn its result into an exit code.

mod args;
mod chart;
mod check;
mod completions;
mod demo;
mod embed;
mod error_rows;
mod evaluate;
mod exit;
mod hub;
mod inspect;
mod labels;
mod metrics;
mod online_metrics;
mod output_file;
mod predict;
mod progress;
mod report;
mod serve;
mod terminal;
mod texts_in;
mod theory;
mod theory_figure;
mod train;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    ngame::encoder::keep_freed_memory();
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(error) => return exit::usage(&error),
    };
    exit::guarded(|| args.run())
}
