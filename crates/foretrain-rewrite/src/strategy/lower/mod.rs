//! From exchanges to nodes on links.
//!
//! Every machine has lanes, one queue each: the collective library's stream, the links within the
//! machine, its NICs outwards and inwards, the servers it runs, and a stream for encoding. An
//! exchange becomes a chain of nodes on some of them, so different exchanges overlap where they use
//! different lanes.

mod parts;
mod servers;

use std::collections::BTreeMap;

use foretrain_core::{DType, Estimate, Nanos};
use foretrain_graph::{
    CollectiveKind, Edge, EdgeKind, Group, GroupId, Node, NodeId, NodeKind, Phase, QueueId,
    QueueKind,
};

use self::parts::{Chain, Lane, Part, chain, held};
use super::costs::{Call, Scope};
use super::draft::{Draft, Exchange};

/// From the call that launches an operation to its start on an idle stream; a typical figure, used
/// because the recording has no collective to measure it on.
const LAUNCH_LATENCY: Nanos = Nanos::from_micros(10);
/// A node of synchronisation that was added to a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// The node.
    pub id: NodeId,
    /// Its time; the node's work is the value.
    pub time: Estimate<Nanos>,
    /// The operation, where it is one of a collective library.
    pub call: Option<Call>,
}

/// What lowering leaves.
pub(super) struct Lowered {
    pub(super) placed: Vec<Placed>,
    /// Queues that run the highest priority first.
    pub(super) priority_queues: Vec<QueueId>,
}

pub(super) fn lower(draft: &mut Draft<'_>) -> Lowered {
    let exchanges = std::mem::take(&mut draft.exchanges);
    // Gradients become ready in the order of issue. Gathers are issued ahead of what they follow
    // here, and a scheduler picks for itself: both are left to the queue.
    let gathers = exchanges.iter().any(|one| one.kind == CollectiveKind::AllGather);
    let in_order = !gathers && !draft.by_priority;
    let mut lowering = Lowering { in_order, ..Lowering::default() };
    let mut ends: Vec<Vec<(NodeId, Nanos)>> = Vec::new();
    for exchange in &exchanges {
        let chain = chain(draft, exchange);
        let end = lowering.emit(draft, exchange, chain, &ends);
        ends.push(end);
    }
    let mut priority_queues = Vec::new();
    if draft.by_priority {
        let shared = |lane: &Lane| !matches!(lane, Lane::Codec);
        priority_queues = lowering.lanes.iter().filter(|l| shared(l.0)).map(|l| *l.1).collect();
    }
    Lowered { placed: lowering.placed, priority_queues }
}

#[derive(Default)]
struct Lowering {
    lanes: BTreeMap<Lane, QueueId>,
    groups: BTreeMap<(u32, u32), GroupId>,
    sequences: BTreeMap<(GroupId, CollectiveKind), u32>,
    /// Whether collectives run in the order of the exchanges.
    in_order: bool,
    /// The latest of them, which the next follows.
    latest: Option<NodeId>,
    placed: Vec<Placed>,
}

impl Lowering {
    /// Adds the nodes of one exchange; returns those it ends with.
    fn emit(
        &mut self,
        draft: &mut Draft<'_>,
        exchange: &Exchange,
        chain: Chain,
        ends: &[Vec<(NodeId, Nanos)>],
    ) -> Vec<(NodeId, Nanos)> {
        let mut previous: Vec<(NodeId, Nanos)> = Vec::new();
        for (stage, parts) in chain.into_iter().enumerate() {
            let mut current = Vec::new();
            for part in parts {
                let (id, latency) = self.node(draft, exchange, part);
                if stage == 0 {
                    self.begin(draft, exchange, id, ends);
                }
                for &(before, lag) in &previous {
                    let edge = Edge::new(before, id, EdgeKind::EventWait).with_lag(lag);
                    draft.graph.add_edge(edge.inferred());
                }
                current.push((id, latency));
            }
            previous = current;
        }
        for anchor in &exchange.before {
            for &(id, lag) in &previous {
                let edge = Edge::new(id, anchor.node, anchor.kind).with_lag(lag);
                draft.graph.add_edge(edge.with_distance(anchor.distance).inferred());
            }
        }
        previous
    }

