//! Removing nodes.

use foretrain_core::NameId;

use super::Remap;
use crate::attributes::well_known;
use crate::kinds::{EdgeKind, EdgeOrigin, NodeKind, QueueKind};
use crate::node_set::NodeSet;
use crate::step_graph::{Edge, Node, NodeId, QueueId, StepGraph};

/// What happens to the order that a removed node imposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Its edges go with it: nothing is ordered through it any more.
    Detach,
    /// What came before it still comes before what came after it, as if its work were zero:
    /// an edge from every predecessor to every successor whose delay is the sum of the two delays
    /// and whose distance is the sum of the two distances. Of parallel bridges over one distance
    /// the one with the longest delay is kept. Delays between a removed node and the start or
    /// the end of the step go with it.
    ///
    /// Where that would add many edges (p predecessors times s successors exceed p + s + 4), or
    /// where the node follows itself over a step boundary, the node becomes a [`NodeKind::Mark`]
    /// without work on a queue of its own instead, so the graph never grows beyond linear.
    Bridge,
}

/// The outcome of a removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Where each node went; removed nodes are gone, even those that became a mark.
    pub remap: Remap,
    /// New ids of the marks that stand for removed nodes.
    pub marks: Vec<NodeId>,
}

/// Name of the queue of bridge marks.
const BRIDGE_QUEUE: &str = "removed (bridge)";

impl StepGraph {
    /// Removes the nodes of the set. Bridging edges are [`Inferred`](EdgeOrigin::Inferred), of the
    /// kind that the edges they replace share or else [`Data`](EdgeKind::Data), and carry no user
    /// attributes.
    pub fn remove_nodes(&mut self, set: &NodeSet, removal: Removal) -> Removed {
        let removed: Vec<bool> = self.node_ids().map(|id| set.contains(id)).collect();
        let mut gone = removed.clone();
        if removal == Removal::Bridge {
            let bridging = Bridging::new(&self.edges, &removed);
            let (alive, fresh, marked) = bridging.run();
            for &id in &marked {
                gone[id.index()] = false;
            }
            self.retain_edge_rows(&alive);
            self.edges.extend(fresh);
            self.turn_into_marks(&marked);
        }
        self.retain_edges(|_, e| !gone[e.src.index()] && !gone[e.dst.index()]);
        let keep: Vec<bool> = gone.iter().map(|gone| !gone).collect();
        let mut remap = self.compact(&keep);
        let marks = (0..removed.len())
            .filter(|&i| removed[i] && !gone[i])
            .map(|i| NodeId::new(std::mem::replace(&mut remap.new_ids[i], super::GONE)))
            .collect();
        Removed { remap, marks }
    }

    fn turn_into_marks(&mut self, marked: &[NodeId]) {
        if marked.is_empty() {
            return;
        }
        let queue = self.queues.iter().position(|q| q.name == BRIDGE_QUEUE);
        let queue = match queue {
            Some(index) => QueueId::from_index(index),
            None => self.add_queue(BRIDGE_QUEUE, QueueKind::Other),
        };
        for &id in marked {
            let old = self.node(id);
            let mut mark = Node::new(NodeKind::Mark, NameId::EMPTY, queue, Default::default());
            (mark.name, mark.module, mark.phase) = (old.name, old.module, old.phase);
            self.set_node(id, mark);
            self.node_attributes.clear_row(id.index());
            let provenance = "keeps the order through a removed node";
            self.node_attributes.set_str(well_known::PROVENANCE, id.index(), provenance.into());
        }
    }
}

/// Eliminates removed nodes one by one, as in a sparse factorisation. Only edges that touch a
/// removed node are indexed.
struct Bridging<'a> {
    removed: &'a [bool],
    old: &'a [Edge],
    // Whether an edge still stands; those beyond the old ones are bridges.
    alive: Vec<bool>,
    fresh: Vec<Edge>,
    // Position of a removed node in `into` and `out_of`.
    slot: Vec<u32>,
    into: Vec<Vec<u32>>,
    out_of: Vec<Vec<u32>>,
    done: Vec<bool>,
}

