//! Collectives on explicit networks: alone against the closed form, then together.

use foretrain_core::{Bytes, Nanos};
use foretrain_cost::congestion::{Concurrent, Conditions, CongestedTime, congestion};
use foretrain_cost::{CollectiveCall, Method};
use foretrain_graph::CollectiveKind as Kind;
use foretrain_hardware::topology::Routing;
use foretrain_hardware::{Catalogue, Cluster, Fabric};

const HOP: Nanos = Nanos::from_nanos(500);
const KINDS: [Kind; 7] = [
    Kind::AllReduce,
    Kind::AllGather,
    Kind::ReduceScatter,
    Kind::AllToAll,
    Kind::Broadcast,
    Kind::Reduce,
    Kind::SendRecv,
];

fn on(node: &str, fabric: Fabric) -> Cluster {
    let mut cluster = Catalogue::builtin().cluster(node).expect("it is built in");
    cluster.fabric = fabric;
    cluster
}

fn group(kind: Kind, mib: u64, devices: impl IntoIterator<Item = u32>) -> Concurrent {
    let call = CollectiveCall::new(kind, Bytes::from_mib(mib));
    Concurrent { devices: devices.into_iter().collect(), call, start: Nanos::ZERO }
}

fn alone(cluster: &Cluster, one: Concurrent) -> CongestedTime {
    congestion(cluster, &[one], &Conditions::default()).expect("it can be timed").remove(0)
}

/// Fabrics without oversubscription, with a number of nodes that fills them.
fn ample() -> Vec<(Fabric, u32)> {
    vec![
        (Fabric::single_switch(HOP), 8),
        (Fabric::fat_tree(8, [1.0, 1.0], HOP), 128),
        (Fabric::fat_tree(4, [1.0, 1.0], HOP), 16),
        (Fabric::rail_optimised(4, 1.0, HOP), 16),
        // A ring leaves and enters a group over the same local cable, so that needs twice a node's rate.
        (Fabric::dragonfly(4, 4, [1.0, 1.0], HOP), 80),
        (Fabric::torus(&[4, 4], HOP), 16),
    ]
}

#[test]
fn alone_on_an_ample_fabric_it_is_the_closed_form() {
    for node in ["dgx-a100", "dgx-h100", "perlmutter-gpu", "frontier-node"] {
        for (fabric, nodes) in ample() {
            let name = fabric.name.clone();
            let cluster = on(node, fabric);
            for kind in KINDS {
                // Trees and arbitrary pairs collide under any fixed choice of paths.
                let routing = (kind != Kind::AllToAll).then_some(Routing::Spray);
                let conditions = Conditions { routing, ..Conditions::default() };
                for mib in [1, 64, 4096] {
                    let each = cluster.devices_per_node();
                    let one = group(kind, mib, 0..nodes * each);
                    let got = congestion(&cluster, &[one], &conditions).unwrap().remove(0);
                    let off = got.time.nanos() as f64 / got.closed_form.nanos() as f64 - 1.0;
                    let what = format!("{kind}, {mib} MiB: {} for {}", got.time, got.closed_form);
                    assert!(off.abs() < 0.01, "{node}, {name}, {what}");
                }
            }
        }
    }
}

#[test]
fn alone_on_one_node_it_is_the_closed_form() {
    for node in Catalogue::builtin().node_clusters() {
        let devices = node.devices_per_node();
        for kind in KINDS {
            for ranks in [2, devices.div_ceil(2), devices] {
                if ranks < 2 || ranks > devices {
                    continue;
                }
                let got = alone(node, group(kind, 64, 0..ranks));
                let off = got.time.nanos() as f64 / got.closed_form.nanos() as f64 - 1.0;
                let what =
                    format!("{}, {kind}, {ranks}: {} for {}", node.name, got.time, got.closed_form);
                assert!(off.abs() < 0.01, "{what}");
            }
        }
    }
}

#[test]
fn scattered_ranks_pay_where_the_closed_form_takes_them_in_order() {
    // Leaves of four nodes, one uplink for every four NICs.
    let mut fabric = Fabric::rail_optimised(4, 4.0, HOP);
    fabric.rail_optimised = false;
    let cluster = on("dgx-a100", fabric);
    let nodes = |order: &[u32]| -> Vec<u32> {
        order.iter().flat_map(|node| node * 8..node * 8 + 8).collect()
    };
    let packed = alone(&cluster, group(Kind::AllGather, 1024, nodes(&[0, 1, 2, 3, 4, 5, 6, 7])));
    let scattered = alone(&cluster, group(Kind::AllGather, 1024, nodes(&[0, 4, 1, 5, 2, 6, 3, 7])));
    assert_eq!(packed.closed_form, scattered.closed_form);
    // In order one node in four crosses, which the uplinks carry; scattered, all do.
    let ratio = scattered.time.nanos() as f64 / packed.time.nanos() as f64;
    assert!((3.5..4.5).contains(&ratio), "{ratio}");
    let bottleneck = scattered.bottleneck;
    assert!(bottleneck.is_some_and(|name| name.contains("leaf") && name.contains("spine")));
}

#[test]
fn oversubscription_slows_an_all_to_all_by_all_of_it() {
    let time = |narrow: f64| {
        let cluster = on("dgx-a100", Fabric::rail_optimised(4, narrow, HOP));
        alone(&cluster, group(Kind::AllToAll, 4096, 0..128)).time.nanos() as f64
    };
    // Twelve of fifteen peers are under other leaves.
    let ratio = time(4.0) / time(1.0);
    assert!((ratio - 4.0 * 12.0 / 15.0).abs() < 0.1, "{ratio}");
}