    /// Lets the first node of an exchange wait for what it comes after.
    fn begin(
        &self,
        draft: &mut Draft<'_>,
        exchange: &Exchange,
        id: NodeId,
        ends: &[Vec<(NodeId, Nanos)>],
    ) {
        for anchor in &exchange.after {
            let launch = if draft.on_device && anchor.kind == EdgeKind::Launch {
                LAUNCH_LATENCY
            } else {
                Nanos::ZERO
            };
            let edge = Edge::new(anchor.node, id, anchor.kind).with_lag(launch + exchange.delay);
            draft.graph.add_edge(edge.with_distance(anchor.distance).inferred());
        }
        for &(before, lag) in exchange.follows.iter().filter_map(|&i| ends.get(i)).flatten() {
            let edge = Edge::new(before, id, EdgeKind::EventWait);
            draft.graph.add_edge(edge.with_lag(lag + exchange.delay).inferred());
        }
    }

    fn node(&mut self, draft: &mut Draft<'_>, exchange: &Exchange, part: Part) -> (NodeId, Nanos) {
        let (time, latency) = held(draft.credit, &part);
        let queue = self.queue(draft, part.lane);
        let name = match exchange.label.as_str() {
            "" => part.name,
            label => format!("{}, {label}", part.name),
        };
        let name = draft.graph.names.intern(&name);
        let group = part.call.map(|call| self.group(draft, call.scope));
        let kind = match part.kind {
            NodeKind::Kernel if !draft.on_device => NodeKind::HostSegment,
            kind => kind,
        };
        let sequence = match (group, part.collective) {
            (Some(group), Some(kind)) => {
                let next = self.sequences.entry((group, kind)).or_insert(0);
                *next += 1;
                *next - 1
            }
            _ => 0,
        };
        let id = draft.graph.add_node(Node {
            phase: Phase::Sync,
            group,
            collective: part.collective,
            sequence,
            bytes: Some(part.bytes),
            dtype: exchange.codec.is_none().then_some(DType::F32),
            priority: exchange.priority,
            ..Node::new(kind, name, queue, time.value)
        });
        if self.in_order
            && part.lane == Lane::Collectives
            && let Some(previous) = self.latest.replace(id)
        {
            draft.graph.add_edge(Edge::new(previous, id, EdgeKind::StreamOrder).inferred());
        }
        self.placed.push(Placed { id, time, call: part.call });
        (id, latency)
    }

    fn queue(&mut self, draft: &mut Draft<'_>, lane: Lane) -> QueueId {
        *self.lanes.entry(lane).or_insert_with(|| {
            let kind = match lane {
                Lane::Outward | Lane::Inward => QueueKind::Link,
                Lane::Servers => QueueKind::Other,
                _ if draft.on_device => QueueKind::Stream,
                _ => QueueKind::Thread,
            };
            let name = match (lane, kind) {
                (Lane::Collectives, QueueKind::Stream) => format!("stream of {}", lane.name()),
                _ => lane.name().to_owned(),
            };
            draft.graph.add_queue(name, kind)
        })
    }

    fn group(&mut self, draft: &mut Draft<'_>, scope: Scope) -> GroupId {
        *self.groups.entry((scope.size, scope.stride)).or_insert_with(|| {
            let everyone = draft.costs.everyone();
            let name = if scope == everyone {
                format!("data-parallel ({} replicas)", scope.size)
            } else if scope.stride == 1 {
                format!("data-parallel, {} neighbours", scope.size)
            } else {
                format!("data-parallel, {} replicas {} apart", scope.size, scope.stride)
            };
            let role = "data-parallel".to_owned();
            draft.graph.add_group(Group { name, role, size: scope.size, ranks: Vec::new() })
        })
    }
}
