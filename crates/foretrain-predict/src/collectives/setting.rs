//! From ranks and a layout to the fabric under them, what-ifs included.

use foretrain_core::{Bandwidth, Bytes, InputError, Nanos, Result};
use foretrain_cost::{Fabric, GroupPlacement, LateLinks, Method};
use foretrain_graph::CollectiveKind;
use foretrain_hardware::Cluster;

use super::answer::Setting;

/// Where the ranks of a group sit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// On neighbouring devices.
    #[default]
    Packed,
    /// So many on each node, alone on it.
    PerNode(u32),
    /// On every so-manieth device, with like groups on the devices in between, all communicating
    /// at the same time.
    Strided(u32),
}

/// Changes to the network that nobody measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WhatIf {
    /// Added to each hop between nodes, one way.
    pub extra_latency: Nanos,
    /// The ring's links between nodes that have that latency, if not all have it.
    pub late_links: Option<u32>,
    /// What the library is told to take (`NCCL_ALGO`).
    pub algorithm: Option<Method>,
    /// Bytes that a connection may have in flight; a group has one connection per NIC it drives.
    pub window: Option<Bytes>,
}

/// A fabric and how it came about.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) fabric: Fabric,
    pub(super) extra_latency: Nanos,
    /// The window holds the NICs back.
    pub(super) windowed: bool,
}

impl Place {
    /// An operation here.
    pub(super) fn setting(&self, kind: CollectiveKind) -> Setting {
        Setting {
            kind,
            ranks: self.fabric.ranks,
            nodes: self.fabric.nodes,
            ranks_per_node: self.fabric.ranks_per_node,
            intra_bandwidth: self.fabric.intra.bandwidth,
            inter_bandwidth: self.fabric.inter.bandwidth,
            extra_latency: self.extra_latency,
        }
    }
}

/// The fabric under `ranks` ranks on `cluster`.
///
/// # Errors
/// For fewer than two ranks, and if the cluster cannot hold them in this layout or has no links
/// between them.
pub(super) fn situate(
    cluster: &Cluster,
    ranks: u32,
    layout: Layout,
    what_if: WhatIf,
) -> Result<Place> {
    if ranks < 2 {
        return Err(InputError::new("a single rank has nothing to communicate"));
    }
    let mut fabric = Fabric::for_group(cluster, &placement(cluster, ranks, layout)?)?;
    let mute = |rate: Bandwidth| rate.get() <= 0.0;
    if (fabric.ranks_per_node > 1 && mute(fabric.intra.bandwidth))
        || (fabric.nodes > 1 && mute(fabric.inter.bandwidth))
    {
        let name = &cluster.node.name;
        return Err(InputError::new(format!(
            "the catalogue knows no bandwidth between the {ranks} ranks on {name}"
        ))
        .hint("define a node with `based_on` that sets intra_bandwidth or nic_bandwidth"));
    }
    fabric.forced = what_if.algorithm;
    let latency = what_if.extra_latency;
    match what_if.late_links {
        None => fabric.inter.extra_latency += latency,
        Some(links) => fabric.inter.late = Some(LateLinks { links, latency }),
    }
    let cap = window_cap(cluster, &fabric, what_if)?;
    let windowed = cap.is_some_and(|cap| cap < fabric.inter.bandwidth);
    if let Some(cap) = cap {
        fabric.inter.bandwidth = fabric.inter.bandwidth.min(cap);
    }
    Ok(Place { fabric, extra_latency: latency, windowed })
}

/// Where `ranks` ranks sit that fill `nodes` nodes evenly.
pub(super) fn layout_on(cluster: &Cluster, ranks: u32, nodes: u32) -> Layout {
    let devices = cluster.devices_per_node().max(1);
    let per_node = ranks.div_ceil(nodes.max(1));
    if per_node >= devices || nodes <= 1 { Layout::Packed } else { Layout::PerNode(per_node) }
}

/// The fabric under `ranks` ranks on `nodes` nodes of a cluster.
///
/// # Errors
/// If the cluster cannot hold them so.
pub(crate) fn fabric_of(cluster: &Cluster, ranks: u32, nodes: u32) -> Result<Fabric> {
    let layout = layout_on(cluster, ranks, nodes);
    Ok(situate(cluster, ranks, layout, WhatIf::default())?.fabric)
}

