//! The JSON of `fleet audit`.

mod convert;

use schemars::JsonSchema;
use serde::Serialize;

use crate::json::common::{CoverageReport, LedgerReport};

/// What tables of a fleet hold, leave open and contradict each other in.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetAuditReport {
    /// `foretrain/fleet-audit/1`.
    pub schema: String,
    /// The tables, as they were given.
    pub tables: Vec<FleetTableReport>,
    /// Tables of pods, tasks or instances against the jobs.
    pub joins: Vec<FleetJoinReport>,
    /// Machines and their GPUs.
    pub machines: FleetMachinesReport,
    /// How much of the fleet its jobs held; `null` if it cannot be known.
    pub allocated: Option<FleetAllocatedReport>,
    /// Samples of GPUs against the jobs; `null` without either.
    pub gap: Option<FleetGapReport>,
    /// What was met.
    pub ledger: LedgerReport,
}

/// One table.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetTableReport {
    /// The file.
    pub file: String,
    /// The schema it was recognised as, or `plain`.
    pub recognised_as: String,
    /// `jobs`, `parts of jobs`, `machines` or `GPU samples`.
    pub rows_are: String,
    /// Rows that could be read.
    pub rows: CoverageReport,
    /// Whether the file ends before its last row does: more rows may be missing.
    pub cut_short: bool,
    /// Columns that are read.
    pub columns: Vec<FleetColumnReport>,
    /// Titles of columns that nothing is read from.
    pub unused_columns: Vec<String>,
    /// `submitted`, `started`, `spans-only` or `untimed`; `null` for tables of other things than jobs.
    pub arrivals: Option<String>,
    /// Rows with a time of submission.
    pub submitted: CoverageReport,
    /// Rows with a run time.
    pub run_times: CoverageReport,
    /// Runs of days that are covered alike.
    pub periods: Vec<FleetPeriodReport>,
    /// Every day with any row.
    pub days: Vec<FleetDayReport>,
    /// Rows without a date.
    pub undated: u64,
    /// Rows whose id an earlier row has.
    pub repeated_ids: u64,
    /// Of these, rows that are equal to an earlier one.
    pub identical_rows: u64,
    /// Rows with an id, which were compared.
    pub compared_rows: u64,
    /// Rows whose id an earlier table of jobs has.
    pub ids_elsewhere: u64,
    /// Of these, rows that are equal to one there.
    pub rows_elsewhere: u64,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetColumnReport {
    /// Its title.
    pub title: String,
    /// The field it holds.
    pub field: String,
    /// Its unit; `null` where it needs none.
    pub unit: Option<String>,
    /// Who says so: `schema`, `title`, `given`, `file`, `times` (it is what lies between two other
    /// times) or `guessed`; `null` without a unit.
    pub unit_from: Option<String>,
    /// Rows with a usable value.
    pub usable: CoverageReport,
}

/// How many rows hold a value of a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FleetFieldReport {
    /// The field.
    pub field: String,
    /// Rows.
    pub rows: u64,
}

/// Days that follow each other and are covered alike. Days count from the table's origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FleetPeriodReport {
    /// The first day.
    pub first_day: i64,
    /// The last.
    pub last_day: i64,
    /// Days between with any row.
    pub days: u64,
    /// Rows.
    pub rows: u64,
    /// Rows with a value, by field.
    pub usable: Vec<FleetFieldReport>,
}

/// One day, counted from the table's origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FleetDayReport {
    /// The day.
    pub day: i64,
    /// Rows.
    pub rows: u64,
    /// Rows with a value, by field.
    pub usable: Vec<FleetFieldReport>,
}

/// A table of pods, tasks or instances against the jobs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetJoinReport {
    /// The file.
    pub file: String,
    /// Rows of it that name a job there is.
    pub rows: CoverageReport,
    /// Jobs with a row in it, of those that have an id.
    pub jobs: CoverageReport,
    /// Jobs without an id.
    pub jobs_without_id: u64,
    /// Jobs with parts on several machines.
    pub on_several_machines: u64,
    /// The first day of its rows.
    pub first_day: Option<i64>,
    /// The last.
    pub last_day: Option<i64>,
    /// Linked jobs over the days of the jobs.
    pub periods: Vec<FleetJoinPeriodReport>,
}

