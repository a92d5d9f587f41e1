//! Files of scenarios, one per line.

use foretrain_core::{InputError, Result};

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
        let mut scenarios = Vec::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            if scenarios.len() == MOST_SCENARIOS {
                let message = format!("more than {MOST_SCENARIOS} scenarios");
                return Err(InputError::new(message).hint("divide the file into several"));
            }
            let scenario: Scenario = serde_json::from_str(line).map_err(|error| {
                // The error's own place is within the line, which is said to be line 1.
                let message = error.to_string();
                let message = message.split(" at line ").next().unwrap_or_default().to_owned();
                InputError::new(message)
                    .at(format!("line {}, column {}", number + 1, error.column()))
                    .hint("`foretrain plan MODEL ... --write-scenarios FILE` writes such lines")
            })?;
            scenarios.push(scenario);
        }
        if scenarios.is_empty() {
            return Err(InputError::new("no scenarios in it")
                .hint("`foretrain plan MODEL ... --write-scenarios FILE` writes some"));
        }
        let stamped = format!("foretrain {}\n{text}", env!("CARGO_PKG_VERSION"));
        Ok(Self { scenarios, hash: hash(stamped.as_bytes()) })
    }

    /// The lines of a file that holds these.
    pub fn to_json_lines(scenarios: &[Scenario]) -> String {
        let mut text = String::new();
        for scenario in scenarios {
            // Plain data; none of it fails to serialise.
            text.push_str(&serde_json::to_string(scenario).unwrap_or_default());
            text.push('\n');
        }
        text
    }
}
