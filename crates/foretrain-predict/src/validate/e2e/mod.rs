//! Runs that only a description is known of: model, layout, batch, machine.

mod case;
mod flagperf;
mod llm;
mod machines;
mod megatron;
mod mlperf;
mod models;
mod neusight;
mod rank;
mod runs;
mod sailor;
mod table;
mod vtrain;

#[cfg(test)]
mod tests;

use super::ValidationSet;

/// All of them, in the order of the report.
pub(super) fn sets() -> impl Iterator<Item = &'static dyn ValidationSet> {
    let sets = [
        vtrain::SETS,
        llm::SETS,
        flagperf::SETS,
        sailor::SETS,
        mlperf::SETS,
        neusight::SETS,
        megatron::SETS,
        rank::SETS,
    ];
    sets.into_iter().flatten().copied()
}
