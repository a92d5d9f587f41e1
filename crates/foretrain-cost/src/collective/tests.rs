//! Properties that hold on any fabric, and figures that pin the families apart.

use std::collections::BTreeMap;

use foretrain_core::{Bandwidth, Bytes, Nanos};
use foretrain_graph::CollectiveKind as Kind;
use foretrain_hardware::collectives::{Calibration, Choice, Constant};
use foretrain_hardware::{Catalogue, CpuVendor, LinkKind, NicKind};
use proptest::prelude::*;

use super::*;
use crate::nccl_tuner::{Protocol, Version};

fn libraries() -> impl Strategy<Value = Library> {
    prop_oneof![
        Just(Library::Nccl(Version::LATEST)),
        Just(Library::Nccl(Version(2, 12))),
        Just(Library::Rccl),
        Just(Library::Gloo),
        Just(Library::Mpi),
    ]
}

fn intra_links() -> impl Strategy<Value = IntraLink> {
    let kinds = prop_oneof![
        Just((LinkKind::Nvswitch, Some(3))),
        Just((LinkKind::Nvswitch, Some(4))),
        Just((LinkKind::Nvlink, Some(2))),
        Just((LinkKind::Xgmi, None)),
        Just((LinkKind::Pcie, Some(4))),
    ];
    (kinds, 0.1..1000.0).prop_map(|((kind, generation), gb)| IntraLink {
        kind,
        generation,
        bandwidth: Bandwidth::from_gb_per_sec(gb),
    })
}

fn inter_links() -> impl Strategy<Value = InterLink> {
    let kinds = prop_oneof![Just(NicKind::Infiniband), Just(NicKind::Efa), Just(NicKind::Ethernet)];
    (kinds, 0.01..3200.0, 0i64..10_000).prop_map(|(kind, gb, extra)| InterLink {
        kind,
        bandwidth: Bandwidth::from_gb_per_sec(gb),
        extra_latency: Nanos::from_nanos(extra),
        late: None,
    })
}

prop_compose! {
    fn fabrics()(
        nodes in prop_oneof![1u32..4, 1u32..20_000],
        local in 1u32..=50,
        intra in intra_links(),
        inter in inter_links(),
        library in libraries(),
        reduces in any::<bool>(),
        oversubscription in 1.0..8.0,
        capability in prop_oneof![Just(None), Just(Some((8, 0))), Just(Some((9, 0))), Just(Some((10, 0)))],
        reduce in prop_oneof![Just(None), (10.0..2000.0).prop_map(Some)],
    ) -> Fabric {
        Fabric {
            ranks: nodes * local,
            nodes,
            ranks_per_node: local,
            intra,
            inter,
            in_network_reduction: reduces,
            levels: vec![
                SwitchLevel { nodes: nodes.min(32), oversubscription: 1.0 },
                SwitchLevel { nodes, oversubscription },
            ],
            compute_capability: capability,
            cpu: CpuVendor::Amd,
            reduce_bandwidth: reduce.map(Bandwidth::from_gb_per_sec),
            library,
            forced: None,
            calibrated: None,
        }
    }
}

fn kinds() -> impl Strategy<Value = Kind> {
    proptest::sample::select(Kind::ALL)
}

/// NCCL does not always pick the fastest way, so only a library that does is well behaved.
fn picking_the_fastest(fabric: Fabric) -> Fabric {
    let fastest = Calibration {
        logs: Vec::new(),
        choice: Choice::Fastest,
        nccl: None,
        noise: 0.1,
        constants: BTreeMap::new(),
        spreads: BTreeMap::new(),
        measured: Vec::new(),
        processors: Vec::new(),
    };
    fabric.calibrated_by(&fastest).unwrap()
}

