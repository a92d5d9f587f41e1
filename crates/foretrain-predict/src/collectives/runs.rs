//! Runs of benchmark logs on a cluster: where their ranks sit, and which of their times count.

use foretrain_core::Nanos;
use foretrain_graph::CollectiveKind;
use foretrain_hardware::{Catalogue, Cluster, Device};
use foretrain_ingest::collective_log::{Row, Run, Timing};

use super::answer::Setting;
use super::setting::{Layout, Place, WhatIf, layout_on, situate};

/// What the runs are taken to have run on.
pub(super) struct Machine<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) catalogue: &'a Catalogue,
    /// Of runs whose log names no hosts.
    pub(super) layout: Layout,
    pub(super) what_if: WhatIf,
}

/// The fabric under a run, or why it has none.
pub(super) fn placed(machine: &Machine<'_>, run: &Run) -> Result<Place, String> {
    if run.kind.value == CollectiveKind::Unknown {
        return Err("the log does not name the operation; name the file after it, as in \
                    all_reduce.log"
            .into());
    }
    if run.cpu_time {
        return Err("its times are those of the issuing thread, not of the operation".into());
    }
    let Some(ranks) = run.ranks.as_ref().map(|ranks| ranks.value) else {
        return Err("the log does not tell the number of ranks".into());
    };
    let layout = run.nodes.map_or(machine.layout, |hosts| layout(machine.cluster, ranks, hosts));
    situate(machine.cluster, ranks, layout, machine.what_if).map_err(|error| error.to_string())
}

/// Where the ranks of a log sit, from the hosts it names. A node of the catalogue may have several.
fn layout(cluster: &Cluster, ranks: u32, hosts: u32) -> Layout {
    layout_on(cluster, ranks, hosts.div_ceil(cluster.node.hosts.max(1)))
}

/// The shorter of the times in and out of place, of those that count.
pub(super) fn fastest(row: &Row, counts: impl Fn(&Timing) -> bool) -> Option<Nanos> {
    let timings = [row.out_of_place, row.in_place].into_iter().flatten().filter(counts);
    timings.map(|timing| timing.time).filter(|time| *time > Nanos::ZERO).min()
}

/// A device that is not the cluster's.
pub(super) struct OtherDevice<'a> {
    /// The catalogue's entry.
    pub(super) device: &'a Device,
    /// For people, with the log's own word.
    pub(super) named: String,
}

/// The device that a log names, if the catalogue knows it as another one than the cluster's.
pub(super) fn other_device<'a>(machine: &Machine<'a>, run: &Run) -> Option<OtherDevice<'a>> {
    let named = run.device.as_deref().filter(|name| !name.trim().is_empty())?;
    let device = machine.catalogue.device_by_product_name(named)?;
    (device.name != machine.cluster.node.device.name)
        .then(|| OtherDevice { device, named: format!("{} ({named})", device.name) })
}

/// That the layout is a guess.
pub(super) fn no_hosts(setting: &Setting, run: &Run) -> Option<String> {
    run.nodes.is_none().then(|| {
        let per_node = setting.ranks_per_node;
        format!("the log does not name its hosts; taken to have had {per_node} of its ranks each")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_tell_the_layout() {
        let cluster = |name| Catalogue::builtin().cluster(name).unwrap();
        let dgx = cluster("dgx-a100");
        assert_eq!(layout(&dgx, 16, 2), Layout::Packed);
        assert_eq!(layout(&dgx, 16, 4), Layout::PerNode(4));
        assert_eq!(layout(&dgx, 4, 1), Layout::Packed);
        assert_eq!(layout(&dgx, 2, 2), Layout::PerNode(1));
        // 18 hosts are one NVLink domain.
        assert_eq!(layout(&cluster("gb200-nvl72"), 72, 18), Layout::Packed);
        assert_eq!(layout(&cluster("gb200-nvl72"), 144, 36), Layout::Packed);
    }
}
