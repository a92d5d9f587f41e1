//! No text makes the reader of strategies panic or hang, and what it reads reads back as itself.
#![no_main]

use foretrain_rewrite::strategy::Registry;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let registry = Registry::builtin();
    if let Ok(strategy) = registry.parse(text) {
        assert!(registry.parse(strategy.text()).is_ok());
    }
});
