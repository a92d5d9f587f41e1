//! Whole clusters: published schedules, utilisation, layers that models share.

mod muri;
mod pollux;

use super::ValidationSet;

/// All of them, in the order of the report.
pub(super) const SETS: &[&dyn ValidationSet] = &[&muri::Muri, &pollux::Pollux];
