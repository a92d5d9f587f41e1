//! Any text is a model of finite work or an error, never a panic.
#![no_main]

use foretrain_workload::hugging_face;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(model) = hugging_face::parse(text) {
        assert!(model.forward(None).get().is_finite());
        assert!(model.active_parameters() <= model.parameters());
    }
});
