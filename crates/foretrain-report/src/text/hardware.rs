//! The hardware catalogue as tables.

use std::collections::BTreeMap;

use foretrain_hardware::{Cluster, Device, Level, LinkKind, NicKind, Node, Source};

use super::TextStyle;
use super::sheet::Sheet;
use super::table::{Side, Table};
use super::units::{gb_per_s, plain};

/// The list of devices.
pub fn hardware_devices<'a>(
    devices: impl IntoIterator<Item = &'a Device>,
    style: TextStyle,
) -> String {
    use foretrain_core::DType;
    let mut table = Table::new(&[
        ("Device", Side::Left),
        ("Architecture", Side::Left),
        ("Memory", Side::Right),
        ("GB/s", Side::Right),
        ("f32", Side::Right),
        ("tf32", Side::Right),
        ("bf16", Side::Right),
        ("f16", Side::Right),
    ]);
    for device in devices {
        let peak = |dtype| {
            device.native_peak(dtype).map_or_else(|| "-".into(), |rate| plain(rate.tflops()))
        };
        table.row(vec![
            device.name.clone(),
            device.architecture.clone().unwrap_or_else(|| device.vendor.clone()),
            device.memory.to_string(),
            gb_per_s(device.memory_bandwidth),
            peak(DType::F32),
            peak(DType::Tf32),
            peak(DType::Bf16),
            peak(DType::F16),
        ]);
    }
    list("Devices", table, "Peaks are dense TFLOP/s; - where the device has no such units.", style)
}

/// The list of node types.
pub fn hardware_nodes<'a>(nodes: impl IntoIterator<Item = &'a Node>, style: TextStyle) -> String {
    let mut table = Table::new(&[
        ("Node type", Side::Left),
        ("Devices", Side::Left),
        ("Inside", Side::Left),
        ("GB/s", Side::Right),
        ("NICs", Side::Left),
        ("GB/s", Side::Right),
        ("Also called", Side::Left),
    ]);
    for node in nodes {
        table.row(vec![
            node.name.clone(),
            format!("{} x {}", node.devices, node.device.name),
            inside(node),
            rate_unless(node.intra.kind == LinkKind::None, node.intra.per_device_bandwidth),
            nics(node),
            rate_unless(node.nic_kind == NicKind::None, node.nics_bandwidth()),
            node.aliases.join(", "),
        ]);
    }
    let note = "Wire rates in one direction: inside per device, NICs per node. A node type is also a cluster of \
                as many such nodes as asked.";
    list("Node types", table, note, style)
}

/// The list of clusters.
pub fn hardware_clusters<'a>(
    clusters: impl IntoIterator<Item = &'a Cluster>,
    style: TextStyle,
) -> String {
    let mut table = Table::new(&[
        ("Cluster", Side::Left),
        ("Nodes", Side::Right),
        ("Node type", Side::Left),
        ("Fabric", Side::Left),
        ("What", Side::Left),
    ]);
    for cluster in clusters {
        table.row(vec![
            cluster.name.clone(),
            cluster.nodes.map_or_else(|| "any".into(), |n| n.to_string()),
            cluster.node.name.clone(),
            cluster.fabric.name.clone(),
            cluster.description.clone(),
        ]);
    }
    list("Clusters", table, "", style)
}

fn list(title: &str, table: Table, note: &str, style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    sheet.heading(title);
    if table.is_empty() {
        sheet.line("(none)");
    } else {
        sheet.table(table);
    }
    if !note.is_empty() {
        sheet.paragraph("", note);
    }
    sheet.finish()
}

fn rate_unless(nothing: bool, rate: foretrain_core::Bandwidth) -> String {
    if nothing { "-".into() } else { gb_per_s(rate) }
}

fn inside(node: &Node) -> String {
    match node.intra.generation {
        Some(generation) => format!("{} {generation}", node.intra.kind),
        None => node.intra.kind.to_string(),
    }
}

fn nics(node: &Node) -> String {
    match node.nic_kind {
        NicKind::None => "none".into(),
        kind => format!("{} x {kind}", node.nics),
    }
}

/// One device with the source of every figure.
pub fn hardware_device(device: &Device, style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    sheet.heading(&format!("Device {}", device.name));
    let mut rows = Rows::new(&device.sources);
    rows.own("vendor", Some(device.vendor.clone()));
    rows.own("architecture", device.architecture.clone());
    let capability = device.compute_capability.map(|(major, minor)| format!("{major}.{minor}"));
    rows.own("compute_capability", capability);
    rows.own("multiprocessors", device.multiprocessors.map(|n| n.to_string()));
    rows.own("memory", Some(device.memory.to_string()));
    rows.own("memory_bandwidth", Some(device.memory_bandwidth.to_string()));
    rows.own("l2_cache", device.l2_cache.map(|b| b.to_string()));
    rows.own("boost_clock", device.boost_clock_hz.map(|hz| format!("{} MHz", plain(hz / 1e6))));
    rows.own("tdp", device.tdp_watts.map(|watts| format!("{} W", plain(watts))));
    for (dtype, rate) in &device.peak {
        rows.own(&format!("peak.{dtype}"), Some(rate.to_string()));
    }
    for (dtype, rate) in &device.peak_sparse {
        rows.own(&format!("peak_sparse.{dtype}"), Some(rate.to_string()));
    }
    rows.show(&mut sheet);
    also_called(&device.aliases, &mut sheet);
    sheet.finish()
}

