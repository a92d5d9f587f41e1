//! The table of collectives.

use std::collections::BTreeMap;

use foretrain_core::{Bandwidth, Bytes, Nanos, stats};
use foretrain_cost::bus_factor;
use foretrain_graph::{CollectiveKind, NodeId, StepGraph};
use foretrain_trace::build::TRACE_ROW;
use foretrain_trace::collectives::{CollectiveOp, GroupIndex};

use crate::recording::Recording;
use crate::roles::{Role, group_roles};

/// Collectives of one kind, group and size.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectiveRow {
    /// Operation.
    pub kind: CollectiveKind,
    /// Group name, empty if unknown.
    pub group: String,
    /// What the group is for.
    pub role: Role,
    /// Members, 0 if unknown.
    pub ranks: u32,
    /// Size of each, `None` if unknown.
    pub bytes: Option<Bytes>,
    /// In the whole trace.
    pub count: usize,
    /// Per step.
    pub per_step: f64,
    /// Shortest duration: the least waiting.
    pub min: Nanos,
    /// Median duration, waiting included.
    pub median: Nanos,
    /// Longest duration.
    pub max: Nanos,
    /// Size over shortest duration.
    pub algorithm_bandwidth: Option<Bandwidth>,
    /// The same times the bus factor of nccl-tests.
    pub bus_bandwidth: Option<Bandwidth>,
}

/// Communication of one rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Communication {
    /// By kind, group and size.
    pub rows: Vec<CollectiveRow>,
    /// Operations that move data, and how many of them have a known size.
    pub bytes_known: (usize, usize),
    /// Share of the communication time with known size, 0 to 1.
    pub time_share_known: f64,
    /// Names of kernels that look like communication, with count and time.
    pub unclassified: Vec<(String, usize, Nanos)>,
}

impl Communication {
    /// "bytes known for 1 of 2 operations (50.0 % of communication time)".
    pub fn coverage_text(&self) -> String {
        let (known, all) = self.bytes_known;
        let share = self.time_share_known * 100.0;
        format!("bytes known for {known} of {all} operations ({share:.1} % of communication time)")
    }
}

/// `shown` is the graph of a typical step, from which the roles of groups are told.
pub(super) fn communication(recording: &Recording, shown: Option<&StepGraph>) -> Communication {
    let found = &recording.collectives;
    let roles = shown.map_or_else(BTreeMap::new, |graph| roles(recording, graph));
    let mut by_key: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for op in &found.ops {
        let key = (op.kind, op.group.map(GroupIndex::index), op.bytes);
        by_key.entry(key).or_default().push(op.duration().nanos() as f64);
    }
    let steps = recording.steps.steps.len().max(1) as f64;
    let rows = by_key.into_iter().map(|((kind, group, bytes), times)| {
        let entry = group.and_then(|group| found.groups.get(group));
        let ranks = entry.map_or(0, |g| g.size.max(g.ranks.len() as u32));
        let at = |q| stats::quantile(&times, q).map_or(Nanos::ZERO, Nanos::from_nanos_f64);
        let algorithm = bytes.and_then(|bytes| Bandwidth::of(bytes, at(0.0)));
        let bus = algorithm
            .filter(|_| ranks > 1)
            .map(|rate| Bandwidth::from_gb_per_sec(rate.gb_per_sec() * bus_factor(kind, ranks)));
        CollectiveRow {
            kind,
            group: entry.map_or_else(String::new, |group| group.name.clone()),
            role: group.and_then(|group| roles.get(&group).copied()).unwrap_or(Role::Unknown),
            ranks,
            bytes,
            count: times.len(),
            per_step: times.len() as f64 / steps,
            min: at(0.0),
            median: at(0.5),
            max: at(1.0),
            algorithm_bandwidth: algorithm,
            bus_bandwidth: bus,
        }
    });
    let rows = rows.collect();
    let data = || found.ops.iter().filter(|op| op.kind != CollectiveKind::Barrier);
    let known = || data().filter(|op| op.bytes.is_some());
    let total: Nanos = data().map(CollectiveOp::duration).sum();
    let known_time: Nanos = known().map(CollectiveOp::duration).sum();
    let mut unknown: BTreeMap<&str, (usize, Nanos)> = BTreeMap::new();
    for op in &found.unclassified {
        let entry = unknown.entry(recording.trace.name_of(op.row as usize)).or_default();
        entry.0 += 1;
        entry.1 += op.duration();
    }
    Communication {
        rows,
        bytes_known: (known().count(), data().count()),
        time_share_known: known_time.nanos() as f64 / total.nanos().max(1) as f64,
        unclassified: unknown.into_iter().map(|(n, (c, t))| (n.to_owned(), c, t)).collect(),
    }
}

/// Role of each group in the recording's table, from the use a step makes of it.
fn roles(recording: &Recording, graph: &StepGraph) -> BTreeMap<usize, Role> {
    let roles = group_roles(graph, &[]);
    let group_of_row: BTreeMap<u32, usize> = recording
        .collectives
        .ops
        .iter()
        .filter_map(|op| Some((op.row, op.group?.index())))
        .collect();
    graph
        .node_ids()
        .filter_map(|id: NodeId| {
            let row = graph.node_attributes.get_i64(TRACE_ROW, id.index())?;
            let group = *group_of_row.get(&u32::try_from(row).ok()?)?;
            Some((group, roles.get(graph.node(id).group?.index())?.role))
        })
        .collect()
}
