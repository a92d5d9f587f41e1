//! From entries to devices, nodes and clusters: references, required figures, defaults and limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use foretrain_core::{Bandwidth, DType, FlopRate, suggest};

use crate::book::{Book, fold};
use crate::cluster::{Cluster, Fabric};
use crate::device::Device;
use crate::fabrics::{self, check_topology, fault_of, named_fabric, topology};
use crate::node::{Interconnect, LinkKind, NicKind, Node};
use crate::physics;
use crate::product;
use crate::quantity::{Text, shown};
use crate::read::Fault;
use crate::spec::{ClusterSpec, DeviceSpec, NodeSpec, Ordered, Spec};
use crate::topology::{Topology, grid_nodes};

/// The figure, or what to write.
fn need<S: Spec, T>(name: &str, figure: Option<T>, example: &str) -> Result<T, Fault> {
    figure.ok_or_else(|| {
        let key = example.split(' ').next().unwrap_or(example);
        Fault::new(&[S::SECTION, name], format!("{} {name} lacks the figure {key}", S::NOUN))
            .hint(format!("add `{example}`, or take what is missing from a known {}: `based_on = \"NAME\"`, its own name to correct it", S::NOUN))
    })
}

/// "did you mean", or where the list is.
pub(crate) fn or_list(fault: Fault, wrong: &str, names: impl Iterator<Item = String>) -> Fault {
    let names: Vec<String> = names.collect();
    let fault = match suggest::nearest(wrong, names.iter().map(String::as_str)) {
        Some(near) => fault.hint(format!("did you mean `{near}`?")),
        None => fault,
    };
    fault.hint("`foretrain hardware list` shows all names")
}

/// One device of the book.
pub(crate) fn device(
    book: &Book,
    name: &str,
    spec: &DeviceSpec,
    known: &[Device],
) -> Result<Device, Fault> {
    let capability = spec.compute_capability.as_deref();
    let device = Device {
        name: name.to_owned(),
        kind: spec.kind.unwrap_or_default(),
        vendor: need::<DeviceSpec, _>(name, spec.vendor.clone(), "vendor = \"nvidia\"")?,
        aliases: spec.aliases.clone().unwrap_or_default(),
        products: spec.products.clone().unwrap_or_default(),
        architecture: spec.architecture.clone(),
        compute_capability: capability.map(|text| compute_capability(name, text)).transpose()?,
        multiprocessors: spec.multiprocessors.map(|count| count.0),
        memory: need::<DeviceSpec, _>(name, spec.memory, "memory = \"80 GiB\"")?.0,
        memory_bandwidth: need::<DeviceSpec, _>(
            name,
            spec.memory_bandwidth,
            "memory_bandwidth = \"2039 GB/s\"",
        )?
        .0,
        l2_cache: spec.l2_cache.map(|size| size.0),
        boost_clock_hz: spec.boost_clock.map(|clock| clock.0.0),
        tdp_watts: spec.tdp.map(|power| power.0.0),
        max_pending_launches: spec.max_pending_launches.map(|count| count.0),
        peak: peaks(name, "peak", &spec.peak)?,
        peak_sparse: peaks(name, "peak_sparse", &spec.peak_sparse)?,
        sources: book.sources_of(spec),
    };
    if device.peak.is_empty() {
        need::<DeviceSpec, ()>(name, None, "peak = { bf16 = \"312 TFLOP/s\" }")?;
    }
    check_peaks(&device, spec, known)?;
    Ok(device)
}

fn compute_capability(name: &str, text: &str) -> Result<(u32, u32), Fault> {
    let parts = text
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?)));
    parts.filter(|(major, minor)| *major < 100 && *minor < 100).ok_or_else(|| {
        let message =
            format!("expected a compute capability such as \"8.0\", found {}", shown(text));
        Fault::new(&["devices", name, "compute_capability"], message)
    })
}

