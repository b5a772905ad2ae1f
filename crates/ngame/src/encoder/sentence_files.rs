//! What `sentence-transformers` keeps beside a model: its modules, pooling and longest text.

use std::path::{Component, Path, PathBuf};

use ngame_nn::Pooling;
use serde_json::{Value, json};

use super::json_file::{read_optional, unsupported, wrong};
use crate::Result;
use crate::error::{InputError, InputErrorKind, Place};

/// What to do about a model that does more than a transformer, pooling and unit length.
const OTHER_ENCODER: &str = "choose an encoder whose modules are Transformer, Pooling and, if need \
                             be, Normalize, such as all-MiniLM-L6-v2";

/// What the files of `sentence-transformers` say about an encoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SentenceFiles {
    /// The folder of the transformer itself: that of the encoder, or one inside it.
    pub(super) transformer: PathBuf,
    /// How the tokens of a text become one vector.
    pub(super) pooling: Pooling,
    /// The longest text, in tokens.
    pub(super) max_tokens: Option<usize>,
    /// Whether texts become small letters before the tokenizer sees them.
    pub(super) lowercase: bool,
}

impl SentenceFiles {
    /// Reads what there is. A plain folder of `transformers` has none of it: the mean is pooled.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let (mut transformer, mut pooling) = (folder.to_owned(), folder.join("1_Pooling"));
        let modules_file = folder.join("modules.json");
        if let Some(modules) = read_optional(&modules_file)? {
            let Some(modules) = modules.as_array() else {
                return Err(wrong(&modules_file, "modules", &modules).expected("a list").into());
            };
            for module in modules {
                let name = module["type"].as_str().unwrap_or_default();
                let path = inside(folder, &modules_file, &module["path"])?;
                match name.rsplit('.').next() {
                    Some("Transformer") => transformer = path,
                    Some("Pooling") => pooling = path,
                    Some("Normalize") => {}
                    _ => {
                        return Err(unsupported(&modules_file, "type")
                            .expected("the modules Transformer, Pooling and Normalize")
                            .found(module["type"].to_string())
                            .help(OTHER_ENCODER)
                            .into());
                    }
                }
            }
        }
        check_prompt(&folder.join("config_sentence_transformers.json"))?;
        let (max_tokens, lowercase) = read_lengths(&transformer.join("sentence_bert_config.json"))?;
        let pooling = read_pooling(&pooling.join("config.json"))?;
        Ok(Self { transformer, pooling, max_tokens, lowercase })
    }
}

/// A module's folder, which must lie inside the encoder's.
fn inside(folder: &Path, file: &Path, path: &Value) -> Result<PathBuf> {
    let path_text = path.as_str().unwrap_or_default();
    let path_below = Path::new(path_text);
    if path_below.components().all(|part| matches!(part, Component::Normal(_))) {
        return Ok(folder.join(path_below));
    }
    Err(wrong(file, "path", path).expected("a folder inside the encoder's").into())
}

/// How tokens are pooled. Older files have a flag for each way, newer ones a name.
fn read_pooling(file: &Path) -> Result<Pooling> {
    const FLAG: &str = "pooling_mode_";
    let Some(config) = read_optional(file)? else { return Ok(Pooling::Mean) };
    let modes: Vec<String> = match &config["pooling_mode"] {
        Value::String(mode) => vec![mode.clone()],
        Value::Array(modes) => {
            modes.iter().map(|mode| mode.as_str().unwrap_or_default().to_owned()).collect()
        }
        _ => config
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(_, value)| **value == true)
            .filter_map(|(key, _)| key.strip_prefix(FLAG))
            .map(|mode| mode.trim_end_matches("_tokens").trim_end_matches("_token").to_owned())
            .collect(),
    };
    match modes.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["mean"] => Ok(Pooling::Mean),
        ["cls"] => Ok(Pooling::Cls),
        _ => Err(unsupported(file, "pooling_mode")
            .expected("one of the poolings mean, cls")
            .found(if modes.is_empty() { "none".to_owned() } else { modes.join(", ") })
            .help(OTHER_ENCODER)
            .into()),
    }
}

