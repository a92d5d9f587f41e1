//! Goldens: a port of the same formulas in another language, latencies of the NIC zero.

use foretrain_core::{Bytes, DType};
use foretrain_graph::CollectiveKind as Kind;

use super::*;

fn tuner(ranks: u32, nodes: u32, cc: u32, cpu: TunerCpu, graph: Graph) -> Tuner {
    Tuner {
        table: TunerTable::for_version(Version::LATEST),
        ranks,
        nodes,
        compute_capability: (cc, cc),
        cpu,
        cuda: None,
        collnet: false,
        nvswitch: true,
        ring: graph,
        tree: graph,
        nvls: None,
        collnet_graph: None,
    }
}

fn a100_one_node() -> Tuner {
    tuner(8, 1, 80, TunerCpu::AmdOrMixed, Graph::nvlink(24, 10.0))
}
fn a100_two_nodes() -> Tuner {
    tuner(16, 2, 80, TunerCpu::AmdOrMixed, Graph::nvlink(16, 12.0))
}
fn h100_one_node() -> Tuner {
    let nvls = Some(Graph::nvlink(16, 20.0));
    Tuner { nvls, ..tuner(8, 1, 90, TunerCpu::Intel, Graph::nvlink(24, 15.0)) }
}
fn h100_four_nodes() -> Tuner {
    let nvls = Some(Graph { inter_bandwidth: 24.0, ..Graph::nvlink(16, 20.0) });
    Tuner { nvls, ..tuner(32, 4, 90, TunerCpu::Intel, Graph::nvlink(16, 24.0)) }
}

/// Equal when printed with as many decimals as `want` has.
#[track_caller]
fn printed(found: f64, want: &str) {
    let decimals = want.split_once('.').map_or(0, |(_, d)| d.len());
    assert_eq!(format!("{found:.decimals$}"), want);
}

#[track_caller]
fn costs(tuner: &Tuner, kind: Kind, algorithm: Algorithm, want: [(&str, &str); 3]) {
    for (protocol, (latency, bandwidth)) in Protocol::ALL.into_iter().zip(want) {
        let cost = tuner.cost(kind, algorithm, protocol).unwrap();
        printed(cost.latency_us, latency);
        printed(cost.bandwidth, bandwidth);
    }
}

const SIZES: [u64; 5] = [1 << 10, 32 << 10, 1 << 20, 32 << 20, 1 << 30];

fn all_reduce(bytes: u64) -> TunerCall {
    TunerCall::new(Kind::AllReduce, Bytes::new(bytes))
}

#[track_caller]
fn times(tuner: &Tuner, algorithm: Algorithm, protocol: Protocol, want: [&str; 5]) {
    for (bytes, want) in SIZES.into_iter().zip(want) {
        printed(tuner.time(&all_reduce(bytes), algorithm, protocol).unwrap(), want);
    }
}

#[track_caller]
fn chosen(tuner: &Tuner, want: [(Algorithm, Protocol, &str); 5]) {
    let rings_and_trees = Tuner { nvls: None, ..tuner.clone() };
    for (bytes, (algorithm, protocol, time)) in SIZES.into_iter().zip(want) {
        let choice = rings_and_trees.choose(&all_reduce(bytes)).unwrap();
        assert_eq!((choice.algorithm, choice.protocol), (algorithm, protocol), "{bytes} bytes");
        printed(choice.time_us, time);
    }
}

use Algorithm::{Nvls, NvlsTree, Pat, Ring, Tree};
use Protocol::{Ll, Ll128, Simple};

#[test]
fn a100_on_one_node() {
    let t = a100_one_node();
    costs(&t, Kind::AllReduce, Tree, [("15.2", "29.053"), ("31.5", "85.867"), ("64.4", "110.4")]);
    costs(
        &t,
        Kind::AllReduce,
        Ring,
        [("15.0", "50.114"), ("40.6", "126.171"), ("56.0", "137.143")],
    );
    times(&t, Tree, Ll, ["15.24", "16.81", "87.38", "1170.15", "36973.70"]);
    times(&t, Ring, Ll, ["15.02", "15.65", "35.92", "684.56", "21440.86"]);
    times(&t, Tree, Ll128, ["31.51", "32.05", "51.85", "465.69", "12536.26"]);
    times(&t, Ring, Ll128, ["40.61", "40.86", "48.91", "306.54", "8550.78"]);
    times(&t, Tree, Simple, ["64.41", "64.89", "83.40", "498.59", "9790.32"]);
    times(&t, Ring, Simple, ["56.01", "56.24", "63.65", "300.67", "7885.37"]);
    chosen(
        &t,
        [
            (Ring, Ll, "15.02"),
            (Ring, Ll, "15.65"),
            (Ring, Ll, "35.92"),
            (Ring, Simple, "300.67"),
            (Ring, Simple, "7885.37"),
        ],
    );
    for kind in [Kind::AllGather, Kind::ReduceScatter] {
        costs(&t, kind, Ring, [("10.8", "100.229"), ("27.3", "252.343"), ("32.2", "274.286")]);
    }
}

