//! Communication that nothing of its own step waits for.

use foretrain_core::{Nanos, Result};
use foretrain_graph::{Edge, EdgeKind, NodeId, NodeSet, QueueId, QueueKind, StepGraph};

use super::communication::check_there_is_some;
use super::order::chains;
use crate::whatif::sketch::Sketch;

/// Communication still starts when its data is ready, keeps its order, and shares its links; but
/// what would wait for it waits for that of the step before instead. So it is exposed only where it
/// takes longer than all the rest of a step.
pub(super) fn perfect(sketch: &mut Sketch<'_>) -> Result<()> {
    check_there_is_some(sketch)?;
    for class in sketch.classes() {
        let talk = sketch.communication(class);
        let repeats = sketch.repeats();
        loosen(&mut sketch.job_mut().classes[class].graph, &talk, repeats);
    }
    Ok(())
}

fn loosen(graph: &mut StepGraph, talk: &NodeSet, repeats: bool) {
    let mut added = Vec::new();
    let mut beside: Vec<(QueueId, QueueId)> = Vec::new();
    for chain in chains(graph) {
        let mixed =
            chain.iter().any(|&id| talk.contains(id)) && chain.iter().any(|&id| !talk.contains(id));
        if !mixed {
            continue;
        }
        let own = graph.queue(chain[0]);
        let queue = match beside.iter().find(|(from, _)| *from == own) {
            Some(&(_, queue)) => queue,
            None => {
                let name = format!("communication beside {}", graph.queues[own.index()].name);
                let queue = graph.add_queue(name, QueueKind::Stream);
                graph.queues[queue.index()].device = graph.queues[own.index()].device;
                beside.push((own, queue));
                queue
            }
        };
        separate(graph, &chain, talk, queue, &mut added);
    }
    for edge in graph.edges_mut() {
        if talk.contains(edge.src) && !talk.contains(edge.dst) {
            edge.distance = edge.distance.saturating_add(1);
        }
    }
    if !repeats {
        // There is no step before; the whole of a pass is the longer of both.
        graph.retain_edges(|_, edge| edge.distance == 0);
    }
    for edge in added {
        graph.add_edge(edge);
    }
}

/// Gives the communication of a chain a queue of its own, and closes the gaps it leaves.
fn separate(
    graph: &mut StepGraph,
    chain: &[NodeId],
    talk: &NodeSet,
    queue: QueueId,
    added: &mut Vec<Edge>,
) {
    let mut last: [Option<NodeId>; 2] = [None; 2];
    let mut before = None;
    for &id in chain {
        let talks = talk.contains(id);
        let previous = last[usize::from(talks)].replace(id);
        // Where neighbours are of one kind, they have their edge already.
        if let Some(previous) = previous.filter(|_| before != previous) {
            let edge = Edge::new(previous, id, EdgeKind::StreamOrder).with_lag(Nanos::ZERO);
            added.push(edge.inferred());
        }
        before = Some(id);
        if talks {
            let mut node = graph.node(id);
            node.queue = queue;
            graph.set_node(id, node);
        }
    }
}
