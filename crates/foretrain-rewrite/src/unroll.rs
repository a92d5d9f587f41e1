//! Repeating a part of a step: micro-batches, and several steps in one graph.

use foretrain_core::{InputError, Nanos, Result};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{
    CollectiveKind, Edge, EdgeKind, GroupId, Node, NodeId, NodeKind, NodeSet, QueueId, QueueKind,
    StepGraph,
};
use rustc_hash::FxHashMap;

/// Larger graphs are refused: an answer should take seconds.
const MOST_NODES: usize = 4_000_000;

/// Repeats the nodes of `part` so that they run `times` times one after the other in each step.
///
/// Copies keep all edges within the part. An edge that leads from the part to its next step leads
/// to the next copy instead, from the last copy back to the first. What comes before the part comes
/// before its first copy, what comes after it after its last. What lies between nodes of the part
/// (clearing gradients after the input has come) is done once: copies of it keep the order and take
/// no time. Queues run one copy after the other. Copies hold what the part holds, recorded times
/// shifted by its recorded span.
///
/// Returns the copies' nodes, the original first, in the order of their ids.
///
/// # Errors
/// If the graph would get too large.
pub(crate) fn repeat(
    graph: &mut StepGraph,
    part: &NodeSet,
    times: u32,
) -> Result<Vec<Vec<NodeId>>> {
    let between = between(graph, part);
    let mut whole = part.clone();
    whole.union_with(&between);
    let ids: Vec<NodeId> = whole.iter().collect();
    let more = ids.len().saturating_mul(times.saturating_sub(1) as usize);
    if graph.node_count().saturating_add(more) > MOST_NODES {
        return Err(InputError::new(format!(
            "repeating {} nodes {times} times makes a graph of more than {MOST_NODES} nodes",
            ids.len()
        )));
    }
    let mut copies = vec![ids.clone()];
    if times < 2 || ids.is_empty() {
        return Ok(copies);
    }
    let originals = graph.node_count();
    let span = recorded_span(graph, &ids);
    let numbers = numbers(graph);
    let slots: FxHashMap<NodeId, usize> = ids.iter().enumerate().map(|(i, &id)| (id, i)).collect();
    for copy in 1..times {
        let nodes = copy_nodes(graph, &ids, i64::from(copy) * span, copy, &numbers);
        for (&id, &new) in ids.iter().zip(&nodes).filter(|(id, _)| between.contains(**id)) {
            let kind = graph.kind(id);
            let kind = if kind.communicates() { NodeKind::Mark } else { kind };
            let node = Node { kind, group: None, collective: None, ..graph.node(id) };
            graph.set_node(new, Node { work: Nanos::ZERO, ..node });
        }
        copies.push(nodes);
    }
    shift_later(graph, originals, &slots, i64::from(times - 1) * span);
    rewire(graph, &slots, &copies);
    chain_queues(graph, &copies);
    Ok(copies)
}

/// What is not of the part, but comes after some of it and before some of it in the same step.
fn between(graph: &StepGraph, part: &NodeSet) -> NodeSet {
    let behind = reached(graph, part, |edge| (edge.src, edge.dst));
    let ahead = reached(graph, part, |edge| (edge.dst, edge.src));
    NodeSet::from_fn(graph.node_count(), |row| {
        let id = NodeId::from_index(row);
        behind.contains(id) && ahead.contains(id) && !part.contains(id)
    })
}

/// The part and what edges of the same step lead to from there, `ends` telling from where to where
/// an edge is followed.
fn reached(graph: &StepGraph, part: &NodeSet, ends: impl Fn(&Edge) -> (NodeId, NodeId)) -> NodeSet {
    let mut next: Vec<Vec<NodeId>> = vec![Vec::new(); graph.node_count()];
    for edge in graph.edges().iter().filter(|edge| edge.distance == 0) {
        let (from, to) = ends(edge);
        next[from.index()].push(to);
    }
    let mut found = part.clone();
    let mut open: Vec<NodeId> = part.iter().collect();
    while let Some(id) = open.pop() {
        for &to in &next[id.index()] {
            if !found.contains(to) {
                found.insert(to);
                open.push(to);
            }
        }
    }
    found
}

/// How far the numbers of each group's operations reach in a step: those of the next copy begin
/// behind. All members count alike, whatever of it each repeats.
fn numbers(graph: &StepGraph) -> FxHashMap<(GroupId, CollectiveKind), u32> {
    let mut ends: FxHashMap<_, (u32, u32)> = FxHashMap::default();
    for id in graph.node_ids() {
        let node = graph.node(id);
        if let (Some(group), Some(kind)) = (node.group, node.collective) {
            let ends = ends.entry((group, kind)).or_insert((node.sequence, node.sequence));
            *ends = (ends.0.min(node.sequence), ends.1.max(node.sequence));
        }
    }
    ends.into_iter().map(|(key, (first, last))| (key, (last - first).saturating_add(1))).collect()
}

