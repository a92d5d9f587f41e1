//! Orders and paths over the edges of one step (distance 0).

use std::collections::VecDeque;

use foretrain_core::{InputError, Nanos, Result};

use crate::csr::Csr;
use crate::step_graph::{NodeId, StepGraph};

/// The longest chain of work and delays through one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CriticalPath {
    /// When the chain's last node ends, counted from the start of the step.
    pub length: Nanos,
    /// The nodes of the chain, first to last; empty for an empty graph.
    pub nodes: Vec<NodeId>,
}

impl StepGraph {
    /// The nodes in an order in which every edge of the same step leads forward. The same graph
    /// gives the same order.
    ///
    /// # Errors
    /// If those edges form a cycle; the error spells out a short one. Ids out of range are errors
    /// too.
    pub fn topological_order(&self) -> Result<Vec<NodeId>> {
        self.validate_ends()?;
        let forward = |e: &crate::step_graph::Edge| e.distance > 0 || e.src < e.dst;
        if self.edges.iter().all(forward) {
            return Ok(self.node_ids().collect());
        }
        let next = self.successors();
        order(&next)
            .map(|order| order.into_iter().map(NodeId::new).collect())
            .map_err(|stuck| self.cycle_error(&next, &stuck))
    }

    /// The longest path through the step: works plus delays, edges of distance 0 only, and no
    /// waiting for busy queues or other ranks. It bounds the step time from below.
    ///
    /// Earliest starts follow `start(v) = max(0, max over edges (start(u) + work(u) + lag))`, the
    /// forward pass of the critical path method (Kelley and Walker, 1959).
    ///
    /// # Errors
    /// If the edges of the step form a cycle.
    pub fn longest_path(&self) -> Result<CriticalPath> {
        let order = self.topological_order()?;
        let outgoing = self.outgoing();
        let mut start = vec![Nanos::ZERO; self.node_count()];
        let mut reason: Vec<Option<NodeId>> = vec![None; self.node_count()];
        for &node in &order {
            let end = start[node.index()] + self.work(node);
            for &index in outgoing.row(node.index()) {
                let edge = self.edges[index as usize];
                let ready = end + edge.lag;
                let target = edge.dst.index();
                if edge.distance == 0 && (ready > start[target] || is_first(&reason, target, ready))
                {
                    (start[target], reason[target]) = (ready, Some(node));
                }
            }
        }
        let end = |node: &NodeId| start[node.index()] + self.work(*node);
        // Of equal ends the node with the lowest id.
        let last = self.node_ids().max_by_key(|node| (end(node), std::cmp::Reverse(*node)));
        let mut nodes: Vec<NodeId> =
            std::iter::successors(last, |node| reason[node.index()]).collect();
        nodes.reverse();
        Ok(CriticalPath { length: last.as_ref().map_or(Nanos::ZERO, end), nodes })
    }

    /// The work of all nodes in turn: the step time if nothing overlapped.
    pub fn serial_sum(&self) -> Nanos {
        self.works().iter().copied().sum()
    }

    fn validate_ends(&self) -> Result<()> {
        let rows = self.node_count();
        match self.edges.iter().position(|e| e.src.index().max(e.dst.index()) >= rows) {
            Some(_) => self.validate_references(),
            None => Ok(()),
        }
    }

    /// For each node, the nodes that its edges of the same step lead to.
    pub(super) fn successors(&self) -> Csr {
        let within = self.edges.iter().filter(|e| e.distance == 0);
        Csr::from_pairs(self.node_count(), within.map(|e| (e.src.get(), e.dst.get())))
    }

    fn cycle_error(&self, next: &Csr, stuck: &[bool]) -> InputError {
        const SHOWN: usize = 12;
        let cycle = find_cycle(next, stuck);
        let mut words: Vec<String> =
            cycle.iter().take(SHOWN).map(|&node| self.describe(NodeId::new(node))).collect();
        if cycle.len() > SHOWN {
            words.push(format!("({} more)", cycle.len() - SHOWN));
        }
        words.extend(cycle.first().map(|&node| self.describe(NodeId::new(node))));
        InputError::new(format!("the step's edges form a cycle: {}", words.join(" -> ")))
            .hint("an edge to the next step needs a distance of at least 1")
    }
}

/// A first predecessor that ends exactly at the start of the step still belongs to the path.
fn is_first(reason: &[Option<NodeId>], target: usize, ready: Nanos) -> bool {
    reason[target].is_none() && ready == Nanos::ZERO
}