fn time(kind: Kind, bytes: u64, fabric: &Fabric) -> Nanos {
    collective_time(&CollectiveCall::new(kind, Bytes::new(bytes)), fabric).time.value
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn time_is_positive_finite_and_above_the_bound(
        fabric in fabrics(), kind in kinds(), bytes in 0u64..=1 << 50,
    ) {
        let call = CollectiveCall::new(kind, Bytes::new(bytes));
        let found = collective_time(&call, &fabric);
        let value = found.time.value;
        if fabric.ranks == 1 {
            prop_assert_eq!(value, Nanos::ZERO);
            prop_assert_eq!(found.algorithm, Method::Nothing);
            return Ok(());
        }
        prop_assert!(value > Nanos::ZERO && value < Nanos::MAX);
        prop_assert!(found.time.low > Nanos::ZERO && found.time.low <= value && value <= found.time.high);
        prop_assert!(value >= lower_bound(&call, &fabric), "{:?} < {}", found, lower_bound(&call, &fabric));
        let Terms { launch, propagation, transfer, reduction } = found.terms;
        for term in [launch, propagation, transfer, reduction] {
            prop_assert!(term >= Nanos::ZERO);
        }
        let sum = launch + propagation + transfer + reduction;
        prop_assert!((sum - value).nanos().abs() <= 4 + value.nanos() / (1 << 50));
        prop_assert!(found.bus_bandwidth.get().is_finite() && found.bus_bandwidth.get() >= 0.0);
        prop_assert_eq!(found.protocol.is_some(), fabric.library.is_nccl_like());
        prop_assert_eq!(found.evidence.len(), 1);
    }

    #[test]
    fn more_bytes_never_take_less(
        fabric in fabrics(), kind in kinds(), a in 0u64..=1 << 50, b in 0u64..=1 << 50,
    ) {
        let fabric = picking_the_fastest(fabric);
        prop_assert!(time(kind, a.min(b), &fabric) <= time(kind, a.max(b), &fabric));
    }

    #[test]
    fn faster_links_never_take_longer(
        fabric in fabrics(), kind in kinds(), bytes in 0u64..=1 << 40, factor in 1.0..10.0,
    ) {
        let fabric = picking_the_fastest(fabric);
        let mut intra = fabric.clone();
        intra.intra.bandwidth = intra.intra.bandwidth * factor;
        let mut inter = fabric.clone();
        inter.inter.bandwidth = inter.inter.bandwidth * factor;
        let old = time(kind, bytes, &fabric);
        prop_assert!(time(kind, bytes, &intra) <= old);
        prop_assert!(time(kind, bytes, &inter) <= old);
    }

    /// Within the regime of several equal nodes. Exceptions are real: a node's third rank makes
    /// NVLink SHARP possible, and more peers take traffic off a rank's links within the node.
    #[test]
    fn more_nodes_never_take_less(
        fabric in fabrics(),
        kind in proptest::sample::select(vec![
            Kind::AllReduce, Kind::AllGather, Kind::ReduceScatter, Kind::Broadcast, Kind::Reduce,
        ]),
        bytes in 0u64..=1 << 40,
        more in 1u32..1000,
    ) {
        prop_assume!(fabric.nodes > 1);
        let mut old = picking_the_fastest(fabric);
        old.levels.clear();
        let nodes = old.nodes + more;
        let ranks = nodes * old.ranks_per_node;
        let larger = Fabric { nodes, ranks, ..old.clone() };
        prop_assert!(time(kind, bytes, &old) <= time(kind, bytes, &larger));
    }

    #[test]
    fn a_measurement_is_carried_by_the_ratio(
        from in fabrics(), to in fabrics(), kind in kinds(), bytes in 1u64..=1 << 40, measured in 1i64..1 << 40,
    ) {
        prop_assume!(from.ranks > 1 && to.ranks > 1);
        let call = CollectiveCall::new(kind, Bytes::new(bytes));
        let measured = Nanos::from_nanos(measured);
        let there = rescale(measured, &call, &from, &to);
        let ratio = time(kind, bytes, &to).nanos() as f64 / time(kind, bytes, &from).nanos() as f64;
        if from != to {
            prop_assert!((there.ratio / ratio - 1.0).abs() < 1e-9);
            prop_assert_eq!(there.time.value, measured.scale(ratio));
            prop_assert!(there.time.low <= there.time.value && there.time.value <= there.time.high);
        }
        let same = rescale(measured, &call, &from, &from);
        prop_assert_eq!(same.time.value, measured);
        prop_assert!(same.time.low <= measured && measured <= same.time.high);
    }

    #[test]
    fn any_group_of_a_real_cluster_has_a_time(
        name in proptest::sample::select(vec!["dgx-a100", "dgx-h100", "dgx-1-v100", "mi300x-8"]),
        ranks in 1u32..2000, stride in 0u32..40, kind in kinds(), bytes in 0u64..=1 << 40,
    ) {
        let cluster = Catalogue::builtin().cluster(name).unwrap();
        let group = GroupPlacement::strided(ranks, stride);
        let fabric = Fabric::for_group(&cluster, &group).unwrap();
        prop_assert!(fabric.nodes <= fabric.ranks && fabric.ranks_per_node <= fabric.ranks);
        prop_assert!(fabric.nodes * fabric.ranks_per_node >= fabric.ranks);
        let found = time(kind, bytes, &fabric);
        prop_assert!(found < Nanos::MAX && (found > Nanos::ZERO) == (ranks > 1));
    }
}

