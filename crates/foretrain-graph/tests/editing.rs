//! Editing keeps graphs valid, ordered and aligned.

mod common;

use std::collections::BTreeSet;

use foretrain_core::{NameId, Nanos};
use foretrain_graph::{
    Edge, EdgeId, EdgeKind, Node, NodeId, NodeKind, NodeSet, QueueId, Removal, StepGraph,
};
use proptest::prelude::*;

/// Pairs (u, v) of nodes such that edges of the same step lead from u to v.
fn reachable(g: &StepGraph) -> BTreeSet<(NodeId, NodeId)> {
    let mut pairs = BTreeSet::new();
    let outgoing = g.outgoing();
    for start in g.node_ids() {
        let mut todo = vec![start];
        while let Some(node) = todo.pop() {
            for &index in outgoing.row(node.index()) {
                let edge = g.edges()[index as usize];
                if edge.distance == 0 && pairs.insert((start, edge.dst)) {
                    todo.push(edge.dst);
                }
            }
        }
    }
    pairs
}

/// One kept node before and one behind every other, so that no delay hangs at an end.
fn with_ends(mut g: StepGraph) -> StepGraph {
    let count = g.node_count();
    let end = Node::new(NodeKind::Mark, NameId::EMPTY, QueueId::new(0), Nanos::ZERO);
    let (first, last) = (g.add_node(end), g.add_node(end));
    for node in (0..count).map(NodeId::from_index) {
        g.add_edge(Edge::new(first, node, EdgeKind::Data));
        g.add_edge(Edge::new(node, last, EdgeKind::Data));
    }
    g
}

fn chosen(g: &StepGraph, picks: &[bool]) -> NodeSet {
    NodeSet::from_fn(g.node_count(), |i| picks.get(i).copied().unwrap_or(false))
}

fn picks() -> impl Strategy<Value = Vec<bool>> {
    (0.0..1.0f64).prop_flat_map(|p| prop::collection::vec(prop::bool::weighted(p), 40))
}

#[derive(Clone, Debug)]
enum Step {
    Scale(Vec<bool>, f64),
    Remove(Vec<bool>, bool),
    After(u16),
    Before(u16),
    OnEdge(u16),
    DropEdges(u16),
    Replace(u16, Box<StepGraph>),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (picks(), 0.0..3.0).prop_map(|(p, f)| Step::Scale(p, f)),
        (picks(), any::<bool>()).prop_map(|(p, bridge)| Step::Remove(p, bridge)),
        any::<u16>().prop_map(Step::After),
        any::<u16>().prop_map(Step::Before),
        any::<u16>().prop_map(Step::OnEdge),
        (2..5u16).prop_map(Step::DropEdges),
        (any::<u16>(), common::graph()).prop_map(|(at, g)| Step::Replace(at, Box::new(g))),
    ]
}

fn apply(g: &mut StepGraph, step: &Step) {
    let count = g.node_count();
    if count == 0 {
        return;
    }
    let at = |v: &u16| NodeId::from_index(usize::from(*v) % count);
    let new = Node::new(NodeKind::Kernel, NameId::EMPTY, QueueId::new(0), Nanos::from_nanos(5));
    match step {
        Step::Scale(picks, factor) => {
            g.scale_work(&chosen(g, picks), *factor).expect("the factor is in range");
        }
        Step::Remove(picks, bridge) => {
            let removal = if *bridge { Removal::Bridge } else { Removal::Detach };
            g.remove_nodes(&chosen(g, picks), removal);
        }
        Step::After(v) => {
            g.insert_after(at(v), new, EdgeKind::Data);
        }
        Step::Before(v) => {
            g.insert_before(at(v), new, EdgeKind::Data);
        }
        Step::OnEdge(v) if !g.edges().is_empty() => {
            g.insert_on_edge(EdgeId::from_index(usize::from(*v) % g.edges().len()), new);
        }
        Step::OnEdge(_) => {}
        Step::DropEdges(n) => g.retain_edges(|id, _| id.index() % usize::from(*n) != 0),
        Step::Replace(v, other) => {
            drop(g.replace_node(at(v), other).expect("both graphs are valid"));
        }
    }
}

proptest! {
    #[test]
    fn any_sequence_of_edits_leaves_a_valid_graph(
        mut g in common::graph(),
        steps in prop::collection::vec(step(), 1..8),
    ) {
        g.validate().unwrap();
        for step in &steps {
            apply(&mut g, step);
            g.validate().unwrap();
        }
    }

    #[test]
    fn bridging_equals_removing_the_work_alone(g in common::graph(), picks in picks()) {
        let before = with_ends(g);
        let set = chosen(&before, &picks[..picks.len().min(before.node_count() - 2)]);
        let mut without_work = before.clone();
        without_work.set_work_of(&set, Nanos::ZERO).unwrap();

        let mut after = before.clone();
        let removed = after.remove_nodes(&set, Removal::Bridge);
        let length = |g: &StepGraph| g.longest_path().unwrap().length;
        prop_assert_eq!(length(&after), length(&without_work));
        let removed_work: Nanos = set.iter().map(|id| before.work(id)).sum();
        prop_assert!(length(&after) >= length(&before) - removed_work);

        let kept = |(a, b): (NodeId, NodeId)| Some((removed.remap.get(a)?, removed.remap.get(b)?));
        let want: BTreeSet<_> = reachable(&before).into_iter().filter_map(kept).collect();
        let marks: BTreeSet<_> = removed.marks.iter().copied().collect();
        let is_mark = |(a, b): &(NodeId, NodeId)| marks.contains(a) || marks.contains(b);
        let found: BTreeSet<_> = reachable(&after).into_iter().filter(|p| !is_mark(p)).collect();
        prop_assert_eq!(found, want);
        prop_assert!(after.edges().len() <= before.edges().len() + 4 * set.len());
    }

    #[test]
    fn attributes_stay_with_their_rows(g in common::graph(), picks in picks(), bridge: bool) {
        let mut after = g.clone();
        let set = chosen(&g, &picks);
        let removal = if bridge { Removal::Bridge } else { Removal::Detach };
        let removed = after.remove_nodes(&set, removal);
        for old in g.node_ids() {
            let Some(new) = removed.remap.get(old) else {
                prop_assert!(set.contains(old));
                continue;
            };
            prop_assert_eq!(after.node_attributes.get_i64("row", new.index()), Some(old.get().into()));
            let spread = |g: &StepGraph, id: NodeId| g.node_attributes.get_f64("spread", id.index());
            prop_assert_eq!(spread(&after, new), spread(&g, old));
            prop_assert_eq!(after.name(new), g.name(old));
        }
        // Edges between kept nodes come first and keep their order, so they pair off.
        let kept = g.edges().iter().enumerate().filter(|(_, e)| {
            removed.remap.get(e.src).is_some() && removed.remap.get(e.dst).is_some()
        });
        let marks = |e: &Edge| removed.marks.contains(&e.src) || removed.marks.contains(&e.dst);
        let found = after.edges().iter().enumerate().filter(|(_, e)| !marks(e));
        for ((old, before), (new, edge)) in kept.zip(found) {
            prop_assert_eq!(edge.lag, before.lag);
            let note = |g: &StepGraph, row| g.edge_attributes.get_str("note", row).map(str::to_owned);
            prop_assert_eq!(note(&after, new), note(&g, old));
            let flag = |g: &StepGraph, row| g.edge_attributes.get_bool("flag", row);
            prop_assert_eq!(flag(&after, new), flag(&g, old));
        }
    }
}