#[test]
fn a100_on_two_nodes() {
    let t = a100_two_nodes();
    costs(&t, Kind::AllReduce, Tree, [("25.2", "11.25"), ("48.5", "82.8"), ("92.4", "88.32")]);
    costs(&t, Kind::AllReduce, Ring, [("68.0", "12.0"), ("78.0", "94.208"), ("204.4", "102.4")]);
    chosen(
        &t,
        [
            (Tree, Ll, "25.301"),
            (Tree, Ll, "29.361"),
            (Tree, Ll128, "69.607"),
            (Ring, Ll128, "434.174"),
            (Ring, Simple, "10771.920"),
        ],
    );
}

#[test]
fn h100_on_one_node() {
    let t = h100_one_node();
    costs(&t, Kind::AllReduce, Tree, [("15.2", "43.579"), ("31.5", "128.8"), ("64.4", "165.6")]);
    costs(
        &t,
        Kind::AllReduce,
        Ring,
        [("15.0", "80.571"), ("40.6", "189.257"), ("56.0", "205.714")],
    );
    let nvls = t.cost(Kind::AllReduce, Nvls, Simple).unwrap();
    printed(nvls.latency_us, "25.0");
    printed(nvls.bandwidth, "182.857");
    chosen(
        &t,
        [
            (Ring, Ll, "15.013"),
            (Ring, Ll, "15.407"),
            (Ring, Ll, "28.014"),
            (Ring, Ll128, "217.895"),
            (Ring, Simple, "5275.578"),
        ],
    );
}

#[test]
fn h100_on_four_nodes() {
    let t = h100_four_nodes();
    costs(&t, Kind::AllReduce, Tree, [("35.2", "10.2"), ("65.5", "165.6"), ("120.4", "176.64")]);
    costs(
        &t,
        Kind::AllReduce,
        Ring,
        [("78.8", "10.529"), ("144.4", "182.338"), ("282.8", "198.194")],
    );
    let tree = t.cost(Kind::AllReduce, NvlsTree, Simple).unwrap();
    printed(tree.latency_us, "108.6");
    // The port prints 198.193; the exact 384 * 32 / 62 = 198.19355 rounds up, as the ring's does.
    printed(tree.bandwidth, "198.194");
    chosen(
        &t,
        [
            (Tree, Ll, "35.312"),
            (Tree, Ll, "39.789"),
            (Tree, Ll128, "76.053"),
            (Tree, Ll128, "290.637"),
            (Ring, Simple, "5813.563"),
        ],
    );
}

#[test]
fn v100_on_one_node() {
    let t = tuner(8, 1, 70, TunerCpu::Intel, Graph::nvlink(12, 10.0));
    costs(&t, Kind::AllReduce, Ring, [("15.0", "22.286"), ("40.6", "63.086"), ("56.0", "68.571")]);
    costs(&t, Kind::AllReduce, Tree, [("15.2", "14.526"), ("31.5", "42.933"), ("64.4", "55.2")]);
}

#[test]
fn pairs_are_enabled_as_in_nccl() {
    let one = h100_one_node();
    let all = |t: &Tuner, kind| -> Vec<Algorithm> {
        Algorithm::ALL.into_iter().filter(|&a| t.enabled(kind, a, Simple)).collect()
    };
    assert_eq!(all(&one, Kind::AllReduce), [Tree, Ring, Nvls]);
    assert_eq!(all(&one, Kind::AllGather), [Ring, Nvls]);
    assert_eq!(all(&one, Kind::Broadcast), [Ring]);
    assert!(all(&one, Kind::AllToAll).is_empty());
    assert!(!one.enabled(Kind::AllReduce, Nvls, Ll), "NVLS is Simple only");
    let four = h100_four_nodes();
    assert_eq!(all(&four, Kind::AllReduce), [Tree, Ring, NvlsTree]);
    let sharp = Tuner { collnet: true, collnet_graph: Some(four.ring), ..four.clone() };
    assert_eq!(all(&sharp, Kind::AllReduce), &Algorithm::ALL[..6]);
    let no_switch = Tuner { nvswitch: false, ..sharp.clone() };
    assert!(!all(&no_switch, Kind::AllReduce).contains(&Algorithm::CollNetDirect));
    let wide = Tuner { ranks: 64, ..sharp };
    assert!(!all(&wide, Kind::AllReduce).contains(&Algorithm::CollNetChain));
    let single = Tuner { ranks: 4, ..four.clone() };
    assert!(all(&single, Kind::AllGather).contains(&Pat));
    assert!(!all(&four, Kind::AllGather).contains(&Pat));
    let thin = Tuner { nvls: Some(Graph::nvlink(1, 20.0)), ..one };
    assert!(!all(&thin, Kind::AllReduce).contains(&Nvls));
}

