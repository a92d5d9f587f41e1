//! Runs that only a description is known of: model, layout, batch, machine.

mod case;
mod llm;
mod machines;
mod mlperf;
mod models;
mod neusight;
mod runs;
mod sailor;
mod table;
mod vtrain;

use super::ValidationSet;

/// All of them, in the order of the report.
pub(super) fn sets() -> impl Iterator<Item = &'static dyn ValidationSet> {
    [vtrain::SETS, llm::SETS, sailor::SETS, mlperf::SETS, neusight::SETS].into_iter().flatten().copied()
}
