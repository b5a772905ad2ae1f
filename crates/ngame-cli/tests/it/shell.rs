//! Help, completions, manual pages, exit codes, pipes.

use std::io::Read;
use std::process::{Command, Stdio};

use crate::command::{ngame, repository};

const COMMANDS: [&str; 7] =
    ["demo", "check", "embed", "metrics", "online-metrics", "completions", "man"];

#[test]
fn every_command_has_help_with_examples() {
    let text = ngame(["--help"]).success();
    for command in COMMANDS {
        assert!(text.contains(command), "{command} is not in\n{text}");
        let help = ngame([command, "--help"]).success();
        assert!(help.contains("Examples:\n  ngame "), "{help}");
    }
}

#[test]
fn a_mistyped_command_is_the_users_to_mend() {
    let message = ngame(["chekc"]).user_error();
    assert!(message.contains("'check'"), "{message}");
    let message = ngame(["metrics"]).user_error();
    assert!(message.contains("--predictions <FILE>"), "{message}");
}

#[test]
fn completions_and_manual_pages_name_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = ngame(["completions", shell]).success();
        for command in COMMANDS {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
    assert!(ngame(["man"]).success().contains(".TH ngame 1"));
    let folder = tempfile::tempdir().unwrap();
    ngame(["man".as_ref(), "--out".as_ref(), folder.path().as_os_str()]).success();
    for command in COMMANDS {
        assert!(folder.path().join(format!("ngame-{command}.1")).exists(), "{command}");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ngame"))
        .arg("check")
        .arg(repository("samples/debian-small"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut message = String::new();
    child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{message}");
    assert_eq!(message, "");
}
