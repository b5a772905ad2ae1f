//! `config.json`: which encoder a folder holds.
//!
//! BERT and DistilBERT are read under the names that `transformers` gives their settings. Whatever
//! would compute something else than the engine does is refused, rather than computed wrongly.

use std::path::Path;

use ngame_nn::{BagConfig, Family, Pooling, TransformerConfig};
use serde_json::{Map, Value, json};

use super::json_file::{read_object, unsupported, wrong};
use crate::Result;
use crate::error::{InputError, InputErrorKind, Place};

/// The `model_type` of a bag of token vectors.
const BAG: &str = "ngame-bag";

/// The kinds of encoder there are.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Architecture {
    /// A transformer, and whose names its settings and weights have.
    Transformer(Family, TransformerConfig),
    /// A bag of token vectors.
    Bag(BagConfig),
}

/// What a family calls the settings of a transformer.
struct Keys {
    dim: &'static str,
    n_layers: &'static str,
    n_heads: &'static str,
    feed_forward_dim: &'static str,
    dropout: &'static str,
    attention_dropout: &'static str,
    activation: &'static str,
}

const BERT: Keys = Keys {
    dim: "hidden_size",
    n_layers: "num_hidden_layers",
    n_heads: "num_attention_heads",
    feed_forward_dim: "intermediate_size",
    dropout: "hidden_dropout_prob",
    attention_dropout: "attention_probs_dropout_prob",
    activation: "hidden_act",
};

const DISTILBERT: Keys = Keys {
    dim: "dim",
    n_layers: "n_layers",
    n_heads: "n_heads",
    feed_forward_dim: "hidden_dim",
    dropout: "dropout",
    attention_dropout: "attention_dropout",
    activation: "activation",
};

/// Reads a `config.json`: the encoder it describes, and all that it says.
pub(super) fn read_config(
    file: &Path,
    pooling: Pooling,
) -> Result<(Architecture, Map<String, Value>)> {
    let config = read_object(file)?;
    let settings = Settings { file, config: &config };
    let architecture = match settings.text("model_type") {
        Some("bert") => transformer(&settings, Family::Bert, &BERT, pooling)?,
        Some("distilbert") => transformer(&settings, Family::DistilBert, &DISTILBERT, pooling)?,
        Some(BAG) => bag(&settings)?,
        other => {
            let found = other.map_or("no model type".to_owned(), |name| format!("`{name}`"));
            return Err(unsupported(file, "model_type")
                .expected(format!("one of the model types bert, distilbert, {BAG}"))
                .found(found)
                .help("choose an encoder of the BERT family, such as all-MiniLM-L6-v2")
                .into());
        }
    };
    Ok((architecture, config))
}

fn transformer(
    settings: &Settings<'_>,
    family: Family,
    keys: &Keys,
    pooling: Pooling,
) -> Result<Architecture> {
    settings.must_be(keys.activation, &["gelu"])?;
    settings.must_be("position_embedding_type", &["absolute"])?;
    for key in ["is_decoder", "add_cross_attention"] {
        if settings.config.get(key) == Some(&Value::Bool(true)) {
            return Err(unsupported(settings.file, key)
                .expected("an encoder")
                .found("a decoder")
                .help("choose an encoder of the BERT family, such as all-MiniLM-L6-v2")
                .into());
        }
    }
    let is_bert = family == Family::Bert;
    let config = TransformerConfig {
        vocabulary_size: settings.count("vocab_size", 1 << 24)?,
        dim: settings.count(keys.dim, 1 << 16)?,
        n_layers: settings.count(keys.n_layers, 1 << 10)?,
        n_heads: settings.count(keys.n_heads, 1 << 10)?,
        feed_forward_dim: settings.count(keys.feed_forward_dim, 1 << 18)?,
        max_positions: settings.count("max_position_embeddings", 1 << 20)?,
        n_token_types: match is_bert && settings.config.contains_key("type_vocab_size") {
            true => settings.count("type_vocab_size", 1 << 10)?,
            false => 2 * usize::from(is_bert),
        },
        layer_norm_epsilon: match is_bert {
            true => settings.share("layer_norm_eps", 1e-12)?,
            false => 1e-12,
        },
        dropout: settings.share(keys.dropout, 0.1)?,
        attention_dropout: settings.share(keys.attention_dropout, 0.1)?,
        pooling,
    };
    match config.problem() {
        None => Ok(Architecture::Transformer(family, config)),
        Some(problem) => Err(impossible(settings.file, problem)),
    }
}

