//! Models behind HTTP: an interface for programs and a page for people.
//!
//! ```text
//!  connections ──> around ──> routes ──> body, types ──> service ──> queue ──> batcher ──> ngame
//!  limits, time    token,     one        checked         which        bounded   one call    Predictor
//!  shutdown        log, id    a file     values          model                  a batch
//! ```
//!
//! Only this crate knows an asynchronous runtime, and only its outside: computing is done by plain
//! threads that take batches from a queue. [`app`] is the whole service without a socket.

mod access;
mod around;
mod batcher;
mod body;
mod card;
mod connections;
mod label_search;
mod log;
mod measurements;
mod models;
mod openapi;
mod problem;
mod queue;
mod routes;
mod server;
mod service;
mod settings;
mod timed_stream;
pub mod types;

pub use access::Token;
pub use log::{Log, LogFormat};
pub use problem::Problem;
pub use routes::app;
pub use server::{Control, Server};
pub use service::Service;
pub use settings::{
    DEFAULT_QUEUE, Limits, MOST_CHARACTERS, MOST_EXCLUDED, MOST_LABELS, MOST_TEXTS, ServeError,
    Settings, is_name,
};
