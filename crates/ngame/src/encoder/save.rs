//! An encoder's folder on its way out: what `transformers` and `sentence-transformers` load.

use std::io::Write;
use std::path::Path;

use ngame_nn::write_weights;
use serde_json::{Map, Value, json};

use super::config::{Architecture, write_config};
use super::sentence_files::write_sentence_files;
use super::text_encoder::TextEncoder;
use crate::Result;
use crate::folder_aside::{Existing, FolderAside};

impl TextEncoder {
    /// Saves a complete folder, whole or not at all.
    ///
    /// What the encoder was loaded with and does not use itself is saved again: other settings in
    /// `config.json`, the pooler, the files about the tokenizer.
    pub fn save(&self, folder: &Path, existing: Existing) -> Result<()> {
        let aside = FolderAside::create(folder, existing, "config.json")?;
        self.write(&aside, "")?;
        aside.finish()
    }

    /// Writes the files of the folder, each with `prefix` before its name, such as `encoder/`.
    pub(crate) fn write(&self, aside: &FolderAside, prefix: &str) -> Result<()> {
        let named = |name: &str| format!("{prefix}{name}");
        let write_json = |name: &str, value: &Value| {
            aside.write(&named(name), |output| writeln!(output, "{value:#}"))
        };
        let mut config = write_config(&self.architecture, self.origin.config.clone());
        match &self.architecture {
            Architecture::Transformer(_, transformer) => {
                let (pooling, dim) = (transformer.pooling, transformer.dim);
                for (name, value) in write_sentence_files(pooling, dim, self.max_tokens) {
                    write_json(name, &value)?;
                }
                aside.add_folder(&named("2_Normalize"))?;
            }
            Architecture::Bag(_) => {
                config.insert("max_tokens".to_owned(), json!(self.max_tokens));
            }
        }
        write_json("config.json", &Value::Object(config))?;
        for (name, bytes) in &self.origin.files {
            aside.write(&named(name), |output| output.write_all(bytes))?;
        }
        if !self.origin.files.iter().any(|(name, _)| *name == "tokenizer_config.json") {
            write_json("tokenizer_config.json", &self.tokenizer_config())?;
        }
        aside.write(&named("tokenizer.json"), |output| {
            output.write_all(self.tokenizer.to_json().as_bytes())
        })?;
        let family = self.architecture.family();
        aside.write(&named("model.safetensors"), |output| {
            write_weights(output, &self.parameters, family, &self.origin.extras)
        })
    }

    /// What `transformers` wants to know about a tokenizer beyond its `tokenizer.json`.
    fn tokenizer_config(&self) -> Value {
        let mut config = Map::new();
        config.insert("tokenizer_class".to_owned(), json!("PreTrainedTokenizerFast"));
        let longest = match &self.architecture {
            Architecture::Transformer(_, transformer) => transformer.max_positions,
            Architecture::Bag(_) => self.max_tokens,
        };
        config.insert("model_max_length".to_owned(), json!(longest));
        config.insert("model_input_names".to_owned(), json!(["input_ids", "attention_mask"]));
        for (role, token) in self.tokenizer.special_token_roles() {
            config.insert(role.to_owned(), json!(token));
        }
        Value::Object(config)
    }
}
