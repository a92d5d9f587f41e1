//! Runs that only a description is known of: model, layout, batch, machine.

mod case;
mod flagperf;
mod held_out;
mod llm;
mod machines;
mod megatron;
mod mlperf;
mod models;
mod neusight;
mod rank;
mod runs;
mod sailor;
mod vtrain;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::ValidationSet;
use super::corpus::Corpus;
use held_out::Reader;
pub(super) use held_out::Sources;

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

/// Where runs are read that constants come from.
fn readers() -> impl Iterator<Item = Reader> {
    let grid = Reader { source: vtrain::SOURCE, read: vtrain::cases_of_grid };
    let runs =
        [llm::SOURCES, flagperf::SOURCES, sailor::SOURCES, mlperf::SOURCES, megatron::SOURCES];
    std::iter::once(grid).chain(runs.into_iter().flatten().map(|runs| runs.reader()))
}

/// All sources under a corpus's root, read once.
fn sources(corpus: &Corpus<'_>) -> Arc<Sources> {
    corpus.sources(|| Sources::read(corpus.root(), readers()))
}
