//! Any text gives a changed catalogue or an error, never a panic; after an error nothing changed.
#![no_main]

use foretrain_hardware::Catalogue;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut catalogue = Catalogue::builtin().clone();
    let before = catalogue.devices().len();
    match catalogue.load_str(text, "user.toml") {
        Ok(()) => {
            assert!(catalogue.devices().all(|d| d.memory_bandwidth.get().is_finite()));
        }
        Err(_) => assert_eq!(catalogue.devices().len(), before),
    }
});
