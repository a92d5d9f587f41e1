//! No bytes make the reader of measured primitives or that of their file panic; what they give is
//! made of numbers, and a file that was read can be written and read again.
#![no_main]

use foretrain_ingest::primitive_table;
use foretrain_predict::primitives::{calibrate_primitives, parse, text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok((measured, ledger)) = primitive_table::read_bytes(bytes, "fuzz.csv") {
        let times = measured.times().count() as u64;
        assert_eq!(ledger.coverage("rows").map_or(0, |rows| rows.used), times);
        if let Ok(answer) = calibrate_primitives(&measured, "fuzz.csv") {
            let primitives = &answer.fitted.primitives;
            parse(&text(primitives, &[])).expect("what is written can be read");
        }
    }
    if let Ok(primitives) = std::str::from_utf8(bytes).map_err(drop).and_then(|text| parse(text).map_err(drop)) {
        assert!(primitives.send.ns(1e6).is_finite());
        parse(&text(&primitives, &[])).expect("what is written can be read");
    }
});
