//! Evaluating queries column by column.

use std::cmp::Ordering;

use foretrain_core::NameId;

use super::{Compare, Field, Query, Value};
use crate::attributes::Column;
use crate::glob::Glob;
use crate::node_set::NodeSet;
use crate::step_graph::{GroupId, StepGraph};

impl StepGraph {
    /// The nodes for which the query holds. Each glob is matched once per distinct name.
    pub fn select(&self, query: &Query) -> NodeSet {
        let t = &self.nodes;
        let rows = self.node_count();
        match query {
            Query::All => NodeSet::full(rows),
            Query::Kind(kind) => NodeSet::from_fn(rows, |i| t.kind[i] == *kind),
            Query::Phase(phase) => NodeSet::from_fn(rows, |i| t.phase[i] == *phase),
            Query::Collective(op) => NodeSet::from_fn(rows, |i| t.collective[i] == Some(*op)),
            Query::DType(dtype) => NodeSet::from_fn(rows, |i| t.dtype[i] == Some(*dtype)),
            Query::Name(glob) => self.select_names(&t.name, glob),
            Query::Module(glob) => self.select_names(&t.module, glob),
            Query::Queue(glob) => {
                let hits: Vec<_> = self.queues.iter().map(|q| glob.matches(&q.name)).collect();
                NodeSet::from_fn(rows, |i| hits.get(t.queue[i].index()).copied().unwrap_or(false))
            }
            Query::Group(glob) => self.select_groups(|i| glob.matches(&self.groups[i].name)),
            Query::Role(glob) => self.select_groups(|i| glob.matches(&self.groups[i].role)),
            Query::Field(field, compare, value) => self.select_field(*field, *compare, *value),
            Query::HasAttribute(name) => match self.node_attributes.column(name) {
                Some(column) => NodeSet::from_fn(rows, |i| column.is_set(i)),
                None => NodeSet::empty(rows),
            },
            Query::Attribute(name, compare, value) => match self.node_attributes.column(name) {
                Some(column) => select_cells(rows, column, *compare, value),
                None => NodeSet::empty(rows),
            },
            Query::Not(inner) => self.select(inner).complement(),
            Query::And(all) => all.iter().fold(NodeSet::full(rows), |mut set, query| {
                set.intersect_with(&self.select(query));
                set
            }),
            Query::Or(any) => any.iter().fold(NodeSet::empty(rows), |mut set, query| {
                set.union_with(&self.select(query));
                set
            }),
        }
    }

    fn select_names(&self, column: &[NameId], glob: &Glob) -> NodeSet {
        let hits: Vec<bool> = self.names.iter().map(|(_, name)| glob.matches(name)).collect();
        let hit = |id: NameId| hits.get(id.index()).copied().unwrap_or(false);
        NodeSet::from_fn(column.len(), |i| hit(column[i]))
    }

    fn select_groups(&self, test: impl Fn(usize) -> bool) -> NodeSet {
        let hits: Vec<bool> = (0..self.groups.len()).map(test).collect();
        let hit = |id: GroupId| hits.get(id.index()).copied().unwrap_or(false);
        NodeSet::from_fn(self.node_count(), |i| self.nodes.group[i].is_some_and(hit))
    }

    fn select_field(&self, field: Field, compare: Compare, value: i64) -> NodeSet {
        let t = &self.nodes;
        let rows = self.node_count();
        match field {
            Field::Work => NodeSet::from_fn(rows, |i| compare.holds(t.work[i].nanos().cmp(&value))),
            Field::Bytes => NodeSet::from_fn(rows, |i| {
                t.bytes[i].is_some_and(|b| compare.holds(i128::from(b.get()).cmp(&value.into())))
            }),
            Field::Priority => {
                NodeSet::from_fn(rows, |i| compare.holds(i64::from(t.priority[i]).cmp(&value)))
            }
            Field::Sequence => {
                NodeSet::from_fn(rows, |i| compare.holds(i64::from(t.sequence[i]).cmp(&value)))
            }
        }
    }
}

fn select_cells(rows: usize, column: &Column, compare: Compare, value: &Value) -> NodeSet {
    let by_order = |order: Option<Ordering>| order.is_some_and(|o| compare.holds(o));
    match (column, value) {
        (Column::I64(cells), Value::Int(want)) => {
            select_set(rows, cells, |cell| compare.holds(cell.cmp(want)))
        }
        (Column::I64(cells), Value::Float(want)) => {
            select_set(rows, cells, |cell| by_order(int_vs_float(*cell, *want)))
        }
        (Column::F64(cells), Value::Float(want)) => {
            select_set(rows, cells, |cell| by_order(cell.partial_cmp(want)))
        }
        (Column::F64(cells), Value::Int(want)) => select_set(rows, cells, |cell| {
            by_order(int_vs_float(*want, *cell).map(Ordering::reverse))
        }),
        (Column::Bool(cells), Value::Bool(want)) => {
            select_set(rows, cells, |cell| compare.holds(cell.cmp(want)))
        }
        (Column::Str(cells), Value::Text(want)) if compare == Compare::Like => {
            let glob = Glob::new(want);
            select_set(rows, cells, |cell| glob.matches(cell))
        }
        (Column::Str(cells), Value::Text(want)) => {
            select_set(rows, cells, |cell| compare.holds((**cell).cmp(want.as_str())))
        }
        _ => NodeSet::empty(rows),
    }
}