fn peaks(
    name: &str,
    table: &str,
    rates: &Ordered<Text<FlopRate>>,
) -> Result<BTreeMap<DType, FlopRate>, Fault> {
    const TYPES: &str = "f64, f32, tf32, f16, bf16, fp8, fp4, i8";
    let mut peaks = BTreeMap::new();
    for (key, rate) in &rates.0 {
        let dtype = DType::parse(key).ok_or_else(|| {
            let message = format!("unknown element type {}", shown(key));
            Fault::new(&["devices", name, table, key], message)
                .hint(format!("expected one of: {TYPES}"))
        })?;
        if peaks.insert(dtype, rate.0).is_some() {
            let message = format!("a second {table} for {dtype}");
            return Err(Fault::new(&["devices", name, table, key], message));
        }
    }
    Ok(peaks)
}

/// Compares with the device that this one is based on, replaces or is sold as, and with itself.
fn check_peaks(device: &Device, spec: &DeviceSpec, known: &[Device]) -> Result<(), Fault> {
    let by_name = |name: &str| known.iter().find(|other| fold(&other.name) == fold(name));
    let sold_as =
        || device.products.iter().chain([&device.name]).find_map(|p| product::find(known, p));
    let like = spec.based_on.as_deref().and_then(by_name).or_else(sold_as);
    // Two chips in one package have twice the memory bandwidth too; a sparse peak stands alone.
    let same_chip =
        |other: &&Device| device.memory_bandwidth.get() < 1.8 * other.memory_bandwidth.get();
    let dense = like.filter(same_chip).map(|other| other.peak.clone()).unwrap_or_default();
    let found = physics::sparse_looking(&device.vendor, &device.peak, &device.peak_sparse, &dense);
    let Some((dtype, why)) = found else { return Ok(()) };
    let key = spec.peak.0.iter().find(|(key, _)| DType::parse(key) == Some(dtype));
    let key = key.map_or(dtype.as_str(), |(key, _)| key.as_str());
    Err(Fault::new(&["devices", &device.name, "peak", key], why)
        .hint("`peak` is the dense rate; put the rate with sparsity under `peak_sparse`"))
}

/// One node of the book.
pub(crate) fn node(
    book: &Book,
    name: &str,
    spec: &NodeSpec,
    device_of: impl Fn(&str) -> Option<Device>,
) -> Result<Node, Fault> {
    let device_name =
        need::<NodeSpec, _>(name, spec.device.clone(), "device = \"a100-sxm4-80gb\"")?;
    let device = device_of(&device_name).ok_or_else(|| {
        let message = format!("no device {}", shown(&device_name));
        let fault = Fault::new(&["nodes", name, "device"], message);
        or_list(fault, &device_name, book.devices.names().map(str::to_owned))
    })?;
    let devices = need::<NodeSpec, _>(name, spec.devices, "devices = 8")?.0;
    let mut sources = book.sources_of(spec);
    let mut assume = |figure: &str, source: &str| {
        sources.entry(figure.to_owned()).or_insert_with(|| book.source(source));
    };
    let intra = interconnect(name, spec, devices, &mut assume)?;
    let nics = nics(name, spec, &mut assume)?;
    Ok(Node {
        name: name.to_owned(),
        aliases: spec.aliases.clone().unwrap_or_default(),
        description: describe(spec, &device, devices),
        device,
        devices,
        hosts: spec.hosts.map_or(1, |count| count.0),
        intra,
        nics: nics.count,
        nic_bandwidth: nics.bandwidth,
        nic_kind: nics.kind,
        nic_efficiency: nics.efficiency,
        fabric: spec
            .fabric
            .clone()
            .or_else(|| physics::default_fabric(nics.kind).map(str::to_owned)),
        pcie_generation: spec.pcie_generation.map(|count| count.0),
        cpu_vendor: spec.cpu_vendor.unwrap_or_default(),
        cpu: spec.cpu.clone(),
        host_memory: spec.host_memory.map(|size| size.0),
        price_per_hour: spec.price.map(|price| price.0.0),
        price_per_device_hour: None,
        power_watts: spec.power.map(|power| power.0.0),
        sources,
    })
}