fn group(name: &str, ranks: u32) -> Fabric {
    let cluster = Catalogue::builtin().cluster(name).unwrap();
    Fabric::for_group(&cluster, &GroupPlacement::contiguous(ranks)).unwrap()
}

fn ethernet(ranks: u32, mbit: f64) -> Fabric {
    Fabric {
        ranks,
        nodes: ranks,
        inter: InterLink::new(NicKind::Ethernet, Bandwidth::from_gbit_per_sec(mbit / 1000.0)),
        library: Library::Gloo,
        ..Fabric::single()
    }
}

#[test]
fn gloo_reduce_scatter_moves_as_much_as_an_all_reduce() {
    let fabric = ethernet(4, 1000.0);
    let all = |kind| time(kind, 8 << 20, &fabric);
    assert_eq!(all(Kind::ReduceScatter), all(Kind::AllReduce));
    assert!(all(Kind::AllGather).scale(1.9) < all(Kind::AllReduce));
    let mpi = Fabric { library: Library::Mpi, ..fabric.clone() };
    assert!(time(Kind::ReduceScatter, 8 << 20, &mpi) < all(Kind::ReduceScatter).scale(0.6));
}

#[test]
fn protocols_follow_the_size() {
    let fabric = group("dgx-a100", 32);
    let choice = |bytes| {
        let call = CollectiveCall::new(Kind::AllReduce, Bytes::new(bytes));
        let found = collective_time(&call, &fabric);
        (found.algorithm, found.protocol.unwrap())
    };
    assert_eq!(choice(1 << 10), (Method::Tree, Protocol::Ll));
    assert_eq!(choice(1 << 20), (Method::Tree, Protocol::Ll128));
    assert_eq!(choice(8 << 30), (Method::Ring, Protocol::Simple));
}

#[test]
fn the_switch_reduces_from_the_fourth_nvlink_generation() {
    let call = CollectiveCall::new(Kind::AllReduce, Bytes::from_gib(1));
    let h100 = collective_time(&call, &group("dgx-h100", 8));
    assert_eq!(h100.algorithm, Method::Nvls);
    assert!((400.0..520.0).contains(&h100.bus_bandwidth.gb_per_sec()), "{}", h100.bus_bandwidth);
    let old = Fabric { library: Library::Nccl(Version(2, 12)), ..group("dgx-h100", 8) };
    assert_eq!(collective_time(&call, &old).algorithm, Method::Ring);
    assert_eq!(collective_time(&call, &group("dgx-a100", 8)).algorithm, Method::Ring);
}

