//! The language of what-ifs: changes, scenarios, sweeps, files of them.

mod change;
mod file;
mod parse;
mod scenario;
mod split;
mod sweep;

pub use change::Change;
pub use file::ScenarioFile;
pub use scenario::Scenario;
pub use sweep::{Axis, MOST_SCENARIOS, grid};

#[cfg(test)]
mod tests;
