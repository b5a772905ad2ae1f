//! What an operator decides, and the limits that keep one client from harming another.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::access::Token;
use crate::log::LogFormat;

/// The most texts a request may have.
pub const MOST_TEXTS: usize = 128;

/// The most characters a text may have.
pub const MOST_CHARACTERS: usize = 20_000;

/// The most labels a text may be given.
pub const MOST_LABELS: usize = 100;

/// The most labels a request may exclude.
pub const MOST_EXCLUDED: usize = 1_000;

/// What an operator decides.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The models: name and folder. The first is asked where a request names none.
    pub models: Vec<(String, PathBuf)>,
    /// Where to listen.
    pub address: SocketAddr,
    /// The threads that answer; all there are if none are said.
    pub threads: Option<usize>,
    /// What clients must know.
    pub token: Option<Token>,
    /// The most texts that wait; beyond, requests are refused at once.
    pub max_queue: usize,
    /// The pages of another origin that may ask.
    pub cors: Option<String>,
    /// How lines of the log look.
    pub log: LogFormat,
    /// What a client may take.
    pub limits: Limits,
}

/// What a client may take of the server's time and memory.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The bytes of a request's body.
    pub body_bytes: usize,
    /// The bytes of a request's line and headers.
    pub header_bytes: usize,
    /// The number of headers.
    pub headers: usize,
    /// The time a client has to send its headers, from the moment it is connected or was answered.
    pub header_time: Duration,
    /// The time a client has to send a body.
    pub body_time: Duration,
    /// The time a request may wait and be worked on.
    pub answer_time: Duration,
    /// The time a client may take nothing of an answer that waits for it.
    pub write_time: Duration,
    /// The connections at once; others wait to be accepted.
    pub connections: usize,
    /// The time requests have to end when the server does.
    pub shutdown_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 2 << 20,
            header_bytes: 16 << 10,
            headers: 64,
            header_time: Duration::from_secs(30),
            body_time: Duration::from_secs(15),
            answer_time: Duration::from_secs(30),
            write_time: Duration::from_secs(15),
            connections: 1_024,
            shutdown_time: Duration::from_secs(30),
        }
    }
}

/// What `--max-queue` is if nobody says.
pub const DEFAULT_QUEUE: usize = 256;

impl Settings {
    /// Models on a loopback address, with nothing else decided.
    pub fn new(models: Vec<(String, PathBuf)>, address: SocketAddr) -> Self {
        Self {
            models,
            address,
            threads: None,
            token: None,
            max_queue: DEFAULT_QUEUE,
            cors: None,
            log: LogFormat::Text,
            limits: Limits::default(),
        }
    }

    /// Refuses what would be unsafe or cannot be meant.
    pub fn check(&self) -> Result<(), ServeError> {
        let refused = |problem: String, help: &str| {
            Err(ServeError::Refused { problem, help: help.to_owned() })
        };
        if !self.address.ip().is_loopback() && self.token.is_none() {
            return refused(
                format!("{} can be reached from other machines", self.address),
                "name a file with a secret in it: --token-file FILE \
                 (`openssl rand -hex 24 > FILE` makes one), or listen on 127.0.0.1",
            );
        }
        if self.models.is_empty() {
            return refused("there is no model to serve".to_owned(), "name a model folder");
        }
        for (at, (name, _)) in self.models.iter().enumerate() {
            if !is_name(name) {
                return refused(
                    format!("`{name}` cannot be the name of a model in an address"),
                    "write NAME=FOLDER, with a name of letters, digits, `.`, `_` and `-`",
                );
            }
            if self.models[..at].iter().any(|(other, _)| other == name) {
                return refused(
                    format!("two models are called `{name}`"),
                    "write NAME=FOLDER to give one of them another name",
                );
            }
        }
        if self.max_queue == 0 || self.threads == Some(0) {
            return refused(
                "0 threads, or a queue with no room".to_owned(),
                "give --threads and --max-queue at least 1",
            );
        }
        match &self.cors {
            Some(origin) if !is_origin(origin) => refused(
                format!("--cors {origin}: this is not an origin"),
                "write it as a browser does, without a path: https://example.org",
            ),
            _ => Ok(()),
        }
    }
}

/// Why a server does not start or ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// What was asked for is not done.
    #[error("{problem}\n  to do:    {help}")]
    Refused {
        /// What is wrong.
        problem: String,
        /// What to do about it.
        help: String,
    },
    /// A model cannot be opened.
    #[error(transparent)]
    Model(#[from] ngame::Error),
    /// The operating system refused something.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was being done.
        action: String,
        /// What the operating system answered.
        source: std::io::Error,
    },
}

/// Whether a text can name a model: it stands in addresses, logs and metrics.
pub fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=64).contains(&text.len()) && text.chars().all(fits) && !text.starts_with('.')
}

fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let fits = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
    host.is_some_and(|host| !host.is_empty() && host.chars().all(fits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(names: &[&str], address: &str) -> Settings {
        let models = names.iter().map(|name| ((*name).to_owned(), PathBuf::new())).collect();
        Settings::new(models, address.parse().unwrap())
    }

    #[test]
    fn what_is_unsafe_or_cannot_be_meant_is_refused() {
        let home = "127.0.0.1:0";
        let with = |change: &dyn Fn(&mut Settings)| {
            let mut settings = settings(&["a"], home);
            change(&mut settings);
            settings
        };
        for (settings, expected) in [
            (settings(&["a"], "0.0.0.0:80"), "--token-file"),
            (settings(&["a"], "[::]:80"), "--token-file"),
            (settings(&[], home), "no model"),
            (settings(&["a", "a"], home), "two models"),
            (settings(&["a/b"], home), "NAME=FOLDER"),
            (settings(&[".hidden"], home), "NAME=FOLDER"),
            (settings(&[""], home), "NAME=FOLDER"),
            (with(&|s| s.max_queue = 0), "--max-queue"),
            (with(&|s| s.threads = Some(0)), "--threads"),
            (with(&|s| s.cors = Some("*".to_owned())), "https://example.org"),
            (with(&|s| s.cors = Some("https://a.org/path".to_owned())), "https://example.org"),
        ] {
            let told = settings.check().unwrap_err().to_string();
            assert!(told.contains(expected) && told.contains("to do:"), "{expected}: {told}");
        }
        settings(&["a", "b"], home).check().unwrap();
        settings(&["a"], "[::1]:80").check().unwrap();
        with(&|s| s.cors = Some("http://localhost:3000".to_owned())).check().unwrap();
    }
}
