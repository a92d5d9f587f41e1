//! What tables of a fleet hold, what they leave open and where they contradict each other. Nothing
//! is mended in silence: every figure says how many rows it rests on.

mod busy;
mod days;
mod duplicates;
mod fields;
mod gap;
mod groups;
mod join;
mod machines;
mod names;
mod steps;
#[cfg(test)]
mod tests;

use foretrain_core::diagnostics::Coverage;
use foretrain_core::{Ledger, Nanos, Severity};

use crate::jobs::{Binding, Field, Job, Kind, SamplesRead, Schema, Table, TableRead};

pub use days::{Day, Period};
pub use duplicates::{Duplicates, Seen};
pub use fields::Arrivals;
pub use gap::Gap;
pub use groups::MachineGroup;
pub use join::{Join, JoinPeriod};
pub use machines::{Capacity, CapacityFrom, MachineConflict, Machines};

use busy::Busy;
use days::Days;
use fields::{arrivals, filled};
use join::Index;
use machines::Evidence;

/// A column and how much of it can be used.
#[derive(Clone, Debug)]
pub struct ColumnAudit {
    /// Where it is, what it holds and in which unit.
    pub binding: Binding,
    /// Rows with a usable value, of all rows.
    pub coverage: Coverage,
}

/// One table.
#[derive(Clone, Debug)]
pub struct TableAudit {
    /// The file.
    pub name: String,
    /// What it was recognised as.
    pub schema: &'static Schema,
    /// What its rows are about.
    pub kind: Kind,
    /// Rows that could be read, of all rows.
    pub rows: Coverage,
    /// Whether the file ends before its last row does: more rows may be missing.
    pub cut_short: bool,
    /// Its columns.
    pub columns: Vec<ColumnAudit>,
    /// Titles of columns that nothing is read from.
    pub unused: Vec<String>,
    /// Whether arrivals are known; of tables of jobs.
    pub arrivals: Option<Arrivals>,
    /// Rows that say when their job was submitted, of all rows.
    pub submitted: Coverage,
    /// Rows with a run time, of all rows.
    pub run_times: Coverage,
    /// The days it covers, merged where they are alike.
    pub periods: Vec<Period>,
    /// The days one by one.
    pub days: Vec<Day>,
    /// Rows without any date.
    pub undated: u64,
    /// What occurs more than once.
    pub duplicates: Duplicates,
}

/// All tables, and what they say of each other.
#[derive(Debug)]
pub struct Audit {
    /// In the order in which they were given.
    pub tables: Vec<TableAudit>,
    /// Tables of parts against tables of jobs.
    pub joins: Vec<Join>,
    /// Machines and what they have.
    pub machines: Machines,
    /// GPU-time that jobs held, of what the machines have over the jobs' span.
    pub allocated: Option<Allocated>,
    /// Samples against jobs.
    pub gap: Option<Gap>,
    /// All that was met.
    pub ledger: Ledger,
}

/// How much of the fleet its jobs held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allocated {
    /// Share of the GPU-time there is, 0 to 1.
    pub share: f64,
    /// From the first start to the last end.
    pub span: Nanos,
    /// Jobs whose time and GPUs are known, of all jobs.
    pub jobs: Coverage,
    /// Jobs that began and whose end is not known: what they hold is not in the share.
    pub open_ended: u64,
}

/// Looks at tables together: jobs first, then machines and parts, then samples, so that each can be
/// held against the jobs.
pub fn audit(tables: Vec<Table>) -> Audit {
    let mut all = Auditor::default();
    let several = tables.len() > 1;
    let mut found: Vec<(usize, TableAudit)> = Vec::new();
    let mut tables: Vec<(usize, Table)> = tables.into_iter().enumerate().collect();
    // Stable, so that tables of a kind keep their order.
    tables.sort_by_key(|(_, table)| match table.kind() {
        Kind::Jobs => 0,
        Kind::Machines => 1,
        Kind::Parts => 2,
        Kind::Samples => 3,
    });
    for (position, table) in tables {
        found.push((position, all.table(table, several)));
    }
    found.sort_by_key(|(position, _)| *position);
    all.finish(found.into_iter().map(|(_, table)| table).collect())
}