/// Days of jobs that are linked alike.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetJoinPeriodReport {
    /// The first day.
    pub first_day: i64,
    /// The last.
    pub last_day: i64,
    /// Linked jobs.
    pub jobs: CoverageReport,
}

/// Machines and their GPUs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetMachinesReport {
    /// Machines that anything names.
    pub machines: u64,
    /// Of these, machines whose GPUs anything counts.
    pub counted: u64,
    /// Machines of a list.
    pub listed: u64,
    /// Of these, machines whose GPUs it counts.
    pub listed_counted: u64,
    /// GPUs by that list alone.
    pub listed_gpus: u64,
    /// Machines that jobs or logs name and the list does not.
    pub missing: u64,
    /// The first thousand of them.
    pub missing_names: Vec<String>,
    /// Machines whose names differ from another's only in case or domain.
    pub names_alike: u64,
    /// Machines whose GPUs are counted differently.
    pub conflicts: u64,
    /// The first thousand of them.
    pub conflicting: Vec<FleetMachineReport>,
    /// Sets of machines that one job held more GPUs of than they have.
    pub held_beyond: u64,
    /// The first thousand of them.
    pub groups_held_beyond: Vec<FleetMachineGroupReport>,
    /// The most GPUs that jobs held at once.
    pub peak_gpus: f64,
    /// Jobs without an end. Those that still run are in the peak from their start on, the others as
    /// they start.
    pub open_ended_jobs: u64,
    /// The GPUs there are taken to be; `null` if nothing says so.
    pub capacity_gpus: Option<f64>,
    /// `machines` (each with the largest count) or `peak-of-jobs`.
    pub capacity_from: Option<String>,
}

/// One machine whose GPUs are counted differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FleetMachineReport {
    /// The machine.
    pub machine: String,
    /// By the list.
    pub listed: Option<u32>,
    /// By another row of the list.
    pub listed_else: Option<u32>,
    /// The most that one job held.
    pub jobs: Option<u32>,
    /// The most that jobs held at once.
    pub at_once: Option<u32>,
    /// By the log.
    pub log: Option<u32>,
    /// What is taken: the most.
    pub taken: u32,
}

/// Machines that one job held more GPUs of than they have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FleetMachineGroupReport {
    /// The machines.
    pub machines: Vec<String>,
    /// The most that one job held of them.
    pub job: u32,
    /// What all else says they have together.
    pub have: u32,
}

/// How much of the fleet its jobs held.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetAllocatedReport {
    /// Share of the GPU-time there is, 0 to 1.
    pub share: f64,
    /// From the first start to the last end.
    pub span_ns: i64,
    /// Jobs whose time and GPUs are known.
    pub jobs: CoverageReport,
    /// Jobs that began and whose end is not known: what they hold is not in the share.
    pub open_ended_jobs: u64,
}

/// Samples of GPUs against the jobs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetGapReport {
    /// Whether the table of jobs is incomplete.
    pub job_table_incomplete: bool,
    /// Share of busy GPU samples that no job explains, 0 to 1.
    pub unexplained_share: f64,
    /// Busy GPU samples that no job explains.
    pub unexplained: f64,
    /// Busy GPU samples within the span of the jobs.
    pub busy: f64,
    /// GPU samples within the span of the jobs.
    pub compared: u64,
    /// GPU samples outside of it.
    pub outside: u64,
    /// Mean GPUs that samples saw busy.
    pub mean_busy_gpus: f64,
    /// Mean GPUs that jobs held at these times.
    pub mean_held_gpus: f64,
    /// Jobs whose end is not known; they count as holding their GPUs from their start on.
    pub open_ended_jobs: u64,
    /// Whether each machine was compared, or the fleet as a whole.
    pub by_machine: bool,
    /// Whether only jobs or only samples are by a clock whose zone is known: a shift of hours may
    /// explain the rest.
    pub clocks_differ: bool,
    /// Machines with the most.
    pub machines: Vec<FleetUnexplainedReport>,
}

/// Busy GPU samples of a machine that no job explains.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetUnexplainedReport {
    /// The machine.
    pub machine: String,
    /// Busy GPU samples.
    pub unexplained: f64,
}
