//! `ngame report`: one page about models and runs, for people to look at.

mod examples;
mod page;
mod sections;
mod told;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use ngame::data::{Dataset, TextChoice};

use crate::check::ReadArgs;
use crate::output_file::write_file;
use crate::progress::Bars;
use crate::terminal::{DIM, stdout, styled};
use told::Told;

/// Write one page about models and runs: curves, costs, accuracy, examples.
///
/// The page stands by itself: no script, no font, no picture from elsewhere. Given several folders, it
/// compares them side by side. A run that is still training has its curves so far.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ngame report model --out report.html
  ngame report model --data samples/debian-small --out report.html
  ngame report bag minilm minilm-longer.run --out compared.html")]
pub(crate) struct Args {
    /// Model folders, or folders of runs under way
    #[arg(required = true, value_name = "MODEL|RUN")]
    folders: Vec<PathBuf>,
    /// The page
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// Show test points of this data set with the labels found for them, right and wrong
    #[arg(long)]
    data: Option<PathBuf>,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let bars = Bars::new();
    let mut all =
        args.folders.iter().map(|path| Told::read(path)).collect::<Result<Vec<_>, _>>()?;
    told::tell_apart(&mut all, &args.folders);
    if let Some(path) = &args.data {
        let text = all.iter().find_map(|told| Some(told.plan.as_ref()?.data.text));
        let options = args.read.options_or(text.unwrap_or(TextChoice::default()))?;
        let dataset = Dataset::read(path, &options, &bars)?;
        let test = dataset.test.as_ref().with_context(|| {
            format!(
                "{}: the data set has no test points\n  to do:    make some with --split",
                path.display()
            )
        })?;
        for (told, folder) in all.iter_mut().zip(&args.folders) {
            if told.model.is_some() {
                told.examples = Some(examples::find(folder, &dataset, test, &bars)?);
            }
        }
    }
    write_file(&args.out, &page::page(&all))?;
    let line = format!("written to {}: open it in a browser", args.out.display());
    writeln!(stdout(), "{}", styled(DIM, line))?;
    Ok(())
}
