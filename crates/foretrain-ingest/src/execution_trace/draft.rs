//! A step graph under construction: queues, groups and sequence numbers by name, and edges that
//! are checked for cycles before they enter the graph.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use foretrain_core::diagnostics::Severity;
use foretrain_core::{Bytes, DType, Ledger, Nanos};
use foretrain_graph::{
    CollectiveKind, Csr, Edge, EdgeKind, Group, GroupId, Node, NodeId, NodeKind, QueueId,
    QueueKind, StepGraph,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::cycles;

/// What is known of one communication operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommFacts {
    pub(crate) kind: Option<CollectiveKind>,
    pub(crate) group: Option<GroupId>,
    pub(crate) bytes: Option<u64>,
    pub(crate) dtype: Option<DType>,
    pub(crate) peer: Option<i64>,
    pub(crate) tag: Option<i64>,
}

/// Name of the node attribute with the other rank of a point-to-point operation, within its group.
pub(crate) const PEER: &str = "peer";
/// Name of the node attribute with the tag of a point-to-point operation.
pub(crate) const TAG: &str = "tag";

/// The graph, its edges so far, and the tables by name.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) graph: StepGraph,
    edges: Vec<Edge>,
    queues: FxHashMap<String, QueueId>,
    groups: FxHashMap<String, GroupId>,
    sequences: FxHashMap<(Option<GroupId>, CollectiveKind), u32>,
}

impl Draft {
    /// The queue with this name, added if new.
    pub(crate) fn queue(&mut self, name: &str, kind: QueueKind) -> QueueId {
        if let Some(&id) = self.queues.get(name) {
            return id;
        }
        let id = self.graph.add_queue(name, kind);
        self.queues.insert(name.to_owned(), id);
        id
    }

    /// The group with this name, added if new.
    pub(crate) fn group(&mut self, name: &str) -> GroupId {
        if let Some(&id) = self.groups.get(name) {
            return id;
        }
        let group =
            Group { name: name.to_owned(), role: String::new(), size: 0, ranks: Vec::new() };
        let id = self.graph.add_group(group);
        self.groups.insert(name.to_owned(), id);
        id
    }

    /// Adds a plain node.
    pub(crate) fn node(
        &mut self,
        kind: NodeKind,
        name: &str,
        queue: QueueId,
        work: Nanos,
    ) -> NodeId {
        let name = self.graph.names.intern(name);
        self.graph.add_node(Node::new(kind, name, queue, work))
    }

    /// Adds a collective or point-to-point node with its place in the group's sequence.
    pub(crate) fn comm(
        &mut self,
        name: &str,
        queue: QueueId,
        work: Nanos,
        facts: &CommFacts,
    ) -> NodeId {
        let kind = facts.kind.unwrap_or(CollectiveKind::Unknown);
        let counter = self.sequences.entry((facts.group, kind)).or_default();
        let sequence = *counter;
        *counter += 1;
        let name = self.graph.names.intern(name);
        let node_kind =
            if is_point_to_point(kind) { NodeKind::PointToPoint } else { NodeKind::Collective };
        let mut node = Node::new(node_kind, name, queue, work);
        node.group = facts.group;
        node.collective = Some(kind);
        node.sequence = sequence;
        node.bytes = facts.bytes.map(Bytes::new);
        node.dtype = facts.dtype;
        let id = self.graph.add_node(node);
        let attributes = &mut self.graph.node_attributes;
        for (attribute, value) in [(PEER, facts.peer), (TAG, facts.tag)] {
            if let Some(value) = value {
                attributes.set_i64(attribute, id.index(), value);
            }
        }
        id
    }

    /// Adds an edge; cycles and repetitions are dealt with in [`Self::finish`].
    pub(crate) fn edge(&mut self, edge: Edge) {
        self.edges.push(edge);
    }

    /// Removes repeated edges (the first of a pair stays) and breaks cycles: inside each strongly
    /// connected part, edges that lead from a later to an earlier node go.
    pub(crate) fn break_cycles(&mut self, ledger: &mut Ledger) {
        let mut seen = FxHashSet::default();
        self.edges.retain(|edge| seen.insert((edge.src, edge.dst)));
        drop(seen);
        let parts = cycles::components(self.graph.node_count(), &self.edges);
        let names = &self.graph;
        self.edges.retain(|edge| {
            let backward = edge.src >= edge.dst
                && parts[edge.src.index()] == parts[edge.dst.index()];
            if backward {
                ledger.record_at(
                    Severity::Warning,
                    "cyclic-dependency",
                    "a dependency that closes a cycle, from a later to an earlier node, was left out",
                    || format!("\"{}\" -> \"{}\"", names.name(edge.src), names.name(edge.dst)),
                );
            }
            !backward
        });
    }

