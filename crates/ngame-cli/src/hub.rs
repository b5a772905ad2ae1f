//! Encoders by name: `org/name` is fetched from the Hugging Face hub into its usual cache.

use std::path::{Path, PathBuf};

use anyhow::bail;

/// Whether an argument that is no folder can be the name of a model: `org/name`.
fn is_model_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let mut letters = part.chars();
        letters.next().is_some_and(|first| first.is_ascii_alphanumeric())
            && letters.all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    name.split_once('/').is_some_and(|(organisation, name)| is_part(organisation) && is_part(name))
}

/// The folder of an encoder: the path itself, or where the model of that name lies once fetched.
pub(crate) fn encoder_folder(encoder: &Path) -> anyhow::Result<PathBuf> {
    match encoder.to_str() {
        Some(name) if !encoder.exists() && is_model_name(name) => fetch(name),
        _ => Ok(encoder.to_owned()),
    }
}

#[cfg(not(feature = "hub"))]
fn fetch(name: &str) -> anyhow::Result<PathBuf> {
    bail!(
        "{name}: there is no such folder, and this ngame was built without the hub\n  \
         to do:    {}",
        by_hand(name)
    )
}

/// How to get a model without us.
fn by_hand(name: &str) -> String {
    let folder = name.split('/').next_back().unwrap_or(name);
    format!(
        "download the model where there is internet: hf download {name} --local-dir {folder}\n            \
         then pass the folder: --encoder {folder}"
    )
}

/// Fetches what an encoder needs and nothing else: no weights in other formats.
#[cfg(feature = "hub")]
fn fetch(name: &str) -> anyhow::Result<PathBuf> {
    use anyhow::Context;
    use hf_hub::api::sync::ApiBuilder;
    use hf_hub::{Cache, Repo};

    if std::env::var_os("HF_HOME").is_none() && std::env::home_dir().is_none() {
        bail!("{name}: there is no home folder to keep models in\n  to do:    set HF_HOME");
    }
    let repo = || Repo::model(name.to_owned());
    let api = ApiBuilder::from_env().with_retries(2).build().context("cannot reach the hub")?;
    let api = api.repo(repo());
    let info = match api.info() {
        Ok(info) => info,
        // What was fetched before is good enough where the hub cannot be reached.
        Err(error) => match fetched_before(&Cache::from_env().repo(repo())) {
            Some(folder) => return Ok(folder),
            None => bail!(
                "{name}: there is no such folder, and the model cannot be fetched\n  \
                 tried:    {}\n  found:    {error}\n  to do:    {}",
                api.url("config.json"),
                by_hand(name)
            ),
        },
    };
    let mut folder = None;
    for file in info.siblings.iter().map(|file| file.rfilename.as_str()) {
        if !WANTED.contains(&file) && !is_pooling(file) {
            continue;
        }
        let fetched = || format!("{name}: cannot fetch {file}");
        let mut path = api.get(file).with_context(fetched)?;
        // A file that was fetched earlier may be of an earlier version of the model.
        if !path.components().any(|part| part.as_os_str() == info.sha.as_str()) {
            path = api.download(file).with_context(fetched)?;
        }
        if file == "config.json" {
            folder = path.parent().map(Path::to_owned);
        }
    }
    folder.with_context(|| format!("{name}: the model on the hub has no config.json"))
}

/// The files of an encoder's folder, if they are there.
#[cfg(feature = "hub")]
const WANTED: [&str; 9] = [
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.txt",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
];

/// Whether a file says how tokens are pooled.
#[cfg(feature = "hub")]
fn is_pooling(file: &str) -> bool {
    file.ends_with("_Pooling/config.json")
}

/// The folder of a model that lies whole in the cache.
#[cfg(feature = "hub")]
fn fetched_before(cache: &hf_hub::CacheRepo) -> Option<PathBuf> {
    cache.get("tokenizer.json").or_else(|| cache.get("vocab.txt"))?;
    cache.get("model.safetensors")?;
    cache.get("config.json")?.parent().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_models_are_told_from_paths() {
        for name in ["sentence-transformers/all-MiniLM-L6-v2", "a/b", "org/x_1.5"] {
            assert!(is_model_name(name), "{name}");
        }
        for path in ["encoders", "/a/b", "./a", "a/b/c", "../a", "a/", "/a", "a/.b", "a b/c", ""] {
            assert!(!is_model_name(path), "{path}");
        }
    }
}
