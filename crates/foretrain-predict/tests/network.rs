//! What-ifs of the network: what must hold whatever is asked.

use foretrain_core::{Bytes, Nanos, Result};
use foretrain_graph::CollectiveKind as Kind;
use foretrain_hardware::{Catalogue, Cluster, Fabric};
use foretrain_predict::collectives::{
    CollectivesAnswer, CollectivesOptions, Layout, NetworkWhatIfs, StepKind, Sweep, collectives,
};

const KINDS: [Kind; 6] = [
    Kind::AllReduce,
    Kind::AllGather,
    Kind::ReduceScatter,
    Kind::AllToAll,
    Kind::Broadcast,
    Kind::SendRecv,
];

fn options(ranks: u32, layout: Layout, network: NetworkWhatIfs) -> CollectivesOptions {
    CollectivesOptions {
        kinds: KINDS.to_vec(),
        ranks: vec![ranks],
        sizes: [10, 16, 22, 28, 32].map(|doublings| Bytes::new(1 << doublings)).to_vec(),
        layout,
        extra_latencies: vec![Nanos::ZERO],
        late_links: None,
        window: None,
        algorithm: None,
        network,
    }
}

fn ask(cluster: &Cluster, options: &CollectivesOptions) -> Result<CollectivesAnswer> {
    collectives(cluster, Catalogue::builtin(), options, &[])
}

/// Four nodes under each leaf, and uplinks for a quarter of their NICs.
fn narrow(node: &str) -> Cluster {
    let mut cluster = Catalogue::builtin().cluster(node).expect("it is built in");
    cluster.fabric = Fabric::rail_optimised(4, 4.0, Nanos::from_nanos(500));
    cluster.fabric.rail_optimised = false;
    cluster
}

fn degraded(what: &[&str]) -> NetworkWhatIfs {
    let degradations = what.iter().map(|text| text.parse().expect("it is well written")).collect();
    NetworkWhatIfs { degradations, ..NetworkWhatIfs::default() }
}

/// Times of the last step over those of the cluster as it is, size by size.
fn ratios(sweep: &Sweep) -> Vec<f64> {
    sweep.steps.last().expect("a step").points.iter().map(|point| point.times).collect()
}

#[test]
fn what_changes_nothing_changes_no_time() {
    let all_well = ["node=1,rate=1", "node=0,device=1,rate=1", "switch=leaf0,rate=1"];
    let nothing =
        [degraded(&all_well), NetworkWhatIfs { concurrent: Some(1), ..NetworkWhatIfs::default() }];
    for cluster in ["dgx-a100", "dgx-h100", "perlmutter-gpu"].map(narrow) {
        for layout in [Layout::Packed, Layout::PerNode(2), Layout::Strided(2)] {
            for what in &nothing {
                if what.concurrent.is_some() && matches!(layout, Layout::Strided(_)) {
                    continue;
                }
                let answer = ask(&cluster, &options(32, layout, what.clone())).unwrap();
                for sweep in &answer.sweeps {
                    for (point, now) in sweep.points.iter().zip(&sweep.steps[0].points) {
                        assert_eq!(now.time, point.predicted.time, "{what:?} {:?}", sweep.setting);
                        assert_eq!(now.bus_bandwidth, point.predicted.bus_bandwidth);
                    }
                }
            }
        }
    }
}

