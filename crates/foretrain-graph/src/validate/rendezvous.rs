//! Whether the classes of a job meet in their collectives.

use std::collections::BTreeMap;

use foretrain_core::{Bytes, InputError, Result};

use super::paths::{find_cycle, order};
use crate::csr::Csr;
use crate::job::Job;
use crate::kinds::{CollectiveKind, NodeKind};
use crate::step_graph::{NodeId, StepGraph};

/// Payloads of one collective may differ between members by less than this factor: uneven shards
/// are padded or split by the frameworks, but a different operation is rarely that near.
const BYTES_FACTOR: u64 = 2;

/// The collectives of one group in one class: the n-th of each kind, and its node.
type Calls = BTreeMap<(CollectiveKind, u32), NodeId>;

impl Job {
    /// Checks every class and that the classes meet: classes that share a group issue the same
    /// collectives in it (kind, n-th of the kind, payload within a factor of 2), agree on its
    /// size, and no order of collectives in one class contradicts the order in another, which
    /// would be a deadlock. Groups are told apart by name, so subgroups may each have sequences
    /// of their own.
    ///
    /// # Errors
    /// The first fault, naming the classes and nodes concerned.
    pub fn validate(&self) -> Result<()> {
        for (index, class) in self.classes.iter().enumerate() {
            class.graph.validate().map_err(|error| error.at(format!("class {index}")))?;
            if class.multiplicity == 0 {
                return Err(InputError::new("the class stands for no ranks")
                    .at(format!("class {index}"))
                    .hint("drop the class or give it a multiplicity of at least 1"));
            }
        }
        let calls = self.calls()?;
        self.check_sizes()?;
        for (group, members) in &calls {
            let mut members = members.iter();
            let Some(first) = members.next() else { continue };
            for second in members {
                self.compare(group, first, second)?;
            }
        }
        self.check_deadlock(&calls)
    }

    /// Group name -> the calls of every class in it, in class order.
    fn calls(&self) -> Result<BTreeMap<&str, Vec<(usize, Calls)>>> {
        let mut all: BTreeMap<&str, Vec<(usize, Calls)>> = BTreeMap::new();
        for (index, class) in self.classes.iter().enumerate() {
            let graph = &class.graph;
            for id in graph.node_ids().filter(|&id| graph.kind(id) == NodeKind::Collective) {
                let node = graph.node(id);
                let (Some(group), Some(kind)) = (node.group, node.collective) else { continue };
                let members = all.entry(&graph.groups[group.index()].name).or_default();
                if members.last().is_none_or(|(class, _)| *class != index) {
                    members.push((index, Calls::new()));
                }
                let calls = members.last_mut().map(|(_, calls)| calls);
                let earlier = calls.and_then(|calls| calls.insert((kind, node.sequence), id));
                if let Some(earlier) = earlier {
                    return Err(InputError::new(format!(
                        "nodes {} and {} are both the {kind} number {} of group \"{}\"",
                        graph.describe(earlier),
                        graph.describe(id),
                        node.sequence,
                        graph.groups[group.index()].name,
                    ))
                    .at(format!("class {index}")));
                }
            }
        }
        Ok(all)
    }

    fn check_sizes(&self) -> Result<()> {
        let mut sizes: BTreeMap<&str, (usize, u32)> = BTreeMap::new();
        for (index, class) in self.classes.iter().enumerate() {
            for group in class.graph.groups.iter().filter(|group| group.size > 0) {
                let (first, size) = *sizes.entry(&group.name).or_insert((index, group.size));
                if size != group.size {
                    return Err(InputError::new(format!(
                        "group \"{}\" has {size} ranks in class {first} and {} in class {index}",
                        group.name, group.size
                    ))
                    .hint(
                        "groups of equal name are one group; give different groups other names",
                    ));
                }
            }
        }
        Ok(())
    }