fn describe(spec: &NodeSpec, device: &Device, devices: u32) -> String {
    spec.description.clone().unwrap_or_else(|| format!("{devices}x {}", device.name))
}

fn interconnect(
    name: &str,
    spec: &NodeSpec,
    devices: u32,
    assume: &mut impl FnMut(&str, &str),
) -> Result<Interconnect, Fault> {
    let kind = match spec.intra {
        Some(kind) => kind,
        None if devices == 1 => LinkKind::None,
        None => need::<NodeSpec, _>(name, None, "intra = \"nvswitch\"")?,
    };
    if kind == LinkKind::None && devices > 1 {
        let message = format!("{devices} devices with nothing between them");
        return Err(Fault::new(&["nodes", name, "intra"], message)
            .hint("write \"pcie\" for devices that meet on the host's PCI Express"));
    }
    let bandwidth = match spec.intra_bandwidth {
        Some(rate) => rate.0,
        None if kind == LinkKind::None => Bandwidth::ZERO,
        None => need::<NodeSpec, _>(name, None, "intra_bandwidth = \"300 GB/s\"")?,
    };
    let generation = spec.intra_generation.map(|count| count.0);
    let links = spec.links_per_device.map(|count| count.0);
    if let Some(why) = physics::link_excess(kind, generation, links, bandwidth) {
        return Err(Fault::new(&["nodes", name, "intra_bandwidth"], why));
    }
    let (efficiency, source) = physics::link_efficiency(kind, generation);
    if spec.intra_efficiency.is_none() {
        assume("intra_efficiency", source);
    }
    let (latency, source) = physics::link_latency(kind);
    if spec.intra_latency.is_none() {
        assume("intra_latency", source);
    }
    Ok(Interconnect {
        kind,
        generation,
        per_device_bandwidth: bandwidth,
        links_per_device: links,
        efficiency: spec.intra_efficiency.map_or(efficiency, |share| share.0),
        latency: spec.intra_latency.map_or(latency, |time| time.0),
    })
}

struct Nics {
    count: u32,
    bandwidth: Bandwidth,
    kind: NicKind,
    efficiency: f64,
}

fn nics(name: &str, spec: &NodeSpec, assume: &mut impl FnMut(&str, &str)) -> Result<Nics, Fault> {
    let count = spec.nics.map_or(0, |count| count.0);
    if count == 0 {
        if spec.nics.is_none() && spec.nic_bandwidth.is_some() {
            need::<NodeSpec, ()>(name, None, "nics = 8")?;
        }
        return Ok(Nics {
            count,
            bandwidth: Bandwidth::ZERO,
            kind: NicKind::None,
            efficiency: 1.0,
        });
    }
    let bandwidth =
        need::<NodeSpec, _>(name, spec.nic_bandwidth, "nic_bandwidth = \"200 Gbit/s\"")?.0;
    if let Some(why) = physics::nic_excess(bandwidth) {
        return Err(Fault::new(&["nodes", name, "nic_bandwidth"], why));
    }
    let kind = need::<NodeSpec, _>(name, spec.nic, "nic = \"infiniband\"")?;
    if kind == NicKind::None {
        let message = format!("{count} NICs of no kind");
        return Err(Fault::new(&["nodes", name, "nic"], message).hint("write nics = 0 for none"));
    }
    let (efficiency, source) = physics::nic_efficiency(kind);
    if spec.nic_efficiency.is_none() {
        assume("nic_efficiency", source);
    }
    let efficiency = spec.nic_efficiency.map_or(efficiency, |share| share.0);
    Ok(Nics { count, bandwidth, kind, efficiency })
}

/// A node type as a cluster of as many as asked.
pub(crate) fn cluster_of(book: &Book, node: &Node) -> Result<Cluster, Fault> {
    let fabric = match &node.fabric {
        Some(name) => named_fabric(book, name, &["nodes", &node.name, "fabric"])?,
        None => Fabric {
            name: "none".into(),
            levels: Vec::new(),
            rail_optimised: false,
            in_network_reduction: false,
            topology: Topology::FatTree,
        },
    };
    Ok(Cluster {
        name: node.name.clone(),
        aliases: node.aliases.clone(),
        description: node.description.clone(),
        nodes: if node.nics == 0 { Some(1) } else { None },
        fabric,
        node: node.clone(),
        collectives: None,
        sources: BTreeMap::new(),
    })
}

