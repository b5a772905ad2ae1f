//! The server as its clients meet it, one binary.

#![allow(clippy::unwrap_used)] // A test that fails may panic.

mod client; // A few lines of HTTP over a socket.
mod trained; // A small model, trained once.
mod webdriver; // A browser, told what to do.

mod browser; // The page.
mod description; // /openapi.json says what the server does.
mod load; // Full queues, time limits, clients that go away.
mod operation; // Shutdown and reload while requests come.
mod problems; // Every mistake has an answer.
mod routes; // Every route and field.
mod sockets; // Limits on connections, slow and half-closed clients.
