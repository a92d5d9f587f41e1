//! Backend records that belong to another operator than the one they are nested in.
//!
//! Gloo runs on threads of its own; its record is nested in whatever operator was open when the
//! operation began. Taken as it stands, one operation would be counted twice.

use std::collections::VecDeque;

use foretrain_core::Ledger;
use foretrain_core::diagnostics::Severity;
use foretrain_graph::CollectiveKind;

use super::communication::{self, Level, kind_of};
use super::hierarchy::Hierarchy;
use super::record::Record;
use super::tensors;

/// Operations that may still await their backend record; bounds the search.
const PENDING: usize = 256;

/// An operation whose backend record has not been met.
struct Pending {
    index: u32,
    kind: Option<CollectiveKind>,
    storages: Vec<i64>,
}

/// Nests every backend record that runs on the host in the operation it carries out: the one that
/// shares its tensors, else the oldest one of its kind.
pub(super) fn adopt(records: &[Record<'_>], hierarchy: &mut Hierarchy, ledger: &mut Ledger) {
    let mut pending: VecDeque<Pending> = VecDeque::new();
    for (index, record) in records.iter().enumerate() {
        if communication::host_level(&record.name) == Some(Level::Dispatcher) {
            if pending.len() == PENDING {
                pending.pop_front();
            }
            let (kind, storages) = (kind_of(&record.name), storages(record));
            pending.push_back(Pending { index: index as u32, kind, storages });
        } else if communication::runs_on_host(&record.name)
            && let Some(owner) = take_owner(&mut pending, record, hierarchy.parent[index])
            && hierarchy.parent[index] != Some(owner)
        {
            hierarchy.parent[index] = Some(owner);
            ledger.record_at(
                Severity::Inferred,
                "adopted-backend-record",
                "a backend record was nested in a foreign operator; it was given to its own",
                || format!("node {}", record.id.unwrap_or_default()),
            );
        }
    }
}

fn take_owner(
    pending: &mut VecDeque<Pending>,
    record: &Record<'_>,
    parent: Option<u32>,
) -> Option<u32> {
    let (kind, own) = (kind_of(&record.name), storages(record));
    let shares = |p: &Pending| p.storages.iter().any(|storage| own.contains(storage));
    // Gloo carries out a reduce-scatter as an all-reduce.
    let alike = |p: &Pending| {
        p.kind == kind
            || (kind == Some(CollectiveKind::AllReduce)
                && p.kind == Some(CollectiveKind::ReduceScatter))
    };
    let found = pending
        .iter()
        .position(|p| Some(p.index) == parent && alike(p) && shares(p))
        .or_else(|| pending.iter().position(|p| alike(p) && shares(p)))
        .or_else(|| pending.iter().position(alike))?;
    pending.remove(found).map(|p| p.index)
}

fn storages(record: &Record<'_>) -> Vec<i64> {
    let mut found = Vec::new();
    for argument in tensors::parse(record.inputs.values) {
        argument.tensors(&mut |tensor| found.push(tensor.storage));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::record::UnknownFields;
    use super::*;

    #[test]
    fn records_go_to_the_operation_with_their_tensors() {
        let lines = [
            r#"{"id": 1, "name": "c10d::allreduce_", "parent": 0, "inputs": [[[1, 11, 0, 8, 4, "cpu"]]]}"#,
            r#"{"id": 2, "name": "c10d::allreduce_", "parent": 0, "inputs": [[[2, 12, 0, 8, 4, "cpu"]]]}"#,
            r#"{"id": 3, "name": "c10d::_reduce_scatter_base_", "parent": 0, "inputs": [[5, 15, 0, 8, 4, "cpu"]]}"#,
            r#"{"id": 4, "name": "gloo:all_reduce", "parent": 1, "inputs": [[2, 12, 0, 8, 4, "cpu"]]}"#,
            r#"{"id": 5, "name": "gloo:all_reduce", "parent": 0, "inputs": [[1, 11, 0, 8, 4, "cpu"]]}"#,
            r#"{"id": 6, "name": "gloo:all_reduce", "parent": 0, "inputs": [[9, 19, 0, 8, 4, "cpu"]]}"#,
            r#"{"id": 7, "name": "gloo:all_reduce", "parent": 0, "inputs": [[9, 19, 0, 8, 4, "cpu"]]}"#,
        ];
        let mut unknown = UnknownFields::new();
        let records: Vec<_> =
            lines.iter().map(|line| Record::parse(line, &mut unknown).unwrap()).collect();
        let mut ledger = Ledger::new();
        let mut hierarchy = Hierarchy::new(&records, &mut Ledger::new());
        adopt(&records, &mut hierarchy, &mut ledger);
        assert_eq!(hierarchy.parent[3..], [Some(1), Some(0), Some(2), None]);
        assert_eq!(ledger.count("adopted-backend-record"), 3);
    }
}
