//! How many GPUs machines have, by everything that says so.

use foretrain_core::{Ledger, Severity};
use rustc_hash::{FxHashMap, FxHashSet};

use super::busy::Busy;
use super::groups::{Groups, MachineGroup};
use super::names::alike;
use crate::jobs::{Job, MachineList, Placement};

/// Machines that are told apart.
const MOST: usize = 1_000_000;

/// What jobs and logs say of one machine's GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Said {
    /// The most that one job held on it.
    jobs: Option<u32>,
    /// GPUs that a log has values of.
    log: Option<u32>,
}

/// Everything that was said.
#[derive(Default)]
pub(super) struct Evidence {
    list: MachineList,
    machines: FxHashMap<String, Said>,
    groups: Groups,
    /// Rows about machines beyond the most that are told apart.
    beyond: u64,
    /// Jobs whose number of GPUs is not that of the GPUs they name, and the first.
    differing: u64,
    first_differing: Option<String>,
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
    /// The most GPUs that jobs held on it at once.
    pub at_once: Option<u32>,
    /// GPUs that the log has values of.
    pub log: Option<u32>,
    /// What it is taken to have: the most.
    pub taken: u32,
}

/// Where a fleet's capacity comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapacityFrom {
    /// Machines, each with the most that a list, jobs or a log says.
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
    /// Of these, machines whose GPUs anything counts; of the others nothing is added.
    pub counted: u64,
    /// Machines of the list.
    pub listed: u64,
    /// Machines of the list whose GPUs it counts.
    pub listed_counted: u64,
    /// GPUs by the list alone.
    pub listed_gpus: u64,
    /// Machines that jobs or logs name and the list does not, though there is one.
    pub missing: Vec<String>,
    /// How many are missing.
    pub missing_count: u64,
    /// Machines whose names differ from another's only in case or domain; with a list, those that it
    /// does not have.
    pub alike: u64,
    /// Machines of which not all say the same, by name.
    pub conflicts: Vec<MachineConflict>,
    /// How many there are.
    pub conflict_count: u64,
    /// Machines that one job held together more GPUs of than they have.
    pub groups: Vec<MachineGroup>,
    /// How many groups there are.
    pub group_count: u64,
    /// The most GPUs that jobs held at once.
    pub peak: f64,
    /// Jobs without an end. Those that still run are in the peak from their start on, the others as
    /// they start.
    pub open_ended: u64,
    /// The GPUs there are.
    pub capacity: Option<Capacity>,
}