/// The longest text in tokens, and whether texts become small letters.
fn read_lengths(file: &Path) -> Result<(Option<usize>, bool)> {
    let Some(config) = read_optional(file)? else { return Ok((None, false)) };
    let max_tokens = match &config["max_seq_length"] {
        Value::Null => None,
        number => match number.as_u64().and_then(|number| usize::try_from(number).ok()) {
            Some(number) if number > 0 => Some(number),
            _ => {
                return Err(wrong(file, "max_seq_length", number)
                    .expected("a whole number from 1 on")
                    .into());
            }
        },
    };
    Ok((max_tokens, config["do_lower_case"] == true))
}

/// A prompt that `sentence-transformers` would put before every text by itself is not known to
/// whoever passes texts here.
fn check_prompt(file: &Path) -> Result<()> {
    let config = read_optional(file)?.unwrap_or_default();
    let name = config["default_prompt_name"].as_str().unwrap_or_default();
    match config["prompts"][name].as_str() {
        Some(prompt) if !prompt.is_empty() => Err(InputError::new(
            InputErrorKind::Unsupported,
            Place::file(file).field("default_prompt_name"),
        )
        .expected("no prompt before texts")
        .found(format!("the prompt {prompt:?} before every text"))
        .help("write the prompt into your texts, and null as `default_prompt_name`")
        .into()),
        _ => Ok(()),
    }
}

/// The files as they are saved: name, text.
pub(super) fn write_sentence_files(
    pooling: Pooling,
    dim: usize,
    max_tokens: usize,
) -> [(&'static str, Value); 3] {
    let module = |index: usize, path: &str, kind: &str| {
        let kind = format!("sentence_transformers.models.{kind}");
        json!({"idx": index, "name": index.to_string(), "path": path, "type": kind})
    };
    [
        (
            "modules.json",
            json!([
                module(0, "", "Transformer"),
                module(1, "1_Pooling", "Pooling"),
                module(2, "2_Normalize", "Normalize")
            ]),
        ),
        (
            "1_Pooling/config.json",
            json!({
                "word_embedding_dimension": dim,
                "pooling_mode_cls_token": pooling == Pooling::Cls,
                "pooling_mode_mean_tokens": pooling == Pooling::Mean,
                "pooling_mode_max_tokens": false,
                "pooling_mode_mean_sqrt_len_tokens": false
            }),
        ),
        (
            "sentence_bert_config.json",
            json!({"max_seq_length": max_tokens, "do_lower_case": false}),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pooling(config: Value) -> Result<Pooling> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        std::fs::write(&file, config.to_string()).unwrap();
        read_pooling(&file)
    }

    #[test]
    fn poolings_old_and_new_are_understood() {
        let mean = json!({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": false});
        assert_eq!(pooling(mean).unwrap(), Pooling::Mean);
        assert_eq!(pooling(json!({"pooling_mode_cls_token": true})).unwrap(), Pooling::Cls);
        assert_eq!(pooling(json!({"pooling_mode": "cls"})).unwrap(), Pooling::Cls);
        assert_eq!(pooling(json!({"pooling_mode": ["mean"]})).unwrap(), Pooling::Mean);
        for (config, found) in [
            (json!({"pooling_mode": "max"}), "max"),
            (json!({"pooling_mode": []}), "none"),
            (
                json!({"pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": true}),
                "max, mean",
            ),
            (json!({"pooling_mode_mean_sqrt_len_tokens": true}), "mean_sqrt_len"),
        ] {
            let error = pooling(config).unwrap_err().to_string();
            assert!(error.contains("one of the poolings mean, cls"), "{error}");
            assert!(error.contains(&format!("found:    {found}\n")), "{error}");
        }
    }
}
