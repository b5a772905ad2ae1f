//! Folders of encoders: what is loaded, what is refused and in which words, what is saved.

use std::fs;
use std::path::{Path, PathBuf};

use ngame::data::Texts;
use ngame::encoder::{BagConfig, Existing, Pooling, TextEncoder, TransformerConfig};
use ngame::progress::Silent;
use ngame::tokens::{Tokenizer, VocabularyOptions, train_vocabulary};
use serde_json::{Value, json};

/// A folder of the fixtures.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/encoder").join(name)
}

/// A copy of a small encoder, to be spoiled.
struct Copy(tempfile::TempDir);

impl Copy {
    fn of(name: &str) -> Self {
        let copy = Self(tempfile::tempdir().unwrap());
        for entry in fs::read_dir(fixture(name)).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), copy.path(entry.file_name().to_str().unwrap())).unwrap();
        }
        copy
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn with(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
        self
    }

    fn without(self, name: &str) -> Self {
        fs::remove_file(self.path(name)).unwrap();
        self
    }

    /// With a setting of `config.json` changed; `null` takes it away.
    fn set(self, key: &str, value: Value) -> Self {
        let mut config = json_of(&self.path("config.json"));
        match value {
            Value::Null => drop(config.as_object_mut().unwrap().remove(key)),
            value => config[key] = value,
        }
        self.with("config.json", config.to_string())
    }

    /// The message of the error that loading gives, the folder's own path taken out.
    #[track_caller]
    fn message(&self) -> String {
        let error = TextEncoder::load(self.0.path()).expect_err("loading should fail");
        let path = self.0.path().display().to_string();
        error.to_string().replace(&format!("{path}/"), "").replace(&path, "FOLDER")
    }

    /// Asserts that loading fails with a message that has all these parts.
    #[track_caller]
    fn fails(&self, parts: &[&str]) {
        let message = self.message();
        for part in parts {
            assert!(message.contains(part), "{part} is not in\n{message}");
        }
        assert!(message.contains("to do:"), "{message}");
    }
}

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn bits(encoder: &TextEncoder) -> Vec<u32> {
    encoder.parameters().values().iter().map(|value| value.to_bits()).collect()
}

#[test]
fn both_families_load_with_their_lengths() {
    for (name, dim, max_tokens) in [("bert", 32, 20), ("distilbert", 20, 16)] {
        let encoder = TextEncoder::load(&fixture(name)).unwrap();
        assert_eq!((encoder.dim(), encoder.max_tokens()), (dim, max_tokens), "{name}");
        let longer = encoder.with_max_tokens(21).unwrap_err().to_string();
        assert!(
            longer.contains(&format!("at most {max_tokens}, as the encoder takes")),
            "{longer}"
        );
    }
    let encoder = TextEncoder::load(&fixture("bert")).unwrap();
    let short = encoder.with_max_tokens(2).unwrap_err().to_string();
    assert!(short.contains("at least 3 (2 special tokens and one more)"), "{short}");
}

