//! Who owns each millisecond of a step.
//!
//! At every instant exactly one owner is charged: running computation first, else the
//! communication that is not hidden behind it, else what the device waits for. So the parts add
//! up to the step, and no saving can be claimed twice.

use std::collections::BTreeMap;

use foretrain_core::Nanos;
use foretrain_graph::{CollectiveKind, NodeId, NodeKind, QueueKind, StepGraph};
use foretrain_sim::ClassTimeline;

/// An owner of step time. The order is the precedence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// Kernels run (or, without a device, host computation).
    Compute,
    /// A collective moves data and nothing computes.
    ExposedCommunication {
        /// Group name, empty if unknown.
        group: String,
        /// Operation.
        kind: CollectiveKind,
    },
    /// A collective waits for its last member and nothing computes.
    StragglerWait,
    /// Copies and fills run and nothing else does.
    Copy,
    /// The device idles while the host waits for input data.
    Input,
    /// The device idles while host threads run: the launches come too late.
    LaunchBound,
    /// The device idles and the host waits or shows nothing.
    Host,
}

impl Owner {
    /// The words for tables.
    pub fn describe(&self) -> String {
        match self {
            Self::Compute => "compute".into(),
            Self::ExposedCommunication { group, kind } if group.is_empty() => {
                format!("exposed {kind}")
            }
            Self::ExposedCommunication { group, kind } => format!("exposed {kind}, group {group}"),
            Self::StragglerWait => "straggler wait".into(),
            Self::Copy => "copies".into(),
            Self::Input => "input".into(),
            Self::LaunchBound => "launch-bound idle (host)".into(),
            Self::Host => "idle, host waiting".into(),
        }
    }

    /// The stable word for JSON, without the detail.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::ExposedCommunication { .. } => "exposed-communication",
            Self::StragglerWait => "straggler-wait",
            Self::Copy => "copy",
            Self::Input => "input",
            Self::LaunchBound => "launch-bound",
            Self::Host => "host",
        }
    }
}

/// A step split among its owners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Breakdown {
    /// In order of precedence, owners without time left out.
    pub parts: Vec<(Owner, Nanos)>,
}

impl Breakdown {
    /// The sum of all parts: the step.
    pub fn total(&self) -> Nanos {
        self.parts.iter().map(|(_, time)| *time).sum()
    }

    /// Time of all owners that `matches` accepts.
    pub fn time(&self, matches: impl Fn(&Owner) -> bool) -> Nanos {
        self.parts.iter().filter(|(owner, _)| matches(owner)).map(|(_, time)| *time).sum()
    }

    /// Exposed communication of all groups and kinds.
    pub fn exposed_communication(&self) -> Nanos {
        self.time(|owner| matches!(owner, Owner::ExposedCommunication { .. }))
    }

    /// Of a span of `steps` steps, what falls to one; the largest part takes what rounding leaves.
    #[must_use]
    pub fn per_step(mut self, steps: u32) -> Self {
        if steps <= 1 {
            return self;
        }
        let share = |time: Nanos| time.scale(1.0 / f64::from(steps));
        let whole = share(self.total());
        for (_, time) in &mut self.parts {
            *time = share(*time);
        }
        let rest = whole - self.total();
        if let Some((_, time)) = self.parts.iter_mut().max_by_key(|(_, time)| *time) {
            *time += rest;
        }
        self.parts.retain(|(_, time)| *time > Nanos::ZERO);
        self
    }

    /// Adds time to an owner.
    pub fn add(&mut self, owner: Owner, time: Nanos) {
        if time <= Nanos::ZERO {
            return;
        }
        match self.parts.iter_mut().find(|(o, _)| *o == owner) {
            Some((_, t)) => *t += time,
            None => self.parts.push((owner, time)),
        }
        self.parts.sort_by(|a, b| a.0.cmp(&b.0));
    }
}

/// A stretch of time and its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it begins.
    pub start: Nanos,
    /// Where it ends, after its start.
    pub end: Nanos,
    /// Who owns it.
    pub owner: Owner,
}

/// Splits `[from, to)` of one class of a simulated timeline among owners.
///
/// `waits` gives, per node, how much of its work is waiting that was recorded with it (a
/// single-rank trace cannot show the arrival of the others).
pub fn breakdown(
    graph: &StepGraph,
    class: &ClassTimeline,
    from: Nanos,
    to: Nanos,
    waits: &dyn Fn(NodeId) -> Nanos,
) -> Breakdown {
    let mut result = Breakdown::default();
    for segment in segments(graph, class, from, to, waits) {
        result.add(segment.owner, segment.end - segment.start);
    }
    result
}

/// The same as [`breakdown`], in order of time: neighbours without gap or overlap.
pub fn segments(
    graph: &StepGraph,
    class: &ClassTimeline,
    from: Nanos,
    to: Nanos,
    waits: &dyn Fn(NodeId) -> Nanos,
) -> Vec<Segment> {
    let has_device = graph.queues.iter().any(|queue| queue.kind == QueueKind::Stream);
    let mut activities = Activities::new(graph.queues.len());
    for (row, (&start, &end)) in class.start.iter().zip(&class.end).enumerate() {
        if end <= from || start >= to || end <= start {
            continue;
        }
        let id = NodeId::from_index(row % class.nodes);
        let queue = graph.queue(id).index();
        let mut push = |owner: Owner, start: Nanos, end: Nanos| {
            activities.push(queue, owner, start.max(from), end.min(to));
        };
        match owner_of(graph, id, has_device) {
            Some(owner @ Owner::ExposedCommunication { .. }) => {
                let waiting = (class.wait[row] + waits(id)).min(end - start);
                push(Owner::StragglerWait, start, start + waiting);
                push(owner, start + waiting, end);
            }
            Some(owner) => push(owner, start, end),
            None => {}
        }
    }
    activities.charge(from, to)
}

