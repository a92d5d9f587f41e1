//! What NCCL says of itself, in logs with and without tables.

use foretrain_cost::nccl_tuner::{Algorithm, PathType, Protocol};
use foretrain_graph::CollectiveKind;
use foretrain_ingest::collective_log::{self, LogOptions, NcclFacts, Pattern};
use foretrain_ingest::{FileKind, sniff};

fn facts(text: &str) -> NcclFacts {
    assert_eq!(sniff(text.as_bytes(), "train.log"), FileKind::CollectiveLog);
    collective_log::read_bytes(text.as_bytes(), "train.log", &LogOptions::default())
        .expect("facts")
        .0
        .nccl
}

/// A job of two nodes with a small communicator besides.
fn job() -> String {
    let said = [
        "n0:10:10 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>",
        "NCCL version 2.26.2+cuda12.8",
        "n0:10:71 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>",
        "n0:10:71 [0] NCCL INFO Using network IB",
        "n0:10:71 [0] NCCL INFO ncclCommInitRank comm 0x55d0 rank 0 nranks 16 cudaDev 0 nvmlDev 0 busId 7000 commId 0x9 - Init START",
        "n0:10:71 [0] NCCL INFO NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)",
        "n0:10:71 [0] NCCL INFO GPU Direct RDMA Enabled for GPU 0 / HCA 0 (distance 4 <= 5), read 1 mode Default",
        "n0:10:71 [0] NCCL INFO Pattern 4, crossNic 0, nChannels 12, bw 20.000000/24.000000, type NVL/PIX, sameChannels 1",
        "n0:11:72 [1] NCCL INFO Pattern 4, crossNic 0, nChannels 12, bw 20.000000/24.000000, type NVL/PIX, sameChannels 1",
        "n0:10:71 [0] NCCL INFO Pattern 5, crossNic 0, nChannels 8, bw 44.0/44.0, type NVL/PIX, sameChannels 0",
        "n0:10:71 [0] NCCL INFO comm 0x55d0 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0",
        "n0:10:71 [0] NCCL INFO Enabled NCCL Func/Proto/Algo Matrix:",
        "     Function |       LL     LL128    Simple   |          Tree           Ring  CollNetDirect   CollNetChain           NVLS       NVLSTree            PAT  ",
        "    AllGather |        1         2         1   |             0              1              0              0              1              0              1  ",
        "    AllReduce |        1         0         1   |             1              1              0              0              1              1              0  ",
        "",
        "n0:10:71 [0] NCCL INFO   Algorithm   |                           Tree                  |                           Ring                  |",
        "n0:10:71 [0] NCCL INFO   Protocol    |             LL |          LL128 |         Simple |             LL |          LL128 |         Simple |",
        "n0:10:71 [0] NCCL INFO  Max NThreads |            512 |            640 |            512 |            512 |            640 |            512 |",
        "n0:10:71 [0] NCCL INFO     Broadcast |     0.0/   0.0 |     0.0/   0.0 |     0.0/   0.0 |    12.0/  30.0 |    20.0/   0.0 |    22.4/ 240.0 |",
        "n0:10:71 [0] NCCL INFO     AllReduce |    25.2/  11.3 |    48.5/ 225.0 |    92.4/ 220.8 |    36.2/  12.0 |    75.2/ 235.5 |   131.6/ 256.0 |",
        "n0:10:71 [0] NCCL INFO   Algorithm   |                           NVLS                  |                       NVLSTree                  |",
        "n0:10:71 [0] NCCL INFO   Protocol    |             LL |          LL128 |         Simple |             LL |          LL128 |         Simple |",
        "n0:10:71 [0] NCCL INFO     AllReduce |     0.0/   0.0 |     0.0/   0.0 |    25.0/ 388.0 |     0.0/   0.0 |     0.0/   0.0 |    39.0/ 380.0 |",
        "n0:10:71 [0] NCCL INFO 24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p channels, 2 p2p channels per peer",
        "n0:10:90 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..1}",
        "n0:10:90 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..1}",
        "n0:10:90 [0] NCCL INFO AllReduce: 1073741824 Bytes -> Algo NVLSTree proto Simple channel{Lo..Hi}={0..23}",
        "n0:10:95 [0] NCCL INFO ncclCommSplit comm 0x77 rank 0 nranks 2 cudaDev 0 - Init START",
        "n0:10:95 [0] NCCL INFO Pattern 4, crossNic 0, nChannels 1, bw 3.0/3.0, type SYS/PIX, sameChannels 1",
        "n0:10:95 [0] NCCL INFO comm 0x77 rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0 MNNVL 0",
        "n0:10:95 [0] NCCL INFO 2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels, 2 p2p channels per peer",
    ];
    said.join("\n")
}

#[test]
fn the_largest_communicator_is_described() {
    let facts = facts(&job());
    assert_eq!(facts.version.as_deref(), Some("2.26.2+cuda12.8"));
    let communicator = facts.communicator.expect("one");
    assert_eq!(
        (communicator.ranks, communicator.nodes, communicator.local_ranks),
        (16, Some(2), Some(8))
    );
    assert_eq!(communicator.multi_node_nvlink, Some(false));
    let channels = facts.channels.expect("some");
    assert_eq!((channels.collective, channels.nvls, channels.per_peer), (24, Some(16), 2));
    assert_eq!(facts.network.name.as_deref(), Some("IB"));
    assert_eq!(facts.network.nics, ["mlx5_0:1/IB", "mlx5_1:1/IB"]);
    assert_eq!((facts.network.gpu_direct, facts.nvls), (Some(true), Some(true)));
    let graphs: Vec<_> =
        facts.graphs.iter().map(|g| (g.pattern, g.channels, g.inter_path)).collect();
    let pix = Some(PathType::Pix);
    assert_eq!(graphs, [(Pattern::Ring, 12, pix), (Pattern::Nvls, 8, pix)]);
}

