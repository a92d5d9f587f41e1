//! Whole clusters: published schedules, utilisation, layers that models share.

mod layers;
mod muri;
mod pollux;
mod utilisation;

use super::ValidationSet;

/// All of them, in the order of the report.
pub(super) const SETS: &[&dyn ValidationSet] =
    &[&utilisation::GpuMemNet, &muri::Muri, &pollux::Pollux, &layers::Gemel];
