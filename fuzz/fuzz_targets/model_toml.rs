//! Any text is a model of finite work or an error, never a panic.
#![no_main]

use foretrain_workload::spec;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(model) = spec::parse(text, "file") {
        assert!(model.forward(None).get().is_finite());
        assert!(model.active_parameters() <= model.parameters());
    }
});
