//! Networks built from fabrics, routes over them, and parts of them that are slow or dead.

use foretrain_core::Nanos;
use foretrain_hardware::topology::{Degradation, Hop, Network, Nic, Router, Routing};
use foretrain_hardware::{Catalogue, Cluster, Fabric, Level};
use proptest::prelude::*;

const HOP: Nanos = Nanos::from_nanos(500);
const ROUTINGS: [Routing; 4] = [
    Routing::Deterministic,
    Routing::Ecmp { seed: 1 },
    Routing::Spray,
    Routing::Valiant { seed: 1 },
];

fn cluster(node: &str, fabric: Fabric) -> Cluster {
    let mut cluster = Catalogue::builtin().cluster(node).expect("it is built in");
    cluster.fabric = fabric;
    cluster
}

fn fabrics() -> Vec<(Fabric, u32)> {
    vec![
        (Fabric::single_switch(HOP), 5),
        (Fabric::fat_tree(8, [1.0, 2.0], HOP), 128),
        (Fabric::rail_optimised(4, 1.0, HOP), 14),
        (Fabric::dragonfly(2, 4, [1.0, 1.0], HOP), 40),
        (Fabric::torus(&[4, 3, 2], HOP), 24),
    ]
}

/// What enters each switch and NIC less what leaves it.
fn balance(network: &Network, hops: &[Hop]) -> f64 {
    hops.iter().map(|(link, share)| if network.is_end_point(*link) { *share } else { 0.0 }).sum()
}

#[test]
fn every_pair_is_connected_under_every_routing() {
    for (fabric, nodes) in fabrics() {
        let name = fabric.name.clone();
        let network = Network::new(&cluster("dgx-a100", fabric), nodes).unwrap();
        for routing in ROUTINGS {
            let mut router = Router::new(&network, routing);
            for node in 1..nodes {
                let (from, to) = (Nic { node: 0, nic: 0 }, Nic { node, nic: node % 8 });
                let hops = router.route(from, to, 0).unwrap();
                assert_eq!(hops[0], (network.nic_up(from), 1.0), "{name} {routing:?}");
                assert_eq!(hops.last(), Some(&(network.nic_down(to), 1.0)));
                assert!((balance(&network, &hops) - 2.0).abs() < 1e-9);
                assert!(hops.iter().all(|(_, share)| *share > 0.0 && *share < 1.0 + 1e-9));
                if matches!(routing, Routing::Deterministic | Routing::Ecmp { .. }) {
                    assert!(hops.iter().all(|(_, share)| *share == 1.0));
                }
            }
        }
    }
}

#[test]
fn a_fat_tree_of_k_ports_has_the_switches_of_the_textbook() {
    for ports in [4, 8, 12] {
        let nodes = ports * ports * ports / 4;
        let fabric = Fabric::fat_tree(ports, [1.0, 1.0], HOP);
        let network = Network::new(&cluster("dgx-a100", fabric), nodes).unwrap();
        let count = |what: &str| network.switches().iter().filter(|n| n.starts_with(what)).count();
        let half = (ports / 2) as usize;
        assert_eq!(count("leaf"), ports as usize * half);
        // Eight NICs a node take eight times the switches above.
        assert_eq!(count("spine"), 8 * ports as usize * half);
        assert_eq!(count("core"), 8 * half * half);
    }
}

#[test]
fn rails_meet_on_their_own_leaf() {
    let network =
        Network::new(&cluster("dgx-a100", Fabric::rail_optimised(4, 1.0, HOP)), 8).unwrap();
    let mut router = Router::new(&network, Routing::Deterministic);
    let mut hops =
        |node, nic| router.route(Nic { node: 0, nic: 2 }, Nic { node, nic }, 0).unwrap().len();
    assert_eq!(hops(3, 2), 2, "same unit, same rail: one leaf");
    assert_eq!(hops(3, 5), 4, "same unit, other rail: over a spine");
    assert_eq!(hops(7, 2), 4, "other unit: over a spine");
    let unit = Network::new(&cluster("dgx-a100", Fabric::rail_optimised(4, 1.0, HOP)), 4).unwrap();
    let route = Router::new(&unit, Routing::Spray).route(
        Nic { node: 0, nic: 2 },
        Nic { node: 1, nic: 3 },
        0,
    );
    assert!(route.is_some(), "rails of a single unit are connected too");
}