/// One cluster (or node type as a cluster) with the source of every figure.
pub fn hardware_cluster(cluster: &Cluster, style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    let node = &cluster.node;
    if cluster.name == node.name {
        sheet.heading(&format!("Node type {}", node.name));
    } else {
        sheet.heading(&format!("Cluster {}", cluster.name));
    }
    sheet.paragraph("", &cluster.description);
    let mut rows = Rows::new(&cluster.sources);
    let count = cluster.nodes.map_or_else(|| "as many as asked".into(), |n| n.to_string());
    rows.own("nodes", Some(format!("{count} of {}", node.name)));
    rows.sources = &node.sources;
    rows.own("device", Some(format!("{} x {}", node.devices, node.device.name)));
    rows.own("intra", Some(inside(node)));
    let intra = &node.intra;
    if intra.kind != LinkKind::None {
        rows.own(
            "intra_bandwidth",
            Some(format!("{} per device, one direction", intra.per_device_bandwidth)),
        );
        rows.own("intra_efficiency", Some(plain(intra.efficiency)));
        rows.own("intra_latency", Some(intra.latency.to_string()));
    }
    rows.own("nics", Some(nics(node)));
    if node.nic_kind != NicKind::None {
        rows.own("nic_bandwidth", Some(format!("{} each, one direction", node.nic_bandwidth)));
        rows.own("nic_efficiency", Some(plain(node.nic_efficiency)));
    }
    rows.own("cpu", node.cpu.clone());
    rows.own("host_memory", node.host_memory.map(|b| b.to_string()));
    rows.own("price", node.price_per_hour.map(|p| format!("{} USD/h", plain(p))));
    rows.own("power_watts", node.power_watts.map(|watts| format!("{} W", plain(watts))));
    rows.sources = &cluster.sources;
    let rails = match (cluster.fabric.rail_optimised, cluster.fabric.in_network_reduction) {
        (true, true) => ", rail-optimised, reducing in the switches",
        (true, false) => ", rail-optimised",
        (false, true) => ", reducing in the switches",
        (false, false) => "",
    };
    rows.own("fabric", Some(format!("{}{rails}", cluster.fabric.name)));
    for level in &cluster.fabric.levels {
        rows.own(&format!("fabric level {}", level.name), Some(level_text(level)));
    }
    let calibration = cluster.collectives.as_ref();
    rows.own(
        "collectives",
        calibration.map(|own| format!("calibrated from {}", own.logs.join(", "))),
    );
    rows.show(&mut sheet);
    also_called(&cluster.aliases, &mut sheet);
    sheet.finish()
}

fn level_text(level: &Level) -> String {
    let reach = match level.nodes {
        Level::UNBOUNDED => "all nodes".to_owned(),
        n => format!("{n} nodes"),
    };
    format!("{reach}, oversubscription {}, {}", plain(level.oversubscription), level.latency)
}

fn also_called(aliases: &[String], sheet: &mut Sheet) {
    if !aliases.is_empty() {
        sheet.paragraph("", &format!("Also called {}.", aliases.join(", ")));
    }
}

/// Rows of figures, with their sources where there are some.
struct Rows<'a> {
    table: Table,
    sources: &'a BTreeMap<String, Source>,
    /// Sources met, by their short names.
    met: BTreeMap<&'a str, &'a Source>,
}

impl<'a> Rows<'a> {
    fn new(sources: &'a BTreeMap<String, Source>) -> Self {
        let mut table =
            Table::new(&[("Figure", Side::Left), ("Value", Side::Left), ("Source", Side::Left)]);
        table.keep_whole([0]);
        Self { table, sources, met: BTreeMap::new() }
    }

    /// A figure of the entry itself; left out if unknown.
    fn own(&mut self, key: &str, value: Option<String>) {
        let Some(value) = value else { return };
        let source = self.sources.get(key);
        if let Some(source) = source {
            self.met.insert(&source.id, source);
        }
        let source = source.map_or_else(|| "-".into(), |source| source.id.clone());
        self.table.row(vec![key.to_owned(), value, source]);
    }

    /// The table, and what its sources are.
    fn show(self, sheet: &mut Sheet) {
        sheet.table(self.table);
        sheet.blank();
        for source in self.met.into_values().filter(|source| source.text != source.id) {
            sheet.paragraph("", &source.to_string());
        }
    }
}
