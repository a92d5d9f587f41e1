//! Clusters from the catalogue and from tables of machines.

use std::collections::BTreeMap;

use foretrain_core::words::counted;
use foretrain_core::{Bytes, InputError, Result};
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
    /// By name. Several rows of one machine are one machine.
    known: BTreeMap<String, Machine>,
    left_out: LeftOut,
}

/// More in one machine is a mistake.
const MOST_GPUS: u16 = u16::MAX;

/// What a row says of one machine.
#[derive(Debug)]
struct Machine {
    gpus: u32,
    kind: String,
    /// Of one GPU.
    memory: Option<Bytes>,
}

/// Rows of machines that could not be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// They have no GPUs, or do not say how many.
    pub without_gpus: u64,
    /// They have more GPUs than any machine.
    pub too_many_gpus: u64,
}

impl Machines {
    /// Takes one row.
    pub fn add(&mut self, row: &jobs::Job) {
        let gpus = row.gpus.unwrap_or(0.0);
        if gpus > f64::from(MOST_GPUS) {
            self.left_out.too_many_gpus += 1;
            return;
        }
        if gpus.is_nan() || gpus < 1.0 {
            self.left_out.without_gpus += 1;
            return;
        }
        let name = row.placements.first().map_or(&row.id, |placement| &placement.machine);
        let number = self.known.len();
        let name = if name.is_empty() { format!("#{number}") } else { name.clone() };
        let kind = row.gpu_kind.clone();
        let memory = row.gpu_memory.filter(|memory| *memory > Bytes::ZERO);
        self.known.insert(name, Machine { gpus: gpus as u32, kind, memory });
    }

    /// The cluster, in racks of so many nodes, and rows left out. Kinds that the catalogue knows get
    /// their power from there, and their memory where the table does not tell it.
    ///
    /// # Errors
    /// If no machine has GPUs.
    pub fn cluster(self, per_rack: u32, catalogue: &Catalogue) -> Result<(Cluster, LeftOut)> {
        let left_out = self.left_out;
        if self.known.is_empty() {
            return Err(InputError::new(format!(
                "no machine of the table has a number of GPUs from 1 to {MOST_GPUS}"
            )));
        }
        let mut numbers: BTreeMap<(String, Option<Bytes>), u32> = BTreeMap::new();
        let mut kinds: Vec<GpuKind> = Vec::new();
        let mut nodes: Vec<Node> = Vec::new();
        for (number, Machine { gpus, kind, memory }) in self.known.into_values().enumerate() {
            let kind = *numbers.entry((kind, memory)).or_insert_with_key(|(name, memory)| {
                let known = catalogue.device(name).ok();
                let usual = GpuKind::named(if name.is_empty() { "gpu" } else { name.as_str() });
                let kind = match known {
                    Some(device) => GpuKind { name: usual.name, ..kind_of(device) },
                    None => usual,
                };
                kinds.push(GpuKind { memory: memory.or(kind.memory), ..kind });
                kinds.len() as u32 - 1
            });
            nodes.push(Node { gpus, kind, rack: number as u32 / per_rack.max(1) });
        }
        Ok((Cluster::new(kinds, nodes)?, left_out))
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
        assert_eq!((cluster.gpus(), without.without_gpus), (10, 1));
        assert!(cluster.kinds()[0].memory.is_some() && cluster.kinds()[1].memory.is_none());
        assert_eq!(describe(&cluster), "10 GPUs on 2 nodes: 1 x 2 G7, 1 x 8 v100-sxm2-32gb");
    }

    #[test]
    fn memory_is_that_of_the_table() {
        let row = |id: &str, gpus: f64, memory: u64| jobs::Job {
            id: id.into(),
            gpus: Some(gpus),
            gpu_kind: "A100".into(),
            gpu_memory: Some(Bytes::new(memory * 1_000_000_000)),
            ..jobs::Job::default()
        };
        let mut machines = Machines::default();
        for (name, memory) in [("a", 40), ("b", 80), ("c", 40)] {
            machines.add(&row(name, 2.0, memory));
        }
        let (cluster, _) = machines.cluster(8, Catalogue::builtin()).expect("three nodes");
        let memory: Vec<_> = cluster.kinds().iter().filter_map(|kind| kind.memory).collect();
        assert_eq!(memory, [40, 80].map(|memory| Bytes::new(memory * 1_000_000_000)));
        // They are one kind to a job that asks for it by name.
        assert!(cluster.suits(Some(0), 1) && cluster.suits(Some(1), 0) && cluster.suits(None, 1));
        let mut machines = Machines::default();
        machines.add(&row("a", 99_999_999_999.0, 40));
        let error = machines.cluster(8, Catalogue::builtin()).expect_err("none is left");
        assert!(error.to_string().contains("from 1 to 65535"), "{error}");
    }
}