fn copy_nodes(
    graph: &mut StepGraph,
    ids: &[NodeId],
    shift: i64,
    copy: u32,
    numbers: &FxHashMap<(GroupId, CollectiveKind), u32>,
) -> Vec<NodeId> {
    ids.iter()
        .map(|&id| {
            let mut node = graph.node(id);
            if let (Some(group), Some(kind)) = (node.group, node.collective) {
                let numbers = numbers.get(&(group, kind)).copied().unwrap_or(0);
                node.sequence = node.sequence.saturating_add(copy.saturating_mul(numbers));
            }
            let new = graph.add_node(node);
            graph.node_attributes.duplicate_row(id.index(), new.index());
            move_recorded(graph, new, shift);
            new
        })
        .collect()
}

fn move_recorded(graph: &mut StepGraph, id: NodeId, shift: i64) {
    let a = &mut graph.node_attributes;
    if let Some(start) = a.get_i64(well_known::RECORDED_START, id.index()) {
        a.set_i64(well_known::RECORDED_START, id.index(), start.saturating_add(shift));
    }
}

/// From the first start to the last end of the part in the recording.
fn recorded_span(graph: &StepGraph, ids: &[NodeId]) -> i64 {
    let get = |id: &NodeId, name| graph.node_attributes.get_i64(name, id.index());
    let starts = ids.iter().filter_map(|id| get(id, well_known::RECORDED_START));
    let ends = ids.iter().filter_map(|id| {
        Some(get(id, well_known::RECORDED_START)? + get(id, well_known::RECORDED_DURATION)?)
    });
    match (starts.min(), ends.max()) {
        (Some(from), Some(to)) => (to - from).max(0),
        _ => 0,
    }
}

/// What was recorded after the part began and is not of it now comes later.
fn shift_later(
    graph: &mut StepGraph,
    originals: usize,
    slots: &FxHashMap<NodeId, usize>,
    shift: i64,
) {
    let start = |graph: &StepGraph, id: NodeId| {
        graph.node_attributes.get_i64(well_known::RECORDED_START, id.index())
    };
    let Some(end) = slots.keys().filter_map(|&id| start(graph, id)).max() else { return };
    for id in (0..originals).map(NodeId::from_index) {
        if !slots.contains_key(&id) && start(graph, id).is_some_and(|at| at > end) {
            move_recorded(graph, id, shift);
        }
    }
}

fn rewire(graph: &mut StepGraph, slots: &FxHashMap<NodeId, usize>, copies: &[Vec<NodeId>]) {
    let times = copies.len();
    let last = times - 1;
    let mut added = Vec::new();
    for edge in graph.edges_mut() {
        let (from, to) = (slots.get(&edge.src), slots.get(&edge.dst));
        match (from, to) {
            (Some(&from), Some(&to)) => {
                let original = *edge;
                let target = |copy: usize| {
                    let reached = copy + usize::from(original.distance);
                    (copies[reached % times][to], (reached / times) as u16)
                };
                for (copy, nodes) in copies.iter().enumerate().skip(1) {
                    let (dst, distance) = target(copy);
                    added.push(Edge { src: nodes[from], dst, distance, ..original });
                }
                (edge.dst, edge.distance) = target(0);
            }
            (Some(&from), None) => edge.src = copies[last][from],
            (None, _) => {}
        }
    }
    for edge in added {
        graph.add_edge(edge);
    }
}

/// Each queue runs a copy after the one before it.
fn chain_queues(graph: &mut StepGraph, copies: &[Vec<NodeId>]) {
    type Key = (i64, NodeId);
    let mut ends: FxHashMap<QueueId, (Key, Key)> = FxHashMap::default();
    let start = |graph: &StepGraph, id: NodeId| {
        graph.node_attributes.get_i64(well_known::RECORDED_START, id.index()).unwrap_or(0)
    };
    for (slot, &id) in copies[0].iter().enumerate() {
        let key = (start(graph, id), NodeId::from_index(slot));
        let entry = ends.entry(graph.queue(id)).or_insert((key, key));
        *entry = (entry.0.min(key), entry.1.max(key));
    }
    let mut ends: Vec<_> = ends.into_iter().collect();
    ends.sort_unstable_by_key(|(queue, _)| *queue);
    for (queue, ((_, first), (_, last))) in ends {
        let kind = match graph.queues[queue.index()].kind {
            QueueKind::Thread => EdgeKind::ThreadOrder,
            _ => EdgeKind::StreamOrder,
        };
        for pair in copies.windows(2) {
            let edge = Edge::new(pair[0][last.index()], pair[1][first.index()], kind);
            graph.add_edge(edge.inferred());
        }
    }
}
