//! Load on a service that takes `POST {"texts": [...], "top": 5}`: so many connections, as fast as they
//! are answered or at a fixed rate, for so many seconds. Prints what came back, as JSON.

#![allow(clippy::print_stdout)] // What it prints is what it is for.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use serde_json::json;

#[derive(Parser)]
struct Args {
    /// Where the service listens: 127.0.0.1:8080
    address: String,
    /// One text a line
    texts: PathBuf,
    #[arg(long, default_value = "/v1/predict")]
    path: String,
    #[arg(long, default_value_t = 1)]
    connections: usize,
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Requests a second over all connections; as fast as they are answered if 0
    #[arg(long, default_value_t = 0.0)]
    rate: f64,
    /// The share of requests that are wrong in some way, and must be answered with a 4xx
    #[arg(long, default_value_t = 0.0)]
    bad: f64,
}

/// What one connection saw: status and milliseconds of every request.
#[derive(Default)]
struct Seen {
    answers: Vec<(u16, f32)>,
    /// Wrong requests that were answered as they should be.
    n_bad: u64,
    /// Requests that got no answer.
    n_lost: u64,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let texts = std::fs::read_to_string(&args.texts).context("cannot read the texts")?;
    let texts: Vec<&str> = texts.lines().filter(|line| !line.trim().is_empty()).collect();
    ensure!(!texts.is_empty(), "no texts");
    let began = Instant::now();
    let seen: Vec<Result<Seen>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..args.connections)
            .map(|number| {
                scope.spawn({
                    let (args, texts) = (&args, &texts);
                    move || connection(args, texts, number, began)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a connection panicked")).collect()
    });
    let seconds = began.elapsed().as_secs_f64();
    let (mut answered, mut refused, mut other) = (Vec::new(), Vec::new(), Vec::new());
    let (mut n_bad, mut n_lost) = (0, 0);
    for one in seen {
        let one = one?;
        n_bad += one.n_bad;
        n_lost += one.n_lost;
        for (status, milliseconds) in one.answers {
            match status {
                200 => answered.push(milliseconds),
                503 => refused.push(milliseconds),
                status => other.push(status),
            }
        }
    }
    println!(
        "{}",
        json!({
            "seconds": seconds,
            "answered": answered.len(),
            "per_second": answered.len() as f64 / seconds,
            "answered_ms": quantiles(&mut answered),
            "refused": refused.len(),
            "refused_ms": quantiles(&mut refused),
            "bad": n_bad,
            "other": other,
            "lost": n_lost,
        })
    );
    Ok(())
}

fn connection(args: &Args, texts: &[&str], number: usize, began: Instant) -> Result<Seen> {
    let connect = || -> Result<BufReader<TcpStream>> {
        let stream = TcpStream::connect(&args.address).context("cannot connect")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(BufReader::new(stream))
    };
    let mut stream = connect()?;
    let mut seen = Seen::default();
    let interval = if args.rate > 0.0 { args.connections as f64 / args.rate } else { 0.0 };
    let mut due = interval * number as f64 / args.connections as f64;
    let mut at = number * 7_919;
    while began.elapsed().as_secs_f64() < args.seconds {
        if interval > 0.0 {
            let wait = due - began.elapsed().as_secs_f64();
            if wait > 0.0 {
                std::thread::sleep(Duration::from_secs_f64(wait));
            }
            due += interval;
        }
        at += 1;
        let is_bad = (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
            < (args.bad * f64::from(1 << 24)) as u64;
        let body = match is_bad {
            true => BAD[at % BAD.len()].to_owned(),
            false => json!({ "texts": [texts[at % texts.len()]], "top": 5 }).to_string(),
        };
        let sent = Instant::now();
        match ask(&mut stream, &args.path, &body) {
            Ok(status) if is_bad && (400..500).contains(&status) => seen.n_bad += 1,
            Ok(status) => seen.answers.push((status, sent.elapsed().as_secs_f32() * 1e3)),
            Err(_) => {
                seen.n_lost += 1;
                stream = connect()?;
            }
        }
    }
    Ok(seen)
}

/// What clients get wrong.
const BAD: [&str; 6] = [
    "{",
    "[]",
    r#"{"texts":[]}"#,
    r#"{"texts":["a"],"top":0}"#,
    r#"{"texts":["a"],"unknown":1}"#,
    r#"{"texts":["a"],"model":"no such model"}"#,
];

fn ask(stream: &mut BufReader<TcpStream>, path: &str, body: &str) -> Result<u16> {
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    stream.get_mut().write_all(request.as_bytes())?;
    let (mut line, mut status, mut length) = (String::new(), 0, 0usize);
    loop {
        line.clear();
        ensure!(stream.read_line(&mut line)? > 0, "the connection ended");
        if line.trim().is_empty() {
            break;
        }
        if status == 0 {
            status = line.split(' ').nth(1).context("no status")?.parse()?;
        } else if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(status)
}

fn quantiles(values: &mut [f32]) -> serde_json::Value {
    values.sort_unstable_by(f32::total_cmp);
    let at = |share: f64| {
        values.get(((values.len() as f64 * share) as usize).min(values.len().saturating_sub(1)))
    };
    json!({ "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "most": values.last() })
}