#[test]
fn slow_reduction_shows_only_beyond_the_transfer() {
    let mut fabric = group("dgx-a100", 8);
    let reduction = |fabric: &Fabric, kind| {
        let call = CollectiveCall::new(kind, Bytes::from_gib(1));
        collective_time(&call, fabric).terms.reduction
    };
    assert_eq!(reduction(&fabric, Kind::AllReduce), Nanos::ZERO);
    fabric.reduce_bandwidth = Some(Bandwidth::from_gb_per_sec(50.0));
    // 7/8 GiB at 50 GB/s less the same over the links.
    let links = 240e9 * fabric.prior().values[Constant::SimpleShare];
    let want = 0.875 * (1u64 << 30) as f64 * (1.0 / 50e9 - 1.0 / links);
    let found = reduction(&fabric, Kind::AllReduce);
    assert!((found.secs_f64() / want - 1.0).abs() < 1e-6, "{found}");
    assert_eq!(reduction(&fabric, Kind::AllGather), Nanos::ZERO);
}

#[test]
fn a_dead_link_takes_for_ever_instead_of_nan() {
    let fabric = ethernet(2, 0.0);
    assert_eq!(time(Kind::AllReduce, 1, &fabric), Nanos::MAX);
    assert!(time(Kind::AllReduce, 0, &fabric) < Nanos::MAX);
}

#[test]
fn unknown_communication_is_timed_as_all_reduce_with_a_warning() {
    let fabric = group("dgx-a100", 16);
    let call = |kind| collective_time(&CollectiveCall::new(kind, Bytes::from_mib(1)), &fabric);
    let (unknown, known) = (call(Kind::Unknown), call(Kind::AllReduce));
    assert_eq!(unknown.time.value, known.time.value);
    assert!(unknown.time.high > known.time.high);
    assert_eq!(unknown.evidence[0].kind, foretrain_core::EvidenceKind::Assumed);
}

#[test]
fn carrying_to_or_from_one_rank() {
    let call = CollectiveCall::new(Kind::AllReduce, Bytes::from_mib(1));
    let (one, many) = (Fabric::single(), group("dgx-a100", 16));
    let gone = rescale(Nanos::from_millis(1), &call, &many, &one);
    assert_eq!(gone.time.value, Nanos::ZERO);
    let born = rescale(Nanos::from_millis(1), &call, &one, &many);
    assert_eq!(born.time.value, collective_time(&call, &many).time.value);
    assert_eq!(born.evidence.kind, foretrain_core::EvidenceKind::Assumed);
}

#[test]
fn a_forced_algorithm_is_taken_where_there_is_one() {
    let fabric = Fabric { forced: Some(Method::Ring), ..group("dgx-a100", 64) };
    let at = |kind, bytes| collective_time(&CollectiveCall::new(kind, Bytes::new(bytes)), &fabric);
    for shift in 10..32 {
        assert_eq!(at(Kind::AllReduce, 1 << shift).algorithm, Method::Ring);
    }
    assert_eq!(at(Kind::AllToAll, 1 << 20).algorithm, Method::Pairwise);
    let free = Fabric { forced: None, ..fabric.clone() };
    let small = CollectiveCall::new(Kind::AllReduce, Bytes::from_kib(1));
    assert_eq!(collective_time(&small, &free).algorithm, Method::Tree);
}

#[test]
fn switches_that_reduce_take_each_byte_once() {
    let plain = group("dgx-h100", 64);
    let sharp = Fabric { in_network_reduction: true, ..plain.clone() };
    let call = CollectiveCall::new(Kind::AllReduce, Bytes::from_gib(8));
    let (ring, net) = (collective_time(&call, &plain), collective_time(&call, &sharp));
    assert_eq!(net.algorithm, Method::CollNet);
    // A ring of 8 nodes passes 1.75 of the buffer over each node's NICs.
    let gain = ring.time.value.nanos() as f64 / net.time.value.nanos() as f64;
    assert!((1.2..2.2).contains(&gain), "{gain}");
    let one = Fabric { in_network_reduction: true, ..group("dgx-h100", 8) };
    assert_eq!(collective_time(&call, &one).algorithm, Method::Nvls);
}
