//! No text makes the readers of what-ifs panic; a scenario that is read reads back from its own
//! text; a grid is bounded.
#![no_main]

use foretrain_predict::whatif::language::MOST_SCENARIOS;
use foretrain_predict::whatif::{Axis, Scenario, ScenarioFile, grid};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(scenario) = Scenario::parse(text) {
        let again = Scenario::parse(&scenario.to_string()).expect("its text is one");
        assert_eq!(again.to_string(), scenario.to_string());
    }
    if let Ok(axis) = Axis::parse(text)
        && let Ok(scenarios) = grid(&[axis.clone(), axis])
    {
        assert!(scenarios.len() <= MOST_SCENARIOS);
    }
    if let Ok(file) = ScenarioFile::parse(text) {
        assert!(file.sweeps.len() <= MOST_SCENARIOS);
    }
});
