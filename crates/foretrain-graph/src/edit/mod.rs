//! Changing a graph: scaling, inserting, rewiring, replacing and removing.
//!
//! Ids stay dense: whatever removes rows moves the later ones up and returns a [`Remap`] from old
//! ids to new ones. User attributes move with their rows.

mod insert;
mod remove;
mod replace;

use foretrain_core::{InputError, Nanos, Result};

pub use remove::{Removal, Removed};
pub use replace::Replaced;

use crate::attributes::Column;
use crate::node_set::NodeSet;
use crate::query::Value;
use crate::step_graph::{Edge, EdgeId, NodeId, StepGraph};

/// Where each node went when rows were removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remap {
    new_ids: Vec<u32>,
}

const GONE: u32 = u32::MAX;

impl Remap {
    fn of_kept(keep: &[bool]) -> Self {
        let mut next = 0;
        let new_ids = keep
            .iter()
            .map(|&kept| {
                let id = if kept { next } else { GONE };
                next += u32::from(kept);
                id
            })
            .collect();
        Self { new_ids }
    }

    /// The node's id now; `None` if it is gone (or never was).
    pub fn get(&self, old: NodeId) -> Option<NodeId> {
        let new = *self.new_ids.get(old.index())?;
        (new != GONE).then(|| NodeId::new(new))
    }

    /// The set with the nodes' new ids, for a graph of `capacity` nodes.
    pub fn apply(&self, set: &NodeSet, capacity: usize) -> NodeSet {
        NodeSet::from_ids(capacity, set.iter().filter_map(|id| self.get(id)))
    }
}

impl StepGraph {
    /// Multiplies the work of every node in the set by `factor`, rounding to whole ns.
    ///
    /// # Errors
    /// If the factor is negative or not finite; nothing is changed then.
    pub fn scale_work(&mut self, set: &NodeSet, factor: f64) -> Result<()> {
        if !(factor.is_finite() && factor >= 0.0) {
            return Err(InputError::new(format!(
                "cannot scale work by {factor}: expected a finite factor of at least 0"
            )));
        }
        let rows = self.node_count();
        for id in set.iter().take_while(|id| id.index() < rows) {
            let work = &mut self.nodes.work[id.index()];
            *work = work.scale(factor);
        }
        Ok(())
    }

    /// Sets the work of every node in the set.
    ///
    /// # Errors
    /// If `work` is negative; nothing is changed then.
    pub fn set_work_of(&mut self, set: &NodeSet, work: Nanos) -> Result<()> {
        if work < Nanos::ZERO {
            return Err(InputError::new(format!("work cannot be negative, found {work}")));
        }
        let rows = self.node_count();
        for id in set.iter().take_while(|id| id.index() < rows) {
            self.nodes.work[id.index()] = work;
        }
        Ok(())
    }

    /// Sets an attribute of every node in the set.
    ///
    /// # Errors
    /// If the attribute exists with another type; nothing is changed then. An integer is accepted
    /// for a float attribute if a float can hold it exactly.
    pub fn set_attribute_of(&mut self, set: &NodeSet, name: &str, value: &Value) -> Result<()> {
        let rows = self.node_count();
        let ids = set.iter().map(NodeId::index).take_while(|&row| row < rows);
        let value = match (self.node_attributes.column(name), value) {
            (Some(Column::F64(_)), Value::Int(v)) if (*v as f64) as i128 == i128::from(*v) => {
                Value::Float(*v as f64)
            }
            _ => value.clone(),
        };
        let found = match value {
            Value::Int(_) => "i64",
            Value::Float(_) => "f64",
            Value::Bool(_) => "bool",
            Value::Text(_) => "str",
        };
        if let Some(column) = self.node_attributes.column(name)
            && column.type_name() != found
        {
            let has = column.type_name();
            return Err(InputError::new(format!(
                "attribute \"{name}\" holds {has} values, found {found}"
            ))
            .hint("remove the column first to change its type"));
        }
        for row in ids {
            match &value {
                Value::Int(v) => self.node_attributes.set_i64(name, row, *v),
                Value::Float(v) => self.node_attributes.set_f64(name, row, *v),
                Value::Bool(v) => self.node_attributes.set_bool(name, row, *v),
                Value::Text(v) => self.node_attributes.set_str(name, row, v.as_str().into()),
            }
        }
        Ok(())
    }