impl<'a> Bridging<'a> {
    fn new(old: &'a [Edge], removed: &'a [bool]) -> Self {
        let mut slot = vec![0; removed.len()];
        let mut count = 0;
        for (slot, _) in slot.iter_mut().zip(removed).filter(|(_, removed)| **removed) {
            *slot = count;
            count += 1;
        }
        let mut new = Self {
            removed,
            old,
            alive: vec![true; old.len()],
            fresh: Vec::new(),
            slot,
            into: vec![Vec::new(); count as usize],
            out_of: vec![Vec::new(); count as usize],
            done: vec![false; count as usize],
        };
        for (index, edge) in old.iter().enumerate() {
            new.index_edge(index as u32, edge);
        }
        new
    }

    fn pending(&self, id: NodeId) -> Option<usize> {
        let slot = self.slot[id.index()] as usize;
        (self.removed[id.index()] && !self.done[slot]).then_some(slot)
    }

    fn index_edge(&mut self, index: u32, edge: &Edge) {
        if let Some(slot) = self.pending(edge.src) {
            self.out_of[slot].push(index);
        }
        if let Some(slot) = self.pending(edge.dst) {
            self.into[slot].push(index);
        }
    }

    fn edge(&self, index: u32) -> Edge {
        let index = index as usize;
        self.old.get(index).copied().unwrap_or_else(|| self.fresh[index - self.old.len()])
    }

    /// Which old edges stand, the bridges, and the nodes that must stay as marks.
    fn run(mut self) -> (Vec<bool>, Vec<Edge>, Vec<NodeId>) {
        let mut marked = Vec::new();
        for node in 0..self.removed.len() {
            if self.removed[node] && !self.eliminate(NodeId::from_index(node)) {
                marked.push(NodeId::from_index(node));
            }
        }
        let mut fresh: Vec<Edge> = self
            .fresh
            .iter()
            .zip(&self.alive[self.old.len()..])
            .filter_map(|(edge, alive)| alive.then_some(*edge))
            .collect();
        let ends = |e: &Edge| (e.src, e.dst, e.distance);
        fresh.sort_unstable_by_key(|e| (ends(e), std::cmp::Reverse(e.lag), e.kind));
        fresh.dedup_by_key(|e| ends(e));
        self.alive.truncate(self.old.len());
        (self.alive, fresh, marked)
    }

    /// Joins what reaches the node with what leaves it; false if it has to stay as a mark.
    fn eliminate(&mut self, node: NodeId) -> bool {
        let slot = self.slot[node.index()] as usize;
        self.done[slot] = true;
        let mut into = std::mem::take(&mut self.into[slot]);
        let mut out_of = std::mem::take(&mut self.out_of[slot]);
        into.retain(|&index| self.alive[index as usize]);
        out_of.retain(|&index| self.alive[index as usize]);
        let (p, s) = (into.len(), out_of.len());
        let follows_itself = into.iter().any(|&index| self.edge(index).src == node);
        if p > 0 && s > 0 && (follows_itself || p.saturating_mul(s) > p + s + 4) {
            return false;
        }
        for &index in into.iter().chain(&out_of) {
            self.alive[index as usize] = false;
        }
        for &first in &into {
            for &second in &out_of {
                self.bridge(self.edge(first), self.edge(second));
            }
        }
        true
    }

    fn bridge(&mut self, first: Edge, second: Edge) {
        let edge = Edge {
            src: first.src,
            dst: second.dst,
            kind: if first.kind == second.kind { first.kind } else { EdgeKind::Data },
            origin: EdgeOrigin::Inferred,
            lag: first.lag + second.lag,
            distance: first.distance.saturating_add(second.distance),
        };
        let index = self.alive.len() as u32;
        self.alive.push(true);
        self.fresh.push(edge);
        self.index_edge(index, &edge);
    }
}

#[cfg(test)]
mod tests {
    use foretrain_core::Nanos;

    use super::*;

    fn nodes(count: usize) -> StepGraph {
        let mut g = StepGraph::new();
        let queue = g.add_queue("q", QueueKind::Stream);
        for i in 0..count {
            let name = g.names.intern(&format!("n{i}"));
            let id = g.add_node(Node::new(NodeKind::Kernel, name, queue, Nanos::from_nanos(10)));
            g.node_attributes.set_i64("number", id.index(), i as i64);
        }
        g
    }

    fn link(g: &mut StepGraph, src: u32, dst: u32, lag: i64) {
        let edge = Edge::new(NodeId::new(src), NodeId::new(dst), EdgeKind::StreamOrder);
        g.add_edge(edge.with_lag(Nanos::from_nanos(lag)));
    }

