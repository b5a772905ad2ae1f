//! Settings that belong together: the paper's for its data sets, and some sized for a processor
//! without a graphics card. Each is a file of `presets/`.

use std::fmt;
use std::str::FromStr;

use toml::Table;

use super::config::merge;

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

/// What the presets of the paper's data sets have in common.
const PAPER: &str = include_str!("presets/paper.toml");

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
        let (common, own) = match self {
            Self::Titles => ("", include_str!("presets/titles.toml")),
            Self::FullText => ("", include_str!("presets/full-text.toml")),
            Self::LfAmazonTitles131K => (PAPER, include_str!("presets/lf-amazontitles-131k.toml")),
            Self::LfAmazonTitles1M3 => (PAPER, include_str!("presets/lf-amazontitles-1.3m.toml")),
            Self::LfAmazon131K => (PAPER, include_str!("presets/lf-amazon-131k.toml")),
            Self::LfWikiSeeAlso320K => (PAPER, include_str!("presets/lf-wikiseealso-320k.toml")),
            Self::LfWikipedia500K => (PAPER, include_str!("presets/lf-wikipedia-500k.toml")),
        };
        let read = |text| toml::from_str::<Table>(text).expect("presets are written in TOML");
        let mut settings = read(common);
        merge(&mut settings, read(own));
        settings
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
        // One margin for both modules, and a learning rate for each (γ, LR₁, LR₂ of the paper's table).
        assert_eq!((wikipedia.loss.margin, wikipedia.classifier.margin), (0.3, 0.3));
        assert_eq!(wikipedia.optimiser.learning_rate, Some(1e-4));
        assert_eq!(wikipedia.classifier.learning_rate, Some(1e-3));
    }
}
