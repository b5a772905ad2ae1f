//! `ngame embed`: texts in, unit vectors out.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::bail;
use ngame::data::Texts;
use ngame::encoder::{Embedded, Precision, TextEncoder, TextSource, VectorFile, VectorType};

use crate::check::ReadArgs;
use crate::hub::encoder_folder;
use crate::progress::Bars;
use crate::terminal::{counted, grouped};
use crate::texts_in::{Part, is_dataset, lines, read_part};

/// Turn texts into unit vectors with an encoder, and write them as a NumPy array.
///
/// An encoder is a folder with config.json, model.safetensors and tokenizer.json, of the BERT or
/// DistilBERT family, as transformers and sentence-transformers save it. A name such as
/// sentence-transformers/all-MiniLM-L6-v2 is fetched from the Hugging Face hub.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ngame embed --encoder encoders/all-MiniLM-L6-v2 --input texts.txt --out vectors.npy
  ngame embed --encoder encoders/all-MiniLM-L6-v2 --input data --part labels --out labels.npy
  ngame embed --encoder sentence-transformers/all-MiniLM-L6-v2 --out vectors.npy < texts.txt

In Python: numpy.load(\"vectors.npy\", mmap_mode=\"r\")")]
pub(crate) struct Args {
    /// The encoder: a folder, or org/name on the Hugging Face hub
    #[arg(long, value_name = "FOLDER")]
    encoder: PathBuf,
    /// One text a line, or a data set (a folder, or a .csv, .tsv or .jsonl file); - is standard input
    #[arg(long, value_name = "PATH", default_value = "-")]
    input: PathBuf,
    /// Which texts of a data set
    #[arg(long, value_enum)]
    part: Option<Part>,
    #[command(flatten)]
    read: ReadArgs,
    /// Cut texts at this many tokens (otherwise where the encoder was trained to)
    #[arg(long, value_name = "N")]
    max_tokens: Option<usize>,
    /// Use this many threads (otherwise all there are)
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Store 16 bits a number instead of 32
    #[arg(long)]
    half: bool,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Write over an existing file
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.out.exists() && !args.force {
        bail!(
            "{}: there already\n  to do:    name another file, or add --force",
            args.out.display()
        );
    }
    if args.threads == Some(0) {
        bail!("--threads: expected at least 1, found 0");
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.threads.unwrap_or(0)).build()?;
    pool.install(|| embed(args))
}

fn embed(args: &Args) -> anyhow::Result<()> {
    let bars = Bars::new();
    let mut encoder = TextEncoder::load(&encoder_folder(&args.encoder)?)?;
    if let Some(max_tokens) = args.max_tokens {
        encoder = encoder.with_max_tokens(max_tokens)?;
    }
    let texts: Texts;
    let mut source: Box<dyn TextSource + '_> = match is_dataset(&args.input) {
        true => {
            texts = read_part(&args.input, args.part, &args.read.options()?, &bars)?.texts;
            Box::new(texts.iter())
        }
        false => lines(&args.input, args.part)?,
    };
    let began = Instant::now();
    let embedder = encoder.embedder(Precision::F32);
    let vector_type = if args.half { VectorType::F16 } else { VectorType::F32 };
    let mut file = VectorFile::create(&args.out, embedder.dim(), vector_type)?;
    let embedded = embedder.embed(&mut *source, &mut file, &bars)?;
    file.finish()?;
    let summary = summary(embedded, began.elapsed().as_secs_f64());
    writeln!(anstream::stderr(), "{summary}")?;
    Ok(())
}

/// What was done, in a line.
fn summary(embedded: Embedded, seconds: f64) -> String {
    let Embedded { n_texts, n_tokens } = embedded;
    let speed = (n_texts as f64 / seconds.max(1e-9)) as u64;
    format!(
        "{}, {}, {seconds:.1} s, {} texts a second",
        counted(n_texts, "text"),
        counted(n_tokens, "token"),
        grouped(speed)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_and_divides() {
        let embedded = Embedded { n_texts: 3000, n_tokens: 41_000 };
        assert_eq!(
            summary(embedded, 2.0),
            "3,000 texts, 41,000 tokens, 2.0 s, 1,500 texts a second"
        );
    }
}
