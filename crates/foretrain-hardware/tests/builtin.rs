//! The built-in catalogue: complete, sourced, within physical bounds, and equal to known figures.

use foretrain_core::{Bandwidth, DType};
use foretrain_hardware::{Catalogue, Cluster, Device, DeviceKind, Level, LinkKind, NicKind, Node};

fn catalogue() -> &'static Catalogue {
    Catalogue::builtin()
}

#[test]
fn what_people_have_is_there() {
    for name in [
        "v100-sxm2-16gb",
        "v100-sxm2-32gb",
        "v100-pcie-16gb",
        "v100-pcie-32gb",
        "a100-sxm4-40gb",
        "a100-sxm4-80gb",
        "a100-pcie-40gb",
        "a100-pcie-80gb",
        "a800",
        "h100-sxm",
        "h100-pcie",
        "h200-sxm",
        "h800-sxm",
        "b200-sxm",
        "gb200",
        "b300",
        "gb300",
        "gh200",
        "l4",
        "l40s",
        "a10",
        "t4",
        "p100-sxm2",
        "rtx-3090",
        "rtx-4090",
        "rtx-pro-6000",
        "rtx-2080-ti",
        "mi250x",
        "mi250x-gcd",
        "mi300x",
        "mi325x",
        "mi355x",
        "tpu-v4",
        "tpu-v5e",
        "tpu-v5p",
        "tpu-v6e",
        "gaudi2",
        "gaudi3",
        "trainium1",
        "trainium2",
        "xeon-8480",
    ] {
        catalogue().device(name).unwrap_or_else(|error| panic!("{error} {:?}", error.hints()));
    }
    for name in [
        "dgx-1",
        "dgx-2",
        "dgx-a100",
        "dgx-a100-40gb",
        "dgx-h100",
        "dgx-b200",
        "gb200-nvl72",
        "dgx-b300",
        "gb300-nvl72",
        "g4dn.8xlarge",
        "p3.8xlarge",
        "p3.16xlarge",
        "p3dn.24xlarge",
        "p4d.24xlarge",
        "p4de.24xlarge",
        "p5.48xlarge",
        "p5en.48xlarge",
        "p6-b200.48xlarge",
        "NDv2",
        "NDv4",
        "NDv5",
        "Standard_ND96asr_v4",
        "a2-highgpu-8g",
        "a2-ultra",
        "a3-high",
        "a3-mega",
        "a3-ultra",
        "a4",
        "pcie-4x-rtx3090",
        "pcie-8x-rtx3090",
        "pcie-4x-rtx4090",
        "pcie-8x-rtx4090",
        "pcie-4x-a10",
        "pcie-8x-a10",
        "pcie-4x-l40s",
        "pcie-8x-l40s",
        "pcie-4x-t4",
        "pcie-8x-t4",
        "mi250x-8",
        "mi300x-8",
        "mi300x-8-roce",
        "vista-gh200",
        "pcie-4x-rtx-pro-6000",
        "pcie-8x-rtx-pro-6000",
        "cpu-node",
    ] {
        let node = catalogue().node(name).unwrap_or_else(|e| panic!("{e} {:?}", e.hints()));
        let cluster = catalogue().cluster(name).unwrap();
        assert_eq!(&cluster.node, node);
    }
}

