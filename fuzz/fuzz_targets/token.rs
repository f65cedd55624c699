//! Whatever a client sends as a token is read in one way or not at all.
#![no_main]

use std::sync::LazyLock;

use diesel_routed::__private::rewritten_token;
use diesel_routed::{Context, TokenKeys};
use libfuzzer_sys::fuzz_target;

static KEYS: LazyLock<TokenKeys> = LazyLock::new(|| TokenKeys::new([0; 32]).unwrap());

fuzz_target!(|text: &str| {
    if let Some(again) = rewritten_token(text) {
        assert_eq!(again, text, "one text for each value");
        assert!(text.len() <= 1024);
    }
    // written down again by whoever continues it
    for context in [Context::resume(text), Context::resume_signed(text, &KEYS)] {
        for token in [context.token(), context.token_signed(&KEYS)].into_iter().flatten() {
            assert!(token.len() <= 1024);
        }
    }
});
