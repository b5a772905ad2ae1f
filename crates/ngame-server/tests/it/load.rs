//! More than can be done: full queues, requests that wait too long, clients that go away.

use std::time::Duration;

use crate::client::Running;
use crate::trained::{Router, heavy, no_log, settings};

#[tokio::test]
async fn a_full_queue_is_told_at_once() {
    let mut settings = settings();
    settings.max_queue = 1;
    let router = Router::new(settings);
    // All are read before the first is done: one is worked on, one waits, the others are refused.
    let requests = (0..8).map(|_| router.post("/v1/predict", heavy()));
    let mut running: Vec<_> = requests.map(Box::pin).collect();
    let mut answers = Vec::new();
    std::future::poll_fn(|context| {
        running.retain_mut(|request| match request.as_mut().poll(context) {
            std::task::Poll::Ready(answer) => {
                answers.push(answer);
                false
            }
            std::task::Poll::Pending => true,
        });
        if running.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    let refused: Vec<_> = answers.iter().filter(|answer| answer.status == 503).collect();
    let answered = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(refused.len() + answered, 8);
    assert!(answered >= 1 && !refused.is_empty(), "{answered} answered");
    for answer in refused {
        assert_eq!(answer.problem(503)["title"], "Busy");
        assert_eq!(answer.header("retry-after"), "1");
    }
    // It goes on when there is room.
    router.post("/v1/predict", r#"{"texts":["a"]}"#).await.json();
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_given_up() {
    let mut settings = settings();
    settings.limits.answer_time = Duration::from_millis(1);
    let answer = Router::new(settings).post("/v1/predict", heavy()).await;
    assert_eq!(answer.problem(503)["title"], "Too late");
    assert_ne!(answer.header("retry-after"), "");
}

#[test]
fn what_clients_no_longer_wait_for_costs_nothing() {
    let running = Running::start(settings(), no_log());
    let mut first = running.client();
    first.begin_post("/v1/predict", &heavy()).unwrap();
    // One thread computes, so these wait behind it, and go.
    let mut waiting: Vec<_> = (0..5).map(|_| running.client()).collect();
    for client in &mut waiting {
        client.begin_post("/v1/predict", &heavy()).unwrap();
    }
    running.wait_for("ngame_queue_texts", |texts| texts > 0);
    drop(waiting);
    assert_eq!(first.reply().unwrap().status, 200);
    // Whatever was not yet begun was dropped, and nothing waits.
    running.wait_for("ngame_abandoned_total", |n| n >= 1);
    running.wait_for("ngame_queue_texts", |texts| texts == 0);
    assert_eq!(running.client().post("/v1/predict", r#"{"texts":["a"]}"#).unwrap().status, 200);
    running.stop();
}

#[test]
fn many_at_once_are_all_answered_or_told() {
    let mut settings = settings();
    settings.max_queue = 4;
    let running = Running::start(settings, no_log());
    let (clients, each) = (24, 25);
    let threads: Vec<_> = (0..clients)
        .map(|number| {
            let mut client = running.client();
            std::thread::spawn(move || {
                let (mut answered, mut refused) = (0, 0);
                for at in 0..each {
                    let body = format!(r#"{{"texts":["client {number} asks {at}","b"],"top":3}}"#);
                    let reply = client.post("/v1/predict", &body).unwrap();
                    match reply.status {
                        200 => answered += 1,
                        503 => {
                            assert!(reply.head.contains("retry-after: 1"), "{}", reply.head);
                            refused += 1;
                        }
                        other => panic!("{other}: {}", reply.text),
                    }
                }
                (answered, refused)
            })
        })
        .collect();
    let counts: Vec<(u32, u32)> =
        threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let answered: u32 = counts.iter().map(|(answered, _)| answered).sum();
    let refused: u32 = counts.iter().map(|(_, refused)| refused).sum();
    assert_eq!(answered + refused, clients * each);
    assert!(answered > 0 && refused > 0, "{answered} answered, {refused} refused");
    let metrics = running.client().get("/metrics").text;
    let told = format!("ngame_requests_total{{route=\"/v1/predict\",status=\"200\"}} {answered}");
    assert!(metrics.contains(&told), "{told}\n{metrics}");
    running.stop();
}
