//! The encoder that training starts from: a pretrained one, or a bag made for the texts at hand.

use std::path::Path;

use super::config::EncoderConfig;
use super::corpus::DistinctTexts;
use crate::Result;
use crate::data::{Dataset, Texts};
use crate::encoder::{BagConfig, TextEncoder};
use crate::progress::Observer;
use crate::tokens::{Tokenizer, VocabularyOptions, tokenize, train_vocabulary};

/// The longest text that a bag takes, where nothing says otherwise.
const BAG_MAX_TOKENS: usize = 512;

/// Texts that are looked at for how rare tokens are.
const COUNTED_TEXTS: usize = 200_000;

/// Loads the encoder of a config, or makes a bag with a vocabulary of the data set's own texts.
pub fn start_encoder(
    dataset: &Dataset,
    config: &EncoderConfig,
    seed: u64,
    observer: &dyn Observer,
) -> Result<TextEncoder> {
    if config.start != "bag" {
        return TextEncoder::load(Path::new(&config.start));
    }
    let texts = DistinctTexts::new(dataset).texts;
    let options = VocabularyOptions { size: config.vocabulary, seed, ..Default::default() };
    let tokenizer = train_vocabulary(&[&texts], &options, observer)?;
    let weights = rarity(&texts, &tokenizer, observer)?;
    let bag = BagConfig {
        vocabulary_size: tokenizer.vocabulary_size(),
        dim: config.dim,
        dropout: config.dropout,
    };
    TextEncoder::new_bag(bag, tokenizer, &weights, BAG_MAX_TOKENS, seed)
}

/// How much every token counts at first: the rarer, the more (its inverse document frequency).
fn rarity(texts: &Texts, tokenizer: &Tokenizer, observer: &dyn Observer) -> Result<Vec<f32>> {
    let every = texts.len().div_ceil(COUNTED_TEXTS).max(1);
    let chosen: Vec<u32> = (0..texts.len() as u32).step_by(every).collect();
    let sample = if every == 1 { texts.clone() } else { texts.select(&chosen) };
    let store = tokenize(&sample, tokenizer, BAG_MAX_TOKENS, observer)?;
    let mut n_texts = vec![0u32; tokenizer.vocabulary_size()];
    let mut ids = Vec::new();
    for row in store.iter() {
        ids.clear();
        row.append_to(&mut ids);
        ids.sort_unstable();
        ids.dedup();
        ids.iter().for_each(|&id| n_texts[id as usize] += 1);
    }
    let total = store.n_texts() as f32;
    Ok(n_texts.iter().map(|&n| ((total + 1.0) / (n as f32 + 1.0)).ln() + 0.1).collect())
}
