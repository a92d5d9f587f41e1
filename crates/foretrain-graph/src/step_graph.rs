//! The tables of one step graph.

use foretrain_core::{Bytes, DType, NameId, Names, Nanos, define_id};
use serde::{Deserialize, Serialize};

use crate::attributes::{Attributes, well_known};
use crate::csr::Csr;
use crate::kinds::{CollectiveKind, EdgeKind, EdgeOrigin, NodeKind, Phase, QueueKind};

define_id!(
    /// A row of the node table.
    NodeId
);
define_id!(
    /// A row of the edge table.
    EdgeId
);
define_id!(
    /// A row of the queue table.
    QueueId
);
define_id!(
    /// A row of the group table.
    GroupId
);

/// One node, as read from or written to the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    /// What it stands for.
    pub kind: NodeKind,
    /// Kernel, operator or segment name.
    pub name: NameId,
    /// Where it runs, one task at a time.
    pub queue: QueueId,
    /// Time it takes alone at full rate. For a collective: transfer only, not waiting.
    pub work: Nanos,
    /// Part of the step.
    pub phase: Phase,
    /// Module or layer path, empty if unknown.
    pub module: NameId,
    /// Higher runs first on priority queues.
    pub priority: i32,
    /// Communicator group of a collective or point-to-point node.
    pub group: Option<GroupId>,
    /// Operation of a collective or point-to-point node.
    pub collective: Option<CollectiveKind>,
    /// How many operations of the same kind the group issued before this one in the step.
    pub sequence: u32,
    /// Payload of a copy, collective or point-to-point node: the bytes of the larger of this
    /// rank's input and output buffers. `None` if the recording does not tell.
    pub bytes: Option<Bytes>,
    /// Element type, if known.
    pub dtype: Option<DType>,
}

impl Node {
    /// A node with only the essentials set.
    pub fn new(kind: NodeKind, name: NameId, queue: QueueId, work: Nanos) -> Self {
        Self {
            kind,
            name,
            queue,
            work,
            phase: Phase::Unknown,
            module: NameId::EMPTY,
            priority: 0,
            group: None,
            collective: None,
            sequence: 0,
            bytes: None,
            dtype: None,
        }
    }
}

/// One edge: `dst` may start no earlier than `lag` after the end of `src`, `distance` steps back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edge {
    /// The earlier node.
    pub src: NodeId,
    /// The later node.
    pub dst: NodeId,
    /// Why.
    pub kind: EdgeKind,
    /// Recorded or deduced.
    pub origin: EdgeOrigin,
    /// Extra delay after the end of `src`. May be negative where the target overlaps the tail of
    /// its source (programmatic dependent launch).
    pub lag: Nanos,
    /// In how many steps after that of `src` the target lies; 0 is the same step.
    pub distance: u16,
}

impl Edge {
    /// A recorded edge within the step without delay.
    pub fn new(src: NodeId, dst: NodeId, kind: EdgeKind) -> Self {
        Self { src, dst, kind, origin: EdgeOrigin::Recorded, lag: Nanos::ZERO, distance: 0 }
    }
    /// The same edge with a delay.
    #[must_use]
    pub fn with_lag(mut self, lag: Nanos) -> Self {
        self.lag = lag;
        self
    }
    /// The same edge, marked as deduced.
    #[must_use]
    pub fn inferred(mut self) -> Self {
        self.origin = EdgeOrigin::Inferred;
        self
    }
    /// The same edge, leading `distance` steps ahead.
    #[must_use]
    pub fn with_distance(mut self, distance: u16) -> Self {
        self.distance = distance;
        self
    }
}

/// An exclusive resource: a thread, a stream, a link direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// For people: "stream 7", "thread 4711 (python)".
    pub name: String,
    /// What it is.
    pub kind: QueueKind,
    /// Device index for streams.
    pub device: Option<u32>,
}

/// A communicator group as this rank sees it. Groups of different ranks are the same group when
/// their names are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Unique within a job.
    pub name: String,
    /// What the group is for, as recorded or deduced ("data-parallel", "tensor-parallel"); may be
    /// empty.
    pub role: String,
    /// Number of ranks, 0 if unknown.
    pub size: u32,
    /// Global ranks in order, empty if unknown.
    pub ranks: Vec<u32>,
}

/// Facts about the step as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepMeta {
    /// Global rank the graph was recorded on.
    pub rank: u32,
    /// Ranks in the recorded job.
    pub world_size: u32,
    /// Device name as the recording spells it, empty if unknown.
    pub device: String,
    /// Which step it is ("ProfilerStep#3"), or how several were combined.
    pub step: String,
    /// Step time in the recording, if the graph comes from one.
    pub recorded_step: Option<Nanos>,
    /// Where it was read from.
    pub source: String,
}

impl StepMeta {
    /// What `step` begins with where nobody recorded the step, and its times follow from a
    /// characterisation.
    pub const CHARACTERISED: &'static str = "characterised step";

    /// Whether times are those of a characterisation.
    pub fn is_characterised(&self) -> bool {
        self.step.starts_with(Self::CHARACTERISED)
    }
}

