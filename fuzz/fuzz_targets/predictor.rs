//! Any text is a predictor, a table of jobs, or an error; a predictor answers with finite numbers.
#![no_main]

use foretrain_fleet::utilisation::{Features, PredictorFile, read_table};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = read_table(text, &|name| foretrain_workload::named(name));
    if let Ok(file) = PredictorFile::read(text) {
        let told = file.predictor.predict(&Features::default()).utilisation;
        assert!(0.0 <= told.low && told.low <= told.high && told.high <= 100.0);
    }
});