/// Machines that are listed one by one.
pub(super) const SHOWN: usize = 1_000;

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
        self.machines.contains_key(machine) || self.list.get(machine).is_some()
    }

    /// What the list or jobs say a machine has.
    pub(super) fn gpus(&self, machine: &str) -> Option<u32> {
        let listed = self.list.get(machine).and_then(|listed| listed.gpus);
        listed.max(self.machines.get(machine).and_then(|said| said.jobs)).filter(|gpus| *gpus > 0)
    }

    /// A row of a list of machines.
    pub(super) fn listed(&mut self, row: &Job) {
        self.list.add(row);
    }

    /// A job, or a part of one, that ran on machines.
    pub(super) fn ran(&mut self, job: &Job) {
        self.ran_on(job, &job.placements, job.whole_gpus());
    }

    /// A job, or an attempt to run it, ran on these machines on so many GPUs.
    pub(super) fn ran_on(&mut self, job: &Job, placements: &[Placement], gpus: Option<f64>) {
        let is_sliced = job.slice().is_some();
        let whole = gpus.filter(|gpus| *gpus > 0.0);
        let whole = whole.map(|gpus| (gpus.ceil() as u32, gpus));
        if let ([placed], Some((whole, _))) = (placements, whole)
            && !is_sliced
            && placed.gpus.is_some_and(|named| named != whole)
        {
            self.differing += 1;
            self.first_differing.get_or_insert_with(|| {
                let named = placed.gpus.unwrap_or(0);
                format!("row {}: {whole} GPUs, {named} of them named", job.row)
            });
        }
        let alone = placements.len() == 1;
        let mut uncounted = false;
        for placed in placements {
            let named = placed.gpus.filter(|gpus| *gpus > 0 && !is_sliced);
            let all = whole.filter(|_| alone).map(|(whole, _)| whole);
            uncounted |= named.is_none();
            let Some(said) = self.of(&placed.machine) else { continue };
            said.jobs = said.jobs.max(named).max(all);
        }
        if let Some((_, gpus)) = whole.filter(|_| uncounted && !alone) {
            self.groups.held(placements, gpus);
        }
    }

    /// A log has values of a machine's GPUs, and numbers them up to so many.
    pub(super) fn logged(&mut self, machine: &str, gpus: Option<u32>) {
        if let Some(said) = self.of(machine) {
            said.log = said.log.max(gpus);
        }
    }

    pub(super) fn finish(&self, busy: &mut Busy, ledger: &mut Ledger) -> Machines {
        let (peak, open_ended) = (busy.peak(), busy.open_ended());
        let listed = self.list.sorted();
        let mut all: Vec<&str> = self.machines.keys().map(String::as_str).collect();
        all.extend(listed.iter().map(|(name, _)| *name));
        all.sort_unstable();
        all.dedup();
        let mut found =
            Machines { count: all.len() as u64, peak, open_ended, ..Machines::default() };
        let mut taken_of: FxHashMap<&str, u32> = FxHashMap::default();
        let mut gpus = 0_u64;
        let mut suspects: Vec<&str> = Vec::new();
        for &machine in &all {
            let Said { jobs, log } = self.machines.get(machine).copied().unwrap_or_default();
            let row = self.list.get(machine);
            let (listed, listed_else) = row.map_or((None, None), |row| (row.gpus, row.gpus_else));
            let at_once = busy.at_once(machine);
            let taken = listed.max(jobs).max(log).max(at_once);
            if let Some(taken) = taken {
                gpus += u64::from(taken);
                taken_of.insert(machine, taken);
            }
            found.listed += u64::from(row.is_some());
            found.listed_counted += u64::from(listed.is_some());
            found.listed_gpus += u64::from(listed.unwrap_or(0));
            if row.is_none() {
                suspects.push(machine);
                if !self.list.is_empty() {
                    found.missing_count += 1;
                    if found.missing.len() < SHOWN {
                        found.missing.push(machine.to_owned());
                    }
                }
            }
            // A job may use less than a machine has; a log of fewer GPUs than listed is a conflict.
            let held = jobs.max(at_once);
            let conflict = listed_else.is_some()
                || listed.is_some_and(|listed| held > Some(listed))
                || log.is_some_and(|log| {
                    listed.is_some_and(|listed| listed != log) || held > Some(log)
                });
            if conflict {
                found.conflict_count += 1;
                if found.conflicts.len() < SHOWN {
                    found.conflicts.push(MachineConflict {
                        machine: machine.to_owned(),
                        listed,
                        listed_else,
                        jobs,
                        at_once,
                        log,
                        taken: taken.unwrap_or(0),
                    });
                }
            }
        }
        let mut counted: FxHashSet<&str> = FxHashSet::default();
        gpus += self.groups.finish(&taken_of, &mut counted, &mut found);
        found.counted = (taken_of.len() + counted.len()) as u64;
        let known: Vec<&str> = listed.iter().map(|(name, _)| *name).collect();
        let differing = alike(&known, &suspects);
        found.alike = differing.count;
        found.capacity = match gpus as f64 {
            of_machines if of_machines > 0.0 && of_machines >= peak => {
                Some(Capacity { gpus: of_machines, from: CapacityFrom::Machines })
            }
            _ if peak > 0.0 => Some(Capacity { gpus: peak, from: CapacityFrom::PeakOfJobs }),
            _ => None,
        };
        self.list.record(ledger);
        self.record(&found, gpus, ledger);
        ledger.record_many(
            Severity::Warning,
            "job-with-too-many-machines",
            "job beyond a million machines, or twenty million times that jobs held one: it counts for \
             none of its machines over time",
            busy.beyond(),
            None,
        );
        ledger.record_many(
            Severity::Warning,
            "machine-name-in-another-form",
            "machine whose name differs from another's only in case or domain: both are counted, \
             though they may be one",
            found.alike,
            differing.first,
        );
        found
    }

    fn record(&self, found: &Machines, gpus: u64, ledger: &mut Ledger) {
        let mut warn = |code, message, count, place| {
            ledger.record_many(Severity::Warning, code, message, count, place);
        };
        warn(
            "machine-conflict",
            "machine whose GPUs are counted differently: the largest count is taken",
            found.conflict_count,
            found.conflicts.first().map(|conflict| conflict.machine.clone()),
        );
        warn(
            "machines-held-beyond",
            "job that holds more GPUs of several machines than they have together: its number is taken",
            found.group_count,
            found.groups.first().map(MachineGroup::named),
        );
        warn(
            "machine-not-listed",
            "machine that jobs or logs name and the list of machines does not",
            found.missing_count,
            found.missing.first().cloned(),
        );
        warn(
            "machine-not-counted",
            "row about a machine beyond the first million",
            self.beyond + self.groups.beyond(),
            None,
        );
        warn(
            "gpus-and-names-differ",
            "job whose number of GPUs is not that of the GPUs it names: the larger is taken",
            self.differing,
            self.first_differing.clone(),
        );
        if gpus > 0 && found.peak > gpus as f64 {
            let of = match found.counted == found.count {
                true => String::new(),
                false => format!(" of {} of {} machines", found.counted, found.count),
            };
            warn(
                "more-gpus-held-than-there-are",
                "jobs hold more GPUs at once than the machines have: the peak is taken as capacity",
                1,
                Some(format!("{} of {gpus} GPUs{of}", found.peak)),
            );
        }
    }
}
