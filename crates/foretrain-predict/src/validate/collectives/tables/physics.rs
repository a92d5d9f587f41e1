//! Times that no machine of the kind can reach: the call failed, or was not waited for.

use foretrain_core::{Nanos, Result};
use foretrain_cost::{CollectiveCall, Fabric, GroupPlacement, lower_bound};
use foretrain_hardware::{Catalogue, Cluster};

use super::MeasuredRow;

/// What the figures of catalogue and table may be off by rounding.
const ROUNDING: f64 = 0.98;

/// The row, flagged if it is faster than the wires of its machine.
pub(super) fn flagged(row: MeasuredRow) -> Result<MeasuredRow> {
    let Some(fastest) = fastest(&row)? else { return Ok(row) };
    let impossible = (row.time.nanos() as f64) < fastest.nanos() as f64 * ROUNDING;
    Ok(if impossible { row.flagged(TOO_FAST) } else { row })
}

/// The flag of such rows.
pub(super) const TOO_FAST: &str = "faster than the wires";

/// The least time that the wires of a row's machine allow, at their raw rates and with all NICs of
/// its nodes; `None` if the machine is not known.
fn fastest(row: &MeasuredRow) -> Result<Option<Nanos>> {
    let Some(name) = row.cluster else { return Ok(None) };
    let cluster = Catalogue::builtin().cluster(name)?;
    let mut fabric = Fabric::for_group(&cluster, &placement(row, &cluster))?;
    fabric.nodes = row.nodes;
    fabric.ranks_per_node = row.ranks.div_ceil(row.nodes.max(1));
    fabric.intra.bandwidth = cluster.node.intra.per_device_bandwidth;
    fabric.inter.bandwidth = cluster.node.nics_bandwidth();
    let call = CollectiveCall { kind: row.kind, bytes: row.bytes, dtype: row.dtype };
    Ok(Some(lower_bound(&call, &fabric)))
}

/// As many ranks on each node as the row has.
fn placement(row: &MeasuredRow, cluster: &Cluster) -> GroupPlacement {
    let per_node = row.ranks.div_ceil(row.nodes.max(1)).max(1);
    GroupPlacement::strided(row.ranks, (cluster.devices_per_node() / per_node).max(1))
}
