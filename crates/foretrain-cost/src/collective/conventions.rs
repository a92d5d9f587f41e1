//! Sizes and bandwidths as the field's benchmarks define them.

use foretrain_core::{Bandwidth, Bytes, Nanos};
use foretrain_graph::CollectiveKind;

/// Bus bandwidth over algorithm bandwidth of a collective among `ranks` (nccl-tests
/// `doc/PERFORMANCE.md`), for sizes that count the larger of a rank's input and output buffer.
///
/// It is also the share of that size that crosses a rank's link in one direction.
pub fn bus_factor(kind: CollectiveKind, ranks: u32) -> f64 {
    if ranks <= 1 {
        return 0.0;
    }
    let ranks = f64::from(ranks);
    match kind {
        CollectiveKind::AllReduce | CollectiveKind::Unknown => 2.0 * (ranks - 1.0) / ranks,
        CollectiveKind::AllGather
        | CollectiveKind::ReduceScatter
        | CollectiveKind::AllToAll
        | CollectiveKind::Gather
        | CollectiveKind::Scatter => (ranks - 1.0) / ranks,
        CollectiveKind::Broadcast
        | CollectiveKind::Reduce
        | CollectiveKind::Send
        | CollectiveKind::Recv
        | CollectiveKind::SendRecv => 1.0,
        CollectiveKind::Barrier => 0.0,
    }
}

/// Size over time; zero if no time passed.
pub fn algorithm_bandwidth(bytes: Bytes, time: Nanos) -> Bandwidth {
    Bandwidth::of(bytes, time).unwrap_or(Bandwidth::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_those_of_nccl_tests() {
        for (kind, want) in [
            (CollectiveKind::AllReduce, 1.75),
            (CollectiveKind::AllGather, 0.875),
            (CollectiveKind::ReduceScatter, 0.875),
            (CollectiveKind::AllToAll, 0.875),
            (CollectiveKind::Broadcast, 1.0),
            (CollectiveKind::Reduce, 1.0),
            (CollectiveKind::SendRecv, 1.0),
            (CollectiveKind::Barrier, 0.0),
        ] {
            assert_eq!(bus_factor(kind, 8), want, "{kind}");
            assert_eq!(bus_factor(kind, 1), 0.0, "{kind}");
        }
        assert_eq!(bus_factor(CollectiveKind::AllReduce, 0), 0.0);
    }
}