/// One cluster of the book.
pub(crate) fn cluster(
    book: &Book,
    name: &str,
    spec: &ClusterSpec,
    node_of: impl Fn(&str) -> Option<Node>,
) -> Result<Cluster, Fault> {
    let node_name = need::<ClusterSpec, _>(name, spec.node.clone(), "node = \"dgx-a100\"")?;
    let node = node_of(&node_name).ok_or_else(|| {
        let message = format!("no node {}", shown(&node_name));
        let fault = Fault::new(&["clusters", name, "node"], message);
        or_list(fault, &node_name, book.nodes.names().map(str::to_owned))
    })?;
    let mut cluster = cluster_of(book, &node)?;
    cluster.name = name.to_owned();
    cluster.aliases = spec.aliases.clone().unwrap_or_default();
    cluster.nodes = spec.nodes.map(|count| count.0).or(cluster.nodes);
    cluster.description = spec.description.clone().unwrap_or(cluster.description);
    cluster.sources = book.sources_of(spec);
    if let Some(fabric) = &spec.fabric {
        cluster.fabric = named_fabric(book, fabric, &["clusters", name, "fabric"])?;
    }
    if let Some(levels) = &spec.levels {
        cluster.fabric.levels = fabrics::levels(levels, &["clusters", name, "levels"])?;
        name.clone_into(&mut cluster.fabric.name);
    }
    if let Some(rail_optimised) = spec.rail_optimised {
        cluster.fabric.rail_optimised = rail_optimised;
    }
    if let Some(reduces) = spec.in_network_reduction {
        cluster.fabric.in_network_reduction = reduces;
    }
    if let Some(calibration) = &spec.collectives {
        let calibration = calibration.build(&["clusters", name, "collectives"])?;
        cluster.collectives = Some(Arc::new(calibration));
    }
    if spec.levels.is_some() || spec.topology.is_some() || spec.dimensions.is_some() {
        let known = std::mem::take(&mut cluster.fabric.topology);
        let known = if spec.levels.is_some() { Topology::FatTree } else { known };
        let path = ["clusters", name];
        cluster.fabric.topology =
            topology(spec.topology, spec.dimensions.as_deref(), known, &path)?;
        check_topology(&cluster.fabric, &path)?;
    }
    check_size(&cluster)?;
    Ok(cluster)
}

/// A cluster of stated size must be connectable.
fn check_size(cluster: &Cluster) -> Result<(), Fault> {
    let Some(nodes) = cluster.nodes else { return Ok(()) };
    if let Topology::Torus { dimensions } = &cluster.fabric.topology
        && grid_nodes(dimensions) < u64::from(nodes)
    {
        let message = format!("{nodes} nodes on a torus of {dimensions:?}");
        return Err(Fault::new(&["clusters", &cluster.name, "nodes"], message)
            .hint("the product of the dimensions is at least the number of nodes"));
    }
    cluster
        .levels_for(nodes)
        .map(|_| ())
        .map_err(|error| fault_of(&error, &["clusters", &cluster.name, "nodes"]))
}

/// An alias that names two things would make look-ups depend on order.
pub(crate) fn index<'a>(
    section: &str,
    entries: impl Iterator<Item = (&'a str, &'a [String])> + Clone,
) -> Result<BTreeMap<String, usize>, Fault> {
    let mut index: BTreeMap<String, usize> =
        entries.clone().enumerate().map(|(at, (name, _))| (fold(name), at)).collect();
    for (at, (name, aliases)) in entries.enumerate() {
        for alias in aliases {
            let other = *index.entry(fold(alias)).or_insert(at);
            if other != at {
                let message = format!("the alias {} names another entry already", shown(alias));
                return Err(Fault::new(&[section, name, "aliases"], message));
            }
        }
    }
    Ok(index)
}
