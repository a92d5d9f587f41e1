//! Links that reach much less than they could: a fault of the transport, which the fit would
//! otherwise pass off as the cluster's nature.

use foretrain_core::{Bandwidth, Bytes, Result};
use foretrain_cost::calibrate::{Report, Residual};
use foretrain_graph::CollectiveKind;
use foretrain_hardware::{Cluster, LinkKind, NicKind};

use super::super::setting::fabric_of;

/// Large messages that reach much less than their links' nominal rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shortfall {
    /// Which links.
    pub place: Where,
    /// Which collective.
    pub kind: CollectiveKind,
    /// Ranks.
    pub ranks: u32,
    /// Nodes.
    pub nodes: u32,
    /// Size.
    pub bytes: Bytes,
    /// What it reached.
    pub bus: Bandwidth,
    /// What the links could carry.
    pub nominal: Bandwidth,
}

impl Shortfall {
    /// What was reached of the nominal rate, 0 to 1.
    pub fn share(&self) -> f64 {
        self.bus.get() / self.nominal.get()
    }
}

/// Which links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// NICs of this kind.
    Between(NicKind),
    /// Links of this kind in a node.
    Within(LinkKind),
}

/// From here on a transfer hides its latency.
const LARGE: Bytes = Bytes::from_mib(64);
/// Sound transports reach more than this of the nominal rate: 0.8 to 0.95.
const SOUND: f64 = 0.7;

/// The worst of each kind of link: of the largest message on the most ranks.
pub(super) fn shortfalls(cluster: &Cluster, report: &Report) -> Result<Vec<Shortfall>> {
    let mut found: Vec<Shortfall> = Vec::new();
    let kept = report.residuals.iter().filter(|row| row.kept && row.bytes >= LARGE);
    // Rows come by collective, nodes, ranks and size, so the last of a kind is the largest.
    let kept: Vec<&Residual> = kept.collect();
    let alike = |a: &&Residual, b: &&Residual| (a.kind, a.nodes > 1) == (b.kind, b.nodes > 1);
    for rows in kept.chunk_by(alike) {
        let Some(last) = rows.last() else { continue };
        let Some(short) = shortfall(cluster, last)? else { continue };
        match found.iter_mut().find(|known| known.place == short.place) {
            Some(known) if known.share() <= short.share() => {}
            Some(known) => *known = short,
            None => found.push(short),
        }
    }
    Ok(found)
}

fn shortfall(cluster: &Cluster, row: &Residual) -> Result<Option<Shortfall>> {
    use CollectiveKind::{AllGather, AllReduce, Broadcast, Reduce, ReduceScatter};
    // What a ring moves over its links is the size times the bus factor; others are not so plain.
    if !matches!(row.kind, AllGather | AllReduce | Broadcast | Reduce | ReduceScatter) {
        return Ok(None);
    }
    let fabric = fabric_of(cluster, row.ranks, row.nodes)?;
    let node = &cluster.node;
    let (place, nominal) = if row.nodes > 1 {
        let nominal = fabric.inter.bandwidth / node.nic_efficiency.max(f64::MIN_POSITIVE);
        if fabric.ranks_per_node > 1 && fabric.intra.bandwidth < nominal {
            return Ok(None);
        }
        (Where::Between(fabric.inter.kind), nominal)
    } else if fabric.intra.kind == LinkKind::Nvswitch {
        (Where::Within(fabric.intra.kind), fabric.intra.bandwidth)
    } else {
        // Without a switch the rate depends on which devices took part.
        return Ok(None);
    };
    let bus = row.bus_bandwidth();
    let short = bus.get() < SOUND * nominal.get();
    Ok(short.then_some(Shortfall {
        place,
        kind: row.kind,
        ranks: row.ranks,
        nodes: row.nodes,
        bytes: row.bytes,
        bus,
        nominal,
    }))
}