#[test]
fn costs_and_choices_are_read_over_all_blocks_of_the_table() {
    let facts = facts(&job());
    let cost = |kind, algorithm, protocol| {
        let mut costs = facts.costs.iter();
        let cost =
            costs.find(|c| (c.kind, c.algorithm, c.protocol) == (kind, algorithm, protocol))?;
        Some((cost.latency_us, cost.algbw.gb_per_sec()))
    };
    use CollectiveKind::{AllReduce, Broadcast};
    assert_eq!(cost(AllReduce, Algorithm::Ring, Protocol::Ll128), Some((75.2, 235.5)));
    assert_eq!(cost(AllReduce, Algorithm::NvlsTree, Protocol::Simple), Some((39.0, 380.0)));
    assert_eq!(cost(Broadcast, Algorithm::Ring, Protocol::Simple), Some((22.4, 240.0)));
    assert_eq!(cost(Broadcast, Algorithm::Ring, Protocol::Ll128), None);
    assert_eq!(facts.costs.len(), 10);
    let choices: Vec<_> =
        facts.choices.iter().map(|c| (c.size.get(), c.algorithm, c.channels)).collect();
    let want =
        [(4096, Algorithm::Tree, Some((0, 1))), (1 << 30, Algorithm::NvlsTree, Some((0, 23)))];
    assert_eq!(choices, want);
    let reduce = facts.enabled.iter().find(|enabled| enabled.kind == AllReduce).expect("a row");
    assert_eq!(reduce.protocols, [Protocol::Ll, Protocol::Simple]);
    use Algorithm as A;
    assert_eq!(reduce.algorithms, [A::Tree, A::Ring, A::Nvls, A::NvlsTree]);
}

#[test]
fn older_tables_and_launchers_make_no_difference() {
    let old = "[1,0]<stdout>:h:1:1 [0] NCCL INFO Latency/AlgBw |    Tree/    LL |    Tree/ LL128 |    Tree/Simple |    Ring/    LL |    Ring/ LL128 |    Ring/Simple |\n\
        [1,0]<stdout>:h:1:1 [0] NCCL INFO  Max NThreads |            512 |            640 |            512 |            512 |            640 |            512 |\n\
        [1,0]<stdout>:h:1:1 [0] NCCL INFO     AllReduce |     9.8/  39.2 |    15.0/  99.0 |    50.0/ 100.0 |    12.0/  40.0 |    19.0/ 120.0 |    60.0/ 130.0 |\n\
        [1,0]<stdout>:h:1:1 [0] NCCL INFO 1048576 Bytes -> Algo 1 proto 1 time 30.25\n\
        [1,0]<stdout>:h:1:1 [0] NCCL INFO NET/OFI Using aws-ofi-nccl 1.5.0aws\n\
        [1,0]<stdout>:h:1:1 [0] NCCL INFO NET/OFI Selected Provider is efa (found 4 nics)\n\
        [1,0]<stdout>:h:1:1 [0] NCCL INFO Using network AWS Libfabric\n";
    let facts = facts(old);
    assert_eq!(facts.costs.len(), 6);
    assert_eq!(facts.choices[0].time_us, Some(30.25));
    let network = facts.network;
    assert_eq!(network.plugin.as_deref(), Some("aws-ofi-nccl 1.5.0aws"));
    assert_eq!((network.provider.as_deref(), network.nic_count), (Some("efa"), Some(4)));
    assert_eq!(network.name.as_deref(), Some("AWS Libfabric"));
}

#[test]
fn torn_rows_of_cost_tables_tell_nothing() {
    let torn = job().replace("    48.5/ 225.0 |", "    48.5n0:11:72 [1] NCCL INFO x");
    let facts = facts(&torn);
    let of_reduce = facts.costs.iter().filter(|cost| cost.kind == CollectiveKind::AllReduce);
    assert_eq!(of_reduce.count(), 2, "only the second block");
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever is cut out or put in, nothing panics and no figure is out of bounds.
        #[test]
        fn damaged_output_is_survived(
            edits in proptest::collection::vec((0.0..1.0_f64, 0usize..60, "[ -~µ\n]{0,12}"), 1..8),
        ) {
            let mut text = job();
            for (at, cut, put) in &edits {
                let at = (text.len() as f64 * at) as usize;
                let from = (0..=at).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
                let to = (from + cut..text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(text.len());
                text.replace_range(from..to.max(from), put);
            }
            if let Ok((log, _)) = collective_log::read_bytes(text.as_bytes(), "x", &LogOptions::default()) {
                for cost in &log.nccl.costs {
                    prop_assert!(cost.latency_us.is_finite() && cost.algbw.gb_per_sec() > 0.0);
                }
                prop_assert!(log.nccl.graphs.len() <= 32);
            }
        }
    }
}