#[derive(Default)]
struct Auditor {
    index: Index,
    evidence: Evidence,
    busy: Busy,
    joins: Vec<Join>,
    ledger: Ledger,
    seen: Seen,
    jobs_with_time: Coverage,
    /// By which clocks jobs are.
    jobs_by: Clocks,
    /// Whether samples are by another clock than jobs, as far as is known.
    clocks_differ: bool,
    slices: u64,
    first_slice: Option<String>,
}

/// By which clocks times are.
#[derive(Clone, Copy, Debug, Default)]
struct Clocks {
    /// By one whose zone is known: dates with a zone, or numbers since 1970.
    known: bool,
    /// By one whose zone nobody says.
    unknown: bool,
    /// Whether dates state their zone.
    zoned: bool,
}

impl Auditor {
    fn table(&mut self, table: Table, several: bool) -> TableAudit {
        let (name, schema, kind) = (table.name().to_owned(), table.schema(), table.kind());
        let source = several.then_some(name.as_str());
        if kind == Kind::Samples {
            return self.samples(table, source);
        }
        let columns: Vec<Binding> = table.bindings().to_vec();
        let unused = table.unused().to_vec();
        let has = |field: Field| columns.iter().any(|column| column.field == field);
        let in_numbers = table.dated_in_numbers();
        let mut join = (kind == Kind::Parts).then(|| Join::begin(&name));
        let mut present = vec![0_u64; Field::COUNT];
        let mut days = Days::default();
        let mut run_times = 0;
        let read = table.for_each(|job| {
            let filled = filled(job);
            for (index, count) in present.iter_mut().enumerate() {
                *count += filled >> index & 1;
            }
            days.add(job, filled);
            run_times += u64::from(job.run_time().is_some());
            match kind {
                Kind::Jobs => {
                    let again = self.seen.add(job);
                    self.busy.vague(again);
                    self.job(job);
                }
                Kind::Machines => self.evidence.listed(job),
                _ => {
                    self.evidence.ran(job);
                    if let Some(join) = &mut join {
                        join.part(job, &mut self.index);
                    }
                }
            }
        });
        let rows = Coverage { used: read.given, total: read.rows };
        if kind == Kind::Jobs {
            self.jobs_by.known |= read.zoned > 0 || in_numbers;
            self.jobs_by.unknown |= read.unzoned > 0;
            self.jobs_by.zoned |= read.zoned > 0;
            self.jobs_with_time.total += read.rows;
        }
        self.joins.extend(join);
        let duplicates = match kind {
            Kind::Jobs => self.seen.end_of_table(),
            _ => Duplicates::default(),
        };
        self.record(&read, source, &duplicates);
        let count = |field: Field| present[field.index()];
        let arrivals = (kind == Kind::Jobs).then(|| arrivals(count));
        let (periods, undated) = (days.periods(has), days.undated());
        let days = days.finish(has);
        let submitted = Coverage { used: count(Field::Submit), total: read.rows };
        let columns = columns.into_iter().map(|binding| ColumnAudit {
            coverage: Coverage { used: present[binding.field.index()], total: read.rows },
            binding,
        });
        TableAudit {
            name,
            schema,
            kind,
            rows,
            cut_short: read.cut.is_some(),
            columns: columns.collect(),
            unused,
            arrivals,
            submitted,
            run_times: Coverage { used: run_times, total: read.rows },
            periods,
            days,
            undated,
            duplicates,
        }
    }

