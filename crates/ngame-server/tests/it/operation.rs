//! Shutdown and reload while requests come: counted, none lost.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::Value;

use crate::client::Running;
use crate::trained::{heavy, model, no_log, settings, train_model};

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// The server of one model in a folder of its own.
fn serve(folder: &Path) -> Running {
    let mut settings = settings();
    settings.models = vec![("own".to_owned(), folder.to_owned())];
    settings.max_queue = 1_000;
    Running::start(settings, no_log())
}

/// Clients that ask one request after the other until they are told to stop, and count.
struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    threads: Vec<std::thread::JoinHandle<u64>>,
}

impl Load {
    fn start(running: &Running, n_clients: usize) -> Self {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let threads = (0..n_clients).map(|number| {
            let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
            let mut client = running.client();
            std::thread::spawn(move || {
                let mut sent = 0;
                while !stop.load(Ordering::Relaxed) {
                    sent += 1;
                    let body = format!(r#"{{"texts":["client {number} asks for mail {sent}"]}}"#);
                    let reply = client.post("/v1/predict", &body).unwrap();
                    assert_eq!(reply.status, 200, "{}", reply.text);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                sent
            })
        });
        let threads = threads.collect();
        Self { stop, answered, threads }
    }

    /// Waits until so many more are answered.
    fn wait_for(&self, more: u64) {
        let goal = self.answered.load(Ordering::Relaxed) + more;
        while self.answered.load(Ordering::Relaxed) < goal {
            assert!(self.threads.iter().all(|thread| !thread.is_finished()), "a client gave up");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    fn finish(self) {
        self.stop.store(true, Ordering::Relaxed);
        let sent: u64 = self.threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(sent, self.answered.load(Ordering::Relaxed), "a request was lost");
    }
}

fn reloads(running: &Running) -> u64 {
    let list: Value = serde_json::from_str(&running.client().get("/v1/models").text).unwrap();
    list["models"][0]["reloads"].as_u64().unwrap()
}

#[test]
fn models_are_replaced_under_load_and_bad_ones_are_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own");
    copy(&model(), &own);
    let running = serve(&own);
    let ask =
        || running.client().post("/v1/predict", r#"{"texts":["photo viewer"]}"#).unwrap().text;
    let before = ask();
    let load = Load::start(&running, 4);
    for round in 1..=3 {
        load.wait_for(20);
        running.control.reload();
        running.wait_for("ngame_reloads_total", |n| n >= round);
    }
    assert_eq!(ask(), before, "the same model answers the same");

    // A folder that is damaged is told and not taken, whether by request or by itself.
    let labels = fs::read(own.join("labels.bin")).unwrap();
    fs::remove_file(own.join("labels.bin")).unwrap();
    fs::write(own.join("labels.bin"), &labels[..labels.len() - 1]).unwrap();
    running.control.reload();
    running.wait_for("ngame_failed_reloads_total", |n| n >= 1);
    load.wait_for(20);
    assert_eq!((ask(), reloads(&running)), (before.clone(), 3));
    let manifest = fs::read(own.join("manifest.json")).unwrap();
    fs::remove_file(own.join("manifest.json")).unwrap();
    running.control.reload();
    running.wait_for("ngame_failed_reloads_total", |n| n >= 2);
    fs::write(own.join("manifest.json"), manifest).unwrap();
    running.wait_for("ngame_failed_reloads_total", |n| n >= 3);
    assert_eq!((ask(), reloads(&running)), (before.clone(), 3));

    // Another model, put into place as training does, is found without anybody asking for it.
    let other = folder.path().join("other");
    train_model(&other, "7");
    fs::rename(&own, folder.path().join("old")).unwrap();
    fs::rename(&other, &own).unwrap();
    running.wait_for("ngame_reloads_total", |n| n >= 4);
    load.wait_for(20);
    assert_ne!(ask(), before, "another model answers differently");
    load.finish();
    running.stop();
}

#[test]
fn what_was_begun_is_answered_before_the_end() {
    let mut settings = settings();
    settings.max_queue = 1_000;
    let running = Running::start(settings, no_log());
    let address = running.address;
    let mut clients: Vec<_> = (0..3).map(|_| running.client()).collect();
    for client in &mut clients {
        client.begin_post("/v1/predict", &heavy()).unwrap();
    }
    let mut idle = running.client();
    assert_eq!(idle.get("/readyz").status, 200);
    running.wait_for("ngame_queue_texts", |texts| texts >= 60);
    let ending = std::thread::spawn(move || running.stop());
    for client in &mut clients {
        let reply = client.reply().unwrap();
        assert_eq!(reply.status, 200, "{}", reply.text);
        assert!(reply.text.contains("nearest"));
    }
    ending.join().unwrap();
    assert!(idle.is_closed());
    assert!(std::net::TcpStream::connect(address).is_err(), "nobody listens any more");
}
