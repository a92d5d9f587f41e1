//! Which machine a trace was recorded on, and how compute scales to another.

use foretrain_core::{Bytes, Evidence, EvidenceKind, Flops};
use foretrain_cost::kernel_ratio;
use foretrain_graph::attributes::well_known;
use foretrain_graph::{NodeKind, StepGraph};
use foretrain_hardware::{Catalogue, Cluster, Device};

use crate::scale::Origin;

/// The catalogue's cluster that fits the recorded device and rank count.
pub(crate) fn recorded_cluster(
    catalogue: &Catalogue,
    origin: &Origin,
    evidence: &mut Vec<Evidence>,
    warnings: &mut Vec<String>,
) -> Option<Cluster> {
    let name = origin.device.as_str();
    let device = catalogue.device_by_product_name(name);
    let wanted = origin.world_size.min(8);
    // The smallest node that could have held the ranks; the first of equals.
    let node = device.and_then(|device| {
        catalogue
            .nodes()
            .filter(|node| node.device.name == device.name)
            .min_by_key(|node| (node.devices < wanted, node.devices.abs_diff(wanted)))
    });
    let cluster = node.and_then(|node| catalogue.cluster(&node.name).ok());
    match &cluster {
        Some(cluster) => evidence.push(Evidence::new(
            EvidenceKind::Inferred,
            "machine of the recording",
            format!("taken for {} by its device name \"{name}\"", cluster.name),
            0.1,
        )),
        // A process alone communicates with nobody, whatever it calls.
        None if !origin.communicates || origin.world_size <= 1 => {}
        None => warnings.push(format!(
            "the machine of the recording is not known ({}): communication comes from the model alone; name the machine with --recorded-on",
            device_phrase(name)
        )),
    }
    cluster
}

/// How compute changes from the recorded device to the target's.
pub(crate) struct ComputeScale {
    devices: Option<(Device, Device)>,
    /// Why the device that the times are of is not known, for people.
    unknown: Option<String>,
}

impl ComputeScale {
    pub(crate) fn new(
        catalogue: &Catalogue,
        origin: &Origin,
        target: &Cluster,
        recorded_on: Option<&Cluster>,
    ) -> Self {
        let name = origin.device.as_str();
        let from = catalogue
            .device_by_product_name(name)
            .or(recorded_on.map(|cluster| &cluster.node.device));
        match from {
            Some(from) if from.name == target.node.device.name => {
                Self { devices: None, unknown: None }
            }
            Some(from) => {
                Self { devices: Some((from.clone(), target.node.device.clone())), unknown: None }
            }
            None if origin.is_characterised => Self {
                devices: None,
                unknown: Some("the step was timed on a machine that is not in the catalogue: computation keeps those times".into()),
            },
            None => Self {
                devices: None,
                unknown: Some(format!(
                    "the recorded device is not in the catalogue ({}): computation keeps its recorded times",
                    device_phrase(name)
                )),
            },
        }
    }

    /// Whether kernels keep their recorded times.
    pub(crate) fn is_none(&self) -> bool {
        self.devices.is_none()
    }

    /// Scales the kernels of a graph; returns the relative spread this brings into the step.
    pub(crate) fn apply(
        &self,
        graph: &mut StepGraph,
        evidence: &mut Vec<Evidence>,
        warnings: &mut Vec<String>,
    ) -> f64 {
        if let Some(why) = &self.unknown {
            warnings.push(why.clone());
            return 0.1;
        }
        let Some((from, to)) = &self.devices else { return 0.0 };
        let (mut before, mut after, mut spread) = (0.0, 0.0, 0.0);
        let ids: Vec<_> =
            graph.node_ids().filter(|&id| graph.kind(id) == NodeKind::Kernel).collect();
        for id in ids {
            let node = graph.node(id);
            let get = |name| graph.node_attributes.get_i64(name, id.index());
            let flops =
                graph.node_attributes.get_f64(well_known::FLOPS, id.index()).map(Flops::new);
            let bytes = get(well_known::BYTES_MOVED).and_then(|b| u64::try_from(b).ok());
            let ratio =
                kernel_ratio(graph.name(id), node.dtype, flops, bytes.map(Bytes::new), from, to);
            let work = node.work.nanos() as f64;
            before += work;
            after += work * ratio.ratio.value;
            spread += work * ratio.ratio.value * ratio.evidence.relative_spread;
            graph.set_work(id, node.work.scale(ratio.ratio.value));
        }
        let spread = if after > 0.0 { spread / after } else { 0.0 };
        evidence.push(Evidence::new(
            EvidenceKind::Catalogue,
            "kernel times on another device",
            format!(
                "{} to {}: kernels take {:.2} of their recorded time, by memory bandwidth and dense peak",
                from.name,
                to.name,
                if before > 0.0 { after / before } else { 1.0 }
            ),
            spread,
        ));
        warnings.push(format!(
            "recorded on {}, predicted for {}: host time is kept as recorded",
            from.name, to.name
        ));
        spread
    }
}

fn device_phrase(name: &str) -> String {
    if name.is_empty() { "the trace names no device".into() } else { format!("device \"{name}\"") }
}