#[test]
fn the_files_of_sentence_transformers_count() {
    let copy = Copy::of("bert").with("sentence_bert_config.json", r#"{"max_seq_length": 9}"#);
    assert_eq!(TextEncoder::load(copy.0.path()).unwrap().max_tokens(), 9);
    let copy = copy.with("sentence_bert_config.json", r#"{"max_seq_length": 512}"#);
    let encoder = TextEncoder::load(copy.0.path()).unwrap();
    assert_eq!(encoder.max_tokens(), 20, "no more than there are positions");
    // Older models have the transformer in a folder of its own.
    let nested = tempfile::tempdir().unwrap();
    fs::rename(copy.0.path(), nested.path().join("0_Transformer")).unwrap();
    let modules = json!([
        {"path": "0_Transformer", "type": "sentence_transformers.models.Transformer"},
        {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
    ]);
    fs::write(nested.path().join("modules.json"), modules.to_string()).unwrap();
    let inner = TextEncoder::load(nested.path()).unwrap();
    assert_eq!(bits(&inner), bits(&encoder));
}

#[test]
fn other_models_are_refused_with_what_there_is() {
    let bert = || Copy::of("bert");
    bert().set("model_type", json!("roberta")).fails(&[
        "config.json, field `model_type`: not supported",
        "one of the model types bert, distilbert, ngame-bag",
        "`roberta`",
    ]);
    bert().set("model_type", Value::Null).fails(&["no model type"]);
    bert().set("hidden_act", json!("gelu_new")).fails(&[
        "field `hidden_act`: not supported",
        "`gelu`",
        "\"gelu_new\"",
    ]);
    Copy::of("distilbert").set("activation", json!("relu")).fails(&["field `activation`", "relu"]);
    bert()
        .set("position_embedding_type", json!("relative_key"))
        .fails(&["field `position_embedding_type`: not supported", "`absolute`"]);
    bert().set("is_decoder", json!(true)).fails(&["field `is_decoder`", "an encoder"]);
    let dense = r#"[{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}]"#;
    bert().with("modules.json", dense).fails(&[
        "modules.json, field `type`: not supported",
        "the modules Transformer, Pooling and Normalize",
        "sentence_transformers.models.Dense",
    ]);
    let outside = r#"[{"path": "../x", "type": "sentence_transformers.models.Transformer"}]"#;
    bert().with("modules.json", outside).fails(&["a folder inside the encoder's", "../x"]);
    bert().with("1_Pooling/config.json", r#"{"pooling_mode_max_tokens": true}"#).fails(&[
        "1_Pooling/config.json",
        "one of the poolings mean, cls",
        "max",
    ]);
    let prompts = r#"{"prompts": {"query": "query: "}, "default_prompt_name": "query"}"#;
    bert()
        .with("config_sentence_transformers.json", prompts)
        .fails(&["field `default_prompt_name`: not supported", "the prompt \"query: \""]);
    let tokenizer = fs::read_to_string(fixture("bert").join("tokenizer.json")).unwrap();
    let cased = tokenizer.replace("\"lowercase\": true", "\"lowercase\": false");
    assert_ne!(cased, tokenizer);
    bert()
        .with("tokenizer.json", cased)
        .with("sentence_bert_config.json", r#"{"do_lower_case": true}"#)
        .fails(&["field `do_lower_case`: not supported", "a tokenizer that lowercases by itself"]);
}

#[test]
fn settings_that_make_no_sense_are_named() {
    let bert = || Copy::of("bert");
    bert().set("hidden_size", Value::Null).fails(&["field `hidden_size`: missing field"]);
    bert().set("hidden_size", json!("32")).fails(&[
        "field `hidden_size`: wrong type of value",
        "a whole number from 1 to",
        "\"32\"",
    ]);
    bert().set("num_hidden_layers", json!(0)).fails(&["field `num_hidden_layers`", "from 1 to"]);
    bert().set("num_hidden_layers", json!(u64::MAX)).fails(&["field `num_hidden_layers`"]);
    bert().set("num_attention_heads", json!(5)).fails(&["dim 32 is no multiple of n_heads 5"]);
    bert().set("hidden_dropout_prob", json!(1.5)).fails(&["a number from 0 to below 1", "1.5"]);
    bert().with("config.json", "{\n\"a\":").fails(&["config.json, line 2: not valid JSON"]);
    bert().with("config.json", "[]").fails(&["config.json: wrong type of value", "a JSON object"]);
    bert().with("sentence_bert_config.json", r#"{"max_seq_length": "long"}"#).fails(&[
        "field `max_seq_length`",
        "a whole number from 1 on",
        "\"long\"",
    ]);
    bert().set("vocab_size", json!(50)).fails(&[
        "config.json, field `vocab_size`: counts disagree",
        "at least 97, as the tokenizer has ids up to 96",
        "50",
    ]);
}

#[test]
fn missing_files_are_named_with_the_remedy() {
    Copy::of("bert").without("config.json").fails(&["config.json: file not found"]);
    let without = || Copy::of("bert").without("model.safetensors");
    without().fails(&["model.safetensors: file not found", "the weights in one file of this name"]);
    without().with("pytorch_model.bin", "").fails(&[
        "only pytorch_model.bin",
        "from transformers import AutoModel",
        "save_pretrained",
    ]);
    without()
        .with("model.safetensors.index.json", "{}")
        .fails(&["weights in several files", "max_shard_size"]);
    Copy::of("bert")
        .without("tokenizer.json")
        .fails(&["tokenizer.json or vocab.txt in the folder"]);
    let folder = tempfile::tempdir().unwrap();
    let error = TextEncoder::load(&folder.path().join("absent")).unwrap_err().to_string();
    assert!(error.contains("absent: file not found"), "{error}");
    assert!(error.contains("config.json, model.safetensors and tokenizer.json"), "{error}");
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = TextEncoder::load(&file).unwrap_err().to_string();
    assert!(error.contains("found:    a file"), "{error}");
}

#[test]
fn weights_that_do_not_fit_are_named() {
    Copy::of("bert").set("num_hidden_layers", json!(3)).fails(&[
        "model.safetensors, field `encoder.layer.2.attention.self.query.weight`: missing field",
        "one of 53 that config.json asks for",
        "encoder.layer.0.",
    ]);
    Copy::of("bert").set("max_position_embeddings", json!(21)).fails(&[
        "field `embeddings.position_embeddings.weight`: counts disagree",
        "the shape [21, 32], which follows from config.json",
        "the shape [20, 32]",
    ]);
    // Sizes that no memory holds are seen before memory is taken.
    Copy::of("bert")
        .set("vocab_size", json!(1 << 24))
        .set("hidden_size", json!(1 << 16))
        .fails(&["the shape [16777216, 65536]", "the shape [97, 32]"]);
    let whole = fs::read(fixture("bert").join("model.safetensors")).unwrap();
    Copy::of("bert")
        .with("model.safetensors", &whole[..whole.len() - 1])
        .fails(&["model.safetensors: the file is damaged", "a whole safetensors file"]);
    Copy::of("bert").with("model.safetensors", "").fails(&["a file of 0 bytes"]);
    let mut broken = fs::read(fixture("distilbert").join("model.safetensors")).unwrap();
    let end = broken.len();
    broken[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    Copy::of("distilbert").with("model.safetensors", &broken).fails(&["finite numbers", "NaN"]);
    let quantised = String::from_utf8_lossy(&whole[8..]).find("F32").unwrap() + 8;
    let mut quantised_file = whole;
    quantised_file[quantised..quantised + 3].copy_from_slice(b"I32");
    let message = Copy::of("bert").with("model.safetensors", quantised_file).message();
    assert!(message.contains("F32, F16, BF16 or F64"), "{message}");
}

#[test]
fn a_saved_folder_is_complete_and_loads_again() {
    let base = tempfile::tempdir().unwrap();
    for name in ["bert", "distilbert"] {
        let copy = Copy::of(name)
            .set("made_by", json!({"hand": true}))
            .set("dtype", json!("float16"))
            .with("special_tokens_map.json", r#"{"pad_token": "[PAD]"}"#)
            .with("config_sentence_transformers.json", r#"{"prompts": {}}"#)
            .with("1_Pooling/config.json", r#"{"pooling_mode": "cls"}"#);
        let encoder = TextEncoder::load(copy.0.path()).unwrap().with_max_tokens(11).unwrap();
        let saved = base.path().join(name);
        encoder.save(&saved, Existing::Keep).unwrap();
        let config = json_of(&saved.join("config.json"));
        assert_eq!(config["made_by"], json!({"hand": true}), "unknown settings stay");
        assert_eq!(config["dtype"], "float32", "that is what was saved");
        assert_eq!(config["vocab_size"], json_of(&copy.path("config.json"))["vocab_size"]);
        for file in [
            "tokenizer_config.json",
            "special_tokens_map.json",
            "config_sentence_transformers.json",
        ] {
            assert_eq!(fs::read(saved.join(file)).unwrap(), fs::read(copy.path(file)).unwrap());
        }
        assert_eq!(json_of(&saved.join("modules.json")).as_array().unwrap().len(), 3);
        assert_eq!(json_of(&saved.join("1_Pooling/config.json"))["pooling_mode_cls_token"], true);
        assert_eq!(json_of(&saved.join("sentence_bert_config.json"))["max_seq_length"], 11);
        assert!(saved.join("2_Normalize").is_dir());
        let again = TextEncoder::load(&saved).unwrap();
        assert_eq!(bits(&again), bits(&encoder));
        assert_eq!(again.max_tokens(), 11);
        assert_eq!(again.tokenizer().to_json(), encoder.tokenizer().to_json());
        let once_more = base.path().join(format!("{name}-again"));
        again.save(&once_more, Existing::Keep).unwrap();
        for file in ["config.json", "model.safetensors", "tokenizer.json", "modules.json"] {
            let (first, second) = (fs::read(saved.join(file)), fs::read(once_more.join(file)));
            assert_eq!(first.unwrap(), second.unwrap(), "{file}");
        }
        let taken = encoder.save(&saved, Existing::Keep).unwrap_err().to_string();
        assert!(taken.contains("there already"), "{taken}");
        encoder.save(&saved, Existing::Replace).unwrap();
        assert!(TextEncoder::load(&saved).is_ok());
    }
    // The pooler is not used, and is saved all the same.
    let has_pooler = |path: &Path| {
        let bytes = fs::read(path.join("model.safetensors")).unwrap();
        String::from_utf8_lossy(&bytes).contains("pooler.dense.weight")
    };
    assert!(has_pooler(&fixture("bert")) && has_pooler(&base.path().join("bert")));
}

fn own_tokenizer() -> Tokenizer {
    let texts: Texts = ["red and round", "yellow and long"].into_iter().collect();
    let options = VocabularyOptions { size: 60, ..Default::default() };
    train_vocabulary(&[&texts], &options, &Silent).unwrap()
}

fn small(vocabulary_size: usize) -> TransformerConfig {
    TransformerConfig {
        vocabulary_size,
        dim: 8,
        n_layers: 1,
        n_heads: 2,
        feed_forward_dim: 16,
        max_positions: 12,
        n_token_types: 2,
        layer_norm_epsilon: 1e-12,
        dropout: 0.1,
        attention_dropout: 0.1,
        pooling: Pooling::Cls,
    }
}

#[test]
fn an_encoder_from_scratch_is_saved_with_all_that_others_need() {
    let base = tempfile::tempdir().unwrap();
    let make = |seed| TextEncoder::new_transformer(small(60), own_tokenizer(), 10, seed).unwrap();
    let encoder = make(1);
    assert_eq!(bits(&encoder), bits(&make(1)), "the same seed gives the same weights");
    assert_ne!(bits(&encoder), bits(&make(2)));
    let saved = base.path().join("own");
    encoder.save(&saved, Existing::Keep).unwrap();
    let tokenizer = json_of(&saved.join("tokenizer_config.json"));
    assert_eq!(tokenizer["tokenizer_class"], "PreTrainedTokenizerFast");
    assert_eq!(tokenizer["pad_token"], "[PAD]");
    assert_eq!(tokenizer["model_max_length"], 12);
    let config = json_of(&saved.join("config.json"));
    assert_eq!((&config["model_type"], &config["hidden_size"]), (&json!("bert"), &json!(8)));
    assert_eq!(config["hidden_dropout_prob"], 0.1);
    assert_eq!(config["layer_norm_eps"], 1e-12);
    let again = TextEncoder::load(&saved).unwrap();
    assert_eq!((again.max_tokens(), bits(&again)), (10, bits(&encoder)));
}

#[test]
fn an_impossible_encoder_from_scratch_is_refused() {
    let make = |config| TextEncoder::new_transformer(config, own_tokenizer(), 10, 0);
    let error = make(TransformerConfig { n_heads: 3, ..small(60) }).unwrap_err().to_string();
    assert!(error.contains("dim 8 is no multiple of n_heads 3"), "{error}");
    let error = make(small(10)).unwrap_err().to_string();
    assert!(error.contains("vocab_size") && error.contains("counts disagree"), "{error}");
}

#[test]
fn a_bag_is_saved_and_loaded_too() {
    let config = || BagConfig { vocabulary_size: 60, dim: 8, dropout: 0.25 };
    let make = |weights: &[f32]| TextEncoder::new_bag(config(), own_tokenizer(), weights, 40, 1);
    let encoder = make(&[1.5; 60]).unwrap();
    let base = tempfile::tempdir().unwrap();
    let saved = base.path().join("bag");
    encoder.save(&saved, Existing::Keep).unwrap();
    let settings = json_of(&saved.join("config.json"));
    assert_eq!((&settings["model_type"], &settings["dim"]), (&json!("ngame-bag"), &json!(8)));
    assert!(!saved.join("modules.json").exists(), "no other library knows what a bag is");
    let again = TextEncoder::load(&saved).unwrap();
    assert_eq!((again.max_tokens(), bits(&again)), (40, bits(&encoder)));
    let error = make(&[1.0; 59]).unwrap_err().to_string();
    assert!(error.contains("60 positive numbers, found 59 numbers"), "{error}");
    assert!(make(&[0.0; 60]).is_err());
}
