//! Communication of a graph, and the groups that it goes on in.

use std::collections::BTreeMap;

use foretrain_core::{Bytes, Nanos, stats};
use foretrain_graph::{CollectiveKind, GroupId, StepGraph};

use super::has_duration;
use crate::roles::{Role, group_roles};

/// Operations of one kind, group and size.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationRow {
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
    /// How many.
    pub count: usize,
    /// How many of them have a duration.
    pub timed: usize,
    /// Shortest and median duration; `None` without any.
    pub durations: Option<(Nanos, Nanos)>,
}

/// A communicator group and the use that the step makes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupUse {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// Why that is believed.
    pub reason: String,
    /// Members, 0 if unknown.
    pub size: u32,
    /// Global ranks of the members, empty if unknown.
    pub ranks: Vec<u32>,
    /// Operations in the step.
    pub operations: usize,
}

pub(super) fn operations(graph: &StepGraph) -> Vec<OperationRow> {
    let mut by_key: BTreeMap<_, (usize, Vec<f64>)> = BTreeMap::new();
    for id in graph.node_ids() {
        let node = graph.node(id);
        let Some(kind) = node.collective else { continue };
        let key = (kind, node.group.map(GroupId::index), node.bytes);
        let (count, durations) = by_key.entry(key).or_default();
        *count += 1;
        if has_duration(graph, id) {
            durations.push(node.work.nanos() as f64);
        }
    }
    let roles = group_roles(graph, &[]);
    let rows = by_key.into_iter().map(|((kind, group, bytes), (count, durations))| {
        let entry = group.and_then(|group| graph.groups.get(group));
        let at = |q| stats::quantile(&durations, q).map(Nanos::from_nanos_f64);
        OperationRow {
            kind,
            group: entry.map_or_else(String::new, |group| group.name.clone()),
            role: group.and_then(|group| roles.get(group)).map_or(Role::Unknown, |role| role.role),
            ranks: entry.map_or(0, |group| group.size.max(group.ranks.len() as u32)),
            bytes,
            count,
            timed: durations.len(),
            durations: at(0.0).zip(at(0.5)),
        }
    });
    rows.collect()
}

pub(super) fn uses(graph: &StepGraph) -> Vec<GroupUse> {
    let mut operations = vec![0; graph.groups.len()];
    for id in graph.node_ids() {
        let node = graph.node(id);
        let communicates = node.kind.communicates();
        if let (true, Some(group)) = (communicates, node.group) {
            operations[group.index()] += 1;
        }
    }
    let rows = graph.groups.iter().zip(group_roles(graph, &[])).zip(operations);
    rows.map(|((group, role), operations)| GroupUse {
        name: group.name.clone(),
        role: role.role,
        reason: role.reason,
        size: group.size.max(group.ranks.len() as u32),
        ranks: group.ranks.clone(),
        operations,
    })
    .collect()
}
