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
    let answers = join((0..8).map(|_| router.post("/v1/predict", heavy()))).await;
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
    let mut settings = settings();
    settings.max_queue = 1_000;
    let running = Running::start(settings, no_log());
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

#[tokio::test]
async fn answers_do_not_depend_on_company() {
    let router = Router::new(settings());
    let bodies: Vec<String> = (0..24)
        .map(|n| {
            let text = ["photo viewer", "mail client", "speech synthesizer"][n % 3];
            let exclude = if n % 2 == 0 { "\"libgtk-3-0\"" } else { "" };
            format!(r#"{{"texts":["{text}","{n}"],"top":{},"exclude":[{exclude}]}}"#, n % 5 + 1)
        })
        .collect();
    let mut alone = Vec::new();
    for body in &bodies {
        alone.push(ids(&router.post("/v1/predict", body.clone()).await.json()));
    }
    // Asked at once, all but the first are computed together.
    let together = join(bodies.iter().map(|body| router.post("/v1/predict", body.clone()))).await;
    let together: Vec<_> = together.iter().map(|answer| ids(&answer.json())).collect();
    assert_eq!(together, alone);
    let metrics = router.get("/metrics").await.text;
    let batches = metrics.lines().find_map(|line| line.strip_prefix("ngame_batch_texts_count "));
    let batches: usize = batches.unwrap().parse().unwrap();
    assert!((25..48).contains(&batches), "24 alone, the others in few batches: {batches}");
}

fn ids(answer: &serde_json::Value) -> Vec<Vec<String>> {
    let texts = answer["predictions"].as_array().unwrap().iter();
    let of = |text: &serde_json::Value| -> Vec<String> {
        let labels = text["labels"].as_array().unwrap().iter();
        labels.map(|label| label["id"].as_str().unwrap().to_owned()).collect()
    };
    texts.map(of).collect()
}

/// Runs all at once, on this thread; the answers come in the order of the requests.
async fn join<F: Future>(requests: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = requests.map(|request| (Box::pin(request), None)).collect();
    std::future::poll_fn(|context| {
        for (request, answer) in &mut running {
            if answer.is_none()
                && let std::task::Poll::Ready(found) = request.as_mut().poll(context)
            {
                *answer = Some(found);
            }
        }
        match running.iter().all(|(_, answer)| answer.is_some()) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    running.into_iter().map(|(_, answer)| answer.unwrap()).collect()
}
