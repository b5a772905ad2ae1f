//! What clients can do to a connection, and what becomes of it.

use std::io::Read;
use std::net::Shutdown;
use std::time::Duration;

use crate::client::{Client, Running};
use crate::trained::{heavy, no_log, settings};

/// A server with little patience.
fn impatient() -> Running {
    let mut settings = settings();
    settings.limits.header_time = Duration::from_millis(300);
    settings.limits.body_time = Duration::from_millis(300);
    settings.limits.write_time = Duration::from_millis(300);
    settings.limits.body_bytes = 100_000;
    Running::start(settings, no_log())
}

fn still_answers(running: &Running) {
    let reply = running.client().post("/v1/predict", r#"{"texts":["mail"]}"#).unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text);
}

#[test]
fn connections_are_kept_for_more_requests() {
    let running = Running::start(settings(), no_log());
    let mut client = running.client();
    for _ in 0..20 {
        assert_eq!(client.post("/v1/predict", r#"{"texts":["mail"]}"#).unwrap().status, 200);
        assert_eq!(client.get("/healthz").status, 200);
        assert_eq!(client.post("/v1/predict", "{").unwrap().status, 400);
    }
    running.stop();
}

#[test]
fn slow_heads_and_idle_connections_are_cut_off() {
    let running = impatient();
    let mut silent = running.client();
    let mut slow = running.client();
    slow.write(b"POST /v1/predict HTT").unwrap();
    let mut idle = running.client();
    assert_eq!(idle.get("/healthz").status, 200);
    assert!(silent.is_closed() && slow.is_closed() && idle.is_closed());
    still_answers(&running);
    running.stop();
}

#[test]
fn slow_bodies_are_told_and_cut_off() {
    let running = impatient();
    let mut client = running.client();
    client
        .write(
            b"POST /v1/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
              content-length: 1000\r\n\r\n{\"texts\"",
        )
        .unwrap();
    let reply = client.reply().unwrap();
    assert_eq!(reply.status, 408, "{}", reply.text);
    assert!(client.is_closed());
    still_answers(&running);
    running.stop();
}

#[test]
fn clients_that_take_no_answers_are_cut_off() {
    let running = impatient();
    let client = running.client();
    // Pages, asked for and never read, until no buffer has room for them.
    let stream = client.stream().try_clone().unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    let request = "GET /assets/style.css HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(100);
    let cut_off = (0..10_000).any(|_| {
        use std::io::Write;
        (&stream).write_all(request.as_bytes()).is_err()
    });
    assert!(cut_off, "the server went on reading for a client that reads nothing");
    still_answers(&running);
    running.stop();
}

#[test]
fn long_heads_and_bodies_are_refused() {
    let running = impatient();
    let many: String = (0..100).map(|n| format!("x-{n}: y\r\n")).collect();
    for head in [
        format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "x".repeat(70_000)),
        format!("GET / HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "y".repeat(70_000)),
        format!("GET / HTTP/1.1\r\nhost: localhost\r\n{many}\r\n"),
    ] {
        let mut client = running.client();
        // The server may close before all is sent.
        let _ = client.write(head.as_bytes());
        if let Ok(reply) = client.reply() {
            assert!([414, 431].contains(&reply.status), "{}", reply.head);
        }
        assert!(client.is_closed());
    }
    let mut client = running.client();
    client
        .write(
            b"POST /v1/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
              content-length: 100001\r\n\r\n",
        )
        .unwrap();
    assert_eq!(client.reply().unwrap().status, 413);
    // Without a length, it is counted as it comes.
    let mut client = running.client();
    client
        .write(
            b"POST /v1/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
              transfer-encoding: chunked\r\n\r\n",
        )
        .unwrap();
    let chunk = format!("{:x}\r\n{}\r\n", 60_000, " ".repeat(60_000));
    let _ = client.write(chunk.as_bytes());
    let _ = client.write(chunk.as_bytes());
    assert_eq!(client.reply().unwrap().status, 413);
    still_answers(&running);
    running.stop();
}

#[test]
fn what_is_not_http_is_refused() {
    let running = impatient();
    for nonsense in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\r\n\r\n"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET\r\n\r\n",
        b"\r\n\r\n\r\n\r\n\x00\x01\x02\r\n\r\n",
        b"POST /v1/predict HTTP/1.1\r\ncontent-length: -5\r\n\r\n",
        b"POST /v1/predict HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut client = running.client();
        let _ = client.write(nonsense);
        let mut reply = Vec::new();
        // Closed with a 4xx or without a word.
        let _ = read_all(&client, &mut reply);
        let text = String::from_utf8_lossy(&reply);
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 4"), "{text}");
    }
    still_answers(&running);
    running.stop();
}

fn read_all(client: &Client, reply: &mut Vec<u8>) -> std::io::Result<usize> {
    client.stream().read_to_end(reply)
}

#[test]
fn half_closed_connections_are_taken_to_be_gone() {
    let mut settings = settings();
    settings.max_queue = 1_000;
    let running = Running::start(settings, no_log());
    let mut busy = running.client();
    busy.begin_post("/v1/predict", &heavy()).unwrap();
    let mut half = running.client();
    half.begin_post("/v1/predict", &heavy()).unwrap();
    half.stream().shutdown(Shutdown::Write).unwrap();
    // The connection ends without an answer, and what was asked on it is dropped.
    assert!(half.is_closed());
    // In the middle of a head and of a body, too.
    for part in [
        "GET /healthz HT",
        "POST /v1/predict HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{",
    ] {
        let mut client = running.client();
        client.write(part.as_bytes()).unwrap();
        client.stream().shutdown(Shutdown::Write).unwrap();
        assert!(client.is_closed());
    }
    assert_eq!(busy.reply().unwrap().status, 200);
    // None of them is left behind: only the one that asks is there, and the one that was busy.
    running.wait_for("ngame_connections", |n| n <= 2);
    running.stop();
}
