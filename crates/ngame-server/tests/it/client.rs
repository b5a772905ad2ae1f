//! A client of a few lines: it sends bytes and reads answers, and can be as rude as it likes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use ngame_server::{Control, Log, ServeError, Server, Settings};

/// A server in a thread of its own.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) control: Control,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Running {
    pub(crate) fn start(settings: Settings, log: Log) -> Self {
        let server = Server::open(settings, log).unwrap();
        let (address, control) = (server.address(), server.control());
        let thread = Some(std::thread::spawn(move || server.run()));
        Self { address, control, thread }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.address)
    }

    /// Stops it and waits until it has ended.
    pub(crate) fn stop(mut self) {
        self.control.stop();
        self.thread.take().unwrap().join().unwrap().unwrap();
    }

    /// Waits until a measurement is what it should be.
    pub(crate) fn wait_for(&self, name: &str, wanted: impl Fn(u64) -> bool) {
        for _ in 0..6_000 {
            let metrics = self.client().get("/metrics").text;
            let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
            if line.is_some_and(|number| wanted(number.parse().unwrap())) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("{name} never was what it should be");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.control.stop();
            let _ = thread.join();
        }
    }
}

/// A connection.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) text: String,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        // Nothing should take this long; a test that would hang fails.
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.stream.get_ref()
    }

    pub(crate) fn get(&mut self, path: &str) -> Reply {
        self.write(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).unwrap();
        self.reply().unwrap()
    }

    pub(crate) fn begin_post(&mut self, path: &str, body: &str) -> std::io::Result<()> {
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n"
        );
        self.write(format!("{head}{body}").as_bytes())
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> std::io::Result<Reply> {
        self.begin_post(path, body)?;
        self.reply()
    }

    /// Reads an answer; an error if the connection ends before it is whole.
    pub(crate) fn reply(&mut self) -> std::io::Result<Reply> {
        let mut head = String::new();
        loop {
            let before = head.len();
            if self.stream.read_line(&mut head)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            if head[before..].trim().is_empty() {
                break;
            }
        }
        let head = head.to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap())];
        self.stream.read_exact(&mut body)?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        Ok(Reply { status, head, text: String::from_utf8(body).unwrap() })
    }

    /// Whether the other end has closed, read to its end.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}
