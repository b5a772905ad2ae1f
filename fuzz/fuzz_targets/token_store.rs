//! Files of token ids.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ngame::tokens::TokenStore;

fuzz_target!(|bytes: &[u8]| {
    ngame_fuzz::with_files(&["tokens.bin"], bytes, |folder| {
        if let Ok(store) = TokenStore::open(&folder.join("tokens.bin")) {
            let _ = store.verify();
            for row in store.iter() {
                row.to_vec();
            }
        }
    });
});
