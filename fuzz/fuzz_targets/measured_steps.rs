//! No text makes the readers of measured steps panic; what is read can be fitted to.
#![no_main]

use foretrain_core::Nanos;
use foretrain_plan::calibrate::MeasuredSteps;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for read in [MeasuredSteps::parse(text), MeasuredSteps::parse_table(text)] {
        let Ok(found) = read else { continue };
        assert!(!found.steps.is_empty());
        for step in &found.steps {
            assert!(step.step_time > Nanos::ZERO && step.batch > 0 && step.layout.devices() > 0);
        }
    }
});
