//! Any bytes are an execution trace of a model of finite work or an error, never a panic.
#![no_main]

use foretrain_core::Ledger;
use foretrain_ingest::execution_trace::operators;
use foretrain_predict::described::of_operators;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(found) = operators(bytes, "fuzz.json", &mut Ledger::new()) else { return };
    if let Ok(model) = of_operators(&found, "fuzz") {
        assert!(model.forward(None).get().is_finite());
    }
});