#[test]
fn a_torus_is_crossed_dimension_by_dimension_the_short_way() {
    let network = Network::new(&cluster("dgx-a100", Fabric::torus(&[5, 4], HOP)), 20).unwrap();
    let mut router = Router::new(&network, Routing::Deterministic);
    let hops = router.route(Nic { node: 0, nic: 0 }, Nic { node: 4 + 5 * 3, nic: 0 }, 0).unwrap();
    let names: Vec<_> = hops.iter().map(|hop| network.link_name(hop.0)).collect();
    assert_eq!(
        names[1..3],
        ["router4.0-router0.0 (from router0.0)", "router4.3-router4.0 (from router4.0)"]
    );
}

#[test]
fn a_dragonfly_needs_at_most_three_hops_and_valiant_more() {
    let network =
        Network::new(&cluster("perlmutter-gpu", Fabric::dragonfly(4, 4, [1.0, 1.0], HOP)), 144)
            .unwrap();
    let mut longest = [0, 0];
    for (at, routing) in
        [Routing::Ecmp { seed: 3 }, Routing::Valiant { seed: 3 }].into_iter().enumerate()
    {
        let mut router = Router::new(&network, routing);
        for node in (16..144).step_by(7) {
            let hops = router.route(Nic { node: 1, nic: 0 }, Nic { node, nic: 0 }, 9).unwrap();
            let fabric: f64 =
                hops.iter().filter(|(link, _)| !network.is_end_point(*link)).map(|(_, s)| s).sum();
            longest[at] = longest[at].max(fabric.round() as u32);
        }
    }
    assert_eq!(longest[0], 3);
    assert!(longest[1] > 3, "{longest:?}");
}

fn degraded(cluster: &Cluster, nodes: u32, what: &[&str]) -> Network {
    let mut network = Network::new(cluster, nodes).expect("it fits");
    for text in what {
        network.degrade(&text.parse().expect("it is well written")).expect("there is such a part");
    }
    network
}

#[test]
fn routes_avoid_what_is_dead_while_there_is_another_way() {
    let cluster = cluster("dgx-a100", Fabric::rail_optimised(2, 1.0, HOP));
    let (from, to) = (Nic { node: 0, nic: 0 }, Nic { node: 3, nic: 0 });
    let spines = |network: &Network| -> Vec<String> {
        let hops = Router::new(network, Routing::Spray).route(from, to, 0).unwrap();
        hops.iter().skip(1).map(|hop| network.link_name(hop.0)).collect()
    };
    let whole = degraded(&cluster, 4, &[]);
    assert_eq!(spines(&whole).len(), 5, "two ways up, two down, one NIC");
    let one = degraded(&cluster, 4, &["link=leaf0.0-spine1,down"]);
    assert!(spines(&one).iter().all(|name| !name.contains("spine1")));
    let cut = degraded(&cluster, 4, &["switch=spine0,down", "switch=spine1,down"]);
    for routing in ROUTINGS {
        assert_eq!(Router::new(&cut, routing).route(from, to, 0), None);
    }
    let none = degraded(&cluster, 4, &["node=3,nic=0,down"]);
    assert_eq!(Router::new(&none, Routing::Spray).route(from, to, 0), None);
}

#[test]
fn spraying_follows_what_each_way_can_carry() {
    let cluster = cluster("dgx-a100", Fabric::rail_optimised(2, 1.0, HOP));
    let network = degraded(&cluster, 4, &["link=leaf0.0-spine0,rate=0.5"]);
    let (from, to) = (Nic { node: 0, nic: 0 }, Nic { node: 3, nic: 0 });
    let hops = Router::new(&network, Routing::Spray).route(from, to, 0).unwrap();
    let shares: Vec<f64> = hops[1..3].iter().map(|hop| hop.1).collect();
    assert!((shares[0] - 1.0 / 3.0).abs() < 1e-12 && (shares[1] - 2.0 / 3.0).abs() < 1e-12);
}

