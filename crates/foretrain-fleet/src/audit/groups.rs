//! Jobs on several machines that only say how many GPUs they held on all of them.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::duplicates::hash;
use super::machines::{Machines, SHOWN};
use crate::jobs::Placement;

/// Names of machines that are kept.
const MOST: usize = 1_000_000;
/// Names in a text.
const NAMED: usize = 4;

/// The most that one job held of some machines together.
#[derive(Clone, Debug)]
struct Group {
    machines: Vec<String>,
    gpus: f64,
}

/// Sets of machines.
#[derive(Debug, Default)]
pub(super) struct Groups {
    known: FxHashMap<u64, Group>,
    names: usize,
    beyond: u64,
}

/// Machines that one job held more GPUs of than they have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineGroup {
    /// The machines.
    pub machines: Vec<String>,
    /// The most that one job held of them.
    pub job: u32,
    /// What all else says they have together.
    pub have: u32,
}

impl MachineGroup {
    /// For people: `n1 + n2 + 3 more`.
    pub fn named(&self) -> String {
        let mut names: Vec<String> = self.machines.iter().take(NAMED).cloned().collect();
        if self.machines.len() > NAMED {
            names.push(format!("{} more", self.machines.len() - NAMED));
        }
        names.join(" + ")
    }
}

impl Groups {
    /// A job held so many GPUs of these machines.
    pub(super) fn held(&mut self, placements: &[Placement], gpus: f64) {
        // Whatever their order.
        let key = placements.iter().fold(0_u64, |key, placed| {
            let own = hash(&placed.machine);
            key.wrapping_add((own ^ own >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        });
        if let Some(known) = self.known.get_mut(&key) {
            known.gpus = known.gpus.max(gpus);
            return;
        }
        if self.names + placements.len() > MOST {
            self.beyond += 1;
            return;
        }
        self.names += placements.len();
        let mut machines: Vec<String> =
            placements.iter().map(|placed| placed.machine.clone()).collect();
        machines.sort_unstable();
        self.known.insert(key, Group { machines, gpus });
    }

    /// Jobs whose machines are not kept.
    pub(super) fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Adds to what is found, given what else says of the machines; GPUs that have to be there beyond
    /// that. Groups that share a machine are not added up. Machines that only a group counts are put
    /// into `counted`.
    pub(super) fn finish<'a>(
        &'a self,
        taken: &FxHashMap<&str, u32>,
        counted: &mut FxHashSet<&'a str>,
        found: &mut Machines,
    ) -> u64 {
        let mut beyond: BTreeMap<(std::cmp::Reverse<u32>, &[String]), u32> = BTreeMap::new();
        self.known.values().for_each(|group| {
            let have = group.machines.iter().filter_map(|machine| taken.get(machine.as_str()));
            let have: u32 = have.fold(0, |sum, gpus| sum.saturating_add(*gpus));
            let job = group.gpus.ceil() as u32;
            if job > have {
                beyond.insert((std::cmp::Reverse(job - have), &group.machines), have);
            }
        });
        let mut raised: FxHashSet<&str> = FxHashSet::default();
        let mut gpus = 0;
        for ((std::cmp::Reverse(more), machines), have) in beyond {
            let is_known = |machine: &String| taken.contains_key(machine.as_str());
            // Of machines that nobody counts, the job is the only one to say anything.
            if machines.iter().all(is_known) {
                found.group_count += 1;
                if found.groups.len() < SHOWN {
                    let (machines, job) = (machines.to_vec(), have + more);
                    found.groups.push(MachineGroup { machines, job, have });
                }
            }
            if machines.iter().any(|machine| raised.contains(machine.as_str())) {
                continue;
            }
            gpus += u64::from(more);
            raised.extend(machines.iter().map(String::as_str));
            let uncounted = machines.iter().filter(|machine| !is_known(machine));
            counted.extend(uncounted.map(String::as_str));
        }
        gpus
    }
}
