//! What no collective can beat.

use foretrain_core::Nanos;
use foretrain_graph::CollectiveKind as Kind;

use super::candidate::transfer_ns;
use super::conventions::bus_factor;
use super::fabric::Fabric;
use super::time::CollectiveCall;

/// The least time that the links allow, whatever the algorithm: the bytes that must cross the
/// narrowest of a rank's links and a node's NICs.
///
/// Within a node an all-reduce needs `2(r-1)/r` of its size per rank, or all of it once where the
/// switch reduces; between nodes `2(N-1)/N` per node, or all of it once where the switches between them reduce.
pub fn lower_bound(call: &CollectiveCall, fabric: &Fabric) -> Nanos {
    if fabric.ranks <= 1 || call.kind == Kind::Barrier {
        return Nanos::ZERO;
    }
    let bytes = call.bytes.as_f64();
    let nodes = fabric.nodes.clamp(1, fabric.ranks);
    let local = fabric.ranks_per_node.clamp(fabric.ranks.div_ceil(nodes), fabric.ranks);
    let within = match call.kind {
        Kind::AllReduce | Kind::Unknown if fabric.has_nvls() && local > 2 => 1.0,
        Kind::AllToAll | Kind::Gather | Kind::Scatter => {
            f64::from(local - 1) / f64::from(fabric.ranks)
        }
        Kind::Send | Kind::Recv | Kind::SendRecv if nodes > 1 => 0.0,
        kind => bus_factor(kind, local),
    };
    let between = match call.kind {
        _ if nodes <= 1 => 0.0,
        Kind::AllToAll => {
            f64::from(fabric.ranks - local) / f64::from(fabric.ranks) * f64::from(local)
        }
        Kind::Gather | Kind::Scatter => f64::from(fabric.ranks - local) / f64::from(fabric.ranks),
        Kind::AllReduce | Kind::Unknown if fabric.in_network_reduction => 1.0,
        kind => bus_factor(kind, nodes),
    };
    let nanos = transfer_ns(within * bytes, fabric.intra.bandwidth.get())
        .max(transfer_ns(between * bytes, fabric.inter.bandwidth.get()));
    if nanos.is_finite() { Nanos::from_nanos_f64(nanos) } else { Nanos::MAX }
}
