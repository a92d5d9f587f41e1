//! Clusters from the catalogue and from tables of machines.

use std::collections::BTreeMap;

use foretrain_core::words::counted;
use foretrain_core::{InputError, Result};
use foretrain_hardware::{Catalogue, Device};

use super::cluster::{Cluster, GpuKind, Node};
use crate::jobs;

/// What a device of the catalogue is to a scheduler. An idle GPU draws about a sixth of its design
/// power (data-centre GPUs of 250 to 700 W idle at 40 to 120 W).
pub fn kind_of(device: &Device) -> GpuKind {
    let usual = GpuKind::named(device.name.clone());
    let busy_watts = device.tdp_watts.unwrap_or(usual.busy_watts);
    // Multi-instance GPUs came with compute capability 8.0, on data-centre parts of 9.0 and later too.
    let sliced = matches!(device.compute_capability, Some((8..=10, 0)));
    GpuKind {
        memory: Some(device.memory),
        idle_watts: busy_watts / 6.0,
        busy_watts,
        sliced,
        ..usual
    }
}

/// Collects machines from the rows of a table.
#[derive(Debug, Default)]
pub struct Machines {
    /// By name: GPUs and their kind. Several rows of one machine are one machine.
    known: BTreeMap<String, (u32, String)>,
    without_gpus: u64,
}

impl Machines {
    /// Takes one row.
    pub fn add(&mut self, row: &jobs::Job) {
        let gpus = row.gpus.unwrap_or(0.0);
        if !(gpus >= 1.0 && gpus <= f64::from(u16::MAX)) {
            self.without_gpus += 1;
            return;
        }
        let name = row.placements.first().map_or(&row.id, |placement| &placement.machine);
        let number = self.known.len();
        let name = if name.is_empty() { format!("#{number}") } else { name.clone() };
        self.known.insert(name, (gpus as u32, row.gpu_kind.clone()));
    }

    /// The cluster, in racks of so many nodes, and machines left out for want of GPUs. Kinds that the
    /// catalogue knows get their memory and power from there.
    ///
    /// # Errors
    /// If no machine has GPUs.
    pub fn cluster(self, per_rack: u32, catalogue: &Catalogue) -> Result<(Cluster, u64)> {
        if self.known.is_empty() {
            return Err(InputError::new("no machine of the table has GPUs"));
        }
        let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
        let mut kinds: Vec<GpuKind> = Vec::new();
        let mut nodes: Vec<Node> = Vec::new();
        for (number, (gpus, kind)) in self.known.into_values().enumerate() {
            let kind = *numbers.entry(kind).or_insert_with_key(|name| {
                let known = catalogue.device(name).ok();
                let usual = GpuKind::named(if name.is_empty() { "gpu" } else { name.as_str() });
                kinds.push(match known {
                    Some(device) => GpuKind { name: usual.name, ..kind_of(device) },
                    None => usual,
                });
                kinds.len() as u32 - 1
            });
            nodes.push(Node { gpus, kind, rack: number as u32 / per_rack.max(1) });
        }
        Ok((Cluster::new(kinds, nodes)?, self.without_gpus))
    }
}

/// `213 nodes: 52 x 8 v100, 4 x 2 p100`.
pub fn describe(cluster: &Cluster) -> String {
    let mut groups: BTreeMap<(&str, u32), usize> = BTreeMap::new();
    for node in cluster.nodes() {
        let kind = &cluster.kinds()[node.kind as usize];
        *groups.entry((&kind.name, node.gpus)).or_default() += 1;
    }
    let parts: Vec<String> =
        groups.iter().map(|((name, gpus), count)| format!("{count} x {gpus} {name}")).collect();
    let nodes = cluster.nodes().len();
    format!(
        "{} on {}: {}",
        counted(cluster.gpus(), "GPU"),
        counted(nodes, "node"),
        parts.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_of_a_table_become_nodes() {
        let row = |name: &str, gpus: f64, kind: &str| jobs::Job {
            placements: vec![jobs::Placement { machine: name.into(), gpus: None }],
            gpus: Some(gpus),
            gpu_kind: kind.into(),
            ..jobs::Job::default()
        };
        let mut machines = Machines::default();
        for row in [row("a", 8.0, "v100-sxm2-32gb"), row("b", 2.0, "G7"), row("c", 0.0, "")] {
            machines.add(&row);
        }
        machines.add(&row("a", 8.0, "v100-sxm2-32gb"));
        let (cluster, without) = machines.cluster(1, Catalogue::builtin()).expect("two nodes");
        assert_eq!((cluster.gpus(), without), (10, 1));
        assert!(cluster.kinds()[0].memory.is_some() && cluster.kinds()[1].memory.is_none());
        assert_eq!(describe(&cluster), "10 GPUs on 2 nodes: 1 x 2 G7, 1 x 8 v100-sxm2-32gb");
    }
}
