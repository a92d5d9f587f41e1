//! Users' files: what they can say, and what is refused with which words.

use foretrain_core::{DType, InputError};
use foretrain_hardware::{Catalogue, LinkKind, NicKind, Source};
use proptest::prelude::*;

fn load(text: &str) -> Result<Catalogue, InputError> {
    let mut catalogue = Catalogue::builtin().clone();
    catalogue.load_str(text, "my.toml")?;
    Ok(catalogue)
}

fn refused(text: &str) -> String {
    let error = load(text).expect_err("it must be refused");
    let hints: String = error.hints().iter().map(|hint| format!("\n  hint: {hint}")).collect();
    format!("{error}{hints}")
}

#[test]
fn a_cluster_of_known_nodes() {
    let catalogue = load(
        "[clusters.ours]
         node = \"dgx-a100\"
         nodes = 16
         rail_optimised = false
         levels = [{ name = \"leaf\", nodes = 8, latency = \"2 us\" }, { name = \"spine\", oversubscription = 2, latency = \"3 us\" }]",
    )
    .unwrap();
    let cluster = catalogue.cluster("ours").unwrap();
    assert_eq!(cluster.devices(), Some(128));
    assert!(!cluster.fabric.rail_optimised);
    assert_eq!(cluster.node_bandwidth_among(16).unwrap().gb_per_sec(), 100.0);
    assert_eq!(cluster.source("nodes").unwrap().id, Source::USER);
    assert_eq!(cluster.source("nic_bandwidth").unwrap().id, "deepops");
}

#[test]
fn single_figures_are_overridden() {
    let catalogue = load(
        "[nodes.dgx-a100]
         based_on = \"dgx-a100\"
         nics = 4
         source = \"our invoice\"
         [nodes.lab]
         based_on = \"pcie-8x-rtx3090\"
         nics = 1
         nic = \"ethernet\"
         nic_bandwidth = \"10 Gbit/s\"",
    )
    .unwrap();
    let node = catalogue.node("DGX_A100").unwrap();
    assert_eq!(node.nics_bandwidth().gb_per_sec(), 100.0);
    assert_eq!(node.source("nics").unwrap().id, "our invoice");
    assert_eq!(node.source("nic_bandwidth").unwrap().id, "deepops");
    assert_eq!(catalogue.node("hgx-a100").unwrap().nics, 4, "aliases stay with their entry");
    assert_eq!(catalogue.cluster("dgx-a100-superpod").unwrap().node.nics, 4);
    let lab = catalogue.cluster("lab").unwrap();
    assert_eq!((lab.node.nic_kind, lab.node.intra.kind), (NicKind::Ethernet, LinkKind::Pcie));
    assert_eq!(lab.nodes_for(64).unwrap(), 8);
    assert_eq!(lab.fabric.name, "ethernet");
    assert_eq!(Catalogue::builtin().node("dgx-a100").unwrap().nics, 8, "built-ins are untouched");
}

#[test]
fn an_overridden_device_reaches_its_nodes() {
    let catalogue = load(
        "[devices.a100-sxm4-80gb]
         based_on = \"a100-sxm4-80gb\"
         memory_bandwidth = \"1.9 TB/s\"
         peak = { bf16 = \"280 TFLOP/s\" }",
    )
    .unwrap();
    let device = &catalogue.cluster("dgx-a100").unwrap().node.device;
    assert_eq!(device.memory_bandwidth.gb_per_sec(), 1900.0);
    assert_eq!(device.peak(DType::Bf16).unwrap().tflops(), 280.0);
    assert_eq!(device.peak(DType::Tf32).unwrap().tflops(), 156.0);
    let found = catalogue.device_by_product_name("NVIDIA A100-SXM4-80GB").unwrap();
    assert_eq!(found.memory_bandwidth.gb_per_sec(), 1900.0);
}

#[test]
fn entries_may_stand_in_any_order_and_build_on_each_other() {
    let catalogue = load(
        "[clusters.c]
         node = \"n2\"
         [nodes.n2]
         based_on = \"n1\"
         devices = 4
         [nodes.n1]
         device = \"mine\"
         devices = 2
         intra = \"pcie\"
         intra_bandwidth = \"25 GB/s\"
         nics = 1
         nic = \"roce\"
         nic_bandwidth = \"100 Gbit/s\"
         [devices.mine]
         vendor = \"acme\"
         memory = \"48 GB\"
         memory_bandwidth = \"1 TB/s\"
         peak = { bf16 = \"400 TFLOP/s\" }",
    )
    .unwrap();
    let cluster = catalogue.cluster("c").unwrap();
    assert_eq!(cluster.node.devices, 4);
    assert_eq!(cluster.nodes_for(400).unwrap(), 100);
    assert_eq!(catalogue.clusters().last().unwrap().name, "c");
}

#[test]
fn wrong_units() {
    insta::assert_snapshot!(refused("[nodes.mine]\nbased_on = \"dgx-a100\"\nnic_bandwidth = \"200 Gbps\""), @r#"expected a rate such as "300 GB/s" or "200 Gbit/s", found the unit "Gbps" in "200 Gbps"; write "Gbit/s" for bits or "GB/s" for bytes (nodes.mine.nic_bandwidth, line 3 of my.toml)"#);
    insta::assert_snapshot!(refused("[nodes.mine]\nbased_on = \"dgx-a100\"\nintra_bandwidth = \"300 GBps\""), @r#"expected a rate such as "300 GB/s" or "200 Gbit/s", found the unit "GBps" in "300 GBps"; write "GB/s" (nodes.mine.intra_bandwidth, line 3 of my.toml)"#);
    insta::assert_snapshot!(refused("[nodes.mine]\nbased_on = \"dgx-a100\"\nintra_bandwidth = \"300 GB\""), @r#"expected a rate such as "300 GB/s" or "200 Gbit/s", found the unit "GB" in "300 GB"; write "GB/s" (nodes.mine.intra_bandwidth, line 3 of my.toml)"#);
    insta::assert_snapshot!(refused("[nodes.mine]\nbased_on = \"dgx-a100\"\n\nnic_bandwidth = 200"), @r#"expected a rate such as "300 GB/s" or "200 Gbit/s", found the bare number 200; add the unit (nodes.mine.nic_bandwidth, line 4 of my.toml)"#);
    insta::assert_snapshot!(refused("[devices.mine]\nbased_on = \"h200-sxm\"\nmemory = \"80 GHz\""), @r#"expected a size such as "80 GiB" or "80 GB", found the unit "GHz" in "80 GHz"; units are B, kB, MB, GB, TB, KiB, MiB, GiB, TiB (devices.mine.memory, line 3 of my.toml)"#);
    insta::assert_snapshot!(refused("[nodes.mine]\nbased_on = \"dgx-a100\"\nprice = \"32 EUR/h\""), @r#"expected a price such as "32.77 USD/h", found the unit "EUR/h" in "32 EUR/h"; units are USD/h (nodes.mine.price, line 3 of my.toml)"#);
}

#[test]
fn unknown_keys_and_values() {
    insta::assert_snapshot!(refused("[nodes.dgx-a100]\nbased_on = \"dgx-a100\"\nnic_bandwith = \"200 Gbit/s\""), @r#"
    unknown key "nic_bandwith" (nodes.dgx-a100.nic_bandwith, line 3 of my.toml)
      hint: did you mean `nic_bandwidth`?
    "#);
    insta::assert_snapshot!(refused("[node.mine]\nbased_on = \"dgx-a100\""), @r#"
    unknown key "node" (node, line 1 of my.toml)
      hint: did you mean `nodes`?
    "#);
    insta::assert_snapshot!(refused("[nodes.mine]\nbased_on = \"dgx-a100\"\nintra = \"nvswich\""), @r#"
    unknown value "nvswich" (nodes.mine.intra, line 3 of my.toml)
      hint: did you mean `nvswitch`?
    "#);
    insta::assert_snapshot!(refused("[clusters.c]\nnode = \"dgx-a100\"\nlevels = [{ nodes = 4, latency = \"2 us\", oversubscribed = 2 }]"), @r#"
    unknown key "oversubscribed" (clusters.c.levels.0.oversubscribed, line 3 of my.toml)
      hint: did you mean `oversubscription`?
    "#);
    insta::assert_snapshot!(refused("[devices.mine]\nbased_on = \"l4\"\npeak = { bf61 = \"121 TFLOP/s\" }"), @r#"
    unknown element type "bf61" (devices.mine.peak.bf61, line 3 of my.toml)
      hint: expected one of: f64, f32, tf32, f16, bf16, fp8, fp4, i8
    "#);
    insta::assert_snapshot!(refused("[devices.mine]\nbased_on = \"l4\"\nsources = { memroy = \"a page\" }"), @r#"
    a source for "memroy", which is no figure of a device (devices.mine.sources.memroy, line 3 of my.toml)
      hint: did you mean `memory`?
    "#);
    insta::assert_snapshot!(refused("[devices.mine]\nbased_on = \"l4\"\nvendor = 3"), @r#"invalid type: integer `3`, expected a string (devices.mine.vendor, line 3 of my.toml)"#);
}

#[test]
fn impossible_figures() {
    insta::assert_snapshot!(refused("[nodes.mine]\nbased_on = \"dgx-a100\"\ndevices = 0"), @r#"expected a whole number from 1 to 16384, found 0 (nodes.mine.devices, line 3 of my.toml)"#);
    insta::assert_snapshot!(refused("[nodes.mine]\nbased_on = \"dgx-a100\"\ndevices = -8"), @r#"expected a whole number from 1 to 16384, found -8 (nodes.mine.devices, line 3 of my.toml)"#);
    insta::assert_snapshot!(refused("[nodes.mine]\nbased_on = \"dgx-a100\"\nnic_bandwidth = \"-200 Gbit/s\""), @r#"expected a rate such as "300 GB/s" or "200 Gbit/s" above zero, found "-200 Gbit/s" (nodes.mine.nic_bandwidth, line 3 of my.toml)"#);
    insta::assert_snapshot!(refused("[nodes.mine]\nbased_on = \"dgx-a100\"\nnic_bandwidth = \"200 TB/s\""), @r#"expected one direction of one NIC, found 200.0 TB/s; no NIC exceeds 10.00 TB/s (nodes.mine.nic_bandwidth, line 3 of my.toml)"#);
    insta::assert_snapshot!(refused("[nodes.mine]\nbased_on = \"dgx-a100\"\nnic_efficiency = 1.2"), @r#"expected an efficiency above 0 and at most 1, found 1.2 (nodes.mine.nic_efficiency, line 3 of my.toml)"#);
    insta::assert_snapshot!(refused("[nodes.mine]\nbased_on = \"dgx-a100\"\nintra_bandwidth = \"600 GB/s\""), @r#"expected one direction of one device's links, found 600.0 GB/s; 12 links of NVLink 3 carry at most 300.0 GB/s each way (nodes.mine.intra_bandwidth, line 3 of my.toml)"#);
    insta::assert_snapshot!(refused("[devices.mine]\nbased_on = \"h200-sxm\"\npeak = { bf16 = \"1979 TFLOP/s\" }"), @r#"
    1.979 PFLOP/s is the bf16 rate with 2:4 sparsity; the dense peak is 989.5 TFLOP/s (devices.mine.peak.bf16, line 3 of my.toml)
      hint: `peak` is the dense rate; put the rate with sparsity under `peak_sparse`
    "#);
    insta::assert_snapshot!(refused("[devices.mine]\nvendor = \"nvidia\"\nproducts = [\"NVIDIA H200\"]\nmemory = \"141 GB\"\nmemory_bandwidth = \"4.8 TB/s\"\n[devices.mine.peak]\nbf16 = \"1979 TFLOP/s\""), @r#"
    1.979 PFLOP/s is the bf16 rate with 2:4 sparsity; the dense peak is 989.5 TFLOP/s (devices.mine.peak.bf16, line 7 of my.toml)
      hint: `peak` is the dense rate; put the rate with sparsity under `peak_sparse`
    "#);
    insta::assert_snapshot!(refused("[devices.mine]\nbased_on = \"l4\"\nmemory = \"80 PiB\""), @r#"expected a size such as "80 GiB" or "80 GB", found the unit "PiB" in "80 PiB"; units are B, kB, MB, GB, TB, KiB, MiB, GiB, TiB (devices.mine.memory, line 3 of my.toml)"#);
    insta::assert_snapshot!(refused("[clusters.c]\nnode = \"dgx-a100\"\nlevels = [{ nodes = 8, latency = \"2 us\" }, { nodes = 4, latency = \"3 us\" }]"), @r#"
    level 2 (4 nodes, 3.000 us) is not larger and farther than level 1 (8 nodes, 2.000 us) (clusters.c.levels.1, line 3 of my.toml)
      hint: order levels from the nodes outwards; nodes and latency grow
    "#);
    insta::assert_snapshot!(refused("[clusters.c]\nnode = \"dgx-a100\"\nnodes = 100\nlevels = [{ nodes = 8, latency = \"2 us\" }]"), @r#"
    the fabric of c connects 8 nodes, 100 are needed (clusters.c.nodes, line 3 of my.toml)
      hint: leave out `nodes` in the fabric's last level to let it reach every node
    "#);
}

#[test]
fn missing_figures_and_references() {
    insta::assert_snapshot!(refused("[devices.mine]\nvendor = \"acme\""), @r#"
    device mine lacks the figure memory (devices.mine, line 1 of my.toml)
      hint: add `memory = "80 GiB"`, or take what is missing from a known device: `based_on = "NAME"`, its own name to correct it
    "#);
    insta::assert_snapshot!(refused("[nodes.dgx-a100]\nnics = 4"), @r#"
    node dgx-a100 lacks the figure device (nodes.dgx-a100, line 1 of my.toml)
      hint: add `device = "a100-sxm4-80gb"`, or take what is missing from a known node: `based_on = "NAME"`, its own name to correct it
    "#);
    insta::assert_snapshot!(refused("[clusters.c]\nnode = \"dgx-a1000\""), @r#"
    no node "dgx-a1000" (clusters.c.node, line 2 of my.toml)
      hint: did you mean `dgx-a100`?
      hint: `foretrain hardware list` shows all names
    "#);
    insta::assert_snapshot!(refused("[clusters.c]\nnode = \"dgx-a100\"\nfabric = \"infinband\""), @r#"
    no fabric "infinband" (clusters.c.fabric, line 3 of my.toml)
      hint: did you mean `infiniband`?
      hint: `foretrain hardware list` shows all names
    "#);
    insta::assert_snapshot!(refused("[nodes.mine]\nbased_on = \"dgx-a1000\""), @r#"
    based on "dgx-a1000", which is no node (nodes.mine.based_on, line 2 of my.toml)
      hint: did you mean `dgx-a100`?
    "#);
    insta::assert_snapshot!(refused("[nodes.a]\nbased_on = \"b\"\n[nodes.b]\nbased_on = \"a\""), @r#"based_on leads in a circle or too far: a -> b -> a (nodes.a.based_on, line 2 of my.toml)"#);
    insta::assert_snapshot!(refused("[nodes.mine]\nbased_on = \"mine\""), @r#"
    based on "mine", which is no node (nodes.mine.based_on, line 2 of my.toml)
      hint: `foretrain hardware list` shows what can be built on
    "#);
    insta::assert_snapshot!(refused("[clusters.pair]\nnode = \"pcie-8x-rtx3090\"\nnodes = 2"), @r#"
    pcie-8x-rtx3090 has no NIC, so it cannot form a cluster of 2 nodes (clusters.pair.nodes, line 3 of my.toml)
      hint: define a node with `based_on = "pcie-8x-rtx3090"` that sets nics, nic and nic_bandwidth
    "#);
    insta::assert_snapshot!(refused("[nodes.mine]\nbased_on = \"dgx-a100\"\naliases = [\"dgx-h100\"]"), @r#"the alias "dgx-h100" names another entry already (nodes.mine.aliases, line 3 of my.toml)"#);
}

#[test]
fn broken_files() {
    insta::assert_snapshot!(refused("[nodes.mine\nnics = 4"), @r#"not valid TOML: unclosed table, expected `]` (line 1 of my.toml)"#);
    insta::assert_snapshot!(refused("[nodes.mine]\nnics = 4\nnics = 5"), @r#"not valid TOML: duplicate key (line 3 of my.toml)"#);
    insta::assert_snapshot!(refused("[nodes.\"\"]\nnics = 4"), @r#"
    "" is no valid name (nodes of my.toml)
      hint: a name has letters, digits, '.', '_' and '-', and at most 64 of them
    "#);
    insta::assert_snapshot!(refused("nodes = 4"), @r#"invalid type: integer `4`, expected a table (nodes, line 1 of my.toml)"#);
    insta::assert_snapshot!(refused("[nodes.DGX_A100]\nbased_on = \"dgx-a100\"\n[nodes.dgx-a100]\nbased_on = \"dgx-h100\""), @r#"node dgx-a100 is defined twice (nodes.dgx-a100, line 3 of my.toml)"#);
}

#[test]
fn files_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ours.toml");
    let mut catalogue = Catalogue::builtin().clone();
    let error = catalogue.load_user_file(&path).unwrap_err();
    assert_eq!(error.path(), Some(path.as_path()));
    assert!(error.hints().iter().any(|hint| hint.contains("spelling")));
    assert!(
        catalogue.load_user_file(directory.path()).unwrap_err().message().contains("directory")
    );
    std::fs::write(&path, [b'#', 0xff, 0xfe]).unwrap();
    let error = catalogue.load_user_file(&path).unwrap_err();
    assert_eq!((error.message(), error.place()), ("not UTF-8 text", Some("byte 1")));
    std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert!(catalogue.load_user_file(&path).unwrap_err().message().contains("at most"));
    std::fs::write(&path, "[clusters.ours]\nnode = \"dgx-h100\"\nnodes = 4\n").unwrap();
    catalogue.load_user_file(&path).unwrap();
    assert_eq!(catalogue.cluster("ours").unwrap().devices(), Some(32));
}

#[test]
fn a_refused_file_changes_nothing() {
    let mut catalogue = Catalogue::builtin().clone();
    let text = "[clusters.good]\nnode = \"dgx-a100\"\n[clusters.bad]\nnode = \"nothing\"";
    assert!(catalogue.load_str(text, "my.toml").is_err());
    assert!(catalogue.cluster("good").is_err());
    assert!(catalogue.cluster("dgx-a100").is_ok());
}

#[test]
fn hostile_files_end_in_an_error() {
    let chain: String =
        (0..5000).map(|i| format!("[nodes.n{i}]\nbased_on = \"n{}\"\n", i + 1)).collect();
    assert!(load(&chain).is_err());
    let nested = format!("x = {}{}", "[".repeat(5_000), "]".repeat(5_000));
    assert!(load(&nested).is_err());
    let long = "9".repeat(100_000);
    let error = load(&format!("[nodes.a]\nnic_bandwidth = \"{long} GB/s\"")).unwrap_err();
    assert!(error.to_string().len() < 500, "{}", error.to_string().len());
    assert!(load("[nodes.a]\nnics = 99999999999999999999").is_err());
    assert!(load("[nodes.a]\nnic_efficiency = nan").is_err());
    assert!(load("[nodes.a]\nnic_efficiency = inf").is_err());
}

/// The example in the user documentation is loaded as it stands.
#[test]
fn the_documented_example_loads() {
    let document = include_str!("../../../docs/hardware.md");
    let examples: Vec<&str> =
        document.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(!examples.is_empty());
    let mut catalogue = Catalogue::builtin().clone();
    for example in &examples {
        catalogue.load_str(example, "docs/hardware.md").unwrap_or_else(|error| panic!("{error}"));
    }
    let cluster = catalogue.cluster("our-cluster").unwrap();
    assert_eq!(cluster.devices(), Some(192));
    assert_eq!(cluster.node.host_memory.unwrap().get(), 1 << 40);
    assert_eq!(cluster.node_bandwidth().gb_per_sec(), 100.0);
    assert_eq!(cluster.levels_for(24).unwrap().len(), 2);
}

proptest! {
    #[test]
    fn no_text_panics(text in "(\\[(nodes|devices|clusters|fabrics|sources)\\.[a-z\"]{1,3}\\]\n|[a-z_]{1,9} = (\"[0-9.eE+-]{0,9} ?[A-Za-z/]{0,6}\"|-?[0-9]{1,12}|\\[\\]|\\{\\}|true)\n){0,8}") {
        if let Err(error) = load(&text) {
            prop_assert!(!error.message().is_empty());
            prop_assert!(!error.message().contains("NaN"));
        }
    }

    #[test]
    fn rates_read_back_as_written(gigabits in 1u32..80_000) {
        let text = format!("[nodes.n]\nbased_on = \"dgx-a100\"\nnic_bandwidth = \"{gigabits} Gbit/s\"");
        let rate = load(&text).unwrap().node("n").unwrap().nic_bandwidth;
        prop_assert!((rate.gb_per_sec() * 8.0 - f64::from(gigabits)).abs() < 1e-6);
    }
}