    fn job(&mut self, job: &Job) {
        self.index.add(job);
        if job.attempts.is_empty() {
            self.evidence.ran(job);
        }
        for attempt in &job.attempts {
            self.evidence.ran_on(job, &attempt.placements, attempt.gpus());
        }
        if let Some(sevenths) = job.slice() {
            self.slices += 1;
            self.first_slice.get_or_insert_with(|| {
                format!("row {}: {} counts {sevenths}/7 of a GPU", job.row, job.gpu_kind)
            });
        }
        let (mut ended, mut open) = (false, false);
        for held in job.holdings() {
            (ended, open) = (ended || held.end.is_some(), open || held.end.is_none());
            self.busy.holds(job, &held);
        }
        self.jobs_with_time.used += u64::from(ended && !open);
    }

    fn samples(&mut self, table: Table, source: Option<&str>) -> TableAudit {
        let (name, schema) = (table.name().to_owned(), table.schema());
        // Both are of one cluster: a job table that names no zone is by the clock of the log.
        let Clocks { known, unknown, zoned } = self.jobs_by;
        let as_written = table.samples_zoned() && unknown && !zoned;
        let in_numbers = table.dated_in_numbers();
        let unused = table.samples_unused().to_vec();
        self.busy.prepare();
        let mut samples = Coverage::default();
        let SamplesRead { read, columns } = table.for_each_sample(as_written, |sample| {
            samples.total += sample.busy.len() as u64;
            samples.used += sample.busy.iter().flatten().count() as u64;
            self.busy.sample(sample, &mut self.evidence);
        });
        self.record(&read, source, &Duplicates::default());
        let own_known = in_numbers || read.zoned > 0;
        self.clocks_differ |= !as_written
            && ((known && !unknown && read.unzoned > 0) || (unknown && !known && own_known));
        if as_written {
            self.ledger.record_many(
                Severity::Inferred,
                "zone-of-samples",
                "samples state a time zone and jobs do not: both are taken to be by the same clock",
                read.zoned,
                None,
            );
        }
        self.ledger.cover("GPU samples with a value", samples.used, samples.total);
        let columns =
            columns.into_iter().map(|(binding, coverage)| ColumnAudit { binding, coverage });
        TableAudit {
            name,
            schema,
            kind: Kind::Samples,
            rows: Coverage { used: read.given, total: read.rows },
            cut_short: read.cut.is_some(),
            columns: columns.collect(),
            unused,
            arrivals: None,
            submitted: Coverage::default(),
            run_times: Coverage::default(),
            periods: Vec::new(),
            days: Vec::new(),
            undated: 0,
            duplicates: Duplicates::default(),
        }
    }

    fn record(&mut self, read: &TableRead, source: Option<&str>, duplicates: &Duplicates) {
        let mut own = Ledger::new();
        read.record(&mut own);
        duplicates.record(&mut own);
        own.cover("rows", read.given, read.rows);
        self.ledger.merge(&own, source);
    }

    fn finish(mut self, tables: Vec<TableAudit>) -> Audit {
        let machines = self.evidence.finish(&mut self.busy, &mut self.ledger);
        self.ledger.record_many(
            Severity::Inferred,
            "slices-of-gpus",
            "job that asks for slices of GPUs (by its kind of GPU): each counts as its sevenths of one",
            self.slices,
            self.first_slice.take(),
        );
        let allocated = machines.capacity.and_then(|capacity| {
            let (held, span) = self.busy.held_over()?;
            let share = (held / (capacity.gpus * span.secs_f64())).min(1.0);
            let open_ended = self.busy.open_ended();
            Some(Allocated { share, span, jobs: self.jobs_with_time, open_ended })
        });
        // Without jobs there is nothing to join to.
        if tables.iter().all(|table| table.kind != Kind::Jobs) {
            self.joins.clear();
        }
        for join in &mut self.joins {
            join.finish(&self.index, &mut self.ledger);
        }
        let gap = self.busy.gap(self.clocks_differ, &mut self.ledger);
        Audit { tables, joins: self.joins, machines, allocated, gap, ledger: self.ledger }
    }
}