#[test]
fn dense_peaks_are_the_known_ones() {
    for (device, dtype, tflops) in [
        ("v100-sxm2-16gb", DType::F16, 125.0),
        ("v100-pcie-32gb", DType::F16, 112.0),
        ("a100-sxm4-80gb", DType::Bf16, 312.0),
        ("a100-pcie-40gb", DType::Tf32, 156.0),
        ("a800-sxm4-80gb", DType::Bf16, 312.0),
        ("h100-sxm", DType::Bf16, 989.5),
        ("h100-sxm", DType::F8E4m3, 1979.0),
        ("h100-sxm", DType::F8E5m2, 1979.0),
        ("h100-pcie", DType::Bf16, 756.0),
        ("h200-sxm", DType::Bf16, 989.5),
        ("h800-sxm", DType::Bf16, 989.5),
        ("b200-sxm", DType::Bf16, 2250.0),
        ("gb200", DType::Bf16, 2500.0),
        ("b300", DType::Bf16, 2250.0),
        ("b300", DType::I8, 153.5),
        ("gb300", DType::F4, 15_000.0),
        ("gh200", DType::Bf16, 989.5),
        ("rtx-pro-6000", DType::Bf16, 467.8),
        ("l4", DType::Bf16, 121.0),
        ("l40s", DType::Bf16, 362.0),
        ("a10", DType::Bf16, 125.0),
        ("t4", DType::F16, 65.0),
        ("p100-pcie", DType::F32, 9.5),
        ("rtx-3090", DType::F16, 71.0),
        ("rtx-4090", DType::Bf16, 165.2),
        ("mi250x", DType::Bf16, 383.0),
        ("mi250x-gcd", DType::Bf16, 191.5),
        ("mi300x", DType::Bf16, 1307.4),
        ("mi325x", DType::Bf16, 1307.4),
        ("mi355x", DType::Bf16, 2500.0),
        ("tpu-v4", DType::Bf16, 275.0),
        ("tpu-v5e", DType::Bf16, 197.0),
        ("tpu-v5p", DType::Bf16, 459.0),
        ("tpu-v6e", DType::Bf16, 918.0),
        ("gaudi2", DType::Bf16, 432.0),
        ("trainium2", DType::Bf16, 667.0),
    ] {
        let peak = catalogue().device(device).unwrap().peak(dtype).unwrap();
        assert!((peak.tflops() - tflops).abs() < 0.01, "{device} {dtype}: {peak}");
    }
}

#[test]
fn types_without_units_run_as_another() {
    let v100 = catalogue().device("v100-sxm2-16gb").unwrap();
    assert_eq!(v100.peak(DType::Bf16), v100.peak(DType::F32));
    assert_eq!(v100.native_peak(DType::Bf16), None);
    assert_eq!(v100.peak(DType::F8E4m3), None);
    let tpu = catalogue().device("tpu-v4").unwrap();
    assert_eq!(tpu.peak(DType::F16), tpu.peak(DType::Bf16));
    // 312 TFLOP/s over 2039 GB/s.
    let ridge = catalogue().device("a100-sxm4-80gb").unwrap().ridge(DType::Bf16).unwrap();
    assert!((ridge - 153.0).abs() < 0.1, "{ridge}");
}

#[test]
fn sparsity_is_twice_the_dense_rate() {
    for device in catalogue().devices() {
        for (dtype, sparse) in &device.peak_sparse {
            let dense = device.peak[dtype];
            let ratio = sparse.get() / dense.get();
            assert!((ratio - 2.0).abs() < 0.03, "{} {dtype}: {ratio}", device.name);
        }
    }
}

#[test]
fn devices_are_complete_and_plausible() {
    for device in catalogue().devices() {
        check_device(device);
    }
}

fn check_device(device: &Device) {
    let name = &device.name;
    assert!(!device.products.is_empty(), "{name} has no product name");
    assert!(device.architecture.is_some(), "{name}");
    let gib = device.memory.as_f64() / (1u64 << 30) as f64;
    assert!((10.0..=1024.0).contains(&gib), "{name}: {gib} GiB");
    let rate = device.memory_bandwidth.gb_per_sec();
    assert!((250.0..=10_000.0).contains(&rate), "{name}: {rate} GB/s");
    if device.kind == DeviceKind::Gpu {
        assert!(device.multiprocessors.is_some() && device.tdp_watts.is_some(), "{name}");
        assert!(device.peak.contains_key(&DType::F32), "{name}");
    }
    if device.vendor == "nvidia" {
        assert!(device.compute_capability.is_some(), "{name}");
        assert_eq!(device.max_pending_launches, Some(1024), "{name}");
    }
    // Reduced precision never runs slower than f32, and the machine balance is between the
    // extremes that exist: 15 (P100) to 1900 FLOP per byte (GB300 with 4 bits).
    let fastest = device.peak.values().map(|rate| rate.tflops()).fold(0.0, f64::max);
    assert!(device.peak.values().all(|rate| rate.tflops() > 0.5), "{name}");
    let balance = fastest * 1e3 / rate;
    assert!((15.0..=1900.0).contains(&balance), "{name}: {balance}");
    let figures = ["memory", "memory_bandwidth", "vendor"].map(str::to_owned);
    let peaks = device.peak.len();
    assert_eq!(device.sources.keys().filter(|key| key.starts_with("peak.")).count(), peaks);
    assert!(figures.iter().all(|figure| device.source(figure).is_some()), "{name}");
}

