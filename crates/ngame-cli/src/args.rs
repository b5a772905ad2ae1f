//! What can be typed: one command a variant, each in a file of its own.

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};

use crate::{
    check, completions, demo, embed, evaluate, inspect, labels, metrics, online_metrics, predict,
    report, serve, theory, train,
};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Extreme classification: from a text to the few right labels out of millions.
///
/// Labels are texts too: products related to a product, pages to see next, subject headings of a
/// document, ads for a query.
#[derive(Debug, Parser)]
#[command(
    name = "ngame",
    version,
    styles = STYLES,
    max_term_width = 100,
    after_help = "Try it now, without any file of your own:\n  ngame demo"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Args),
    Check(check::Args),
    Train(train::Args),
    Predict(predict::Args),
    Evaluate(evaluate::Args),
    Inspect(inspect::Args),
    Labels(labels::Args),
    Report(report::Args),
    Serve(serve::Args),
    Embed(embed::Args),
    Metrics(metrics::Args),
    OnlineMetrics(online_metrics::Args),
    Theory(theory::Args),
    Completions(completions::Args),
    Man(completions::ManArgs),
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Demo(args) => demo::run(&args),
            Command::Check(args) => check::run(&args),
            Command::Train(args) => train::run(&args),
            Command::Predict(args) => predict::run(&args),
            Command::Evaluate(args) => evaluate::run(&args),
            Command::Inspect(args) => inspect::run(&args),
            Command::Labels(args) => labels::run(&args),
            Command::Report(args) => report::run(&args),
            Command::Serve(args) => serve::run(&args),
            Command::Embed(args) => embed::run(&args),
            Command::Metrics(args) => metrics::run(&args),
            Command::OnlineMetrics(args) => online_metrics::run(&args),
            Command::Theory(args) => theory::run(&args),
            Command::Completions(args) => completions::run(&args),
            Command::Man(args) => completions::run_man(&args),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        super::Args::command().debug_assert();
    }
}
