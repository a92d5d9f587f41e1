//! What a calibration found, in sentences, and what to do about it.

use foretrain_core::{Bandwidth, Bytes};
use foretrain_cost::calibrate::{Finding, Report};
use foretrain_graph::CollectiveKind;
use foretrain_hardware::NicKind;
use foretrain_predict::collectives::calibrate::{Shortfall, Where};

use super::super::units::{counted, ms_unit, plain, whole_size};

/// A finding for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// The kind, for tools.
    pub(crate) code: &'static str,
    /// Whether the rows are kept out of the fit.
    pub(crate) kept_out: bool,
    /// What is the case.
    pub(crate) what: String,
    /// What to do.
    pub(crate) advice: String,
}

/// All there is to say, the shortfalls of links first.
pub(crate) fn said(report: &Report, shortfalls: &[Shortfall]) -> Vec<Said> {
    let links = shortfalls.iter().map(shortfall);
    links.chain(report.findings.iter().map(|finding| of(finding, report))).collect()
}

fn gb(rate: Bandwidth) -> String {
    format!("{:.1}", rate.gb_per_sec())
}

fn times(ratio: f64) -> String {
    if ratio < 1.0 { format!("{ratio:.2}x") } else { format!("{ratio:.1}x") }
}

/// `An all-reduce of 64 MiB`.
fn one(kind: CollectiveKind, bytes: Bytes) -> String {
    let kind = kind.to_string();
    let article = if kind.starts_with('a') { "An" } else { "A" };
    format!("{article} {kind} of {}", whole_size(bytes))
}

/// `An all-reduce of 64 MiB on 16 GPUs`.
fn call(kind: CollectiveKind, bytes: Bytes, ranks: u32) -> String {
    format!("{} on {}", one(kind, bytes), counted(ranks as usize, "GPU"))
}

fn of(finding: &Finding, report: &Report) -> Said {
    match finding {
        Finding::Outlier { kind, ranks, bytes, measured, expected, .. } => Said {
            code: "outlier",
            kept_out: true,
            what: format!(
                "{} took {}, {} the {} that the model and the sizes beside it say. Kept out of the \
                 fit.",
                call(*kind, *bytes, *ranks),
                ms_unit(*measured),
                times(measured.nanos() as f64 / expected.nanos().max(1) as f64),
                ms_unit(*expected),
            ),
            advice:
                "Measure this size again, with more iterations and nothing else on the machines."
                    .into(),
        },
        Finding::OddCount { kind, ranks, nodes, ratio, .. } => {
            odd_count(*kind, *ranks, *nodes, *ratio, report)
        }
        Finding::Cliff { kind, ranks, from, to, before, after } => Said {
            code: "cliff",
            kept_out: false,
            what: format!(
                "Bus bandwidth of {kind} on {} falls from {} GB/s at {} to {} at {}, though larger \
                 messages should be faster: most often the library changes its algorithm or protocol \
                 there too early or too late. Kept, for it will do so again.",
                counted(*ranks as usize, "GPU"),
                plain(before.gb_per_sec()),
                whole_size(*from),
                plain(after.gb_per_sec()),
                whole_size(*to),
            ),
            advice:
                "Compare NCCL_ALGO=Ring with Tree and NCCL_PROTO=LL128 with Simple at that size, \
                     or choose buckets beside it."
                    .into(),
        },
        Finding::TwoNodeTree { bytes, ranks, bus, nics } => {
            two_node_tree(*bytes, *ranks, *bus, *nics)
        }
        Finding::Drop { kind, bytes, nodes, ranks, before, after } => {
            drop(*kind, *bytes, *nodes, *ranks, (*before, *after))
        }
    }
}

fn odd_count(kind: CollectiveKind, ranks: u32, nodes: u32, ratio: f64, report: &Report) -> Said {
    let alike = || report.residuals.iter().filter(|row| row.kind == kind && row.nodes > 1);
    let mut others: Vec<u32> =
        alike().filter(|row| row.kept && row.nodes != nodes).map(|row| row.nodes).collect();
    others.dedup();
    let others: Vec<String> = others.iter().map(u32::to_string).collect();
    let others = match others.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => others.concat(),
    };
    let largest = alike().rfind(|row| (row.ranks, row.nodes) == (ranks, nodes));
    let cost = largest.map_or_else(String::new, |row| {
        format!(
            " {} costs {} there instead of {}.",
            one(kind, row.bytes),
            ms_unit(row.measured),
            ms_unit(row.modelled)
        )
    });
    let is_odd = !nodes.is_multiple_of(2);
    Said {
        code: "odd-count",
        kept_out: true,
        what: format!(
            "{} ({}) take {} what {others} nodes agree on for {kind}.{cost} Kept out of the trend; \
             predictions for exactly these ranks take what was measured.",
            counted(nodes as usize, "node"),
            counted(ranks as usize, "GPU"),
            times(ratio),
        ),
        advice: format!(
            "{}heck ring placement and channel pairing (with an odd number of nodes channels cannot be \
             paired over the NICs as with an even one) in the lines of NCCL_DEBUG=INFO, \
             NCCL_DEBUG_SUBSYS=GRAPH; NCCL_CROSS_NIC=1 or another number of nodes avoids it.",
            if is_odd { "An odd node count: c" } else { "C" }
        ),
    }
}

