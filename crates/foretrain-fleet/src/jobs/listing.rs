//! Lists of machines, read alike by all who ask how many GPUs machines have.

use foretrain_core::{Bytes, Ledger, Severity};
use rustc_hash::FxHashMap;

use super::job::Job;

/// Machines that are told apart.
const MOST: usize = 1_000_000;
/// More GPUs in one machine is a mistake.
const MOST_GPUS: f64 = 65_535.0;

/// One machine of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listed {
    /// Its GPUs, the most that a row says; none if no row says any number that can be.
    pub gpus: Option<u32>,
    /// Another, smaller number that a row says.
    pub gpus_else: Option<u32>,
    /// The kind of its GPUs, by the row with the most of them.
    pub kind: String,
    /// The memory of one GPU.
    pub memory: Option<Bytes>,
    /// Whether rows name several kinds.
    kinds_differ: bool,
}

/// Machines by name. Several rows of one machine are one machine, with the most GPUs that any says.
#[derive(Clone, Debug, Default)]
pub struct MachineList {
    machines: FxHashMap<String, Listed>,
    rows: u64,
    unnamed: Met,
    again: Met,
    fractions: Met,
    beyond_any: Met,
    without_count: Met,
    untold: Met,
}

/// How often something was met, and where first.
#[derive(Clone, Debug, Default)]
struct Met {
    count: u64,
    first: Option<String>,
}

impl Met {
    fn at(&mut self, place: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.is_none() {
            self.first = Some(place());
        }
    }

    fn record(&self, severity: Severity, code: &str, message: &str, ledger: &mut Ledger) {
        ledger.record_many(severity, code, message, self.count, self.first.clone());
    }
}

impl MachineList {
    /// Takes one row. A row that names several machines says the same of each; one that names none is
    /// a machine of its own.
    pub fn add(&mut self, row: &Job) {
        self.rows += 1;
        let gpus = self.count(row);
        match row.placements.as_slice() {
            [] if row.id.is_empty() => {
                self.unnamed.at(|| format!("row {}", row.row));
                self.put(&format!("#{}", self.rows), gpus, row);
            }
            [] => self.put(&row.id, gpus, row),
            placed => placed.iter().for_each(|placed| self.put(&placed.machine, gpus, row)),
        }
    }

    /// The number of GPUs of a row, if it can be one.
    fn count(&mut self, row: &Job) -> Option<u32> {
        let place = |gpus: f64| format!("row {}: {gpus}", row.row);
        let gpus = match row.gpus {
            Some(gpus) if gpus > MOST_GPUS => {
                self.beyond_any.at(|| place(gpus));
                return None;
            }
            Some(gpus) if gpus >= 0.0 => gpus,
            _ => {
                self.without_count.at(|| format!("row {}", row.row));
                return None;
            }
        };
        if gpus.fract() != 0.0 {
            self.fractions.at(|| place(gpus));
        }
        Some(gpus as u32)
    }

    fn put(&mut self, name: &str, gpus: Option<u32>, row: &Job) {
        let Some(known) = self.machines.get_mut(name) else {
            if self.machines.len() >= MOST {
                self.untold.at(|| format!("row {}", row.row));
                return;
            }
            let memory = row.gpu_memory.filter(|memory| *memory > Bytes::ZERO);
            let kind = row.gpu_kind.clone();
            let listed = Listed { gpus, kind, memory, ..Listed::default() };
            self.machines.insert(name.to_owned(), listed);
            return;
        };
        self.again.at(|| format!("row {}: {name}", row.row));
        known.kinds_differ |= !row.gpu_kind.is_empty()
            && !known.kind.is_empty()
            && !known.kind.eq_ignore_ascii_case(&row.gpu_kind);
        let is_more = gpus > known.gpus;
        if let (Some(one), Some(other)) = (known.gpus, gpus)
            && one != other
        {
            let fewer = one.min(other);
            known.gpus_else = Some(known.gpus_else.map_or(fewer, |least| least.min(fewer)));
        }
        known.gpus = known.gpus.max(gpus);
        if !row.gpu_kind.is_empty() && (is_more || known.kind.is_empty()) {
            known.kind.clone_from(&row.gpu_kind);
        }
        let memory = row.gpu_memory.filter(|memory| *memory > Bytes::ZERO);
        known.memory = if is_more { memory.or(known.memory) } else { known.memory.or(memory) };
    }

    /// What is listed of a machine.
    pub fn get(&self, machine: &str) -> Option<&Listed> {
        self.machines.get(machine)
    }

