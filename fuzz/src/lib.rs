//! What the fuzz targets share: bytes as the files of a folder.

use std::path::{Path, PathBuf};

/// Stands between two files in the bytes of a fuzz input.
const SEPARATOR: &[u8] = b"\n====\n";

/// Writes the parts of `bytes` as files of these names, and calls `read` with the folder. Parts
/// that are missing or empty are files that are not there.
pub fn with_files(names: &[&str], bytes: &[u8], read: impl FnOnce(&Path)) {
    let folder = folder();
    let mut rest = Some(bytes);
    for name in names {
        let path = folder.join(name);
        let part = rest.map(|bytes| match find(bytes) {
            Some(at) => {
                rest = Some(&bytes[at + SEPARATOR.len()..]);
                &bytes[..at]
            }
            None => {
                rest = None;
                bytes
            }
        });
        match part {
            Some(part) if !part.is_empty() => std::fs::write(&path, part).unwrap(),
            _ => drop(std::fs::remove_file(&path)),
        }
    }
    read(&folder);
}

fn find(bytes: &[u8]) -> Option<usize> {
    bytes.windows(SEPARATOR.len()).position(|window| window == SEPARATOR)
}

/// A folder of this process, in memory where the system has such a place.
fn folder() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let folder = base.join(format!("ngame-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