#[test]
fn ll128_needs_a_path_that_keeps_lines_whole() {
    let with = |t: &Tuner, f: fn(&mut Graph)| {
        let mut t = t.clone();
        f(&mut t.ring);
        t.enabled(Kind::AllReduce, Ring, Ll128)
    };
    let (a, h) = (a100_two_nodes(), h100_four_nodes());
    assert!(with(&a, |g| g.inter_path = PathType::Pxb));
    assert!(!with(&a, |g| g.inter_path = PathType::Pxn));
    assert!(with(&h, |g| g.inter_path = PathType::Pxn));
    assert!(!with(&h, |g| g.inter_path = PathType::Phb));
    assert!(with(&a, |g| g.intra_path = PathType::Nvb));
    assert!(!with(&a, |g| g.intra_path = PathType::Pix));
    let capability = |low, high| {
        let t = Tuner { compute_capability: (low, high), ..a100_one_node() };
        t.enabled(Kind::AllReduce, Ring, Ll128)
    };
    assert!(capability(70, 70) && capability(90, 100));
    assert!(!capability(80, 86) && !capability(61, 61));
    let cuda = |ranks, version| {
        let t = Tuner { ranks, cuda: Some(version), ..h100_one_node() };
        t.enabled(Kind::AllReduce, Ring, Ll128)
    };
    assert!(!cuda(2, (11, 8)) && cuda(4, (11, 8)) && cuda(2, (12, 0)));
}

#[test]
fn ring_latency_jumps_at_the_plateau() {
    let jump = |t: &Tuner, bytes| {
        let cost = t.cost(Kind::AllReduce, Ring, Simple).unwrap();
        let transfer = bytes as f64 / (1000.0 * cost.bandwidth);
        (t.time(&all_reduce(bytes), Ring, Simple).unwrap() - transfer) / cost.latency_us
    };
    let a100 = a100_two_nodes();
    // 16 channels, 16 ranks: 64 bytes each are 16,384.
    printed(jump(&a100, 16_383), "1.0000");
    printed(jump(&a100, 16_384), "1.4000");
    let v100 = Tuner { compute_capability: (70, 70), ..a100.clone() };
    printed(jump(&v100, 16_384), "1.9000");
    printed(jump(&a100_one_node(), 1 << 20), "1.0000");
    let old = Tuner { table: TunerTable::for_version(Version(2, 21)), ..a100 };
    printed(jump(&old, 65_535), "1.0000");
    printed(jump(&old, 65_536), "1.9000");
}

#[test]
fn tree_rate_is_corrected_by_size() {
    let t = a100_one_node();
    let factor = |protocol, bytes: u64| {
        let cost = t.cost(Kind::AllReduce, Tree, protocol).unwrap();
        let time = t.time(&all_reduce(bytes), Tree, protocol).unwrap() - cost.latency_us;
        bytes as f64 / (1000.0 * cost.bandwidth * time)
    };
    for (step, [ll, ll128, simple]) in [
        (0, ["1.00", "1.00", "0.90"]),
        (4, ["0.90", "1.00", "0.90"]),
        (9, ["0.70", "0.70", "0.60"]),
        (12, ["0.40", "0.60", "0.50"]),
        (16, ["0.70", "0.80", "0.70"]),
        (19, ["1.00", "0.90", "0.70"]),
        (22, ["1.00", "1.00", "0.90"]),
        // Past the end of the table.
        (23, ["1.00", "1.00", "1.00"]),
    ] {
        let bytes = 64 << step;
        printed(factor(Ll, bytes), ll);
        printed(factor(Ll128, bytes), ll128);
        printed(factor(Simple, bytes), simple);
    }
    printed(factor(Simple, 63), "1.00");
}