fn placement(cluster: &Cluster, ranks: u32, layout: Layout) -> Result<GroupPlacement> {
    let devices = cluster.devices_per_node().max(1);
    Ok(match layout {
        Layout::Packed => GroupPlacement::contiguous(ranks),
        Layout::Strided(stride) => GroupPlacement::strided(ranks, stride),
        Layout::PerNode(per_node) if per_node > 0 && devices.is_multiple_of(per_node) => {
            GroupPlacement::strided(ranks, devices / per_node).concurrent_groups(1)
        }
        Layout::PerNode(per_node) => {
            let name = &cluster.node.name;
            return Err(InputError::new(format!(
                "{per_node} ranks per node cannot be spread evenly over the {devices} devices of {name}"
            ))
            .hint(format!("take a number that divides {devices}")));
        }
    })
}

/// What a window leaves of the rate between nodes: a connection has at most a window in flight per
/// round trip through the fabric, over the latest link if some are late.
fn window_cap(cluster: &Cluster, fabric: &Fabric, what_if: WhatIf) -> Result<Option<Bandwidth>> {
    let Some(window) = what_if.window.filter(|_| fabric.nodes > 1) else { return Ok(None) };
    let one_way = cluster.latency_among(fabric.nodes)? + what_if.extra_latency;
    let round_trip = (one_way + one_way).secs_f64();
    let node = &cluster.node;
    let payload = (node.nic_bandwidth * node.nic_efficiency).get();
    if round_trip <= 0.0 || payload <= 0.0 {
        return Ok(None);
    }
    // One connection per NIC; of NICs that a group shares with others it has its share.
    let connections = fabric.inter.bandwidth.get() / payload;
    Ok(Some(Bandwidth::from_bytes_per_sec(window.as_f64() * connections / round_trip)))
}

#[cfg(test)]
mod tests {
    use foretrain_hardware::Catalogue;

    use super::*;

    fn situated(ranks: u32, layout: Layout, what_if: WhatIf) -> Result<Place> {
        situate(&Catalogue::builtin().cluster("dgx-a100").unwrap(), ranks, layout, what_if)
    }

    #[test]
    fn ranks_per_node_have_their_nics_for_themselves() {
        let place = |layout| situated(16, layout, WhatIf::default()).unwrap().fabric;
        let packed = place(Layout::Packed);
        assert_eq!((packed.nodes, packed.ranks_per_node), (2, 8));
        let four = place(Layout::PerNode(4));
        assert_eq!((four.nodes, four.ranks_per_node), (4, 4));
        // Two strided groups share what the four ranks have alone: a NIC for each of them.
        assert_eq!(four.inter.bandwidth, packed.inter.bandwidth / 2.0);
        let one = place(Layout::PerNode(1));
        assert_eq!((one.nodes, one.inter.bandwidth), (16, packed.inter.bandwidth / 8.0));
        let error = situated(16, Layout::PerNode(3), WhatIf::default()).unwrap_err();
        assert!(error.hints()[0].contains("divides 8"), "{error}");
    }

    #[test]
    fn a_window_caps_the_rate_by_the_round_trip() {
        let near = WhatIf { window: Some(Bytes::from_mib(1)), ..WhatIf::default() };
        let far = WhatIf { extra_latency: Nanos::from_micros(300), ..near };
        let place = |ranks, what_if| situated(ranks, Layout::Packed, what_if).unwrap();
        assert!(!place(16, near).windowed, "1 MiB in 3 us is more than any NIC carries");
        assert!(!place(8, far).windowed, "one node has no network");
        let late = place(16, WhatIf { late_links: Some(1), ..far });
        for far in [place(16, far), late] {
            assert!(far.windowed);
            // 8 connections of 1 MiB in 2 x (1.5 + 300) us.
            let want = 8.0 * 1_048_576.0 / 603e-6;
            let got = far.fabric.inter.bandwidth.get();
            assert!((got / want - 1.0).abs() < 1e-6, "{got} {want}");
        }
    }

    #[test]
    fn latency_is_added_to_all_links_or_to_some() {
        let extra_latency = Nanos::from_micros(300);
        let place = |late_links| {
            let what_if = WhatIf { extra_latency, late_links, ..WhatIf::default() };
            situated(32, Layout::Packed, what_if).unwrap().fabric.inter
        };
        let plain = situated(32, Layout::Packed, WhatIf::default()).unwrap().fabric.inter;
        assert_eq!(place(None).extra_latency, plain.extra_latency + extra_latency);
        assert_eq!(place(None).late, None);
        assert_eq!(place(Some(2)).late, Some(LateLinks { links: 2, latency: extra_latency }));
        assert_eq!(place(Some(2)).extra_latency, plain.extra_latency);
    }
}
