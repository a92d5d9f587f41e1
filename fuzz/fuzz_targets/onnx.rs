//! Any bytes are a model of finite work or an error, never a panic.
#![no_main]

use std::io::Cursor;

use foretrain_workload::onnx;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(model) = onnx::parse(Cursor::new(bytes), "file") {
        assert!(model.forward(None).get().is_finite());
        assert_eq!(model.profile(None).parameters(), model.parameters());
    }
});
