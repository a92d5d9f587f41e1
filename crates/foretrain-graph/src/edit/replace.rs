//! Putting one graph into another.

use std::ops::Range;

use foretrain_core::{InputError, Result};

use super::{Remap, Removal};
use crate::kinds::{EdgeKind, EdgeOrigin};
use crate::node_set::NodeSet;
use crate::step_graph::{Edge, GroupId, NodeId, QueueId, StepGraph};

/// The outcome of a replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// Where the other nodes went.
    pub remap: Remap,
    /// Ids of the nodes that came in, in the order of the subgraph.
    pub nodes: Range<u32>,
}

impl StepGraph {
    /// Copies the nodes and edges of `other` to the end of the tables, unconnected, and returns
    /// the new ids. Queues are shared when name, kind and device agree, groups when their names
    /// agree; user attributes come along.
    ///
    /// # Errors
    /// If an attribute exists in both graphs with different types, or `other` refers to queues,
    /// groups or nodes that it does not have. Nothing is changed then.
    pub fn append_graph(&mut self, other: &StepGraph) -> Result<Range<u32>> {
        other.validate_references().map_err(|e| e.hint("mend the graph to be inserted first"))?;
        let (nodes, edges) = (self.node_count(), self.edges.len());
        self.node_attributes.check_types(&other.node_attributes)?;
        self.edge_attributes.check_types(&other.edge_attributes)?;
        self.node_attributes.append_rows(nodes, &other.node_attributes);
        self.edge_attributes.append_rows(edges, &other.edge_attributes);
        let queues: Vec<_> = other.queues.iter().map(|q| self.shared_queue(q)).collect();
        let groups: Vec<_> = other.groups.iter().map(|g| self.shared_group(g)).collect();
        let names: Vec<_> = other.names.iter().map(|(_, name)| self.names.intern(name)).collect();
        for id in other.node_ids() {
            let mut node = other.node(id);
            node.name = names[node.name.index()];
            node.module = names[node.module.index()];
            node.queue = queues[node.queue.index()];
            node.group = node.group.map(|group| groups[group.index()]);
            self.add_node(node);
        }
        let moved = |id: NodeId| NodeId::from_index(nodes + id.index());
        self.edges.extend(other.edges.iter().map(|e| Edge {
            src: moved(e.src),
            dst: moved(e.dst),
            ..*e
        }));
        Ok(moved(NodeId::new(0)).get()..NodeId::from_index(self.node_count()).get())
    }

    fn shared_queue(&mut self, queue: &crate::step_graph::Queue) -> QueueId {
        let index = self.queues.iter().position(|q| q == queue).unwrap_or_else(|| {
            self.queues.push(queue.clone());
            self.queues.len() - 1
        });
        QueueId::from_index(index)
    }

    fn shared_group(&mut self, group: &crate::step_graph::Group) -> GroupId {
        let index = self.groups.iter().position(|g| g.name == group.name).unwrap_or_else(|| {
            self.groups.push(group.clone());
            self.groups.len() - 1
        });
        GroupId::from_index(index)
    }

    /// Replaces a node by a subgraph: the subgraph's first nodes (those that no edge of the same
    /// step reaches) wait for whatever the node waited for, and whatever waited for the node waits
    /// for the subgraph's last nodes. The node's edges keep their kind, delay and distance.
    ///
    /// Order is kept through the subgraph by the rules of [`Removal::Bridge`], so a wide subgraph
    /// between many neighbours is joined through marks without work, not by a square of edges.
    ///
    /// # Errors
    /// If the node does not exist, the subgraph is empty or has a cycle, or attributes clash (see
    /// [`append_graph`](Self::append_graph)). Nothing is changed then.
    pub fn replace_node(&mut self, node: NodeId, subgraph: &StepGraph) -> Result<Replaced> {
        if node.index() >= self.node_count() {
            let (found, has) = (node.get(), self.node_count());
            return Err(InputError::new(format!("no node {found} in a graph of {has} nodes")));
        }
        if subgraph.node_count() == 0 {
            return Err(InputError::new("cannot replace a node by an empty graph")
                .hint("remove the node instead"));
        }
        subgraph.topological_order()?;
        let (firsts, lasts) = ends(subgraph);
        let range = self.append_graph(subgraph)?;
        let moved = |id: NodeId| NodeId::new(range.start + id.get());
        // The node splits into a gate before and one behind the subgraph; removing both with
        // bridges connects neighbours and subgraph with as few edges as possible.
        let exit = self.add_node(self.node(node));
        for edge in self.edges.iter_mut().filter(|e| e.src == node) {
            edge.src = exit;
        }
        let link =
            |src, dst| Edge { origin: EdgeOrigin::Inferred, ..Edge::new(src, dst, EdgeKind::Data) };
        self.edges.extend(firsts.into_iter().map(|first| link(node, moved(first))));
        self.edges.extend(lasts.into_iter().map(|last| link(moved(last), exit)));
        let gates = NodeSet::from_ids(self.node_count(), [node, exit]);
        let removed = self.remove_nodes(&gates, Removal::Bridge);
        let start = removed.remap.get(NodeId::new(range.start)).map_or(0, NodeId::get);
        let nodes = start..start + range.len() as u32;
        Ok(Replaced { remap: removed.remap, nodes })
    }
}

