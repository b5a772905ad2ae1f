//! Writes a synthetic LF folder of a given size: `synthetic-lf FOLDER POINTS LABELS PAIRS`.
//!
//! Titles have two to fifteen words drawn from a vocabulary of a hundred thousand with Zipf-like
//! frequencies. A point's labels are drawn with Zipf-like frequencies too, without repetition; the
//! first is its own number, so that every label appears while there are points enough. Plain JSON
//! lines; the same arguments write the same bytes.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [folder, points, labels, pairs] = &args[..] else {
        anyhow::bail!("FOLDER POINTS LABELS PAIRS");
    };
    let folder = PathBuf::from(folder);
    let (points, labels): (u64, u64) = (points.parse()?, labels.parse()?);
    let labels_per_point = pairs.parse::<f64>()? / points as f64;
    std::fs::create_dir_all(&folder)?;
    let mut random = ChaCha8Rng::seed_from_u64(17);
    write_lines(&folder, "lbl.json", labels, |line, label| {
        line.push_str(&format!(r#"{{"uid": "L{label}", "title": ""#));
        title(line, &mut random);
        line.push_str("\"}\n");
    })?;
    let mut targets = Vec::new();
    write_lines(&folder, "trn.json", points, |line, point| {
        line.push_str(&format!(r#"{{"uid": "P{point}", "title": ""#));
        title(line, &mut random);
        line.push_str(r#"", "target_ind": ["#);
        // Uniform from 1 on, with the wanted mean.
        let n_labels = 1 + ((labels_per_point * 2.0 - 1.0) * random.random::<f64>()) as usize;
        targets.clear();
        targets.push(point % labels);
        while targets.len() < n_labels {
            let label = zipf(&mut random, labels);
            if !targets.contains(&label) {
                targets.push(label);
            }
        }
        for (index, label) in targets.iter().enumerate() {
            line.push_str(if index == 0 { "" } else { ", " });
            line.push_str(&label.to_string());
        }
        line.push_str(r#"], "target_rel": ["#);
        for index in 0..targets.len() {
            line.push_str(if index == 0 { "1.0" } else { ", 1.0" });
        }
        line.push_str("]}\n");
    })
}

fn write_lines(
    folder: &Path,
    name: &str,
    n_lines: u64,
    mut write: impl FnMut(&mut String, u64),
) -> anyhow::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(folder.join(name))?);
    let mut line = String::new();
    for number in 0..n_lines {
        line.clear();
        write(&mut line, number);
        file.write_all(line.as_bytes())?;
    }
    Ok(file.flush()?)
}

fn title(line: &mut String, random: &mut ChaCha8Rng) {
    for index in 0..random.random_range(2..=15) {
        let word = zipf(random, 100_000);
        line.push_str(if index == 0 { "w" } else { " w" });
        line.push_str(&word.to_string());
    }
}

/// A number below `n`, small ones far more often: density falls as 1 / rank.
fn zipf(random: &mut ChaCha8Rng, n: u64) -> u64 {
    let uniform: f64 = random.random();
    (((n as f64).powf(uniform)) as u64 - 1).min(n - 1)
}
