//! The rules of the house, checked on the source itself: data flows one way, every file says what
//! it is for, and the library stays silent.

use std::path::{Path, PathBuf};

/// The library's modules in the order data flows; a module uses only those before it.
const ORDER: [&str; 25] = [
    "error",
    "progress",
    "atomic_file",
    "array_file",
    "folder_aside",
    "random",
    "logistic",
    "data",
    "metrics",
    "baseline",
    "tokens",
    "encoder",
    "index",
    "batching",
    "loss",
    "classifier",
    "lexical",
    "views",
    "fusion",
    "model",
    "prediction",
    "evaluation",
    "error_analysis",
    "theory",
    "training",
];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every Rust file below a folder, with its path from there.
fn sources(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in next.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.file_name().unwrap() != "target" {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(folder).unwrap().to_string_lossy().replace('\\', "/");
                found.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no sources below {}", folder.display());
    found
}

/// The module of `ngame` that a file belongs to; none for the crate root.
fn module(file: &str) -> Option<&str> {
    let name = file.split('/').next().unwrap().trim_end_matches(".rs");
    (name != "lib").then_some(name)
}

/// The modules of the crate that a line of code names: `crate::data::…`.
fn uses(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split("//").next().unwrap_or_default();
    code.match_indices("crate::").map(|(at, prefix)| {
        let rest = &code[at + prefix.len()..];
        &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())]
    })
}

/// What breaks the direction of imports, as `file:line uses module`.
fn against_the_stream(sources: &[(String, String)]) -> Vec<String> {
    let mut found = Vec::new();
    for (file, text) in sources {
        let Some(own) = module(file) else { continue };
        let rank = ORDER.iter().position(|&name| name == own);
        let rank = rank.unwrap_or_else(|| panic!("{file}: give `{own}` its place in ORDER"));
        for (number, line) in text.lines().enumerate() {
            for name in uses(line) {
                let used = ORDER.iter().position(|&module| module == name);
                // Names that are no module are re-exports of the crate root: Error, Result.
                if used.is_some_and(|used| used > rank) {
                    found.push(format!("{file}:{} uses {name}", number + 1));
                }
            }
        }
    }
    found
}

#[test]
fn data_flows_one_way() {
    let sources = sources(&workspace().join("crates/ngame/src"));
    assert_eq!(against_the_stream(&sources), Vec::<String>::new());
}

#[test]
fn an_import_against_the_stream_is_noticed() {
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let sources = [
        file("data/csr.rs", "use crate::error::Error;\nuse crate::metrics::top_k;\n"),
        file("error.rs", "// crate::data\nfn f() { crate::data::read() }"),
    ];
    let expected = ["data/csr.rs:2 uses metrics", "error.rs:2 uses data"];
    assert_eq!(against_the_stream(&sources), expected);
}

#[test]
fn every_file_says_what_it_is_for() {
    for (file, text) in sources(&workspace().join("crates")) {
        assert!(text.starts_with("//! "), "{file} should open with a //! line");
    }
}

#[test]
fn the_library_prints_nothing_and_reads_no_environment() {
    for (file, text) in sources(&workspace().join("crates/ngame/src")) {
        for forbidden in ["println!", "print!(", "std::env", "env::var", "thread_rng", "anyhow"] {
            assert!(!text.contains(forbidden), "{file} holds {forbidden}");
        }
    }
}
