//! `ngame train`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::command::{Outcome, ngame, repository};

/// The arguments of a small run on the bundled sample.
fn args(out: &Path, more: &[&str]) -> Vec<String> {
    let data = repository("samples/debian-small");
    let mut args: Vec<String> = vec!["train".into(), data.to_string_lossy().into(), "--out".into()];
    args.push(out.to_string_lossy().into());
    args.extend(["--only", "encoder"].map(String::from));
    args.extend(more.iter().map(|&arg| arg.to_owned()));
    args
}

/// Few epochs of a small bag, saved after every step.
const SMALL: [&str; 16] = [
    "--epochs",
    "4",
    "--batch",
    "128",
    "--cluster",
    "8",
    "--max-tokens",
    "24",
    "--threads",
    "2",
    "--set",
    "encoder.dim=48",
    "--set",
    "encoder.vocabulary=3000",
    "--set",
    "run.checkpoint=0",
];

fn train(out: &Path, more: &[&str]) -> Outcome {
    ngame(args(out, more))
}

fn weights(model: &Path) -> Vec<u8> {
    std::fs::read(model.join("encoder/model.safetensors")).unwrap()
}

#[test]
fn a_model_is_trained_and_its_encoder_embeds() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    let outcome = train(&model, &SMALL);
    assert_eq!((outcome.code, &*outcome.stdout), (0, ""), "{}", outcome.stderr);
    for part in ["2,307 points to train on", "held out", "validation.points = 281", "mining"] {
        assert!(outcome.stderr.contains(part), "{part}: {}", outcome.stderr);
    }
    let (input, out) = (folder.path().join("texts.txt"), folder.path().join("vectors.npy"));
    std::fs::write(&input, "image editor\n").unwrap();
    let encoder = model.join("encoder");
    ngame([
        "embed".as_ref(),
        "--encoder".as_ref(),
        encoder.as_os_str(),
        "--input".as_ref(),
        input.as_os_str(),
        "--out".as_ref(),
        out.as_os_str(),
    ])
    .success();
    let told = train(&model, &SMALL).user_error();
    assert!(told.contains("there already"), "{told}");
    let told = train(&model, &["--resume"]).user_error();
    assert!(told.contains("the run is finished"), "{told}");
    train(&model, &[&SMALL[..], &["--force"]].concat()).success();
}

#[test]
fn a_dry_run_prints_a_plan_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    let outcome = train(&model, &["--dry-run", "--preset", "lf-amazon-131k", "--margin", "0.25"]);
    let plan: toml::Table = toml::from_str(&outcome.success()).unwrap();
    let config = plan["config"].as_table().unwrap();
    assert_eq!(config["batching"]["batch_size"].as_integer(), Some(350));
    assert_eq!(config["run"]["epochs"].as_integer(), Some(300));
    let margin = config["loss"]["margin"].as_float().unwrap();
    assert!((margin - 0.25).abs() < 1e-6);
    assert!(plan["estimate"]["seconds"].as_float().unwrap() > 0.0);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    // What it prints below [config] is a file of settings.
    let file = folder.path().join("train.toml");
    std::fs::write(&file, toml::to_string(config).unwrap()).unwrap();
    let again = train(&model, &["--dry-run", "--config", &file.to_string_lossy()]);
    let again: toml::Table = toml::from_str(&again.success()).unwrap();
    assert_eq!(again["config"], plan["config"]);
}

#[test]
fn mistakes_are_told_before_any_work() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    for (args, expected) in [
        (&["--set", "loss.margn=1"][..], "margn"),
        (&["--set", "loss"], "NAME=VALUE"),
        (&["--margin", "7"], "loss.margin: expected from 0 to 2"),
        (&["--batch", "1"], "batching.batch_size: expected at least 2"),
        (&["--preset", "none"], "lf-amazontitles-131k"),
        (&["--encoder", "no/such/folder"], "no/such/folder"),
        (&["--resume"], "no plan.toml there"),
        (&["--resume", "--epochs", "3"], "a run keeps its plan"),
        (&["--threads", "0"], "--threads"),
        (&["--time-budget", "30"], "30m"),
        (&["--views", "smell"], "fusion.views"),
        (&["--views", "embedding,frequency"], "propose none"),
        (&["--views", "votes", "--set", "fusion.method=sum"], "fusion.method"),
        (&["--set", "classifier.dropout=1"], "classifier.dropout"),
    ] {
        let told = train(&model, args).user_error();
        assert!(told.contains(expected), "{args:?}: {told}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// The short version of `scripts/kill-and-resume`.
#[test]
fn a_run_that_is_killed_again_and_again_ends_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (straight, killed) = (folder.path().join("straight"), folder.path().join("killed"));
    train(&straight, &SMALL).success();
    let run = folder.path().join("killed.run");
    let mut n_kills = 0;
    for patience in [5u64, 9, 2, 14, 1].into_iter().cycle() {
        let more: &[&str] = if run.join("plan.toml").exists() { &["--resume"] } else { &SMALL };
        let mut child = Command::new(env!("CARGO_BIN_EXE_ngame"))
            .args(args(&killed, more))
            .args(if more.len() > 1 { &["--force"][..] } else { &[] })
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // So many checkpoints after it has begun, it is gone.
        let checkpoint = run.join("checkpoint.bin");
        let modified = || std::fs::metadata(&checkpoint).and_then(|file| file.modified()).ok();
        let mut seen = modified();
        let mut n_seen = 0;
        let finished = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            let now = modified();
            if now.is_some() && now != seen {
                (seen, n_seen) = (now, n_seen + 1);
            }
            if n_seen >= patience {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        match finished {
            None => n_kills += 1,
            Some(status) => {
                assert!(status.success());
                break;
            }
        }
        assert!(n_kills < 60, "it never ends");
    }
    assert!(n_kills >= 3, "{n_kills}");
    assert!(weights(&straight) == weights(&killed));
}
