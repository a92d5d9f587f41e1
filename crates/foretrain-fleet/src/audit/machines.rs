//! How many GPUs machines have, by everything that says so.

use foretrain_core::{Ledger, Severity};
use rustc_hash::FxHashMap;

use crate::jobs::Job;

/// Machines that are told apart.
const MOST: usize = 1_000_000;

/// What is said of one machine's GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Said {
    listed: Option<u32>,
    /// Another, smaller number in the list.
    listed_else: Option<u32>,
    /// The most that one job held on it.
    jobs: Option<u32>,
    /// GPUs that a log has values of.
    log: Option<u32>,
}

/// Everything that was said.
#[derive(Default)]
pub(super) struct Evidence {
    machines: FxHashMap<String, Said>,
    /// Rows about machines beyond the most that are told apart.
    beyond: u64,
    with_list: bool,
}

/// A machine of which not all say the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineConflict {
    /// The machine.
    pub machine: String,
    /// GPUs by the list of machines.
    pub listed: Option<u32>,
    /// Another, smaller number in the same list.
    pub listed_else: Option<u32>,
    /// The most GPUs that one job held on it.
    pub jobs: Option<u32>,
    /// GPUs that the log has values of.
    pub log: Option<u32>,
    /// What it is taken to have: the most.
    pub taken: u32,
}

/// Where a fleet's capacity comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapacityFrom {
    /// Machines, each with the most that a list, a job or a log says.
    Machines,
    /// The most GPUs that jobs held at once; the fleet may have more.
    PeakOfJobs,
}

/// How many GPUs a fleet has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// GPUs.
    pub gpus: f64,
    /// What says so.
    pub from: CapacityFrom,
}

/// The machines of a fleet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machines {
    /// Machines that anything names.
    pub count: u64,
    /// Machines of the list.
    pub listed: u64,
    /// GPUs by the list alone.
    pub listed_gpus: u64,
    /// Machines that jobs or logs name and the list does not, though there is one.
    pub missing: Vec<String>,
    /// How many are missing.
    pub missing_count: u64,
    /// Machines of which not all say the same, by name.
    pub conflicts: Vec<MachineConflict>,
    /// How many there are.
    pub conflict_count: u64,
    /// The most GPUs that jobs held at once.
    pub peak: f64,
    /// The GPUs there are.
    pub capacity: Option<Capacity>,
}

/// Machines that are listed one by one.
const SHOWN: usize = 1_000;

impl Evidence {
    fn of(&mut self, machine: &str) -> Option<&mut Said> {
        if self.machines.len() >= MOST && !self.machines.contains_key(machine) {
            self.beyond += 1;
            return None;
        }
        if !self.machines.contains_key(machine) {
            self.machines.insert(machine.to_owned(), Said::default());
        }
        self.machines.get_mut(machine)
    }

    /// Whether anything named this machine.
    pub(super) fn knows(&self, machine: &str) -> bool {
        self.machines.contains_key(machine)
    }

    /// What the list or jobs say a machine has.
    pub(super) fn gpus(&self, machine: &str) -> Option<u32> {
        let said = self.machines.get(machine)?;
        said.listed.max(said.jobs)
    }

    /// A row of a list of machines.
    pub(super) fn listed(&mut self, row: &Job) {
        self.with_list = true;
        let gpus = row.gpus.map(|gpus| gpus.round() as u32);
        for placed in &row.placements {
            let Some(said) = self.of(&placed.machine) else { continue };
            if said.listed.is_some() && said.listed != gpus {
                said.listed_else = said.listed.min(gpus);
            }
            said.listed = said.listed.max(gpus.or(Some(0)));
        }
    }

    /// A job, or a part of one, that ran on machines.
    pub(super) fn ran(&mut self, job: &Job) {
        for placed in &job.placements {
            let Some(said) = self.of(&placed.machine) else { continue };
            said.jobs = said.jobs.max(placed.gpus);
        }
    }

    /// A log has values of so many GPUs.
    pub(super) fn logged(&mut self, machine: &str, gpus: u32) {
        if let Some(said) = self.of(machine) {
            said.log = said.log.max(Some(gpus));
        }
    }

    pub(super) fn finish(&self, peak: f64, ledger: &mut Ledger) -> Machines {
        let mut all: Vec<(&String, &Said)> = self.machines.iter().collect();
        all.sort_unstable_by_key(|(machine, _)| *machine);
        let mut found = Machines { count: all.len() as u64, peak, ..Machines::default() };
        let mut gpus = 0_u64;
        for (machine, said) in all {
            let taken = said.listed.max(said.jobs).max(said.log).unwrap_or(0);
            gpus += u64::from(taken);
            found.listed += u64::from(said.listed.is_some());
            found.listed_gpus += u64::from(said.listed.unwrap_or(0));
            if self.with_list && said.listed.is_none() {
                found.missing_count += 1;
                if found.missing.len() < SHOWN {
                    found.missing.push(machine.clone());
                }
            }
            // A job may use less than a machine has; a log of fewer GPUs than listed is a conflict.
            let conflict = said.listed_else.is_some()
                || said.listed.is_some_and(|listed| said.jobs > Some(listed))
                || said.log.is_some_and(|log| {
                    said.listed.is_some_and(|listed| listed != log) || said.jobs > Some(log)
                });
            if conflict {
                found.conflict_count += 1;
                let Said { listed, listed_else, jobs, log } = *said;
                if found.conflicts.len() < SHOWN {
                    let machine = machine.clone();
                    let conflict =
                        MachineConflict { machine, listed, listed_else, jobs, log, taken };
                    found.conflicts.push(conflict);
                }
            }
        }
        found.capacity = match gpus as f64 {
            of_machines if of_machines > 0.0 && of_machines >= peak => {
                Some(Capacity { gpus: of_machines, from: CapacityFrom::Machines })
            }
            _ if peak > 0.0 => Some(Capacity { gpus: peak, from: CapacityFrom::PeakOfJobs }),
            _ => None,
        };
        self.record(&found, gpus, ledger);
        found
    }

    fn record(&self, found: &Machines, gpus: u64, ledger: &mut Ledger) {
        ledger.record_many(
            Severity::Warning,
            "machine-conflict",
            "machine whose GPUs are counted differently: the largest count is taken",
            found.conflict_count,
            found.conflicts.first().map(|conflict| conflict.machine.clone()),
        );
        ledger.record_many(
            Severity::Warning,
            "machine-not-listed",
            "machine that jobs or logs name and the list of machines does not",
            found.missing_count,
            found.missing.first().cloned(),
        );
        ledger.record_many(
            Severity::Warning,
            "machine-not-counted",
            "row about a machine beyond the first million",
            self.beyond,
            None,
        );
        if gpus > 0 && found.peak > gpus as f64 {
            ledger.record_at(
                Severity::Warning,
                "more-gpus-held-than-there-are",
                "jobs hold more GPUs at once than the machines have: the peak is taken as capacity",
                || format!("{} of {gpus} GPUs", found.peak),
            );
        }
    }
}