fn bag(settings: &Settings<'_>) -> Result<Architecture> {
    let config = BagConfig {
        vocabulary_size: settings.count("vocab_size", 1 << 24)?,
        dim: settings.count("dim", 1 << 16)?,
        dropout: settings.share("dropout", 0.0)?,
    };
    match config.problem() {
        None => Ok(Architecture::Bag(config)),
        Some(problem) => Err(impossible(settings.file, problem)),
    }
}

/// Numbers that make no encoder together.
fn impossible(file: &Path, problem: String) -> crate::Error {
    InputError::new(InputErrorKind::WrongType, Place::file(file))
        .expected("numbers that make an encoder")
        .found(problem)
        .help("copy the config.json that came with the weights")
        .into()
}

/// The `config.json` of an encoder: its own settings over what it was loaded with.
pub(super) fn write_config(
    architecture: &Architecture,
    mut config: Map<String, Value>,
) -> Map<String, Value> {
    let mut set = |key: &str, value: Value| {
        config.insert(key.to_owned(), value);
    };
    match architecture {
        Architecture::Transformer(family, transformer) => {
            let (keys, model_type, class) = match family {
                Family::Bert => (&BERT, "bert", "BertModel"),
                Family::DistilBert => (&DISTILBERT, "distilbert", "DistilBertModel"),
            };
            set("model_type", json!(model_type));
            // The weights are those of the bare encoder, whatever head it was loaded with.
            set("architectures", json!([class]));
            set("vocab_size", json!(transformer.vocabulary_size));
            set(keys.dim, json!(transformer.dim));
            set(keys.n_layers, json!(transformer.n_layers));
            set(keys.n_heads, json!(transformer.n_heads));
            set(keys.feed_forward_dim, json!(transformer.feed_forward_dim));
            set("max_position_embeddings", json!(transformer.max_positions));
            set(keys.activation, json!("gelu"));
            set(keys.dropout, shortest(transformer.dropout));
            set(keys.attention_dropout, shortest(transformer.attention_dropout));
            if *family == Family::Bert {
                set("type_vocab_size", json!(transformer.n_token_types));
                set("layer_norm_eps", shortest(transformer.layer_norm_epsilon));
            }
        }
        Architecture::Bag(bag) => {
            set("model_type", json!(BAG));
            set("vocab_size", json!(bag.vocabulary_size));
            set("dim", json!(bag.dim));
            set("dropout", shortest(bag.dropout));
        }
    }
    // Weights are saved in 32 bits, whatever they were loaded from.
    for key in ["dtype", "torch_dtype"] {
        if let Some(value) = config.get_mut(key) {
            *value = json!("float32");
        }
    }
    config
}

/// A number as people write it: 0.1, not the 0.10000000149 that its 32 bits stand for.
fn shortest(number: f32) -> Value {
    number.to_string().parse::<f64>().map_or(Value::Null, |number| json!(number))
}

/// A config being read.
struct Settings<'a> {
    file: &'a Path,
    config: &'a Map<String, Value>,
}

impl Settings<'_> {
    fn text(&self, key: &str) -> Option<&str> {
        self.config.get(key).and_then(Value::as_str)
    }

    /// Refuses a setting that is there and other than supported.
    fn must_be(&self, key: &'static str, supported: &[&str]) -> Result<()> {
        match self.config.get(key) {
            None | Some(Value::Null) => Ok(()),
            Some(Value::String(value)) if supported.contains(&value.as_str()) => Ok(()),
            Some(other) => Err(unsupported(self.file, key)
                .expected(format!("`{}`, the only one there is here", supported.join("`, `")))
                .found(other.to_string())
                .help("choose an encoder of the BERT family, such as all-MiniLM-L6-v2")
                .into()),
        }
    }

    /// A whole number from 1 on.
    fn count(&self, key: &str, most: usize) -> Result<usize> {
        let value = self.config.get(key).unwrap_or(&Value::Null);
        let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
        match number.filter(|number| (1..=most).contains(number)) {
            Some(number) => Ok(number),
            None => Err(wrong(self.file, key, value)
                .expected(format!("a whole number from 1 to {most}"))
                .into()),
        }
    }

    /// A number from 0 to below 1, or what stands for one that is not there.
    fn share(&self, key: &str, missing: f32) -> Result<f32> {
        match self.config.get(key) {
            None | Some(Value::Null) => Ok(missing),
            Some(value) => match value.as_f64().filter(|number| (0.0..1.0).contains(number)) {
                Some(number) => Ok(number as f32),
                None => {
                    Err(wrong(self.file, key, value).expected("a number from 0 to below 1").into())
                }
            },
        }
    }
}
