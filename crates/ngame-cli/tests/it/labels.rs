//! `ngame labels`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::command::{ngame, repository};
use crate::model::model;

/// The first label of a text.
fn first(model: &str, text: &str, folder: &Path) -> Value {
    let input = folder.join("text.txt");
    std::fs::write(&input, format!("{text}\n")).unwrap();
    let input = input.to_string_lossy().into_owned();
    let mut answer = ngame(["predict", model, &input, "--format", "jsonl", "--top", "3"]).json();
    answer["labels"][0].take()
}

fn list(model: &str, words: &str) -> Vec<Value> {
    let lines = ngame(["labels", "list", model, "--search", words, "--json"]).success();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn labels_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let trained = model(folder.path());
    let file = folder.path().join("new.jsonl");
    let text = "steering of submarine telescopes";
    std::fs::write(&file, format!("{{\"id\": \"sub-1\", \"text\": \"{text}\"}}\n")).unwrap();
    let file = file.to_string_lossy().into_owned();
    let other = folder.path().join("other").to_string_lossy().into_owned();

    // Elsewhere first: the model stays as it is.
    let told = ngame(["labels", "add", &trained, &file, "--out", &other]).success();
    assert!(told.contains("1 label added"), "{told}");
    assert_eq!((list(&trained, "sub-1").len(), list(&other, "SUBMARINE").len()), (0, 1));
    assert_eq!(list(&other, "sub-1")[0]["added"], true);
    let told = ngame(["labels", "add", &trained, &file, "--out", &other]).user_error();
    assert!(told.contains("there already"), "{told}");
    ngame(["labels", "add", &trained, &file, "--out", &other, "--force"]).success();

    ngame(["labels", "add", &trained, &file]).success();
    let found = first(&trained, "Steering of  submarine telescopes", folder.path());
    assert_eq!((&found["id"], &found["text"]), (&"sub-1".into(), &text.into()));
    let inspected = ngame(["inspect", &trained, "--verify"]).success();
    assert!(inspected.contains("1 label added") && inspected.contains("as trained"), "{inspected}");
    let told = ngame(["labels", "add", &trained, &file]).user_error();
    assert!(told.contains("line 1") && told.contains("sub-1"), "{told}");

    // It is a label like others: measured, listed, removed.
    let data = repository("samples/debian-small").to_string_lossy().into_owned();
    ngame(["evaluate", &trained, &data, "--json"]).success();
    let told = ngame(["labels", "remove", &trained, "sub-1", "sub-2"]).user_error();
    assert!(told.contains("sub-2"), "{told}");
    ngame(["labels", "remove", &trained, "sub-1"]).success();
    assert_eq!(list(&trained, "submarine").len(), 0);
    assert_ne!(first(&trained, text, folder.path())["id"], "sub-1");
    let table = ngame(["labels", "list", &trained, "--top", "3"]).success();
    assert!(table.contains("points") && table.contains("--top 0"), "{table}");
}

#[test]
fn a_kill_leaves_the_old_model_or_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let trained = model(folder.path());
    let file = folder.path().join("new.txt");
    std::fs::write(&file, "steering of submarine telescopes\n").unwrap();
    let file = file.to_string_lossy().into_owned();
    let id = "steering of submarine telescopes";
    let change = |has: bool| -> Vec<String> {
        let args = match has {
            false => ["labels", "add", &trained, &file],
            true => ["labels", "remove", &trained, id],
        };
        args.map(str::to_owned).to_vec()
    };
    let began = Instant::now();
    ngame(change(false)).success();
    let whole = began.elapsed();
    let mut has = true;
    let (mut n_killed, mut n_changed) = (0, 0);
    // From the first moment to a little beyond the last.
    for part in 0..24 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ngame"))
            .args(change(has))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(whole.mul_f64(f64::from(part) / 18.0) + Duration::from_millis(1));
        let done = child.try_wait().unwrap();
        if done.is_none() {
            n_killed += 1;
        }
        let _ = child.kill();
        child.wait().unwrap();
        // Every byte is there, whichever of the two it is.
        ngame(["inspect", &trained, "--verify"]).success();
        let now = list(&trained, id).len() == 1;
        n_changed += u32::from(now != has);
        if done.is_some() {
            assert_ne!(now, has, "a change that was done is there");
        }
        has = now;
    }
    assert!(n_killed > 0 && n_changed > 0, "{n_killed} killed, {n_changed} changed");
}