#[test]
fn groups_that_share_nics_share_their_rate() {
    let cluster = on("dgx-a100", Fabric::single_switch(HOP));
    let every = |first: u32, mib| group(Kind::AllReduce, mib, (0..8).map(|node| node * 8 + first));
    let apart =
        congestion(&cluster, &[every(0, 512), every(1, 512)], &Conditions::default()).unwrap();
    assert!(apart.iter().all(|one| one.time == one.alone), "each has a NIC of its own");
    // The same group twice, as two libraries in one job do it.
    let both =
        congestion(&cluster, &[every(0, 512), every(0, 512)], &Conditions::default()).unwrap();
    for one in &both {
        let ratio = one.time.nanos() as f64 / one.alone.nanos() as f64;
        assert!((1.9..=2.01).contains(&ratio), "{ratio}");
        assert!(one.bottleneck.as_ref().is_some_and(|name| name.contains("nic0")), "{one:?}");
    }
    // A small one is all latency and leaves the link to the other.
    let mut small = every(0, 512);
    small.call.bytes = Bytes::from_kib(1);
    let mixed = congestion(&cluster, &[every(0, 512), small], &Conditions::default()).unwrap();
    for one in &mixed {
        assert!(one.time.nanos() as f64 <= 1.01 * one.alone.nanos() as f64, "{one:?}");
    }
    // One after the other do not meet.
    let later = Concurrent { start: both[0].alone, ..every(0, 512) };
    let turns = congestion(&cluster, &[every(0, 512), later], &Conditions::default()).unwrap();
    assert!(turns.iter().all(|one| one.time == one.alone));
}

fn under(cluster: &Cluster, one: Concurrent, what: &[&str]) -> Result<CongestedTime, String> {
    let degradations = what.iter().map(|text| text.parse().expect("it is well written")).collect();
    let conditions = Conditions { degradations, ..Conditions::default() };
    let times = congestion(cluster, &[one], &conditions);
    times.map(|mut times| times.remove(0)).map_err(|error| error.to_string())
}

#[test]
fn a_slow_or_dead_nic_slows_the_rings_over_it() {
    let cluster = on("dgx-a100", Fabric::rail_optimised(8, 1.0, HOP));
    let ring = || group(Kind::AllGather, 4096, 0..64);
    let whole = alone(&cluster, ring()).time.nanos() as f64;
    let slow = under(&cluster, ring(), &["node=3,nic=1,rate=0.5"]).unwrap();
    assert!(
        (slow.time.nanos() as f64 / whole - 2.0).abs() < 0.02,
        "one rail of eight at half its rate holds all"
    );
    assert_eq!(slow.bottleneck.as_deref(), Some("node3.nic1 up"));
    let dead = under(&cluster, ring(), &["node=3,nic=1,down"]).unwrap();
    assert!((dead.time.nanos() as f64 / whole - 8.0 / 7.0).abs() < 0.02, "seven rails are left");
}

#[test]
fn ranks_that_are_cut_off_are_named() {
    let cluster = on("dgx-a100", Fabric::rail_optimised(2, 1.0, HOP));
    let error = under(&cluster, group(Kind::AllReduce, 64, 0..32), &["node=3,down"]).unwrap_err();
    assert!(
        error.starts_with("dead links cut off rank 24 (device 0 of node 3), rank 25"),
        "{error}"
    );
    let error =
        under(&cluster, group(Kind::AllReduce, 64, [0, 1]), &["node=0,device=1,down"]).unwrap_err();
    assert!(error.contains("rank 1 (device 1 of node 0)"), "{error}");
    let spines = ["switch=spine0,down", "switch=spine1,down"];
    let error =
        under(&cluster, group(Kind::AllReduce, 64, (0..4).map(|n| n * 8)), &spines).unwrap_err();
    assert!(error.contains("device 0 of node 2"), "{error}");
}

#[test]
fn spraying_and_hashing_differ_where_flows_collide() {
    let mut fabric = Fabric::rail_optimised(8, 1.0, HOP);
    fabric.rail_optimised = false;
    let cluster = on("perlmutter-gpu", fabric);
    // Every ring neighbour is under the other leaf.
    let order: Vec<u32> = (0..8).flat_map(|n| [n, n + 8]).flat_map(|n| n * 4..n * 4 + 4).collect();
    let time = |routing| {
        let conditions = Conditions { routing: Some(routing), ..Conditions::default() };
        congestion(&cluster, &[group(Kind::AllGather, 4096, order.clone())], &conditions).unwrap()
            [0]
        .time
    };
    let spread = time(Routing::Spray);
    assert!(time(Routing::Deterministic) >= spread);
    assert!(time(Routing::Ecmp { seed: 7 }) > spread.scale(1.5), "hashed flows share up-links");
    assert_eq!(time(Routing::Ecmp { seed: 7 }), time(Routing::Ecmp { seed: 7 }));
}

#[test]
fn bad_groups_are_refused() {
    let cluster = on("dgx-a100", Fabric::single_switch(HOP));
    let refuse = |devices: Vec<u32>, kind| {
        let error = congestion(&cluster, &[group(kind, 1, devices)], &Conditions::default());
        error.unwrap_err().to_string()
    };
    assert!(refuse(vec![], Kind::AllReduce).contains("at least one device"));
    assert!(refuse(vec![3, 9, 3], Kind::AllReduce).contains("device 3 twice"));
    assert!(refuse((0..40_000).collect(), Kind::AllToAll).contains("flows, at most"));
    assert!(refuse(vec![u32::MAX], Kind::AllReduce).contains("links"));
}

#[test]
fn one_rank_needs_no_time() {
    let cluster = on("dgx-a100", Fabric::single_switch(HOP));
    let got = alone(&cluster, group(Kind::AllReduce, 64, [5]));
    assert_eq!((got.time, got.algorithm, got.bottleneck), (Nanos::ZERO, Method::Nothing, None));
}
