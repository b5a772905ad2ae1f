//! `ngame completions` and `ngame man`: what a shell and `man` want to know about the command.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::CommandFactory;

/// Print a completion script for your shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ngame completions bash > ~/.local/share/bash-completion/completions/ngame
  ngame completions zsh > ~/.zfunc/_ngame
  ngame completions fish > ~/.config/fish/completions/ngame.fish")]
pub(crate) struct Args {
    /// The shell
    shell: clap_complete::Shell,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::args::Args::command(), "ngame", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(())
}

/// Print the manual page, or write those of all commands into a folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ngame man | man -l -
  ngame man --out ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write ngame.1, ngame-check.1 and so on into this folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

pub(crate) fn run_man(args: &ManArgs) -> anyhow::Result<()> {
    let command = crate::args::Args::command();
    match &args.out {
        Some(folder) => {
            let wrote = || format!("cannot write manual pages into {}", folder.display());
            std::fs::create_dir_all(folder).with_context(wrote)?;
            clap_mangen::generate_to(command, folder).with_context(wrote)?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            std::io::stdout().write_all(&page)?;
        }
    }
    Ok(())
}
