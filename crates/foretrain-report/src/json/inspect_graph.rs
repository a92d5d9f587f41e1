//! The JSON of `inspect` on graphs: execution traces, Chakra files, saved step graphs.

use foretrain_core::{Bytes, Ledger, Nanos};
use foretrain_ingest::FileKind;
use foretrain_predict::inspect_graph::{
    GraphInspection, GraphTimes, GroupUse, InspectedGraph, NodeTally, NodesOfKind, OperationRow,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::common::{LedgerReport, finite};

/// What is in a job's graphs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InspectGraphReport {
    /// `foretrain/inspect-graph/1`.
    pub schema: String,
    /// The graphs, by rank.
    pub graphs: Vec<GraphReport>,
    /// What a reader must know before using the figures.
    pub warnings: Vec<String>,
    /// What reading the files met.
    pub ledger: LedgerReport,
}

/// One rank's graph.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GraphReport {
    /// Global rank.
    pub rank: u32,
    /// How the rank is known.
    pub rank_source: String,
    /// Ranks of the job, as far as the files tell.
    pub world_size: u32,
    /// File.
    pub path: String,
    /// `execution-trace`, `chakra` or `step-graph`.
    pub kind: String,
    /// Version of the schema that the file names; `null` if it names none.
    pub file_schema: Option<String>,
    /// The trace that a saved graph was made from; `null` for the other kinds.
    pub made_from: Option<String>,
    /// Which step it is, or how several were combined.
    pub step: String,
    /// Device as the recording names it; empty if it does not.
    pub device: String,
    /// Edges.
    pub edges: usize,
    /// Threads, streams and other queues.
    pub queues: usize,
    /// All nodes.
    pub total: NodeTallyReport,
    /// Nodes by kind.
    pub kinds: Vec<NodesReport>,
    /// Bytes of parameter gradients that the nodes complete; `null` if not recorded.
    pub gradient_bytes: Option<u64>,
    /// Communication by kind, group and size.
    pub operations: Vec<OperationReport>,
    /// Communicator groups.
    pub groups: Vec<GroupReport>,
    /// Times of the step; `null` if no durations are recorded.
    pub times: Option<GraphTimesReport>,
}

/// Nodes of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NodesReport {
    /// `host`, `kernel`, `copy`, `collective`, `p2p`, `data-load`, `optimizer`, `sync` or `mark`.
    pub kind: String,
    /// How many, and what is known of them.
    pub tally: NodeTallyReport,
}

/// A sum over nodes, and over how many of them each figure is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NodeTallyReport {
    /// Nodes.
    pub nodes: usize,
    /// Nodes with a duration.
    pub timed: usize,
    /// Sum of the durations; `null` if none is recorded.
    pub time_ns: Option<i64>,
    /// Nodes with a count of floating-point operations.
    pub with_flops: usize,
    /// Their operations; `null` if none is recorded.
    pub flops: Option<f64>,
    /// Nodes with a size: the payload of copies and communication, else the bytes moved.
    pub with_bytes: usize,
    /// Their bytes; `null` if none is recorded.
    pub bytes: Option<u64>,
}

/// Operations of one kind, group and size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OperationReport {
    /// Operation.
    pub collective: String,
    /// Group name; empty if unknown.
    pub group: String,
    /// What the group is for.
    pub role: String,
    /// Members of the group; `null` if unknown.
    pub ranks: Option<u32>,
    /// The larger of a rank's input and output; `null` if unknown.
    pub bytes: Option<u64>,
    /// How many.
    pub count: usize,
    /// How many of them have a duration.
    pub timed: usize,
    /// Shortest duration; `null` without any.
    pub min_ns: Option<i64>,
    /// Median duration; `null` without any.
    pub median_ns: Option<i64>,
}

/// A communicator group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GroupReport {
    /// Name.
    pub name: String,
    /// What it is for.
    pub role: String,
    /// Why that is believed.
    pub reason: String,
    /// Members; `null` if unknown.
    pub size: Option<u32>,
    /// Global ranks of the members; empty if unknown.
    pub ranks: Vec<u32>,
    /// Operations in the step.
    pub operations: usize,
}

