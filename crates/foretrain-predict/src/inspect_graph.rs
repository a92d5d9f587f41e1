//! What is in step graphs that come without a timeline: nodes by kind, what is known of them,
//! communication, groups, and times where the recording has any.

mod groups;
mod nodes;

use foretrain_core::{Ledger, Nanos};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{NodeId, StepGraph};
use foretrain_ingest::{FileKind, GraphFile};

pub use groups::{GroupUse, OperationRow};
pub use nodes::{NodeTally, NodesOfKind};

/// Everything `inspect` tells of graphs.
#[derive(Clone, Debug)]
pub struct GraphInspection {
    /// One entry per graph, in order.
    pub graphs: Vec<InspectedGraph>,
    /// What a reader must know before using the figures.
    pub warnings: Vec<String>,
}

/// One rank's graph.
#[derive(Clone, Debug)]
pub struct InspectedGraph {
    /// Global rank.
    pub rank: u32,
    /// How the rank is known.
    pub rank_source: String,
    /// Ranks of the job, as far as the files tell.
    pub world_size: u32,
    /// File.
    pub path: String,
    /// What wrote the file.
    pub kind: FileKind,
    /// Version of the schema that the file names.
    pub schema: Option<String>,
    /// What a saved graph was made from; empty for the others.
    pub made_from: String,
    /// Which step it is.
    pub step: String,
    /// Device as recorded, empty if not.
    pub device: String,
    /// Edges.
    pub edges: usize,
    /// Threads, streams and other queues.
    pub queues: usize,
    /// Nodes by kind, kinds without nodes left out.
    pub kinds: Vec<NodesOfKind>,
    /// All nodes.
    pub total: NodeTally,
    /// Bytes of parameter gradients that the nodes complete, where recorded.
    pub gradient_bytes: Option<u64>,
    /// Communication by kind, group and size.
    pub operations: Vec<OperationRow>,
    /// Communicator groups.
    pub groups: Vec<GroupUse>,
    /// Times of the step; `None` without any duration.
    pub times: Option<GraphTimes>,
}

/// Times of a graph. Nodes without a duration take none here, so they are lower bounds where some
/// lack theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphTimes {
    /// The longest chain of work and delays.
    pub longest_path: Nanos,
    /// Nodes on it.
    pub path_nodes: usize,
    /// All work in turn.
    pub serial_sum: Nanos,
    /// The step's time in the recording, if it tells.
    pub recorded: Option<Nanos>,
}

/// Whether it is known how long the node lasts.
pub fn has_duration(graph: &StepGraph, id: NodeId) -> bool {
    let provenance = graph.node_attributes.get_str(well_known::PROVENANCE, id.index());
    provenance != Some(well_known::NO_DURATION)
}

/// Says what is in the graphs. `ledger` is the readers'.
pub fn inspect_graphs(files: &[GraphFile], ledger: &Ledger) -> GraphInspection {
    let graphs: Vec<InspectedGraph> = files.iter().map(inspect_one).collect();
    let mut warnings = ledger_warnings(ledger);
    let several = graphs.iter().any(|graph| graph.world_size > 1);
    if several && graphs.iter().all(|graph| graph.operations.is_empty()) {
        warnings.push("a job of several ranks, but no communication was recognised".into());
    }
    GraphInspection { graphs, warnings }
}

fn inspect_one(file: &GraphFile) -> InspectedGraph {
    let graph = &file.graph;
    let kinds = nodes::by_kind(graph);
    let mut total = NodeTally::default();
    for row in &kinds {
        total.add(&row.tally);
    }
    let gradients = graph.node_ids().filter_map(|id| {
        let bytes = graph.node_attributes.get_i64(well_known::GRADIENT_BYTES, id.index())?;
        u64::try_from(bytes).ok()
    });
    let gradient_bytes = gradients.reduce(u64::saturating_add);
    let is_saved = file.kind == FileKind::StepGraph;
    InspectedGraph {
        rank: graph.meta.rank,
        rank_source: file.rank_source.clone(),
        world_size: graph.meta.world_size,
        path: file.path.clone(),
        kind: file.kind.clone(),
        schema: file.schema.clone(),
        made_from: if is_saved { graph.meta.source.clone() } else { String::new() },
        step: graph.meta.step.clone(),
        device: graph.meta.device.clone(),
        edges: graph.edges().len(),
        queues: graph.queues.len(),
        times: times(graph, &total),
        kinds,
        total,
        gradient_bytes,
        operations: groups::operations(graph),
        groups: groups::uses(graph),
    }
}

fn times(graph: &StepGraph, total: &NodeTally) -> Option<GraphTimes> {
    if total.timed == 0 || total.time == Nanos::ZERO {
        return None;
    }
    // Readers and loaders give graphs without cycles; one that has a cycle has no longest path.
    let path = graph.longest_path().ok()?;
    Some(GraphTimes {
        longest_path: path.length,
        path_nodes: path.nodes.len(),
        serial_sum: graph.serial_sum(),
        recorded: graph.meta.recorded_step,
    })
}

/// Nodes that may be missing before the figures are called incomplete.
const MAY_BE_MISSING: f64 = 0.01;

fn ledger_warnings(ledger: &Ledger) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(finding) = ledger.get("unknown-schema") {
        warnings.push(finding.message.clone());
    }
    if let Some(finding) = ledger.get("unknown-field") {
        let mut names: Vec<&str> =
            finding.places.iter().map(|place| place.rsplit(": ").next().unwrap_or(place)).collect();
        names.sort_unstable();
        names.dedup();
        warnings.push(format!("fields that no known schema has, not used: {}", names.join(", ")));
    }
    let broken = ["truncated-file", "damaged-packing"].iter().any(|code| ledger.count(code) > 0);
    let missing = ledger.coverage("nodes read").is_some_and(|c| 1.0 - c.share() > MAY_BE_MISSING);
    if broken {
        warnings.push("a file breaks off before its end: the figures are incomplete".into());
    } else if missing {
        warnings
            .push("more than 1 % of the nodes cannot be read: the figures are incomplete".into());
    }
    warnings
}