    fn compare(&self, group: &str, a: &(usize, Calls), b: &(usize, Calls)) -> Result<()> {
        for ((class, calls), (other, others)) in [(a, b), (b, a)] {
            let missing = calls.iter().find(|(key, _)| !others.contains_key(*key));
            if let Some(((kind, number), &id)) = missing {
                let node = self.classes[*class].graph.describe(id);
                let count = others.keys().filter(|(other, _)| other == kind).count();
                return Err(InputError::new(format!(
                    "class {class} waits in {kind} number {number} of group \"{group}\" (node \
                     {node}), which class {other} never issues (it issues {count})"
                ))
                .hint("every member of a group must issue the same collectives"));
            }
        }
        for (key, &id) in &a.1 {
            let (Some(&other), true) = (b.1.get(key), has_equal_payload(key.0)) else { continue };
            let (graph, other_graph) = (&self.classes[a.0].graph, &self.classes[b.0].graph);
            let pair = (graph.node(id).bytes, other_graph.node(other).bytes);
            if let (Some(x), Some(y)) = pair
                && !alike(x, y)
            {
                return Err(InputError::new(format!(
                    "{} number {} of group \"{group}\" moves {x} in class {} (node {}) and {y} in \
                     class {} (node {})",
                    key.0,
                    key.1,
                    a.0,
                    graph.describe(id),
                    b.0,
                    other_graph.describe(other),
                )));
            }
        }
        Ok(())
    }

    /// Joins the members of each collective into one node; the union of all classes' orders must
    /// still be an order.
    fn check_deadlock(&self, calls: &BTreeMap<&str, Vec<(usize, Calls)>>) -> Result<()> {
        let bases: Vec<u32> = self
            .classes
            .iter()
            .scan(0u32, |next, class| {
                let base = *next;
                *next = next.checked_add(u32::try_from(class.graph.node_count()).ok()?)?;
                Some(base)
            })
            .collect();
        if bases.len() < 2 {
            return Ok(());
        }
        let rows =
            bases[bases.len() - 1] as usize + self.classes[bases.len() - 1].graph.node_count();
        let mut joined: Vec<u32> = (0..rows as u32).collect();
        for members in calls.values().filter(|members| members.len() > 1) {
            for (key, first) in &members[0].1 {
                for (class, others) in &members[1..] {
                    if let (Some(other), Some(base)) = (others.get(key), bases.get(*class)) {
                        joined[(base + other.get()) as usize] = bases[members[0].0] + first.get();
                    }
                }
            }
        }
        let mut pairs = Vec::new();
        for (class, base) in self.classes.iter().zip(&bases) {
            let within = class.graph.edges().iter().filter(|e| e.distance == 0);
            let end = |id: NodeId| joined[(base + id.get()) as usize];
            pairs.extend(within.map(|e| (end(e.src), end(e.dst))));
        }
        let next = Csr::from_pairs(rows, pairs.into_iter().collect::<Vec<_>>().iter().copied());
        match order(&next) {
            Ok(_) => Ok(()),
            Err(stuck) => Err(self.deadlock_error(&bases, &find_cycle(&next, &stuck))),
        }
    }

    fn deadlock_error(&self, bases: &[u32], cycle: &[u32]) -> InputError {
        let place = |node: u32| {
            let class = bases.partition_point(|&base| base <= node) - 1;
            (&self.classes[class].graph, NodeId::new(node - bases[class]))
        };
        let words: Vec<String> = cycle
            .iter()
            .map(|&node| place(node))
            .filter(|(graph, id)| graph.kind(*id) == NodeKind::Collective)
            .take(6)
            .map(|(graph, id)| describe_call(graph, id))
            .collect();
        InputError::new(format!(
            "the classes wait for each other in different orders: {}",
            words.join(" before ")
        ))
        .hint("every rank must issue the collectives it shares with others in one order")
    }
}

fn describe_call(graph: &StepGraph, id: NodeId) -> String {
    let node = graph.node(id);
    let group = node.group.map_or("", |group| graph.groups[group.index()].name.as_str());
    let kind = node.collective.unwrap_or(CollectiveKind::Unknown);
    format!("{kind} number {} of group \"{group}\"", node.sequence)
}

/// Whether all members of the operation see the same payload.
fn has_equal_payload(kind: CollectiveKind) -> bool {
    use CollectiveKind as C;
    matches!(kind, C::AllReduce | C::AllGather | C::ReduceScatter | C::Broadcast | C::Reduce)
}