/// Nodes that no edge within the step reaches, and nodes that none leaves.
fn ends(graph: &StepGraph) -> (Vec<NodeId>, Vec<NodeId>) {
    let (mut reached, mut left) =
        (vec![false; graph.node_count()], vec![false; graph.node_count()]);
    for edge in graph.edges.iter().filter(|e| e.distance == 0) {
        reached[edge.dst.index()] = true;
        left[edge.src.index()] = true;
    }
    let pick = |flags: Vec<bool>| graph.node_ids().filter(|id| !flags[id.index()]).collect();
    (pick(reached), pick(left))
}

#[cfg(test)]
mod tests {
    use foretrain_core::Nanos;

    use super::*;
    use crate::kinds::{NodeKind, QueueKind};
    use crate::step_graph::Node;

    /// `width` parallel nodes of `work` ns.
    fn parallel(width: usize, work: i64) -> StepGraph {
        let mut g = StepGraph::new();
        let queue = g.add_queue("stream 7", QueueKind::Stream);
        let name = g.names.intern(&format!("part of {width}"));
        for i in 0..width {
            let id = g.add_node(Node::new(NodeKind::Kernel, name, queue, Nanos::from_nanos(work)));
            g.node_attributes.set_i64("part", id.index(), i as i64);
        }
        g
    }

    fn fan(neighbours: u32) -> StepGraph {
        let mut g = parallel(2 * neighbours as usize + 1, 10);
        let hub = NodeId::new(0);
        for i in 0..neighbours {
            g.add_edge(
                Edge::new(NodeId::new(1 + i), hub, EdgeKind::EventWait)
                    .with_lag(Nanos::from_nanos(3)),
            );
            g.add_edge(Edge::new(hub, NodeId::new(1 + neighbours + i), EdgeKind::StreamOrder));
        }
        g
    }

    #[test]
    fn a_subgraph_takes_the_node_s_place() {
        let mut g = fan(1);
        let replaced = g.replace_node(NodeId::new(0), &parallel(2, 50)).unwrap();
        assert_eq!(g.longest_path().unwrap().length.nanos(), 10 + 3 + 50 + 10);
        assert_eq!(replaced.nodes, 2..4);
        assert_eq!(g.name(NodeId::new(2)), "part of 2");
        assert_eq!(g.node_attributes.get_i64("part", 3), Some(1));
        assert_eq!(g.node_attributes.get_i64("part", 0), Some(1));
        assert_eq!(g.queues.len(), 1);
        assert_eq!(replaced.remap.get(NodeId::new(0)), None);
        g.validate().unwrap();
    }

    #[test]
    fn wide_replacements_stay_linear() {
        let mut g = fan(500);
        g.replace_node(NodeId::new(0), &parallel(300, 50)).unwrap();
        assert!(g.edges().len() <= 2 * (500 + 300));
        assert_eq!(g.longest_path().unwrap().length.nanos(), 73);
    }

    #[test]
    fn refusals_change_nothing() {
        let mut g = fan(2);
        let before = g.clone();
        assert!(g.replace_node(NodeId::new(99), &parallel(1, 1)).is_err());
        assert!(g.replace_node(NodeId::new(0), &StepGraph::new()).is_err());
        let mut clash = parallel(1, 1);
        clash.edge_attributes.set_i64("weight", 0, 1);
        clash.add_edge(Edge::new(NodeId::new(0), NodeId::new(0), EdgeKind::Data).with_distance(1));
        g.edge_attributes.set_bool("weight", 0, true);
        let before = StepGraph { edge_attributes: g.edge_attributes.clone(), ..before };
        let error = g.replace_node(NodeId::new(0), &clash).unwrap_err();
        assert_eq!(
            error.message(),
            "attribute \"weight\" is bool in one graph and i64 in the other"
        );
        assert_eq!(g, before);
    }
}