fn two_node_tree(bytes: Bytes, ranks: u32, bus: Bandwidth, nics: Bandwidth) -> Said {
    let ring = 2.0 * f64::from(ranks - 1) / f64::from(ranks);
    Said {
        code: "two-node-tree",
        kept_out: false,
        what: format!(
            "{} reaches {} GB/s of bus bandwidth on 2 nodes, above the {} GB/s that their NICs carry, \
             and is right: a tree of two nodes only swaps two sums, about S over the wire for a \
             message of S, where a ring moves 2(n-1)/n S = {ring:.2} S, which bus bandwidth counts. \
             It is not taken for the NICs' rate.",
            call(CollectiveKind::AllReduce, bytes, ranks),
            gb(bus),
            gb(nics),
        ),
        advice: "Expect no more than the NICs' rate from 3 nodes on: there the gain is gone."
            .into(),
    }
}

fn drop(
    kind: CollectiveKind,
    bytes: Bytes,
    nodes: (u32, u32),
    ranks: (u32, u32),
    (before, after): (Bandwidth, Bandwidth),
) -> Said {
    /// A two-node tree beats a ring by up to 2(n-1)/n, give or take a tenth.
    const TREE: f64 = 2.2;
    let falls = format!(
        "Bus bandwidth of {kind} of {} falls from {} GB/s on {} nodes ({} GPUs) to {} on {} ({})",
        whole_size(bytes),
        gb(before),
        nodes.0,
        ranks.0,
        gb(after),
        nodes.1,
        ranks.1
    );
    let is_tree =
        nodes.0 == 2 && kind == CollectiveKind::AllReduce && before.get() < TREE * after.get();
    let (why, advice) = if is_tree {
        (
            "the tree of two nodes has lost its gain. It happens once and is no trend",
            "Compare from 3 nodes on.",
        )
    } else {
        (
            "more than another node costs a ring",
            "Check for an oversubscribed or congested level between these nodes, and for one slow node \
             by measuring pairs.",
        )
    };
    Said { code: "drop", kept_out: false, what: format!("{falls}: {why}."), advice: advice.into() }
}

fn shortfall(short: &Shortfall) -> Said {
    let links = match short.place {
        Where::Between(_) => "a node's NICs",
        Where::Within(_) => "the links in a node",
    };
    let advice = match short.place {
        Where::Between(NicKind::Efa) => {
            "See in NCCL_DEBUG=INFO that the EFA plugin is in use (aws-ofi-nccl, NET/OFI) with GPUDirect \
             RDMA (FI_EFA_USE_DEVICE_RDMA=1) and all NICs, and that GPUs and NICs share PCIe switches."
        }
        Where::Between(_) => {
            "See in NCCL_DEBUG=INFO that the fast network is in use (NET/IB or a plugin, not NET/Socket) \
             with GPUDirect RDMA (GDRDMA; nvidia-peermem loaded), all NICs (NCCL_IB_HCA) and GPUs near \
             them (PCIe placement, ACS off)."
        }
        Where::Within(_) => {
            "See in nvidia-smi nvlink --status that all links are up, and in NCCL_DEBUG=INFO that GPUs \
             talk by P2P (NCCL_P2P_DISABLE unset, P2P allowed in the container)."
        }
    };
    Said {
        code: "shortfall",
        kept_out: false,
        what: format!(
            "{} reaches {} of {} GB/s nominal over {links} ({:.0} %): a transport problem (GPUDirect RDMA, \
             plugin, PCIe placement), not a scaling law. The fit keeps it, so predictions are for the \
             cluster as it is.",
            call(short.kind, short.bytes, short.ranks),
            gb(short.bus),
            gb(short.nominal),
            short.share() * 100.0
        ),
        advice: advice.into(),
    }
}