    /// Adds inferred order between consecutive nodes of each of `queues`, in a topological order
    /// that prefers `key` (then the node number). Call after [`Self::break_cycles`].
    pub(crate) fn order_queues(&mut self, queues: &[QueueId], key: &[i64]) {
        let mut last: Vec<Option<NodeId>> = vec![None; self.graph.queues.len()];
        let mut chained = vec![false; self.graph.queues.len()];
        for queue in queues {
            chained[queue.index()] = true;
        }
        let mut linked: FxHashSet<(NodeId, NodeId)> =
            self.edges.iter().map(|e| (e.src, e.dst)).collect();
        for id in self.topological(key) {
            let queue = self.graph.queue(id).index();
            if !chained[queue] {
                continue;
            }
            if let Some(previous) = last[queue].replace(id)
                && linked.insert((previous, id))
            {
                let kind = order_kind(self.graph.queues[queue].kind);
                self.edges.push(Edge::new(previous, id, kind).inferred());
            }
        }
    }

    fn topological(&self, key: &[i64]) -> Vec<NodeId> {
        let count = self.graph.node_count();
        let mut waiting = vec![0u32; count];
        for edge in &self.edges {
            waiting[edge.dst.index()] += 1;
        }
        let pairs = self.edges.iter().map(|e| (e.src.get(), e.dst.get()));
        let next = Csr::from_pairs(count, pairs);
        let rank = |node: usize| Reverse((key.get(node).copied().unwrap_or(0), node));
        let mut ready: BinaryHeap<_> =
            (0..count).filter(|&node| waiting[node] == 0).map(rank).collect();
        let mut order = Vec::with_capacity(count);
        while let Some(Reverse((_, node))) = ready.pop() {
            order.push(NodeId::from_index(node));
            for &target in next.row(node) {
                waiting[target as usize] -= 1;
                if waiting[target as usize] == 0 {
                    ready.push(rank(target as usize));
                }
            }
        }
        order
    }

    /// Moves the edges into the graph and hands it over.
    pub(crate) fn finish(mut self) -> StepGraph {
        for edge in self.edges {
            self.graph.add_edge(edge);
        }
        self.graph
    }
}

fn order_kind(queue: QueueKind) -> EdgeKind {
    if queue == QueueKind::Thread { EdgeKind::ThreadOrder } else { EdgeKind::StreamOrder }
}

/// Whether a kind is between two ranks.
pub(crate) fn is_point_to_point(kind: CollectiveKind) -> bool {
    matches!(kind, CollectiveKind::Send | CollectiveKind::Recv | CollectiveKind::SendRecv)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(count: usize) -> (Draft, Vec<NodeId>) {
        let mut draft = Draft::default();
        let queue = draft.queue("thread 1", QueueKind::Thread);
        let nodes = (0..count)
            .map(|i| draft.node(NodeKind::HostSegment, &format!("op{i}"), queue, Nanos::ZERO))
            .collect();
        (draft, nodes)
    }

    #[test]
    fn a_false_edge_backwards_is_dropped_and_forward_ones_stay() {
        let (mut draft, n) = chain(4);
        for (a, b) in [(0, 1), (1, 2), (2, 0), (2, 3), (2, 3), (3, 3)] {
            draft.edge(Edge::new(n[a], n[b], EdgeKind::Data));
        }
        let mut ledger = Ledger::new();
        draft.break_cycles(&mut ledger);
        let pairs: Vec<_> =
            draft.finish().edges().iter().map(|e| (e.src.get(), e.dst.get())).collect();
        assert_eq!(pairs, [(0, 1), (1, 2), (2, 3)]);
        assert_eq!(ledger.count("cyclic-dependency"), 2);
    }

    #[test]
    fn an_edge_to_an_earlier_node_without_a_cycle_stays() {
        let (mut draft, n) = chain(2);
        draft.edge(Edge::new(n[1], n[0], EdgeKind::Data));
        let mut ledger = Ledger::new();
        draft.break_cycles(&mut ledger);
        let queue = draft.graph.queue(n[0]);
        draft.order_queues(&[queue], &[]);
        assert_eq!(draft.finish().edges().len(), 1, "the order already follows from the edge");
        assert!(ledger.is_empty());
    }

    #[test]
    fn sequences_count_per_group_and_kind() {
        let mut draft = Draft::default();
        let queue = draft.queue("s", QueueKind::Stream);
        let (a, b) = (draft.group("a"), draft.group("b"));
        let mut issue = |group, kind| {
            let facts = CommFacts { kind: Some(kind), group: Some(group), ..Default::default() };
            let id = draft.comm("x", queue, Nanos::ZERO, &facts);
            draft.graph.node(id).sequence
        };
        // Ranks 0-7 gather in one group while 4-7 also reduce in another (astra-sim#339).
        assert_eq!(issue(a, CollectiveKind::AllGather), 0);
        assert_eq!(issue(b, CollectiveKind::AllReduce), 0);
        assert_eq!(issue(a, CollectiveKind::AllGather), 1);
        assert_eq!(issue(a, CollectiveKind::AllReduce), 0);
    }
}
