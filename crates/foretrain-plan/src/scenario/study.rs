//! Files of scenarios, one per line.

use foretrain_core::{InputError, Nanos, Result};

use super::lines::{lines, to_lines};
use super::{Scenario, hash};

/// Most scenarios of one file.
pub const MOST_SCENARIOS: usize = 1_000_000;

/// All scenarios of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// In the order of the file.
    pub scenarios: Vec<Scenario>,
    /// What tells its rows from those of another study: the hash of its text and of the version of
    /// Foretrain, since another version may answer otherwise.
    pub hash: String,
}

impl Study {
    /// Reads lines of JSON; blank ones are skipped.
    ///
    /// # Errors
    /// If a line is no scenario, with its number, or there are none or too many.
    pub fn parse(text: &str) -> Result<Self> {
        const HINT: &str = "`foretrain plan MODEL ... --write-scenarios FILE` writes such lines";
        let checked = lines(text, HINT).map(|line| {
            let (number, scenario): (usize, Scenario) = line?;
            check(&scenario, number)?;
            Ok(scenario)
        });
        let scenarios = checked.take(MOST_SCENARIOS + 1).collect::<Result<Vec<_>>>()?;
        if scenarios.len() > MOST_SCENARIOS {
            let message = format!("more than {MOST_SCENARIOS} scenarios");
            return Err(InputError::new(message).hint("divide the file into several"));
        }
        if scenarios.is_empty() {
            return Err(InputError::new("no scenarios in it").hint(HINT));
        }
        let stamped = format!("foretrain {}\n{text}", env!("CARGO_PKG_VERSION"));
        Ok(Self { scenarios, hash: hash(stamped.as_bytes()) })
    }

    /// The lines of a file that holds these.
    pub fn to_json_lines(scenarios: &[Scenario]) -> String {
        to_lines(scenarios)
    }
}

/// Numbers that JSON may hold and no scenario does.
fn check(scenario: &Scenario, line: usize) -> Result<()> {
    let refuse = |key: &str, value: String, expected: &str| {
        let error = InputError::new(format!("{value}, expected {expected}"));
        Err(error.at(format!("line {line}, {key}")).hint("correct it, or leave the line out"))
    };
    let above_zero = |number: f64| number > 0.0 && number.is_finite();
    if let Some(price) = scenario.price
        && !above_zero(price)
    {
        return refuse("price", price.to_string(), "US dollars above 0");
    }
    let imbalance = scenario.training.expert_imbalance;
    if !above_zero(imbalance) {
        return refuse("training.expert-imbalance", imbalance.to_string(), "a number above 0");
    }
    let software = &scenario.software;
    let times = [
        ("software.host-forward", software.host_forward),
        ("software.host-backward", software.host_backward),
        ("software.host-per-pass", software.host_per_pass),
        ("software.host-per-step", software.host_per_step),
        ("software.host-per-checkpoint", software.host_per_checkpoint),
    ];
    match times.into_iter().find(|(_, time)| *time < Nanos::ZERO) {
        Some((key, time)) => refuse(key, time.nanos().to_string(), "nanoseconds of 0 or more"),
        None => Ok(()),
    }
}