/// Structure-of-arrays node table. Rows are read and written through [`StepGraph`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NodeTable {
    pub(crate) kind: Vec<NodeKind>,
    pub(crate) name: Vec<NameId>,
    pub(crate) queue: Vec<QueueId>,
    pub(crate) work: Vec<Nanos>,
    pub(crate) phase: Vec<Phase>,
    pub(crate) module: Vec<NameId>,
    pub(crate) priority: Vec<i32>,
    pub(crate) group: Vec<Option<GroupId>>,
    pub(crate) collective: Vec<Option<CollectiveKind>>,
    pub(crate) sequence: Vec<u32>,
    pub(crate) bytes: Vec<Option<Bytes>>,
    pub(crate) dtype: Vec<Option<DType>>,
}

/// The attributed graph of one steady step of one rank class.
#[derive(Clone, Debug, Default)]
pub struct StepGraph {
    /// All names that nodes refer to.
    pub names: Names,
    pub(crate) nodes: NodeTable,
    pub(crate) edges: Vec<Edge>,
    /// Exclusive resources.
    pub queues: Vec<Queue>,
    /// Communicator groups.
    pub groups: Vec<Group>,
    /// Named node attributes.
    pub node_attributes: Attributes,
    /// Named edge attributes.
    pub edge_attributes: Attributes,
    /// Facts about the step.
    pub meta: StepMeta,
}

impl StepGraph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a queue.
    pub fn add_queue(&mut self, name: impl Into<String>, kind: QueueKind) -> QueueId {
        self.queues.push(Queue { name: name.into(), kind, device: None });
        QueueId::from_index(self.queues.len() - 1)
    }

    /// Adds a group.
    pub fn add_group(&mut self, group: Group) -> GroupId {
        self.groups.push(group);
        GroupId::from_index(self.groups.len() - 1)
    }

    /// Adds a node and returns its id.
    pub fn add_node(&mut self, node: Node) -> NodeId {
        let t = &mut self.nodes;
        t.kind.push(node.kind);
        t.name.push(node.name);
        t.queue.push(node.queue);
        t.work.push(node.work);
        t.phase.push(node.phase);
        t.module.push(node.module);
        t.priority.push(node.priority);
        t.group.push(node.group);
        t.collective.push(node.collective);
        t.sequence.push(node.sequence);
        t.bytes.push(node.bytes);
        t.dtype.push(node.dtype);
        NodeId::from_index(t.kind.len() - 1)
    }

    /// Adds an edge and returns its id.
    pub fn add_edge(&mut self, edge: Edge) -> EdgeId {
        self.edges.push(edge);
        EdgeId::from_index(self.edges.len() - 1)
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        self.nodes.kind.len()
    }

    /// All node ids in order.
    pub fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.node_count()).map(NodeId::from_index)
    }

    /// One node as a row.
    pub fn node(&self, id: NodeId) -> Node {
        let (t, i) = (&self.nodes, id.index());
        Node {
            kind: t.kind[i],
            name: t.name[i],
            queue: t.queue[i],
            work: t.work[i],
            phase: t.phase[i],
            module: t.module[i],
            priority: t.priority[i],
            group: t.group[i],
            collective: t.collective[i],
            sequence: t.sequence[i],
            bytes: t.bytes[i],
            dtype: t.dtype[i],
        }
    }

    /// Overwrites one node.
    pub fn set_node(&mut self, id: NodeId, node: Node) {
        let (t, i) = (&mut self.nodes, id.index());
        t.kind[i] = node.kind;
        t.name[i] = node.name;
        t.queue[i] = node.queue;
        t.work[i] = node.work;
        t.phase[i] = node.phase;
        t.module[i] = node.module;
        t.priority[i] = node.priority;
        t.group[i] = node.group;
        t.collective[i] = node.collective;
        t.sequence[i] = node.sequence;
        t.bytes[i] = node.bytes;
        t.dtype[i] = node.dtype;
    }

    /// Kind of a node.
    pub fn kind(&self, id: NodeId) -> NodeKind {
        self.nodes.kind[id.index()]
    }
    /// Whether a node is work of an earlier step that this one only waits for.
    pub fn is_carried_in(&self, id: NodeId) -> bool {
        self.node_attributes.get_bool(well_known::CARRY_IN, id.index()) == Some(true)
    }
    /// Work of a node.
    pub fn work(&self, id: NodeId) -> Nanos {
        self.nodes.work[id.index()]
    }
    /// Sets the work of a node.
    pub fn set_work(&mut self, id: NodeId, work: Nanos) {
        self.nodes.work[id.index()] = work;
    }
    /// Queue of a node.
    pub fn queue(&self, id: NodeId) -> QueueId {
        self.nodes.queue[id.index()]
    }
    /// Name of a node as text.
    pub fn name(&self, id: NodeId) -> &str {
        self.names.get(self.nodes.name[id.index()])
    }
    /// The work column.
    pub fn works(&self) -> &[Nanos] {
        &self.nodes.work
    }

    /// All edges.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }
    /// All edges, to change in place.
    pub fn edges_mut(&mut self) -> &mut [Edge] {
        &mut self.edges
    }

    /// For each node, the indices of the edges that leave it.
    pub fn outgoing(&self) -> Csr {
        let pairs = self.edges.iter().enumerate().map(|(i, e)| (e.src.get(), i as u32));
        Csr::from_pairs(self.node_count(), pairs)
    }
    /// For each node, the indices of the edges that reach it.
    pub fn incoming(&self) -> Csr {
        let pairs = self.edges.iter().enumerate().map(|(i, e)| (e.dst.get(), i as u32));
        Csr::from_pairs(self.node_count(), pairs)
    }
}
