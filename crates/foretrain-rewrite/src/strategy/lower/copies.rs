//! Copies of buckets back into gradients.

use foretrain_core::{Bytes, Nanos};
use foretrain_graph::{Edge, EdgeKind, Node, NodeId, NodeKind, Phase};

use crate::strategy::draft::{Anchor, Draft, Exchange};

/// A bucket that has come round.
pub(super) struct Bucket {
    bytes: Bytes,
    /// What its exchange ends with.
    ends: Vec<(NodeId, Nanos)>,
    /// What its exchange came after.
    after: Vec<Anchor>,
}

/// Buckets by what waits for them, in the order of issue.
#[derive(Default)]
pub(super) struct CopiesOut(Vec<(Vec<Anchor>, Vec<Bucket>)>);

impl CopiesOut {
    pub(super) fn push(&mut self, exchange: &Exchange, ends: &[(NodeId, Nanos)]) {
        let bucket =
            Bucket { bytes: exchange.bytes, ends: ends.to_vec(), after: exchange.after.clone() };
        match self.0.iter_mut().find(|(before, _)| *before == exchange.before) {
            Some((_, buckets)) => buckets.push(bucket),
            None => self.0.push((exchange.before.clone(), vec![bucket])),
        }
    }

    /// Copies one bucket after the other on the queue of what waits for them; the backward pass
    /// ends before the first is looked at.
    pub(super) fn add(self, draft: &mut Draft<'_>) {
        let (order, kind) = if draft.on_device {
            (EdgeKind::StreamOrder, NodeKind::Kernel)
        } else {
            (EdgeKind::ThreadOrder, NodeKind::Copy)
        };
        let name = draft.graph.names.intern("copy of a bucket into its gradients");
        for (before, buckets) in self.0 {
            let Some(waiting) = before.first().copied() else { continue };
            let trigger = if draft.on_device { EdgeKind::EventWait } else { EdgeKind::Launch };
            let last = buckets.last().and_then(|bucket| {
                bucket.after.iter().find(|anchor| anchor.kind == trigger).map(|a| a.node)
            });
            let mut previous = last;
            for bucket in buckets {
                let queue = draft.graph.queue(waiting.node);
                let work = draft.costs.copy(bucket.bytes).value;
                let copy = draft.graph.add_node(Node {
                    phase: Phase::Sync,
                    bytes: Some(bucket.bytes),
                    ..Node::new(kind, name, queue, work)
                });
                for (end, lag) in bucket.ends {
                    let edge = Edge::new(end, copy, waiting.kind).with_lag(lag);
                    draft.graph.add_edge(edge.inferred());
                }
                if let Some(previous) = previous {
                    draft.graph.add_edge(Edge::new(previous, copy, order).inferred());
                }
                previous = Some(copy);
            }
            if let Some(previous) = previous {
                for anchor in before {
                    let edge = Edge::new(previous, anchor.node, order);
                    draft.graph.add_edge(edge.with_distance(anchor.distance).inferred());
                }
            }
        }
    }
}
