//! Tokenizer definitions, and what they make of a text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ngame::tokens::Tokenizer;

fuzz_target!(|bytes: &[u8]| {
    ngame_fuzz::with_files(&["tokenizer.json", "text"], bytes, |folder| {
        let text = std::fs::read(folder.join("text")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let vocabulary = folder.join("vocab.txt");
        let _ = std::fs::copy(folder.join("tokenizer.json"), &vocabulary);
        for path in [folder, &vocabulary] {
            if let Ok(tokenizer) = Tokenizer::load(path) {
                let _ = tokenizer.encode(&text, 16, &mut Vec::new());
            }
        }
    });
});