    fn set(g: &StepGraph, ids: &[u32]) -> NodeSet {
        NodeSet::from_ids(g.node_count(), ids.iter().copied().map(NodeId::new))
    }

    #[test]
    fn a_removed_chain_leaves_one_edge_with_its_delays() {
        let mut g = nodes(4);
        for (i, lag) in [3, 4, 5].into_iter().enumerate() {
            link(&mut g, i as u32, i as u32 + 1, lag);
        }
        let removed = g.remove_nodes(&set(&g, &[1, 2]), Removal::Bridge);
        assert_eq!(g.edges().len(), 1);
        let edge = g.edges()[0];
        assert_eq!((edge.src.get(), edge.dst.get(), edge.lag.nanos()), (0, 1, 12));
        assert_eq!((edge.kind, edge.origin), (EdgeKind::StreamOrder, EdgeOrigin::Inferred));
        assert_eq!(removed.remap.get(NodeId::new(3)), Some(NodeId::new(1)));
        assert_eq!(removed.remap.get(NodeId::new(2)), None);
        assert_eq!(g.node_attributes.get_i64("number", 1), Some(3));
        assert_eq!(g.longest_path().unwrap().length.nanos(), 32);
    }

    #[test]
    fn detaching_drops_the_order() {
        let mut g = nodes(3);
        link(&mut g, 0, 1, 0);
        link(&mut g, 1, 2, 0);
        g.remove_nodes(&set(&g, &[1]), Removal::Detach);
        assert!(g.edges().is_empty());
        assert_eq!(g.node_count(), 2);
    }

    #[test]
    fn a_hub_becomes_a_mark_instead_of_a_square_of_edges() {
        let mut g = nodes(2001);
        for i in 0..1000 {
            link(&mut g, i, 2000, 0);
            link(&mut g, 2000, 1000 + i, 7);
        }
        let removed = g.remove_nodes(&set(&g, &[2000]), Removal::Bridge);
        assert_eq!(removed.marks, [NodeId::new(2000)]);
        assert_eq!(removed.remap.get(NodeId::new(2000)), None);
        assert_eq!((g.node_count(), g.edges().len()), (2001, 2000));
        let mark = g.node(NodeId::new(2000));
        assert_eq!((mark.kind, mark.work), (NodeKind::Mark, Nanos::ZERO));
        assert_ne!(mark.queue, g.queue(NodeId::new(0)));
        assert_eq!(g.node_attributes.get_i64("number", 2000), None);
        assert_eq!(g.longest_path().unwrap().length.nanos(), 27);
    }

    #[test]
    fn distances_add_up_and_wrapping_chains_keep_their_period() {
        let mut g = nodes(4);
        // 0 launches 1; the stream holds 1 -> 2 and wraps to the next step; 3 waits for 2.
        link(&mut g, 0, 1, 0);
        link(&mut g, 1, 2, 0);
        link(&mut g, 2, 3, 0);
        let wrap = Edge::new(NodeId::new(2), NodeId::new(1), EdgeKind::StreamOrder);
        g.add_edge(wrap.with_distance(1));
        let mut one = g.clone();
        one.remove_nodes(&set(&g, &[2]), Removal::Bridge);
        let wraps: Vec<_> = one.edges().iter().filter(|e| e.distance == 1).collect();
        assert_eq!(wraps.len(), 1);
        assert_eq!((wraps[0].src, wraps[0].dst), (NodeId::new(1), NodeId::new(1)));
        let removed = g.remove_nodes(&set(&g, &[1, 2]), Removal::Bridge);
        assert_eq!(removed.marks.len(), 1);
        assert!(g.edges().iter().any(|e| e.distance == 1 && e.src == e.dst));
        assert!(g.validate().is_ok());
    }

    #[test]
    fn parallel_bridges_keep_the_longest_delay() {
        let mut g = nodes(4);
        for (middle, lag) in [(1, 5), (2, 9)] {
            link(&mut g, 0, middle, 0);
            link(&mut g, middle, 3, lag);
        }
        g.remove_nodes(&set(&g, &[1, 2]), Removal::Bridge);
        assert_eq!(g.edges().len(), 1);
        assert_eq!(g.edges()[0].lag.nanos(), 9);
    }
}
