//! Settings that belong together: the paper's for its data sets, and some sized for a processor
//! without a graphics card.

use std::fmt;
use std::str::FromStr;

use toml::Table;

/// A named set of settings. What it leaves open is chosen by looking at the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Short texts on a CPU.
    Titles,
    /// Long texts on a CPU.
    FullText,
    /// The paper's for LF-AmazonTitles-131K.
    LfAmazonTitles131K,
    /// The paper's for LF-AmazonTitles-1.3M.
    LfAmazonTitles1M3,
    /// The paper's for LF-Amazon-131K.
    LfAmazon131K,
    /// The paper's for LF-WikiSeeAlso-320K.
    LfWikiSeeAlso320K,
    /// The paper's for LF-Wikipedia-500K.
    LfWikipedia500K,
}

/// The paper's settings that all its data sets share (Table 7 and "Implementation Details"), with the
/// authors' code where the paper says nothing.
const PAPER: &str = r#"
[batching]
sampler = "ngame"
cluster_start = 1
refresh = 5
label_points = false
[loss]
kind = "triplet"
margin = 0.3
negatives = "top"
top = 10
softmax_weights = true
temperature = 0.1
[optimiser]
learning_rate = 1e-4
weight_decay = 0.01
[classifier]
objective = "triplet"
refit = false
[fusion]
views = "paper"
method = "tree"
"#;

impl Preset {
    /// All presets.
    pub const ALL: [Self; 7] = [
        Self::Titles,
        Self::FullText,
        Self::LfAmazonTitles131K,
        Self::LfAmazonTitles1M3,
        Self::LfAmazon131K,
        Self::LfWikiSeeAlso320K,
        Self::LfWikipedia500K,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Titles => "titles",
            Self::FullText => "full-text",
            Self::LfAmazonTitles131K => "lf-amazontitles-131k",
            Self::LfAmazonTitles1M3 => "lf-amazontitles-1.3m",
            Self::LfAmazon131K => "lf-amazon-131k",
            Self::LfWikiSeeAlso320K => "lf-wikiseealso-320k",
            Self::LfWikipedia500K => "lf-wikipedia-500k",
        }
    }

    /// Its settings.
    pub(super) fn settings(self) -> Table {
        let paper = |batch_size: usize, epochs: usize, max_tokens: usize| {
            format!("{PAPER}\n[encoder]\nmax_tokens = {max_tokens}\n[run]\nepochs = {epochs}\n")
                .replace("[batching]", &format!("[batching]\nbatch_size = {batch_size}"))
        };
        let text = match self {
            Self::Titles => "[encoder]\nmax_tokens = 32\n".to_owned(),
            Self::FullText => "[encoder]\nmax_tokens = 128\n".to_owned(),
            Self::LfAmazonTitles131K | Self::LfAmazonTitles1M3 => paper(1600, 300, 32),
            Self::LfAmazon131K | Self::LfWikiSeeAlso320K => paper(350, 300, 128),
            Self::LfWikipedia500K => paper(256, 40, 256),
        };
        toml::from_str(&text).expect("presets are written in TOML")
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|preset| preset.name() == name)
            .ok_or_else(|| format!("expected one of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::config_from;

    #[test]
    fn every_preset_makes_a_config() {
        for preset in Preset::ALL {
            assert_eq!(preset.name().parse(), Ok(preset));
            config_from(Some(preset), None, &[]).unwrap();
        }
        assert!("none".parse::<Preset>().is_err());
        let wikipedia = config_from(Some(Preset::LfWikipedia500K), None, &[]).unwrap();
        assert_eq!(wikipedia.batching.batch_size, Some(256));
        assert_eq!((wikipedia.run.epochs, wikipedia.encoder.max_tokens), (Some(40), Some(256)));
        assert_eq!(wikipedia.optimiser.learning_rate, Some(1e-4));
    }
}