#[test]
fn what_is_slow_keeps_its_share() {
    let cluster = cluster("dgx-a100", Fabric::single_switch(HOP));
    let network = degraded(&cluster, 4, &["node=1,nic=2,rate=0.25", "node=2,device=3,rate=0.5"]);
    let slow = |link: u32| {
        network.capacities()[link as usize].get() / network.healthy()[link as usize].get()
    };
    let nic = Nic { node: 1, nic: 2 };
    assert_eq!((slow(network.nic_up(nic)), slow(network.nic_down(nic))), (0.25, 0.25));
    let [out, into] = network.within(2, 3, 4);
    assert_eq!((slow(out.unwrap()), slow(into.unwrap())), (0.5, 1.0));
    let [_, into] = network.within(2, 0, 3);
    assert_eq!(slow(into.unwrap()), 0.5);
    let changed = (0..network.capacities().len() as u32).filter(|&link| slow(link) < 1.0).count();
    assert_eq!(changed, 4);
}

#[test]
fn degradations_read_as_they_are_written() {
    for text in [
        "node=3,nic=1,rate=0.5",
        "node=3,down",
        "node=0,device=2,rate=1",
        "link=leaf2-spine0,down",
        "switch=spine0,down",
    ] {
        assert_eq!(text.parse::<Degradation>().unwrap().to_string(), text);
    }
    for (text, what) in [
        ("", "not understood"),
        ("node=1", "neither `rate=` nor `down`"),
        ("node=1,rate=0", "above 0 and at most 1"),
        ("node=1,rate=nan", "above 0 and at most 1"),
        ("node=1,rate=1.5", "above 0 and at most 1"),
        ("node=1,down,down", "a second rate"),
        ("node=1,node=2,down", "`node` stands twice"),
        ("nic=1,down", "expected one of"),
        ("node=-1,down", "expected a number"),
        ("link=leaf2,down", "two ends"),
        ("rack=2,down", "`rack=2` is not understood"),
    ] {
        let error = text.parse::<Degradation>().unwrap_err();
        assert!(error.to_string().contains(what), "{text}: {error}");
        assert!(error.hints()[0].contains("node=3,nic=1,rate=0.5"));
    }
}

#[test]
fn parts_that_do_not_exist_are_named_with_those_that_do() {
    let cluster = cluster("dgx-a100", Fabric::rail_optimised(2, 1.0, HOP));
    let refuse = |text: &str| {
        let mut network = Network::new(&cluster, 4).unwrap();
        let error = network.degrade(&text.parse().unwrap()).unwrap_err();
        format!("{error}; {}", error.hints().join("; "))
    };
    assert!(refuse("node=4,down").starts_with("no node 4: they are 0 to 3"));
    assert!(refuse("node=0,nic=8,down").starts_with("no NIC 8: they are 0 to 7"));
    assert!(refuse("switch=spin0,down").contains("did you mean `spine0`?"));
    assert!(refuse("link=leaf0.0-leaf1.0,down").contains("leaf0.0 is connected to spine0, spine1"));
}

#[test]
fn absurd_sizes_are_refused() {
    let mut mesh = cluster("dgx-a100", Fabric::dragonfly(1, 1_000_000, [1.0, 1.0], HOP));
    for cluster in [mesh.clone(), {
        mesh.fabric = Fabric::torus(&[65_536, 65_536, 65_536], HOP);
        mesh
    }] {
        let error = Network::new(&cluster, 1_000_000).unwrap_err();
        assert!(error.to_string().contains("links"), "{error}");
    }
    let small = cluster("dgx-a100", Fabric::torus(&[2, 2], HOP));
    assert!(Network::new(&small, 5).unwrap_err().to_string().contains("has 4 nodes, 5 are needed"));
}

#[test]
fn every_catalogue_cluster_has_a_network() {
    for cluster in Catalogue::builtin().clusters().chain(Catalogue::builtin().node_clusters()) {
        let nodes = cluster.nodes.unwrap_or(40).min(200);
        let network = Network::new(cluster, nodes).unwrap();
        if nodes > 1 {
            let last = Nic { node: nodes - 1, nic: 0 };
            let route = Router::new(&network, Routing::Deterministic).route(
                Nic { node: 0, nic: 0 },
                last,
                0,
            );
            assert!(route.is_some(), "{}", cluster.name);
        }
    }
    assert_eq!(
        Catalogue::builtin().cluster("frontier").unwrap().fabric.topology.as_str(),
        "dragonfly"
    );
}

