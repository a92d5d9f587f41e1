//! What samples saw that no job explains.

use foretrain_core::diagnostics::Coverage;
use foretrain_core::{Ledger, Severity};

/// A smaller share of busy samples without a job is within what clocks differ by.
const TOLERATED: f64 = 0.01;

/// Samples that saw GPUs busy without a job of the table on them.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// Busy GPU samples without a job, of all busy ones within the jobs' span.
    pub unexplained: f64,
    /// Busy GPU samples within the jobs' span.
    pub busy: f64,
    /// All GPU samples within the jobs' span.
    pub compared: u64,
    /// GPU samples outside of it, which say nothing of the table.
    pub outside: u64,
    /// Mean GPUs that samples saw busy, over the minutes that have any.
    pub mean_busy: f64,
    /// Mean GPUs that jobs held in these minutes.
    pub mean_held: f64,
    /// Jobs whose end is not known. They are taken to hold their GPUs from their start on, so that
    /// the gap is at least as large as said.
    pub open_ended: u64,
    /// Whether samples were held against the jobs of each machine, or of the whole fleet.
    pub by_machine: bool,
    /// Machines with the most busy samples without a job.
    pub machines: Vec<(String, f64)>,
    /// Whether only jobs or only samples are by a clock whose zone is known, so that one of them may
    /// be hours off.
    pub clocks_differ: bool,
}

impl Gap {
    /// The share of busy samples that no job of the table explains.
    pub fn share(&self) -> f64 {
        if self.busy > 0.0 { self.unexplained / self.busy } else { 0.0 }
    }

    /// Whether the table of jobs must be incomplete.
    pub fn incomplete(&self) -> bool {
        self.share() > TOLERATED
    }

    /// Writes it to a ledger.
    pub(super) fn record(&self, ledger: &mut Ledger) {
        ledger.cover(
            "GPU samples within the span of the jobs",
            self.compared,
            self.compared + self.outside,
        );
        if self.incomplete() {
            let part =
                Coverage { used: self.unexplained.round() as u64, total: self.busy.round() as u64 };
            ledger.record_at(
                Severity::Warning,
                "job-table-incomplete",
                "job table incomplete: GPUs are busy on which no job of the table runs",
                || format!("{part} busy GPU samples"),
            );
            if self.clocks_differ {
                ledger.record(
                    Severity::Warning,
                    "clocks-may-differ",
                    "only jobs or only samples say in which time zone they are, and the others are \
                     read as UTC: a shift of hours between the two would explain busy GPUs without a \
                     job",
                );
            }
        }
    }
}
