//! Steps that run backward several times before the optimiser: micro-batches.

use std::collections::BTreeMap;

use foretrain_core::Bytes;
use foretrain_graph::attributes::well_known;
use foretrain_graph::{NodeKind, Phase, StepGraph};

/// A gradient that becomes ready: when, and how large.
pub(crate) type Gradient = (i64, Bytes);

/// How many backward passes complete the given gradients (in ready order), each pass all of them.
///
/// Passes are told apart by what the host does between them. A model of equal layers repeats its
/// sizes within one pass, so equal sizes alone prove nothing.
pub(crate) fn count_passes(graph: &StepGraph, gradients: &[Gradient]) -> usize {
    by_forward_between(graph, gradients).or_else(|| by_repetition(graph, gradients)).unwrap_or(1)
}

/// Passes with forward work between them (one forward, one backward), if all are alike.
fn by_forward_between(graph: &StepGraph, gradients: &[Gradient]) -> Option<usize> {
    let forward = beginnings(graph, |phase| phase == Phase::Forward);
    let passes: Vec<&[Gradient]> =
        gradients.chunk_by(|a, b| !any_between(&forward, a.0, b.0)).collect();
    let first = tally(passes.first()?);
    (passes.len() > 1 && passes.iter().all(|pass| tally(pass) == first)).then_some(passes.len())
}

/// Passes that follow each other (all forwards, then all backwards): the sequence of sizes
/// repeats, and the backward pass is left at each repetition.
fn by_repetition(graph: &StepGraph, gradients: &[Gradient]) -> Option<usize> {
    if !graph.node_ids().any(|id| graph.node(id).phase == Phase::Backward) {
        // Nothing tells what belongs to a backward pass.
        return None;
    }
    let outside = beginnings(graph, |phase| phase != Phase::Backward);
    let count = gradients.len();
    (2..=count).rev().filter(|passes| count.is_multiple_of(*passes)).find(|passes| {
        let period = count / passes;
        let repeats = (period..count).all(|i| gradients[i].1 == gradients[i - period].1);
        let left = |i: usize| any_between(&outside, gradients[i - 1].0, gradients[i].0);
        repeats && (1..*passes).all(|pass| left(pass * period))
    })
}

fn tally(pass: &[Gradient]) -> BTreeMap<Bytes, usize> {
    let mut tally = BTreeMap::new();
    for (_, bytes) in pass {
        *tally.entry(*bytes).or_insert(0) += 1;
    }
    tally
}

/// When host work and messages of some phases begin, in order.
fn beginnings(graph: &StepGraph, wanted: impl Fn(Phase) -> bool) -> Vec<i64> {
    let mut times: Vec<i64> = graph
        .node_ids()
        .filter(|&id| {
            matches!(graph.kind(id), NodeKind::HostSegment | NodeKind::PointToPoint)
                && wanted(graph.node(id).phase)
        })
        .filter_map(|id| graph.node_attributes.get_i64(well_known::RECORDED_START, id.index()))
        .collect();
    times.sort_unstable();
    times
}

/// Whether any of the times in order lies in `[from, to)`.
fn any_between(times: &[i64], from: i64, to: i64) -> bool {
    times.get(times.partition_point(|&at| at < from)).is_some_and(|&at| at < to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretrain_core::Nanos;
    use foretrain_graph::{Node, QueueKind};

    /// Host work of ten units each, one after the other.
    fn host(phases: &[Phase]) -> StepGraph {
        let mut graph = StepGraph::new();
        let queue = graph.add_queue("main", QueueKind::Thread);
        let name = graph.names.intern("work");
        for (i, phase) in phases.iter().enumerate() {
            let node = Node::new(NodeKind::HostSegment, name, queue, Nanos::from_nanos(10));
            let id = graph.add_node(Node { phase: *phase, ..node });
            let a = &mut graph.node_attributes;
            a.set_i64(well_known::RECORDED_START, id.index(), 10 * i as i64);
            a.set_i64(well_known::RECORDED_DURATION, id.index(), 10);
        }
        graph
    }

    fn ready(at: &[(i64, u64)]) -> Vec<Gradient> {
        at.iter().map(|&(at, bytes)| (at, Bytes::new(bytes))).collect()
    }

    use Phase::{Backward as B, Forward as F, Unknown as U};

    #[test]
    fn forward_work_between_tells_passes_apart() {
        let graph = host(&[F, B, B, F, B, B]);
        assert_eq!(count_passes(&graph, &ready(&[(20, 4), (30, 8), (50, 4), (60, 8)])), 2);
        // The second pass completes other gradients: this is one step of something else.
        assert_eq!(count_passes(&graph, &ready(&[(20, 4), (30, 8), (50, 4), (60, 9)])), 1);
    }

    #[test]
    fn equal_layers_are_one_pass() {
        let graph = host(&[F, B, B, B, B]);
        assert_eq!(count_passes(&graph, &ready(&[(20, 4), (30, 4), (40, 4), (50, 4)])), 1);
    }

    #[test]
    fn backward_passes_in_a_row_repeat_with_other_work_between() {
        let graph = host(&[F, F, B, B, U, B, B]);
        assert_eq!(count_passes(&graph, &ready(&[(30, 4), (40, 8), (60, 4), (70, 8)])), 2);
        assert_eq!(count_passes(&graph, &ready(&[(30, 4), (40, 8), (60, 8), (70, 4)])), 1);
    }

    #[test]
    fn nothing_is_one_pass() {
        assert_eq!(count_passes(&host(&[]), &[]), 1);
        assert_eq!(count_passes(&host(&[F, B]), &ready(&[(20, 4)])), 1);
    }
}