fn load(text: &str) -> Result<Catalogue, String> {
    let mut catalogue = Catalogue::builtin().clone();
    let loaded = catalogue.load_str(text, "my.toml");
    loaded.map(|()| catalogue).map_err(|error| format!("{error}; {}", error.hints().join("; ")))
}

#[test]
fn files_name_topologies() {
    let catalogue = load(
        "[fabrics.grid]
         topology = \"torus\"
         dimensions = [4, 4]
         levels = [{ latency = \"2 us\" }]
         [clusters.small]
         node = \"dgx-a100\"
         nodes = 16
         fabric = \"grid\"
         [clusters.wide]
         node = \"dgx-a100\"
         nodes = 64
         fabric = \"grid\"
         dimensions = [8, 8]
         [clusters.flat]
         node = \"perlmutter-gpu\"
         nodes = 16
         levels = [{ latency = \"2 us\" }]",
    )
    .unwrap();
    let topology = |name: &str| format!("{:?}", catalogue.cluster(name).unwrap().fabric.topology);
    assert_eq!(topology("small"), "Torus { dimensions: [4, 4] }");
    assert_eq!(topology("wide"), "Torus { dimensions: [8, 8] }");
    assert_eq!(topology("flat"), "FatTree", "levels of its own are no dragonfly's");
}

#[test]
fn nonsense_topologies_are_refused_at_their_key() {
    let cluster = |rest: &str| {
        load(&format!("[clusters.x]\nnode = \"dgx-a100\"\nnodes = 16\n{rest}")).unwrap_err()
    };
    let error = cluster("topology = \"tours\"");
    assert!(error.contains("clusters.x.topology, line 4") && error.contains("`torus`"), "{error}");
    let error = cluster("topology = \"torus\"");
    assert!(error.contains("1 to 6 dimensions") && error.contains("clusters.x"), "{error}");
    let error = cluster("topology = \"torus\"\ndimensions = [4, 2]");
    assert!(error.contains("16 nodes on a torus of [4, 2]"), "{error}");
    let error = cluster("dimensions = [4, 4]");
    assert!(
        error.contains("a fat-tree has no dimensions (clusters.x.dimensions, line 4"),
        "{error}"
    );
    let error = cluster("topology = \"torus\"\ndimensions = [0, 4]");
    assert!(error.contains("line 5"), "{error}");
    let error = cluster("topology = \"dragonfly\"\nlevels = [{ latency = \"2 us\" }]");
    assert!(error.contains("has 3 levels (switch, group, global), found 1"), "{error}");
    let levels = "levels = [{ nodes = 3, latency = \"2 us\" }, { nodes = 8, latency = \"3 us\" }, { latency = \"4 us\" }]";
    let error = cluster(&format!("topology = \"dragonfly\"\n{levels}"));
    assert!(error.contains("a dragonfly group of 8 nodes on switches of 3"), "{error}");
}

proptest! {
    /// Random two-level trees: what a switch can send upwards is what it gets from below, less
    /// the oversubscription.
    #[test]
    fn up_links_carry_what_comes_from_below(leaf in 1u32..9, units in 2u32..7, narrow in 1.0..4.0f64) {
        let mut cluster = cluster("dgx-a100", Fabric::rail_optimised(leaf, narrow, HOP));
        cluster.fabric.rail_optimised = false;
        cluster.fabric.levels[1].nodes = Level::UNBOUNDED;
        let nodes = leaf * units;
        let network = Network::new(&cluster, nodes).unwrap();
        let names: Vec<u32> = (0..network.capacities().len() as u32)
            .filter(|&link| network.link_name(link).ends_with("(from leaf0)"))
            .collect();
        let up: f64 = names.iter().map(|&link| network.capacities()[link as usize].get()).sum();
        let nic = network.capacities()[network.nic_up(Nic { node: 0, nic: 0 }) as usize].get();
        let want = nic * f64::from(leaf * 8) / narrow;
        prop_assert!((up - want).abs() <= 1e-9 * want, "{} of {}", up, want);
    }
}