/// Who is charged while a node runs; `None` for nodes that only wait.
fn owner_of(graph: &StepGraph, id: NodeId, has_device: bool) -> Option<Owner> {
    let node = graph.node(id);
    match node.kind {
        NodeKind::Kernel => Some(Owner::Compute),
        NodeKind::Copy => Some(Owner::Copy),
        NodeKind::Collective | NodeKind::PointToPoint => Some(Owner::ExposedCommunication {
            group: node.group.map_or_else(String::new, |g| graph.groups[g.index()].name.clone()),
            kind: node.collective.unwrap_or(CollectiveKind::Unknown),
        }),
        NodeKind::DataLoad => Some(Owner::Input),
        NodeKind::HostSegment | NodeKind::Optimizer if has_device => Some(Owner::LaunchBound),
        NodeKind::HostSegment | NodeKind::Optimizer => Some(Owner::Compute),
        NodeKind::Sync | NodeKind::Mark => None,
    }
}

/// Who is active when.
struct Activities {
    owners: Vec<Owner>,
    index: BTreeMap<Owner, usize>,
    /// By queue: time, owner, and whether its activity begins (+1) or ends (-1). Those of a queue
    /// are nearly in order.
    changes: Vec<Vec<(Nanos, usize, i32)>>,
}

impl Activities {
    fn new(queues: usize) -> Self {
        Self { owners: Vec::new(), index: BTreeMap::new(), changes: vec![Vec::new(); queues] }
    }

    fn push(&mut self, queue: usize, owner: Owner, start: Nanos, end: Nanos) {
        if end <= start {
            return;
        }
        let changes = &mut self.changes[queue];
        if let Some((until, last, _)) = changes.last_mut()
            && *until == start
            && self.owners[*last] == owner
        {
            // Most follow one of their own kind without a gap.
            *until = end;
            return;
        }
        let owner = *self.index.entry(owner).or_insert_with_key(|owner| {
            self.owners.push(owner.clone());
            self.owners.len() - 1
        });
        changes.push((start, owner, 1));
        changes.push((end, owner, -1));
    }

    /// Sweeps over time and charges the strongest owner that is active, [`Owner::Host`] if none
    /// is.
    fn charge(self, from: Nanos, to: Nanos) -> Vec<Segment> {
        let mut changes = self.changes.concat();
        // This sort merges runs that are in order already.
        changes.sort();
        // In order of precedence.
        let ranking: Vec<usize> = self.index.values().copied().collect();
        let mut active = vec![0i32; self.owners.len()];
        let mut segments: Vec<Segment> = Vec::new();
        let mut now = from;
        let end_of_time = (to, usize::MAX, 0);
        for (at, owner, change) in changes.into_iter().chain([end_of_time]) {
            if at > now {
                let strongest = ranking.iter().find(|&&o| active[o] > 0);
                let charged = strongest.map_or(&Owner::Host, |&o| &self.owners[o]);
                match segments.last_mut() {
                    Some(last) if last.owner == *charged => last.end = at,
                    _ => segments.push(Segment { start: now, end: at, owner: charged.clone() }),
                }
                now = at;
            }
            if let Some(count) = active.get_mut(owner) {
                *count += change;
            }
        }
        segments
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretrain_graph::{Node, QueueKind};

    fn nanos(n: i64) -> Nanos {
        Nanos::from_nanos(n)
    }

    /// The case of two streams: span 2008.6 ms, compute busy 1626.1, communication 627.5, their
    /// union 1978.3: 352.2 ms of communication are exposed and 30.3 ms are idle.
    #[test]
    fn every_millisecond_has_one_owner() {
        let mut graph = StepGraph::new();
        let compute = graph.add_queue("stream 7", QueueKind::Stream);
        let communication = graph.add_queue("stream 20", QueueKind::Stream);
        let name = graph.names.intern("x");
        graph.add_node(Node::new(NodeKind::Kernel, name, compute, nanos(16_261)));
        let mut node = Node::new(NodeKind::Collective, name, communication, nanos(6_275));
        node.collective = Some(CollectiveKind::AllReduce);
        graph.add_node(node);
        let start = vec![nanos(0), nanos(16_261 - 2_753)];
        let end = vec![nanos(16_261), nanos(16_261 - 2_753 + 6_275)];
        let class =
            ClassTimeline { nodes: 2, start, end, wait: vec![nanos(0); 2], ..Default::default() };
        let found = breakdown(&graph, &class, nanos(0), nanos(20_086), &|_| Nanos::ZERO);
        assert_eq!(found.total(), nanos(20_086));
        assert_eq!(found.time(|o| *o == Owner::Compute), nanos(16_261));
        assert_eq!(found.exposed_communication(), nanos(3_522));
        assert_eq!(found.time(|o| *o == Owner::Host), nanos(303));
    }
}