#[test]
fn a_degradation_makes_nothing_faster_and_a_worse_one_is_worse() {
    let worse_and_worse: [&[&str]; 4] = [
        &["node=1,nic=0,rate=0.8"],
        &["node=1,nic=0,rate=0.4"],
        &["node=1,nic=0,rate=0.1"],
        &["node=1,nic=0,rate=0.1", "node=2,rate=0.1", "node=0,device=0,rate=0.05"],
    ];
    let others: [&[&str]; 4] = [
        &["node=1,nic=0,down"],
        &["link=leaf0-spine0,down"],
        &["switch=spine1,down"],
        &["link=leaf1-spine3,rate=0.3", "node=3,device=1,rate=0.2"],
    ];
    for cluster in ["dgx-a100", "dgx-h100"].map(narrow) {
        let of =
            |what: &[&str]| ask(&cluster, &options(64, Layout::Packed, degraded(what))).unwrap();
        for what in others {
            for sweep in of(what).sweeps {
                assert!(ratios(&sweep).iter().all(|ratio| *ratio >= 1.0), "{what:?} {sweep:?}");
            }
        }
        let [mut before, worst] = [of(worse_and_worse[0]), of(worse_and_worse[3])];
        for what in &worse_and_worse[1..] {
            let now = of(what);
            for (was, is) in before.sweeps.iter().zip(&now.sweeps) {
                for (was, is) in ratios(was).iter().zip(ratios(is)) {
                    assert!(is >= 0.998 * was, "{what:?}: {is} after {was}");
                }
            }
            before = now;
        }
        for sweep in &worst.sweeps {
            assert!(*ratios(sweep).last().unwrap() > 2.0, "{:?}", sweep.setting);
        }
    }
}

/// Bytes pay, latency does not; the slow link is the one that is named.
#[test]
fn half_a_nic_doubles_large_messages_and_leaves_small_ones() {
    let what = degraded(&["node=3,nic=1,rate=0.5"]);
    let answer = ask(&narrow("dgx-a100"), &options(64, Layout::Packed, what)).unwrap();
    let all_gather = &answer.sweeps[1];
    let ratios = ratios(all_gather);
    assert!(ratios[0] < 1.01, "{ratios:?}");
    assert!((1.9..=2.01).contains(ratios.last().unwrap()), "{ratios:?}");
    let last = all_gather.steps[0].points.last().unwrap();
    assert!(last.bottleneck.as_deref().is_some_and(|link| link.starts_with("node3.nic1")));
}

#[test]
fn steps_stand_on_top_of_each_other() {
    let what = NetworkWhatIfs {
        topology: Some("fat-tree,leaf=2,oversubscription=2".parse().unwrap()),
        scatter: Some(7),
        concurrent: Some(4),
        degradations: vec!["node=0,rate=0.5".parse().unwrap()],
    };
    let answer = ask(&narrow("dgx-a100"), &options(16, Layout::Packed, what.clone())).unwrap();
    for sweep in &answer.sweeps {
        assert_eq!((sweep.setting.nodes, sweep.setting.ranks_per_node), (8, 2));
        let kinds: Vec<StepKind> = sweep.steps.iter().map(|step| step.kind).collect();
        let [topology, scatter] = [StepKind::Topology, StepKind::Scatter];
        assert_eq!(kinds, [topology, scatter, StepKind::Concurrent, StepKind::Degrade]);
        for pair in sweep.steps[1..].windows(2) {
            for (before, now) in pair[0].points.iter().zip(&pair[1].points) {
                assert!(now.time.value >= before.time.value);
            }
        }
    }
    assert_eq!(answer, ask(&narrow("dgx-a100"), &options(16, Layout::Packed, what)).unwrap());
}

/// A ring crosses between leaves once in four nodes in order, and nearly always out of order.
#[test]
fn scattered_nodes_pay_for_narrow_uplinks_and_groups_for_one_nic() {
    let scattered = NetworkWhatIfs { scatter: Some(1), ..NetworkWhatIfs::default() };
    let answer = ask(&narrow("dgx-a100"), &options(256, Layout::Packed, scattered)).unwrap();
    let of_gather = ratios(&answer.sweeps[1]);
    assert!(*of_gather.last().unwrap() > 2.5, "{of_gather:?}");

    let beside = NetworkWhatIfs { concurrent: Some(8), ..NetworkWhatIfs::default() };
    let mut cluster = Catalogue::builtin().cluster("aws-p3dn").unwrap();
    cluster.fabric = Fabric::single_switch(Nanos::from_micros(1));
    let answer = ask(&cluster, &options(8, Layout::Packed, beside)).unwrap();
    for sweep in &answer.sweeps {
        // Eight ranks of a node on its only NIC.
        let ratio = *ratios(sweep).last().unwrap();
        assert!((7.0..8.1).contains(&ratio), "{:?}: {ratio}", sweep.setting.kind);
    }
}

