//! What everybody asks: the changes that show what each part of the step costs at most.

use super::language::{Change, Scenario};

/// The standard list, each a change alone.
pub(super) fn standard() -> Vec<Scenario> {
    let changes = [
        Change::NoCommunication,
        Change::PerfectOverlap,
        Change::Bandwidth(2.0),
        Change::Latency(0.5),
        Change::NoLaunchOverhead,
        Change::FasterHost(2.0),
        Change::Input(0.0),
        Change::Fuse,
        Change::FastestRank,
    ];
    changes.into_iter().map(|change| Scenario { name: None, changes: vec![change] }).collect()
}