fn select_set<T>(rows: usize, cells: &[Option<T>], test: impl Fn(&T) -> bool) -> NodeSet {
    NodeSet::from_fn(rows, |i| cells.get(i).and_then(Option::as_ref).is_some_and(&test))
}

/// Compares by value, without the rounding of `int as f64`; `None` for NaN.
fn int_vs_float(int: i64, float: f64) -> Option<Ordering> {
    const TWO_63: f64 = 9_223_372_036_854_775_808.0;
    if float.is_nan() {
        None
    } else if float >= TWO_63 {
        Some(Ordering::Less)
    } else if float < -TWO_63 {
        Some(Ordering::Greater)
    } else {
        let floor = float.floor();
        Some(int.cmp(&(floor as i64)).then(if float > floor {
            Ordering::Less
        } else {
            Ordering::Equal
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{CollectiveKind, NodeKind, Phase, QueueKind};
    use crate::step_graph::{Group, Node, NodeId};
    use foretrain_core::{Bytes, Nanos};

    fn sample() -> StepGraph {
        let mut g = StepGraph::new();
        let stream = g.add_queue("stream 7", QueueKind::Stream);
        let comm = g.add_queue("stream 20", QueueKind::Stream);
        let group = g.add_group(Group {
            name: "dp_0".into(),
            role: "data-parallel".into(),
            size: 8,
            ranks: vec![],
        });
        let gemm = g.names.intern("ampere_gemm_128");
        let relu = g.names.intern("relu");
        let all_reduce = g.names.intern("ncclAllReduce");
        let module = g.names.intern("layers.3.mlp");
        let mut node = Node::new(NodeKind::Kernel, gemm, stream, Nanos::from_micros(12));
        node.phase = Phase::Backward;
        node.module = module;
        g.add_node(node);
        g.add_node(Node::new(NodeKind::Kernel, relu, stream, Nanos::from_micros(3)));
        let mut node = Node::new(NodeKind::Collective, all_reduce, comm, Nanos::from_micros(50));
        node.group = Some(group);
        node.collective = Some(CollectiveKind::AllReduce);
        node.bytes = Some(Bytes::from_mib(2));
        g.add_node(node);
        g.node_attributes.set_i64("tokens", 0, 7);
        g.node_attributes.set_i64("tokens", 1, 8);
        g.node_attributes.set_f64("spread", 1, 0.25);
        g.node_attributes.set_str("owner", 2, "team-a".into());
        g
    }

    #[test]
    fn every_condition_selects_its_nodes() {
        let g = sample();
        for (text, want) in [
            ("all", &[0, 1, 2][..]),
            ("kernel", &[0, 1]),
            (r#"kernel("*gemm*")"#, &[0]),
            ("kernel(*gemm*)", &[0]),
            (r#"kind:kernel & phase:backward & name:"*gemm*""#, &[0]),
            ("collective(all-reduce)", &[2]),
            ("collective:all-reduce", &[2]),
            (r#"collective("nccl*")"#, &[2]),
            ("module:layers.?.mlp", &[0]),
            (r#"queue:"stream 7""#, &[0, 1]),
            ("group:dp_*", &[2]),
            ("role:data-*", &[2]),
            ("attr:tokens", &[0, 1]),
            ("attr:tokens>7", &[1]),
            ("attr:tokens >= 7.5", &[1]),
            ("attr:tokens != 7", &[1]),
            ("attr:spread<1", &[1]),
            ("attr:owner~team-*", &[2]),
            ("attr:owner=team", &[]),
            ("work>=12us", &[0, 2]),
            ("work > 0.01ms & work < 20us", &[0]),
            ("bytes=2MiB", &[2]),
            ("priority=0 & sequence<1 & !collective", &[0, 1]),
            ("!(kernel | collective)", &[]),
            ("not kernel or name:relu", &[1, 2]),
            ("kernel & name:relu | collective", &[1, 2]),
            ("kernel & (name:relu | collective)", &[1]),
        ] {
            let query = Query::parse(text).unwrap();
            let found: Vec<_> = g.select(&query).iter().map(NodeId::get).collect();
            assert_eq!(found, want, "{text}");
        }
    }

    #[test]
    fn integers_and_floats_compare_by_value() {
        let big = (1i64 << 53) + 1;
        assert_eq!(int_vs_float(big, (1i64 << 53) as f64), Some(Ordering::Greater));
        assert_eq!(int_vs_float(i64::MAX, 9.3e18), Some(Ordering::Less));
        assert_eq!(int_vs_float(i64::MIN, f64::NEG_INFINITY), Some(Ordering::Greater));
        assert_eq!(int_vs_float(-1, -0.5), Some(Ordering::Less));
        assert_eq!(int_vs_float(0, f64::NAN), None);
    }
}