/// Kahn's algorithm, first in first out. On a cycle, the nodes that never became free.
pub(super) fn order(next: &Csr) -> Result<Vec<u32>, Vec<bool>> {
    let rows = next.rows();
    let mut waiting = vec![0u32; rows];
    for row in 0..rows {
        for &target in next.row(row) {
            waiting[target as usize] += 1;
        }
    }
    let mut order: Vec<u32> = (0..rows as u32).filter(|&v| waiting[v as usize] == 0).collect();
    let mut done = 0;
    while done < order.len() {
        for &target in next.row(order[done] as usize) {
            waiting[target as usize] -= 1;
            if waiting[target as usize] == 0 {
                order.push(target);
            }
        }
        done += 1;
    }
    if order.len() == rows { Ok(order) } else { Err(waiting.iter().map(|&n| n > 0).collect()) }
}

/// A cycle among the stuck nodes: a shortest one through the first node found to lie on any.
pub(super) fn find_cycle(next: &Csr, stuck: &[bool]) -> Vec<u32> {
    // Every stuck node has a stuck predecessor, so walking backwards must come round.
    let mut before = vec![u32::MAX; stuck.len()];
    for (row, _) in stuck.iter().enumerate().filter(|(_, stuck)| **stuck) {
        for &target in next.row(row) {
            if before[target as usize] == u32::MAX {
                before[target as usize] = row as u32;
            }
        }
    }
    let Some(first) = stuck.iter().position(|&stuck| stuck) else { return Vec::new() };
    let mut seen = vec![false; stuck.len()];
    let mut node = first as u32;
    while !std::mem::replace(&mut seen[node as usize], true) {
        node = before[node as usize];
    }
    // `node` lies on a cycle; start from its lowest member so that the report is stable.
    let lowest = std::iter::successors(Some(before[node as usize]), |&v| {
        (v != node).then(|| before[v as usize])
    })
    .min()
    .unwrap_or(node);
    shortest_way_back(next, stuck, lowest)
}

fn shortest_way_back(next: &Csr, stuck: &[bool], home: u32) -> Vec<u32> {
    let mut parent = vec![u32::MAX; stuck.len()];
    let mut queue = VecDeque::from([home]);
    while let Some(node) = queue.pop_front() {
        for &target in next.row(node as usize) {
            if target == home {
                let back = |&v: &u32| (v != home).then(|| parent[v as usize]);
                let mut cycle: Vec<u32> = std::iter::successors(Some(node), back).collect();
                cycle.reverse();
                return cycle;
            }
            if stuck[target as usize] && parent[target as usize] == u32::MAX {
                parent[target as usize] = node;
                queue.push_back(target);
            }
        }
    }
    vec![home]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{EdgeKind, NodeKind, QueueKind};
    use crate::step_graph::{Edge, Node};

    #[test]
    fn the_longest_path_counts_delays() {
        let mut g = StepGraph::new();
        let queue = g.add_queue("q", QueueKind::Stream);
        let name = g.names.intern("k");
        let works = [5, 20, 1, 7];
        let ids = works.map(|work| {
            g.add_node(Node::new(NodeKind::Kernel, name, queue, Nanos::from_nanos(work)))
        });
        // Ids run against the order, so that the order must be worked out.
        let lag = Nanos::from_nanos(100);
        g.add_edge(Edge::new(ids[3], ids[0], EdgeKind::Data));
        g.add_edge(Edge::new(ids[3], ids[2], EdgeKind::Data).with_lag(lag));
        g.add_edge(Edge::new(ids[2], ids[1], EdgeKind::Data).with_lag(Nanos::from_nanos(-1)));
        g.add_edge(Edge::new(ids[1], ids[3], EdgeKind::Data).with_distance(1));
        let path = g.longest_path().unwrap();
        assert_eq!(path.length.nanos(), 7 + 100 + 1 - 1 + 20);
        assert_eq!(path.nodes, [ids[3], ids[2], ids[1]]);
        assert_eq!(g.serial_sum().nanos(), 33);
        let order = g.topological_order().unwrap();
        let place = |id| order.iter().position(|&other| other == id).unwrap();
        assert!(place(ids[3]) < place(ids[2]) && place(ids[2]) < place(ids[1]));
        assert_eq!(StepGraph::new().longest_path().unwrap(), CriticalPath::default());
    }
}