#[test]
fn every_figure_names_a_listed_source() {
    let devices = catalogue().devices().map(|device| (&device.name, &device.sources));
    let nodes = catalogue().nodes().map(|node| (&node.name, &node.sources));
    let clusters = catalogue().clusters().map(|cluster| (&cluster.name, &cluster.sources));
    let mut figures = 0;
    for (name, sources) in devices.chain(nodes).chain(clusters) {
        assert!(!sources.is_empty(), "{name} has no source");
        for (figure, source) in sources {
            assert!(!source.text.is_empty(), "{name}.{figure}: unlisted source {:?}", source.id);
            assert_ne!(source.id, "user", "{name}.{figure}");
            figures += 1;
        }
    }
    assert!(figures > 1000, "{figures}");
}

#[test]
fn nodes_are_complete_and_plausible() {
    for node in catalogue().nodes() {
        check_node(node);
    }
}

fn check_node(node: &Node) {
    let name = &node.name;
    let rate = node.intra.per_device_bandwidth.gb_per_sec();
    let expected = match (node.intra.kind, node.intra.generation) {
        (LinkKind::Nvlink | LinkKind::Nvswitch, Some(1)) => 80.0..=80.0,
        (LinkKind::Nvlink | LinkKind::Nvswitch, Some(2)) => 150.0..=150.0,
        (LinkKind::Nvlink | LinkKind::Nvswitch, Some(3)) => 200.0..=300.0,
        (LinkKind::Nvlink | LinkKind::Nvswitch, Some(4)) => 200.0..=450.0,
        (LinkKind::Nvlink | LinkKind::Nvswitch, Some(5)) => 900.0..=900.0,
        (LinkKind::Pcie, Some(3)) => 15.75..=15.75,
        (LinkKind::Pcie, Some(4)) => 31.5..=31.5,
        (LinkKind::Pcie, Some(5)) => 63.0..=63.0,
        (LinkKind::Xgmi, None) => 100.0..=600.0,
        (LinkKind::Neuronlink, Some(_)) => 100.0..=700.0,
        (LinkKind::Ethernet, None) => 200.0..=600.0,
        (LinkKind::Socket, None) => 20.0..=200.0,
        (LinkKind::None, None) if node.devices == 1 => 0.0..=0.0,
        other => panic!("{name}: {other:?}"),
    };
    assert!(expected.contains(&rate), "{name}: {rate} GB/s");
    if node.intra.kind.is_nvlink() {
        let per_link = node.intra.link_bandwidth().map_or(0.0, Bandwidth::gb_per_sec);
        assert!((20.0..=50.0).contains(&per_link), "{name}: {per_link} GB/s per link");
    }
    assert!((0.5..=1.0).contains(&node.intra.efficiency), "{name}");
    let alone = node.intra.kind == LinkKind::None;
    assert!(alone || (100..=5_000).contains(&node.intra.latency.nanos()), "{name}");
    check_nics(node);
    for figure in ["device", "devices", "intra_bandwidth", "intra_efficiency", "intra_latency"] {
        let is_none = alone && figure == "intra_bandwidth";
        assert!(is_none || node.source(figure).is_some(), "{name}.{figure}");
    }
}

fn check_nics(node: &Node) {
    let name = &node.name;
    if node.nics == 0 {
        assert_eq!((node.nic_kind, node.nic_bandwidth.get()), (NicKind::None, 0.0), "{name}");
        return;
    }
    let rate = node.nic_bandwidth.gb_per_sec();
    assert!((1.0..=100.0).contains(&rate), "{name}: {rate} GB/s per NIC");
    assert!((0.5..=1.0).contains(&node.nic_efficiency), "{name}");
    assert!(node.source("nic_bandwidth").is_some() && node.source("nic_efficiency").is_some());
    let share = node.nics_bandwidth().gb_per_sec() / f64::from(node.devices);
    let alone = node.intra.kind == LinkKind::None;
    assert!(
        alone || share <= node.intra.per_device_bandwidth.gb_per_sec(),
        "{name}: NICs outrun the links"
    );
}

