//! `ngame serve`: models behind HTTP, and a page to try them on.

use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::ValueEnum;
use ngame_server::{DEFAULT_QUEUE, Log, LogFormat, Server, Settings, Token, is_name};

use crate::terminal::{BOLD, DIM, WARN, stdout, styled};

/// Answer over HTTP: an interface for programs, and a page for people.
///
/// A model is loaded anew, without losing a request, when its folder changes or on SIGHUP. SIGTERM and
/// Ctrl-C end the server when all requests are answered.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ngame serve model
  ngame serve titles=models/titles full=models/full --addr 127.0.0.1:9000
  openssl rand -hex 24 > token && ngame serve model --addr 0.0.0.0:8080 --token-file token
  curl localhost:8080/v1/predict -H 'content-type: application/json' -d '{\"texts\": [\"a viewer for photos\"]}'")]
pub(crate) struct Args {
    /// Model folders, as FOLDER or NAME=FOLDER; the first answers where a request names none
    #[arg(required = true, value_name = "[NAME=]MODEL")]
    models: Vec<String>,
    /// Where to listen; any address but a loopback one needs --token-file
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    addr: String,
    /// Use this many threads to compute (otherwise all there are)
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// A file with a secret that clients must send: `authorization: Bearer SECRET`
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// At most so many texts wait; beyond, requests are answered with 503 at once
    #[arg(long, value_name = "N", default_value_t = DEFAULT_QUEUE)]
    max_queue: usize,
    /// Let pages of this origin ask from browsers
    #[arg(long, value_name = "ORIGIN")]
    cors: Option<String>,
    /// How the log on standard error looks; texts of users are never in it
    #[arg(long, value_enum, default_value_t = Lines::Text)]
    log: Lines,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Lines {
    Text,
    Json,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let models = args.models.iter().map(|model| named(model)).collect::<anyhow::Result<_>>()?;
    let mut settings = Settings::new(models, address(&args.addr)?);
    settings.threads = args.threads;
    settings.max_queue = args.max_queue;
    settings.cors = args.cors.clone();
    settings.log = match args.log {
        Lines::Text => LogFormat::Text,
        Lines::Json => LogFormat::Json,
    };
    if let Some(file) = &args.token_file {
        settings.token = Some(read_token(file)?);
    }
    let is_public = !settings.address.ip().is_loopback();
    let log = Log::new(settings.log, Box::new(std::io::stderr()));
    let server = Server::open(settings, log)?;
    let mut out = stdout();
    let shown = shown(server.address());
    writeln!(out, "{}  {}", styled(BOLD, format!("http://{shown}")), styled(DIM, "Ctrl-C ends"))?;
    writeln!(out, "{}", styled(DIM, format!("for programs: http://{shown}/docs")))?;
    if is_public {
        let warning = "other machines can reach this, and read what goes over the network: \
                       put a proxy that speaks HTTPS in front";
        writeln!(out, "{}", styled(WARN, warning))?;
    }
    out.flush()?;
    Ok(server.run()?)
}

/// A model and its name: the one given, or the folder's.
fn named(model: &str) -> anyhow::Result<(String, PathBuf)> {
    // A folder may have `=` in its path; what stands before it is then no name.
    if let Some((name, folder)) = model.split_once('=').filter(|(name, _)| is_name(name)) {
        return Ok((name.to_owned(), PathBuf::from(folder)));
    }
    let folder = PathBuf::from(model);
    let own = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    let name = own.file_name().map(|name| name.to_string_lossy().into_owned());
    match name.filter(|name| is_name(name)) {
        Some(name) => Ok((name, folder)),
        None => bail!(
            "{model}: the folder's name cannot stand in an address\n  to do:    name the model, with \
             letters, digits, `.`, `_` and `-`: NAME={model}"
        ),
    }
}

fn address(text: &str) -> anyhow::Result<SocketAddr> {
    let found = text.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.with_context(|| {
        format!("--addr {text}: expected an address and a port, such as 127.0.0.1:8080")
    })
}

fn read_token(file: &Path) -> anyhow::Result<Token> {
    let contents = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read --token-file {}", file.display()))?;
    Token::new(&contents).with_context(|| format!("--token-file {}", file.display()))
}

/// The address as a browser on this machine can open it.
fn shown(address: SocketAddr) -> String {
    match address.ip().is_unspecified() {
        true => format!("localhost:{}", address.port()),
        false => address.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_named_by_hand_or_by_their_folders() {
        let named = |model: &str| named(model).unwrap();
        assert_eq!(named("a=b/c"), ("a".to_owned(), PathBuf::from("b/c")));
        assert_eq!(named("some/where/titles/"), ("titles".to_owned(), "some/where/titles/".into()));
        assert!(super::named("x/a=b").unwrap_err().to_string().contains("NAME=x/a=b"));
        assert_eq!(named("ab=x/a=b"), ("ab".to_owned(), PathBuf::from("x/a=b")));
        assert!(super::named("x/öl").unwrap_err().to_string().contains("NAME=x/öl"));
    }
}