/// Times of a step. Nodes without a duration take none here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GraphTimesReport {
    /// The longest chain of work and delays.
    pub longest_path_ns: i64,
    /// Nodes on it.
    pub path_nodes: usize,
    /// All work in turn.
    pub serial_sum_ns: i64,
    /// The step's time in the recording; `null` if it does not tell.
    pub recorded_ns: Option<i64>,
}

impl InspectGraphReport {
    /// The report of an inspection and of all that reading the files met.
    pub fn new(inspection: &GraphInspection, ledger: &Ledger) -> Self {
        Self {
            schema: "foretrain/inspect-graph/1".into(),
            graphs: inspection.graphs.iter().map(Into::into).collect(),
            warnings: inspection.warnings.clone(),
            ledger: ledger.into(),
        }
    }
}

impl From<&InspectedGraph> for GraphReport {
    fn from(graph: &InspectedGraph) -> Self {
        let kind = match graph.kind {
            FileKind::Chakra => "chakra",
            FileKind::StepGraph => "step-graph",
            _ => "execution-trace",
        };
        Self {
            rank: graph.rank,
            rank_source: graph.rank_source.clone(),
            world_size: graph.world_size,
            path: graph.path.clone(),
            kind: kind.into(),
            file_schema: graph.schema.clone(),
            made_from: (!graph.made_from.is_empty()).then(|| graph.made_from.clone()),
            step: graph.step.clone(),
            device: graph.device.clone(),
            edges: graph.edges,
            queues: graph.queues,
            total: graph.total.into(),
            kinds: graph.kinds.iter().map(Into::into).collect(),
            gradient_bytes: graph.gradient_bytes,
            operations: graph.operations.iter().map(Into::into).collect(),
            groups: graph.groups.iter().map(Into::into).collect(),
            times: graph.times.map(Into::into),
        }
    }
}

impl From<&NodesOfKind> for NodesReport {
    fn from(row: &NodesOfKind) -> Self {
        Self { kind: row.kind.to_string(), tally: row.tally.into() }
    }
}

impl From<NodeTally> for NodeTallyReport {
    fn from(tally: NodeTally) -> Self {
        Self {
            nodes: tally.nodes,
            timed: tally.timed,
            time_ns: (tally.timed > 0).then(|| tally.time.nanos()),
            with_flops: tally.with_flops,
            flops: (tally.with_flops > 0).then(|| finite(tally.flops)),
            with_bytes: tally.with_bytes,
            bytes: (tally.with_bytes > 0).then_some(tally.bytes),
        }
    }
}

impl From<&OperationRow> for OperationReport {
    fn from(row: &OperationRow) -> Self {
        Self {
            collective: row.kind.to_string(),
            group: row.group.clone(),
            role: row.role.as_str().into(),
            ranks: (row.ranks > 0).then_some(row.ranks),
            bytes: row.bytes.map(Bytes::get),
            count: row.count,
            timed: row.timed,
            min_ns: row.durations.map(|(shortest, _)| shortest.nanos()),
            median_ns: row.durations.map(|(_, median)| median.nanos()),
        }
    }
}

impl From<&GroupUse> for GroupReport {
    fn from(group: &GroupUse) -> Self {
        Self {
            name: group.name.clone(),
            role: group.role.as_str().into(),
            reason: group.reason.clone(),
            size: (group.size > 0).then_some(group.size),
            ranks: group.ranks.clone(),
            operations: group.operations,
        }
    }
}

impl From<GraphTimes> for GraphTimesReport {
    fn from(times: GraphTimes) -> Self {
        Self {
            longest_path_ns: times.longest_path.nanos(),
            path_nodes: times.path_nodes,
            serial_sum_ns: times.serial_sum.nanos(),
            recorded_ns: times.recorded.map(Nanos::nanos),
        }
    }
}
