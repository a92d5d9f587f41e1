//! Files of scenarios, one per line.

use foretrain_core::{InputError, Result};

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
        let scenarios = lines(text, HINT).take(MOST_SCENARIOS + 1).collect::<Result<Vec<_>>>()?;
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