#[test]
fn constants_drift_with_the_version() {
    let at = |version| TunerTable::for_version(version);
    assert_eq!(at(Version(2, 30)).since, Version(2, 27));
    assert_eq!(at(Version(2, 20)).since, Version(2, 18));
    assert_eq!(at(Version(1, 0)).since, Version(2, 12));
    let one = |version| {
        let t = Tuner { table: at(version), ..a100_one_node() };
        t.cost(Kind::AllReduce, Tree, Simple).unwrap().latency_us
    };
    printed(one(Version(2, 18)), "64.4");
    printed(one(Version(2, 21)), "400.4");
    printed(one(Version(2, 26)), "400.4");
    printed(one(Version(2, 27)), "64.4");
    printed(one(Version(2, 12)), "392.0");
    let two = |version| {
        let t = Tuner { table: at(version), ..a100_two_nodes() };
        Protocol::ALL.map(|p| t.cost(Kind::AllReduce, Ring, p).unwrap().latency_us)
    };
    // 30 steps, four of them (not two) between nodes: 8.4 + 26 * 6 + 4 * 14.
    printed(two(Version(2, 21))[2], "220.4");
    printed(two(Version(2, 23))[2], "204.4");
    // 3.6 + 26 * max(0.47 * 1.8, 2) + 4 * 2.7, and 28 us per network hop.
    printed(two(Version(2, 12))[0], "66.4");
    printed(two(Version(2, 12))[2], "276.4");
    let old = Tuner { table: at(Version(2, 12)), ..a100_one_node() };
    let simple = old.cost(Kind::AllReduce, Ring, Simple).unwrap();
    printed(simple.bandwidth, "134.286"); // The 235 GB/s cap.
    let ll = old.cost(Kind::AllReduce, Ring, Ll).unwrap();
    printed(ll.bandwidth, "33.571"); // A quarter of it.
    assert_eq!(Version::from_code(22_703), Version(2, 27));
    assert_eq!(Version::from_code(2_708), Version(2, 7));
}

#[test]
fn eight_bit_floats_keep_off_long_rings() {
    let call = TunerCall { dtype: Some(DType::F8E4m3), ..all_reduce(1 << 30) };
    assert_eq!(a100_two_nodes().choose(&call).unwrap().algorithm, Tree);
    assert_eq!(a100_one_node().choose(&call).unwrap().algorithm, Ring);
}

#[test]
fn fused_collectives_pay_a_ring_each() {
    let call = TunerCall { pipe_ops: 15, ..all_reduce(0) };
    printed(a100_one_node().time(&call, Ring, Ll).unwrap(), "225.0");
    printed(a100_one_node().time(&call, Tree, Ll).unwrap(), "30.4");
}

#[test]
fn broadcast_pays_one_hop_where_channels_agree() {
    let mut t = a100_one_node();
    let latency = |t: &Tuner, p| t.cost(Kind::Broadcast, Ring, p).unwrap().latency_us;
    printed(latency(&t, Ll), "7.2");
    printed(latency(&t, Simple), "12.4"); // 8.4 and the tree's 4.0.
    t.ring.same_channels = false;
    printed(latency(&t, Ll), "11.4");
}

#[test]
fn one_rank_needs_no_time() {
    let t = Tuner { ranks: 1, ..a100_one_node() };
    assert_eq!(t.time(&all_reduce(1 << 30), Ring, Simple), Some(0.0));
    assert_eq!(t.choose(&all_reduce(1 << 30)), None);
}

#[test]
fn small_messages_get_fewer_channels_and_threads() {
    let shape = |bytes| launch_shape(Ring, Simple, 8, 24, 512, Bytes::new(bytes));
    assert_eq!(shape(1 << 30), Launch { channels: 24, threads: 544 });
    // 512 threads of 64 bytes: 32 KiB per channel.
    assert_eq!(shape(320 << 10), Launch { channels: 10, threads: 544 });
    assert_eq!(shape(16 << 10), Launch { channels: 1, threads: 288 });
    assert_eq!(shape(1), Launch { channels: 1, threads: 96 });
    let ll = launch_shape(Ring, Ll, 8, 24, 512, Bytes::new(64 << 10));
    assert_eq!(ll, Launch { channels: 2, threads: 512 });
    let nvls = launch_shape(Nvls, Simple, 8, 16, 640, Bytes::new(1));
    assert_eq!(nvls, Launch { channels: 16, threads: 640 });
    let tree = launch_shape(Tree, Simple, 8, 24, 512, Bytes::new(1));
    assert_eq!(tree, Launch { channels: 1, threads: 640 });
    assert_eq!(max_threads(Ring, Simple, 12.0), 256);
    assert_eq!(max_threads(Ring, Simple, 12.1), 512);
    assert_eq!(max_threads(Tree, Ll128, 100.0), 640);
}