    /// Keeps the edges for which `test` holds, with their attributes, in order.
    pub fn retain_edges(&mut self, mut test: impl FnMut(EdgeId, &Edge) -> bool) {
        let keep: Vec<bool> = self
            .edges
            .iter()
            .enumerate()
            .map(|(i, edge)| test(EdgeId::from_index(i), edge))
            .collect();
        self.retain_edge_rows(&keep);
    }

    fn retain_edge_rows(&mut self, keep: &[bool]) {
        if keep.iter().all(|&kept| kept) {
            return;
        }
        retain(&mut self.edges, keep);
        self.edge_attributes.retain_rows(keep);
    }

    /// Drops the nodes that are not kept; edges must no longer refer to them.
    fn compact(&mut self, keep: &[bool]) -> Remap {
        let remap = Remap::of_kept(keep);
        self.nodes.retain_rows(keep);
        self.node_attributes.retain_rows(keep);
        for edge in &mut self.edges {
            edge.src = NodeId::new(remap.new_ids[edge.src.index()]);
            edge.dst = NodeId::new(remap.new_ids[edge.dst.index()]);
        }
        remap
    }
}

impl crate::step_graph::NodeTable {
    fn retain_rows(&mut self, keep: &[bool]) {
        retain(&mut self.kind, keep);
        retain(&mut self.name, keep);
        retain(&mut self.queue, keep);
        retain(&mut self.work, keep);
        retain(&mut self.phase, keep);
        retain(&mut self.module, keep);
        retain(&mut self.priority, keep);
        retain(&mut self.group, keep);
        retain(&mut self.collective, keep);
        retain(&mut self.sequence, keep);
        retain(&mut self.bytes, keep);
        retain(&mut self.dtype, keep);
    }
}

fn retain<T>(values: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter().copied();
    values.retain(|_| keep.next().unwrap_or(true));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{EdgeKind, NodeKind, QueueKind};
    use crate::step_graph::Node;

    #[test]
    fn scaling_and_setting_reach_the_set_only() {
        let mut g = StepGraph::new();
        let queue = g.add_queue("q", QueueKind::Stream);
        let name = g.names.intern("k");
        for _ in 0..3 {
            g.add_node(Node::new(NodeKind::Kernel, name, queue, Nanos::from_nanos(10)));
        }
        let set = NodeSet::from_ids(3, [NodeId::new(1)]);
        g.scale_work(&set, 0.5).unwrap();
        assert_eq!(g.works().iter().map(|w| w.nanos()).collect::<Vec<_>>(), [10, 5, 10]);
        assert!(g.scale_work(&set, -1.0).is_err());
        assert!(g.scale_work(&set, f64::NAN).is_err());
        assert!(g.set_work_of(&set, Nanos::from_nanos(-1)).is_err());
        g.set_attribute_of(&set, "spread", &Value::Float(0.5)).unwrap();
        g.set_attribute_of(&set, "spread", &Value::Int(2)).unwrap();
        assert_eq!(g.node_attributes.get_f64("spread", 1), Some(2.0));
        assert_eq!(g.node_attributes.get_f64("spread", 0), None);
        let error = g.set_attribute_of(&set, "spread", &Value::Bool(true)).unwrap_err();
        assert_eq!(error.message(), "attribute \"spread\" holds f64 values, found bool");
    }

    #[test]
    fn edge_attributes_follow_their_edges() {
        let mut g = StepGraph::new();
        let queue = g.add_queue("q", QueueKind::Stream);
        let name = g.names.intern("k");
        let ids: Vec<_> = (0..3)
            .map(|_| g.add_node(Node::new(NodeKind::Kernel, name, queue, Nanos::ZERO)))
            .collect();
        g.add_edge(Edge::new(ids[0], ids[1], EdgeKind::Data));
        let second = g.add_edge(Edge::new(ids[1], ids[2], EdgeKind::Data));
        g.edge_attributes.set_i64("weight", second.index(), 9);
        g.retain_edges(|id, _| id == second);
        assert_eq!(g.edge_attributes.get_i64("weight", 0), Some(9));
        assert_eq!(g.edges().len(), 1);
    }
}