#[test]
fn who_is_to_blame_is_named() {
    let refused = |what: NetworkWhatIfs, layout| {
        let error = ask(&narrow("dgx-a100"), &options(32, layout, what)).unwrap_err();
        format!("{error} {}", error.hints().join(" "))
    };
    let of = |what: &[&str]| refused(degraded(what), Layout::Packed);
    let cut = of(&["node=1,nic=0,rate=0.5", "node=2,down", "node=3,down"]);
    assert!(cut.contains("rank 16 (device 0 of node 2)"), "{cut}");
    assert!(cut.contains("(at `node=2,down`)"), "{cut}");
    let all: Vec<String> = (0..8).map(|nic| format!("node=1,nic={nic},down")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let last = of(&all);
    assert!(last.contains("(at `node=1,nic=7,down` after those before it)"), "{last}");
    let unknown = of(&["node=0,rate=0.5", "node=4,down"]);
    assert!(unknown.contains("no node 4: they are 0 to 3 (at `node=4,down`)"), "{unknown}");
    let groups = |concurrent| NetworkWhatIfs { concurrent, ..NetworkWhatIfs::default() };
    assert!(refused(groups(Some(3)), Layout::Packed).contains("divides 8"));
    assert!(refused(groups(Some(0)), Layout::Packed).contains("divides 8"));
    assert!(refused(groups(Some(3)), Layout::PerNode(4)).contains("from 1 to 2"));
    assert!(refused(groups(Some(2)), Layout::Strided(2)).contains("not both"));
    let window = Some(Bytes::from_mib(1));
    let both = CollectivesOptions {
        window,
        ..options(32, Layout::Packed, degraded(&["node=0,rate=0.5"]))
    };
    let error = ask(&narrow("dgx-a100"), &both).unwrap_err();
    assert!(error.message().contains("exclude each other"), "{error}");
    let many = CollectivesOptions {
        kinds: vec![Kind::AllReduce],
        ..options(1 << 30, Layout::Packed, degraded(&["node=0,rate=0.5"]))
    };
    let error = ask(&narrow("dgx-a100"), &many).unwrap_err();
    assert!(error.message().contains("need over 8388608 devices"), "{error}");
}

/// The closed form does not see that parallel trees of shards meet on the uplinks, so what a wider
/// fabric removes was never in it.
#[test]
fn no_topology_beats_links_of_its_own() {
    let cluster = narrow("dgx-a100");
    let mut ample = cluster.clone();
    ample.fabric = Fabric::single_switch(Nanos::from_nanos(500));
    for layout in [Layout::Packed, Layout::PerNode(1)] {
        for shape in ["single-switch", "torus", "rail-optimised", "dragonfly"] {
            let topology = Some(shape.parse().unwrap());
            let what = NetworkWhatIfs { topology, ..NetworkWhatIfs::default() };
            let answer = ask(&cluster, &options(16, layout, what)).unwrap();
            let best = ask(&ample, &options(16, layout, NetworkWhatIfs::default())).unwrap();
            for (sweep, best) in answer.sweeps.iter().zip(&best.sweeps) {
                for (now, best) in sweep.steps[0].points.iter().zip(&best.points) {
                    let ratio =
                        now.time.value.nanos() as f64 / best.predicted.time.value.nanos() as f64;
                    assert!(ratio > 0.98, "{shape}, {:?}, {}: {ratio}", sweep.setting, best.size);
                }
            }
        }
    }
    let answer = ask(&cluster, &options(16, Layout::PerNode(1), degraded(&["node=0,rate=1"])));
    let notes = &answer.unwrap().sweeps[1].notes;
    assert!(notes.iter().any(|note| note.starts_with("flow by flow, all-gather of")), "{notes:?}");
}