fn alike(a: Bytes, b: Bytes) -> bool {
    let (small, large) = (a.get().min(b.get()), a.get().max(b.get()));
    small == large || large < small.saturating_mul(BYTES_FACTOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{EdgeKind, QueueKind};
    use crate::step_graph::{Edge, Group, Node};
    use foretrain_core::Nanos;

    /// A chain of collectives `(group, kind, sequence, bytes)`.
    fn chain(calls: &[(&str, CollectiveKind, u32, u64)]) -> StepGraph {
        let mut g = StepGraph::new();
        let queue = g.add_queue("comm", QueueKind::Stream);
        let mut last = None;
        for (group, kind, sequence, bytes) in calls {
            let known = g.groups.iter().position(|known| known.name == *group);
            let group = known.map(crate::step_graph::GroupId::from_index).unwrap_or_else(|| {
                let (name, role) = ((*group).to_owned(), String::new());
                g.add_group(Group { name, role, size: 2, ranks: vec![] })
            });
            let name = g.names.intern(kind.as_str());
            let mut node = Node::new(NodeKind::Collective, name, queue, Nanos::from_nanos(1));
            node.group = Some(group);
            node.collective = Some(*kind);
            node.sequence = *sequence;
            node.bytes = Some(Bytes::new(*bytes));
            let id = g.add_node(node);
            if let Some(last) = last.replace(id) {
                g.add_edge(Edge::new(last, id, EdgeKind::StreamOrder));
            }
        }
        g
    }

    use CollectiveKind::{AllGather, AllReduce, AllToAll};

    fn message(job: &Job) -> String {
        job.validate().unwrap_err().to_string()
    }

    #[test]
    fn equal_sequences_and_separate_groups_are_fine() {
        let a =
            chain(&[("dp", AllReduce, 0, 100), ("tp0", AllGather, 0, 5), ("dp", AllReduce, 1, 7)]);
        let b =
            chain(&[("dp", AllReduce, 0, 130), ("tp1", AllToAll, 0, 9), ("dp", AllReduce, 1, 7)]);
        Job::from_ranks([a, b]).validate().unwrap();
        let a = chain(&[("ep", AllToAll, 0, 100)]);
        let b = chain(&[("ep", AllToAll, 0, 100_000)]);
        Job::from_ranks([a, b]).validate().unwrap();
    }

    #[test]
    fn the_first_mismatch_is_named() {
        let a = chain(&[("dp", AllReduce, 0, 100), ("dp", AllReduce, 1, 100)]);
        let b = chain(&[("dp", AllReduce, 0, 100)]);
        assert_eq!(
            message(&Job::from_ranks([a.clone(), b])),
            "class 0 waits in all-reduce number 1 of group \"dp\" (node 1 \"all-reduce\"), which \
             class 1 never issues (it issues 1)"
        );
        let b = chain(&[("dp", AllReduce, 0, 100), ("dp", AllReduce, 1, 900)]);
        assert_eq!(
            message(&Job::from_ranks([a.clone(), b])),
            "all-reduce number 1 of group \"dp\" moves 100 B in class 0 (node 1 \"all-reduce\") \
             and 900 B in class 1 (node 1 \"all-reduce\")"
        );
        let b = chain(&[("dp", AllReduce, 0, 100), ("dp", AllReduce, 0, 100)]);
        assert_eq!(
            message(&Job::from_ranks([b])),
            "nodes 0 \"all-reduce\" and 1 \"all-reduce\" are both the all-reduce number 0 of group \
             \"dp\" (at class 0)"
        );
        let mut b = a.clone();
        b.groups[0].size = 4;
        assert_eq!(
            message(&Job::from_ranks([a.clone(), b])),
            "group \"dp\" has 2 ranks in class 0 and 4 in class 1"
        );
        assert_eq!(message(&Job::uniform(a, 0)), "the class stands for no ranks (at class 0)");
    }

    #[test]
    fn opposite_orders_are_a_deadlock() {
        let a = chain(&[("dp", AllReduce, 0, 8), ("tp", AllGather, 0, 8)]);
        let b = chain(&[("tp", AllGather, 0, 8), ("dp", AllReduce, 0, 8)]);
        assert_eq!(
            message(&Job::from_ranks([a, b])),
            "the classes wait for each other in different orders: all-reduce number 0 of group \
             \"dp\" before all-gather number 0 of group \"tp\""
        );
    }
}