    /// Whether no row was read.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// All machines by name.
    pub fn sorted(&self) -> Vec<(&str, &Listed)> {
        let mut all: Vec<(&str, &Listed)> =
            self.machines.iter().map(|(name, listed)| (name.as_str(), listed)).collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all
    }

    /// Writes what was met to a ledger. Machines with several counts are left to who else counts
    /// GPUs.
    pub fn record(&self, ledger: &mut Ledger) {
        let warning = Severity::Warning;
        self.unnamed.record(
            warning,
            "machine-without-name",
            "row of a machine without a name: it is counted as a machine of its own",
            ledger,
        );
        self.again.record(
            Severity::Note,
            "machine-listed-again",
            "row of a machine that an earlier row lists: they are one machine, with the most GPUs \
             that any of them says",
            ledger,
        );
        self.fractions.record(
            warning,
            "part-of-gpu-in-machine",
            "machine with a broken number of GPUs: its whole ones are counted",
            ledger,
        );
        self.beyond_any.record(
            warning,
            "too-many-gpus",
            "machine with more GPUs than any has: the number is left out",
            ledger,
        );
        self.without_count.record(
            Severity::Note,
            "machine-of-unknown-gpus",
            "row of a machine that does not say how many GPUs it has",
            ledger,
        );
        self.untold.record(
            warning,
            "machine-not-listed-apart",
            "row about a machine beyond the first million, left out",
            ledger,
        );
        let mut kinds = Met::default();
        let differing = self.sorted().into_iter().filter(|(_, listed)| listed.kinds_differ);
        differing.for_each(|(name, _)| kinds.at(|| name.to_owned()));
        kinds.record(
            warning,
            "machine-of-several-kinds",
            "machine that is listed with several kinds of GPU: all count as the kind of the row with \
             the most of them",
            ledger,
        );
    }

    /// Writes machines to a ledger of which rows count different GPUs.
    pub fn record_conflicts(&self, ledger: &mut Ledger) {
        let mut conflicts = Met::default();
        for (name, listed) in self.sorted() {
            if let (Some(gpus), Some(fewer)) = (listed.gpus, listed.gpus_else) {
                conflicts.at(|| format!("{name}: {gpus} and {fewer}"));
            }
        }
        conflicts.record(
            Severity::Warning,
            "machine-conflict",
            "machine whose GPUs are counted differently: the largest count is taken",
            ledger,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::Placement;
    use super::*;

    fn list(rows: &[(&str, Option<f64>)]) -> (MachineList, Ledger) {
        let mut list = MachineList::default();
        for (number, (name, gpus)) in rows.iter().enumerate() {
            let placed = Placement { machine: (*name).into(), gpus: None };
            let placements = if name.is_empty() { Vec::new() } else { vec![placed] };
            let row = number as u64 + 1;
            list.add(&Job { row, placements, gpus: *gpus, ..Job::default() });
        }
        let mut ledger = Ledger::new();
        list.record(&mut ledger);
        list.record_conflicts(&mut ledger);
        (list, ledger)
    }

    #[test]
    fn a_machine_has_the_most_that_any_row_says() {
        let rows = [("n1", 8.0), ("n1", 4.0), ("n2", 4.0), ("n2", 0.0)];
        let (list, ledger) = list(&rows.map(|(name, gpus)| (name, Some(gpus))));
        let gpus: Vec<_> = list.sorted().iter().map(|(_, m)| (m.gpus, m.gpus_else)).collect();
        assert_eq!(gpus, [(Some(8), Some(4)), (Some(4), Some(0))]);
        assert_eq!(ledger.count("machine-conflict"), 2);
        assert_eq!(ledger.count("machine-listed-again"), 2);
    }

    #[test]
    fn rows_that_cannot_be_are_counted() {
        let rows = [
            ("n1", Some(8.0)),
            ("n2", Some(2.5)),
            ("", Some(8.0)),
            ("n3", None),
            ("n4", Some(1e9)),
        ];
        let (list, ledger) = list(&rows);
        let known: u32 = list.sorted().iter().filter_map(|(_, machine)| machine.gpus).sum();
        assert_eq!((known, list.sorted().len()), (18, 5));
        for code in [
            "part-of-gpu-in-machine",
            "machine-without-name",
            "machine-of-unknown-gpus",
            "too-many-gpus",
        ] {
            assert_eq!(ledger.count(code), 1, "{code}");
        }
    }
}