#[test]
fn known_nodes_have_known_networks() {
    for (name, devices, intra, all_nics) in [
        ("dgx-1", 8, 150.0, 50.0),
        ("dgx-2", 16, 150.0, 100.0),
        ("dgx-a100", 8, 300.0, 200.0),
        ("dgx-h100", 8, 450.0, 400.0),
        ("dgx-b200", 8, 900.0, 400.0),
        ("gb200-nvl72", 72, 900.0, 3600.0),
        ("p3.8xlarge", 4, 150.0, 1.25),
        ("p3.16xlarge", 8, 150.0, 3.125),
        ("p3dn.24xlarge", 8, 150.0, 12.5),
        ("p4d.24xlarge", 8, 300.0, 50.0),
        ("p5.48xlarge", 8, 450.0, 400.0),
        ("p5en.48xlarge", 8, 450.0, 400.0),
        ("NDv2", 8, 150.0, 12.5),
        ("NDv4", 8, 300.0, 200.0),
        ("NDv5", 8, 450.0, 400.0),
        ("a2-highgpu-8g", 8, 300.0, 12.5),
        ("a3-high", 8, 450.0, 100.0),
        ("a3-mega", 8, 450.0, 200.0),
        ("mi300x-8", 8, 448.0, 400.0),
    ] {
        let node = catalogue().node(name).unwrap();
        assert_eq!(node.devices, devices, "{name}");
        assert_eq!(node.intra.per_device_bandwidth.gb_per_sec(), intra, "{name}");
        assert_eq!(node.nics_bandwidth().gb_per_sec(), all_nics, "{name}");
    }
    // NCCL takes 20 GB/s for each of an A100's 12 NVLinks.
    let a100 = &catalogue().node("dgx-a100").unwrap().intra;
    assert!((a100.payload_bandwidth().gb_per_sec() - 240.0).abs() < 1e-9);
}

#[test]
fn clusters_are_connected() {
    for cluster in catalogue().clusters().chain(catalogue().node_clusters()) {
        check_cluster(cluster);
    }
    let llama = catalogue().cluster("llama3-24k").unwrap();
    assert_eq!(llama.devices(), Some(24_576));
    assert_eq!(llama.nodes_for(24_576).unwrap(), 3072);
    assert!(llama.nodes_for(24_577).is_err());
    let ratio = llama.node_bandwidth().get() / llama.node_bandwidth_among(3072).unwrap().get();
    assert_eq!(ratio, 7.0);
}

fn check_cluster(cluster: &Cluster) {
    let name = &cluster.name;
    assert!(!cluster.description.is_empty(), "{name}");
    if cluster.node.nics == 0 {
        assert_eq!((cluster.nodes, cluster.fabric.levels.len()), (Some(1), 0), "{name}");
        return;
    }
    let levels = &cluster.fabric.levels;
    assert!(levels.windows(2).all(|pair| pair[0].nodes < pair[1].nodes), "{name}");
    assert!(levels.windows(2).all(|pair| pair[0].latency <= pair[1].latency), "{name}");
    assert!(levels.iter().all(|level| level.oversubscription >= 1.0), "{name}");
    if cluster.nodes.is_none() {
        assert_eq!(levels.last().map(|level| level.nodes), Some(Level::UNBOUNDED), "{name}");
    }
    let most = cluster.nodes.unwrap_or(100_000);
    assert!(cluster.levels_for(most).is_ok(), "{name}");
}

#[test]
fn every_name_and_alias_finds_its_own_entry() {
    for device in catalogue().devices() {
        for name in device.aliases.iter().chain(&device.products).chain([&device.name]) {
            let found = catalogue().device(name).unwrap();
            assert_eq!(found.name, device.name, "{name}");
            let found = catalogue().device(&name.to_uppercase().replace('-', "_")).unwrap();
            assert_eq!(found.name, device.name, "{name}");
        }
    }
    for node in catalogue().nodes() {
        for name in node.aliases.iter().chain([&node.name]) {
            assert_eq!(catalogue().node(&name.to_lowercase()).unwrap().name, node.name);
        }
    }
}

#[test]
fn unknown_names_get_a_way_on() {
    let shown =
        |error: foretrain_core::InputError| format!("{error} | {}", error.hints().join(" | "));
    insta::assert_snapshot!(shown(catalogue().cluster("dgx-a10").unwrap_err()), @r#"no cluster "dgx-a10" | did you mean one of dgx-a100-superpod, dgx-a100, dgx-a100-40gb? | `foretrain hardware list` shows all names"#);
    insta::assert_snapshot!(shown(catalogue().device("a100").unwrap_err()), @r#"no device "a100" | did you mean one of a100-sxm4-80gb, a100-sxm4-40gb, a100-pcie-80gb, a100-pcie-40gb? | `foretrain hardware list` shows all names"#);
    insta::assert_snapshot!(shown(catalogue().node("zzz").unwrap_err()), @r#"no node "zzz" | `foretrain hardware list` shows all names"#);
    insta::assert_snapshot!(shown(catalogue().device("").unwrap_err()), @r#"no device "" | `foretrain hardware list` shows all names"#);
}
