//! `ngame embed`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ngame::encoder::{VectorMatrix, VectorType};

use crate::command::{ngame, repository, temporary};

fn encoder() -> PathBuf {
    repository("fixtures/encoder/bert")
}

/// The arguments of a run with the small encoder.
fn args<'a>(input: &'a Path, out: &'a Path, more: &[&'a str]) -> Vec<std::ffi::OsString> {
    let encoder = encoder();
    let mut args: Vec<std::ffi::OsString> = vec!["embed".into(), "--encoder".into()];
    args.extend([encoder.into(), "--input".into(), input.into(), "--out".into(), out.into()]);
    args.extend(more.iter().map(|&arg| arg.into()));
    args
}

/// The vectors in a file, which must all have length 1.
#[track_caller]
fn vectors(path: &Path) -> VectorMatrix {
    let matrix = VectorMatrix::open(path).unwrap();
    for row in 0..matrix.n_rows() {
        let norm: f32 = matrix.row(row).to_vec().iter().map(|x| x * x).sum();
        assert!((norm - 1.0).abs() < 2e-3, "row {row}: {norm}");
    }
    matrix
}

#[test]
fn lines_become_rows() {
    let (folder, texts) = temporary("texts.txt", "red and round\n\nround and red\r\nred and round");
    let out = folder.path().join("vectors.npy");
    let outcome = ngame(args(&texts, &out, &[]));
    assert_eq!((outcome.code, &*outcome.stdout), (0, ""), "{}", outcome.stderr);
    assert!(outcome.stderr.starts_with("4 texts, "), "{}", outcome.stderr);
    assert!(outcome.stderr.trim_end().ends_with("texts a second"), "{}", outcome.stderr);
    let matrix = vectors(&out);
    assert_eq!((matrix.n_rows(), matrix.dim()), (4, 32));
    assert_eq!(matrix.row(0), matrix.row(3), "the same text has the same vector");
    assert_ne!(matrix.row(0), matrix.row(1));
    let half = folder.path().join("half.npy");
    ngame(args(&texts, &half, &["--half", "--threads", "1", "--max-tokens", "9"])).success();
    assert_eq!(vectors(&half).vector_type(), VectorType::F16);
}

#[test]
fn standard_input_is_the_default() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("vectors.npy");
    let mut child = Command::new(env!("CARGO_BIN_EXE_ngame"))
        .args(["embed".as_ref(), "--encoder".as_ref(), encoder().as_os_str()])
        .args(["--out".as_ref(), out.as_os_str()])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"one\ntwo\n").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(vectors(&out).n_rows(), 2);
}

#[test]
fn the_parts_of_a_data_set_can_be_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("vectors.npy");
    let sample = repository("samples/debian-small");
    for (part, n_rows) in [("train", 1408), ("test", 579), ("labels", 1180)] {
        ngame(args(&sample, &out, &["--part", part, "--text", "title", "--force"])).success();
        assert_eq!(vectors(&out).n_rows(), n_rows, "{part}");
    }
    let message = ngame(args(&sample, &out, &["--force"])).user_error();
    assert!(message.contains("add --part train, test, valid or labels"), "{message}");
    let message = ngame(args(&sample, &out, &["--force", "--part", "valid"])).user_error();
    assert!(message.contains("has no such part"), "{message}");
}

#[test]
fn mistakes_are_explained_and_nothing_is_written() {
    let (folder, texts) = temporary("texts.txt", "a\n");
    let out = folder.path().join("vectors.npy");
    let message = ngame(args(&texts, &out, &["--part", "train"])).user_error();
    assert!(message.contains("has one text a line and no parts"), "{message}");
    let message = ngame(args(&texts, &out, &["--max-tokens", "99"])).user_error();
    assert!(message.contains("at most 20, as the encoder takes"), "{message}");
    let message = ngame(args(&texts, &out, &["--threads", "0"])).user_error();
    assert!(message.contains("--threads: expected at least 1"), "{message}");
    let message = ngame(args(&folder.path().join("absent.txt"), &out, &[])).user_error();
    assert!(message.contains("absent.txt: file not found"), "{message}");
    let nowhere = ["embed", "--encoder", "no-such-folder", "--out", "x.npy"];
    let message = ngame(nowhere).user_error();
    assert!(message.contains("no-such-folder: file not found"), "{message}");
    assert!(!out.exists());
    std::fs::write(&out, "mine").unwrap();
    let message = ngame(args(&texts, &out, &[])).user_error();
    assert!(message.contains("there already") && message.contains("--force"), "{message}");
    assert_eq!(std::fs::read(&out).unwrap(), b"mine");
}

#[test]
fn a_model_that_cannot_be_fetched_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    // Nothing listens on the port of a socket that is closed again.
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", socket.local_addr().unwrap());
    drop(socket);
    let output = Command::new(env!("CARGO_BIN_EXE_ngame"))
        .args(["embed", "--encoder", "some-org/some-model", "--out", "x.npy"])
        .current_dir(folder.path())
        .env("HF_ENDPOINT", &endpoint)
        .env("HF_HOME", folder.path())
        .env("NO_PROXY", "127.0.0.1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    for part in [
        "some-org/some-model: there is no such folder, and the model cannot be fetched",
        &endpoint,
        "hf download some-org/some-model --local-dir some-model",
        "--encoder some-model",
    ] {
        assert!(message.contains(part), "{part} is not in\n{message}");
    }
    assert!(!folder.path().join("x.npy").exists());
}
