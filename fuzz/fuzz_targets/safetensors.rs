//! Any bytes are the header of weights or an error, never a panic.
#![no_main]

use foretrain_fleet::sharing::parse_weights;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(model) = parse_weights(bytes) {
        let all = model.bytes() + model.private;
        // Tensors may overlap in a file that is made so, but none is longer than the file.
        assert!(model.layers.iter().all(|layer| layer.bytes.get() <= 2 * bytes.len() as u64));
        assert!(all >= model.bytes());
    }
});
