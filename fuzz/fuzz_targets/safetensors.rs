//! Any bytes are the header of weights or an error, never a panic; what is read can be shared with
//! itself.
#![no_main]

use foretrain_fleet::sharing::{Rule, Workload, parse_weights};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(model) = parse_weights(bytes) else { return };
    // Tensors may overlap in a file that is made so, but none is longer than the file.
    assert!(model.layers.iter().all(|layer| layer.bytes.get() <= 2 * bytes.len() as u64));
    let mut twin = model.clone();
    twin.name.push_str(" #2");
    let alone = model.bytes();
    if let Ok(workload) = Workload::new(vec![model, twin], Rule::default()) {
        assert_eq!(workload.bytes(), alone + alone);
        assert!(workload.most_saved() <= alone);
        assert_eq!(workload.pairs().len(), 3);
    }
});
