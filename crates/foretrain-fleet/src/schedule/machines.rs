//! Clusters from the catalogue and from tables of machines.

use std::collections::BTreeMap;

use foretrain_core::words::counted;
use foretrain_core::{Bytes, InputError, Ledger, Result, Severity};
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

/// The cluster of a list of machines, in racks of so many nodes. Kinds that the catalogue knows get
/// their power from there, and their memory where the table does not tell it. Machines without GPUs
/// are left out and counted.
///
/// # Errors
/// If no machine has GPUs.
pub fn cluster_of(
    list: &jobs::MachineList,
    per_rack: u32,
    catalogue: &Catalogue,
    ledger: &mut Ledger,
) -> Result<Cluster> {
    list.record(ledger);
    list.record_conflicts(ledger);
    let mut numbers: BTreeMap<(String, Option<Bytes>), u32> = BTreeMap::new();
    let mut kinds: Vec<GpuKind> = Vec::new();
    let mut nodes: Vec<Node> = Vec::new();
    let mut without = 0;
    for (_, machine) in list.sorted() {
        let Some(gpus) = machine.gpus.filter(|gpus| *gpus > 0) else {
            without += 1;
            continue;
        };
        let named = (machine.kind.clone(), machine.memory);
        let kind = *numbers.entry(named).or_insert_with_key(|(name, memory)| {
            let known = catalogue.device(name).ok();
            let usual = GpuKind::named(if name.is_empty() { "gpu" } else { name.as_str() });
            let kind = match known {
                Some(device) => GpuKind { name: usual.name, ..kind_of(device) },
                None => usual,
            };
            kinds.push(GpuKind { memory: memory.or(kind.memory), ..kind });
            kinds.len() as u32 - 1
        });
        nodes.push(Node { gpus, kind, rack: nodes.len() as u32 / per_rack.max(1) });
    }
    let message = "machine without GPUs, left out";
    ledger.record_many(Severity::Note, "no-gpus", message, without, None);
    if nodes.is_empty() {
        return Err(InputError::new(
            "no machine of the table has a number of GPUs from 1 to 65535",
        ));
    }
    Cluster::new(kinds, nodes)
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

    fn cluster(rows: &[jobs::Job], per_rack: u32) -> (Result<Cluster>, Ledger) {
        let mut list = jobs::MachineList::default();
        rows.iter().for_each(|row| list.add(row));
        let mut ledger = Ledger::new();
        let cluster = cluster_of(&list, per_rack, Catalogue::builtin(), &mut ledger);
        (cluster, ledger)
    }

    fn row(name: &str, gpus: f64, kind: &str) -> jobs::Job {
        jobs::Job {
            placements: vec![jobs::Placement { machine: name.into(), gpus: None }],
            gpus: Some(gpus),
            gpu_kind: kind.into(),
            ..jobs::Job::default()
        }
    }

    #[test]
    fn machines_of_a_table_become_nodes() {
        let v100 = "v100-sxm2-32gb";
        let rows =
            [row("a", 8.0, v100), row("b", 2.0, "G7"), row("c", 0.0, ""), row("a", 8.0, v100)];
        let (cluster, ledger) = cluster(&rows, 1);
        let cluster = cluster.expect("two nodes");
        assert_eq!((cluster.gpus(), ledger.count("no-gpus")), (10, 1));
        assert!(cluster.kinds()[0].memory.is_some() && cluster.kinds()[1].memory.is_none());
        assert_eq!(describe(&cluster), "10 GPUs on 2 nodes: 1 x 2 G7, 1 x 8 v100-sxm2-32gb");
    }

    /// As an audit counts them: the last row does not win in silence.
    #[test]
    fn rows_that_contradict_each_other_are_said() {
        let rows = [("n1", 8.0), ("n1", 4.0), ("n2", 4.0), ("n2", 0.0)];
        let (cluster, ledger) = cluster(&rows.map(|(name, gpus)| row(name, gpus, "")), 1);
        assert_eq!(cluster.expect("two nodes").gpus(), 12);
        assert_eq!(ledger.count("machine-conflict"), 2);
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
        let rows = [("a", 40), ("b", 80), ("c", 40)].map(|(name, memory)| row(name, 2.0, memory));
        let found = cluster(&rows, 8).0.expect("three nodes");
        let memory: Vec<_> = found.kinds().iter().filter_map(|kind| kind.memory).collect();
        assert_eq!(memory, [40, 80].map(|memory| Bytes::new(memory * 1_000_000_000)));
        // They are one kind to a job that asks for it by name.
        assert!(found.suits(Some(0), 1) && found.suits(Some(1), 0) && found.suits(None, 1));
        let (error, ledger) = cluster(&[row("a", 99_999_999_999.0, 40)], 8);
        let error = error.expect_err("none is left");
        assert!(error.to_string().contains("from 1 to 65535"), "{error}");
        assert_eq!(ledger.count("too-many-gpus"), 1);
    }
}
