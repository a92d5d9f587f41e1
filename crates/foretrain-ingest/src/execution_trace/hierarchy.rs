//! The nesting of operators.

use foretrain_core::Ledger;
use foretrain_core::diagnostics::Severity;

use super::record::Record;

/// Parents and children of records that are sorted by id.
#[derive(Debug)]
pub(super) struct Hierarchy {
    pub(super) parent: Vec<Option<u32>>,
    /// Every record after its parent.
    pub(super) order: Vec<u32>,
}

/// The position of the record with this id.
pub(super) fn position(records: &[Record<'_>], id: u64) -> Option<u32> {
    records.binary_search_by_key(&Some(id), |record| record.id).ok().map(|i| i as u32)
}

impl Hierarchy {
    /// Resolves parents; unknown ones are counted, rings of parents are cut.
    pub(super) fn new(records: &[Record<'_>], ledger: &mut Ledger) -> Self {
        let mut parent = Vec::with_capacity(records.len());
        for (index, record) in records.iter().enumerate() {
            parent.push(record.control.first().and_then(|&id| {
                let found = position(records, id);
                // The process node names itself, thread nodes a process node that may be absent.
                if found.is_none() && !is_frame(&record.name) {
                    dangling(ledger, record, id);
                }
                found.filter(|&found| found as usize != index)
            }));
        }
        let mut hierarchy = Self { parent, order: Vec::with_capacity(records.len()) };
        hierarchy.sort(records, ledger);
        hierarchy
    }

    /// Walks up from each record, then lists the path from the top; meeting the path again means
    /// a ring.
    fn sort(&mut self, records: &[Record<'_>], ledger: &mut Ledger) {
        const NEW: u8 = 0;
        const ON_PATH: u8 = 1;
        const DONE: u8 = 2;
        let mut state = vec![NEW; records.len()];
        let mut path = Vec::new();
        for start in 0..records.len() as u32 {
            let mut at = Some(start);
            while let Some(node) = at.filter(|&node| state[node as usize] == NEW) {
                state[node as usize] = ON_PATH;
                path.push(node);
                at = self.parent[node as usize];
            }
            if let (Some(ring), Some(&top)) = (at, path.last())
                && state[ring as usize] == ON_PATH
            {
                self.parent[top as usize] = None;
                let name = &records[top as usize].name;
                ledger.record_at(
                    Severity::Warning,
                    "cyclic-dependency",
                    "a dependency that closes a cycle, from a later to an earlier node, was left out",
                    || format!("\"{name}\" encloses itself"),
                );
            }
            while let Some(node) = path.pop() {
                state[node as usize] = DONE;
                self.order.push(node);
            }
        }
    }
}

/// Counts a dependency on a node that the file does not have.
pub(super) fn dangling(ledger: &mut Ledger, record: &Record<'_>, missing: u64) {
    ledger.record_at(
        Severity::Dropped,
        "dangling-dependency",
        "a dependency on a node that is not in the file was left out",
        || format!("node {} needs {missing}", record.id.unwrap_or_default()),
    );
}

/// Whether the record only frames others: the process, a thread.
pub(super) fn is_frame(name: &str) -> bool {
    name.starts_with("[pytorch|profiler|execution_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(links: &[(u64, u64)]) -> Vec<Record<'static>> {
        links
            .iter()
            .map(|&(id, parent)| Record {
                id: Some(id),
                name: "op".into(),
                control: vec![parent],
                ..Record::default()
            })
            .collect()
    }

    #[test]
    fn parents_come_first_even_when_their_ids_are_larger() {
        let mut ledger = Ledger::new();
        let hierarchy = Hierarchy::new(&records(&[(1, 1), (5, 7), (7, 1)]), &mut ledger);
        assert_eq!(hierarchy.order, [0, 2, 1]);
        assert!(ledger.is_empty());
    }

    #[test]
    fn rings_and_missing_parents_are_reported() {
        let mut ledger = Ledger::new();
        let hierarchy = Hierarchy::new(&records(&[(1, 3), (2, 1), (3, 2), (4, 99)]), &mut ledger);
        assert_eq!(hierarchy.order.len(), 4);
        assert_eq!(hierarchy.parent.iter().flatten().count(), 2);
        assert_eq!(ledger.count("cyclic-dependency"), 1);
        assert_eq!(ledger.count("dangling-dependency"), 1);
    }

    #[test]
    fn a_chain_of_a_million_is_walked_without_recursion() {
        let count = 1_000_000;
        // Every parent has the larger id: the worst case for the walk.
        let links: Vec<_> = (0..count).map(|id| (id, id + 1)).collect();
        let hierarchy = Hierarchy::new(&records(&links), &mut Ledger::new());
        assert_eq!(hierarchy.order[0] as u64, count - 1);
    }
}
