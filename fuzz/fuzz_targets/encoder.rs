//! Folders of encoders: settings and weights. What loads is saved and loads again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ngame::encoder::{Existing, TextEncoder};

/// A tokenizer of seven tokens, so that only the other files are in question.
const VOCABULARY: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n";

fuzz_target!(|bytes: &[u8]| {
    let names = ["config.json", "model.safetensors", "modules.json", "sentence_bert_config.json"];
    ngame_fuzz::with_files(&names, bytes, |folder| {
        std::fs::write(folder.join("vocab.txt"), VOCABULARY).unwrap();
        if let Ok(encoder) = TextEncoder::load(folder) {
            let saved = folder.join("saved");
            encoder.save(&saved, Existing::Replace).unwrap();
            let again = TextEncoder::load(&saved).unwrap();
            assert_eq!(encoder.parameters().values(), again.parameters().values());
        }
    });
});
