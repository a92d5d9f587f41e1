//! How much of a recorded collective is transfer, and how much is waiting for late ranks.

use foretrain_core::{Evidence, EvidenceKind, Ledger, Nanos};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{NodeId, StepGraph};
use foretrain_rewrite::collectives;
use foretrain_trace::align::{RankOps, align_clocks, match_ops, waits};
use foretrain_trace::build::TRACE_ROW;
use rustc_hash::FxHashMap;

use crate::recording::Recording;

/// Transfer times of the collectives of a steady graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transfers {
    by_node: FxHashMap<NodeId, Nanos>,
}

impl Transfers {
    /// Transfer time of a node whose whole time is `work`.
    pub(crate) fn of(&self, id: NodeId, work: Nanos) -> Nanos {
        self.by_node.get(&id).copied().unwrap_or(work).min(work)
    }
}

/// With several ranks, transfer is the shortest duration over the members of each operation. With
/// one, it is the shortest among operations of equal kind, group and size: the luckiest of them
/// waited least. A group of one waits for nobody.
pub(crate) fn transfers(
    recordings: &[Recording],
    representative: usize,
    graph: &StepGraph,
    evidence: &mut Vec<Evidence>,
) -> Transfers {
    let matched = (recordings.len() > 1)
        .then(|| across_ranks(recordings, representative, graph, evidence))
        .flatten();
    let transfers = matched.unwrap_or_else(|| across_instances(graph, evidence));
    Transfers { by_node: transfers }
}

fn across_ranks(
    recordings: &[Recording],
    representative: usize,
    graph: &StepGraph,
    evidence: &mut Vec<Evidence>,
) -> Option<FxHashMap<NodeId, Nanos>> {
    let ops: Vec<RankOps> = recordings.iter().map(Recording::rank_ops).collect();
    let matched = match_ops(&ops, &mut Ledger::new());
    let clocks = align_clocks(&ops, &matched).ok()?;
    let waits = waits(&ops, &matched, &clocks);
    let mut by_row: FxHashMap<i64, Nanos> = FxHashMap::default();
    for wait in &waits.ops {
        for member in &matched.ops[wait.op as usize].members {
            if member.rank as usize == representative {
                let row = ops[representative].ops[member.op as usize].row;
                by_row.insert(i64::from(row), wait.transfer);
            }
        }
    }
    let found: FxHashMap<NodeId, Nanos> = collectives(graph)
        .filter_map(|node| {
            let row = graph.node_attributes.get_i64(TRACE_ROW, node.id.index())?;
            by_row.get(&row).map(|&transfer| (node.id, transfer))
        })
        .collect();
    let source = format!(
        "shortest of {} ranks for {} operations; clocks aligned to {} (median)",
        recordings.len(),
        waits.ops.len(),
        clocks.residual.median
    );
    evidence.push(Evidence::new(EvidenceKind::Measured, "transfer and waiting", source, 0.05));
    (!found.is_empty()).then_some(found)
}

fn across_instances(graph: &StepGraph, evidence: &mut Vec<Evidence>) -> FxHashMap<NodeId, Nanos> {
    let mut shortest: FxHashMap<_, (Nanos, usize)> = FxHashMap::default();
    for node in collectives(graph) {
        let key = (node.kind, node.group, node.bytes);
        let entry = shortest.entry(key).or_insert((node.work, 0));
        entry.0 = entry.0.min(node.work);
        entry.1 += 1;
    }
    let mut found = FxHashMap::default();
    let mut split = Nanos::ZERO;
    for node in collectives(graph) {
        let (transfer, instances) = shortest[&(node.kind, node.group, node.bytes)];
        let known = graph.node_attributes.get_i64(well_known::WAIT, node.id.index());
        let alone = node.group.is_some_and(|group| graph.groups[group.index()].size == 1);
        if known.is_none() && instances > 1 && node.bytes.is_some() && !alone {
            found.insert(node.id, transfer);
            split += node.work - transfer;
        }
    }
    if split > Nanos::ZERO {
        let source = format!("shortest of equal operations; {split} per step taken as waiting");
        evidence.push(Evidence::new(EvidenceKind::Inferred, "transfer and waiting", source, 0.1));
    }
    found
}
