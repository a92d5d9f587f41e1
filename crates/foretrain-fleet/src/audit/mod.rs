//! What tables of a fleet hold, what they leave open and where they contradict each other. Nothing
//! is mended in silence: every figure says how many rows it rests on.

mod busy;
mod days;
mod duplicates;
mod join;
mod machines;

use foretrain_core::diagnostics::Coverage;
use foretrain_core::{Ledger, Nanos, Severity};

use crate::jobs::{Binding, Field, Job, Kind, Schema, Table, TableRead};

pub use busy::Gap;
pub use days::{Day, Period};
pub use duplicates::Duplicates;
pub use join::{Join, JoinPeriod};
pub use machines::{Capacity, CapacityFrom, MachineConflict, Machines};

use busy::Busy;
use days::Days;
use duplicates::Seen;
use join::Index;
use machines::Evidence;

/// What a table says of when its jobs were submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// It has a time of submission.
    Submitted,
    /// It only says when jobs started: an arrival is not known, an order of starts is.
    Started,
    /// It only has lengths of time. Arrivals are not made up from them.
    SpansOnly,
    /// It has no times at all.
    Untimed,
}

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
    /// Whether dates in tables of jobs state a zone.
    jobs_zoned: bool,
    jobs_dated: bool,
    jobs_with_time: Coverage,
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
        let arrivals = (kind == Kind::Jobs).then(|| arrivals(&table));
        let mut join = (kind == Kind::Parts).then(|| Join::begin(&name));
        let mut present = vec![0_u64; Field::COUNT];
        let mut days = Days::default();
        let mut seen = Seen::default();
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
                    seen.add(job);
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
            self.jobs_zoned |= read.zoned > 0;
            self.jobs_dated |= read.zoned + read.unzoned > 0;
            self.jobs_with_time.total += read.rows;
        }
        self.joins.extend(join);
        let duplicates = seen.finish();
        self.record(&read, source, &duplicates);
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
            run_times: Coverage { used: run_times, total: read.rows },
            undated: days.undated(),
            periods: days.periods(),
            days: days.finish(),
            duplicates,
        }
    }

    fn job(&mut self, job: &Job) {
        self.index.add(job);
        self.evidence.ran(job);
        let Some(gpus) = job.gpus else { return };
        match (job.occupied(), job.start) {
            (Some((start, end)), _) => {
                self.jobs_with_time.used += 1;
                self.busy.held(job, start, end, gpus);
            }
            (None, Some(start)) => self.busy.began(job, start, gpus),
            (None, None) => {}
        }
    }

    fn samples(&mut self, table: Table, source: Option<&str>) -> TableAudit {
        let (name, schema) = (table.name().to_owned(), table.schema());
        // Both are of one cluster: a job table that names no zone is by the clock of the log.
        let as_written = table.samples_zoned() && self.jobs_dated && !self.jobs_zoned;
        let binding = table.sample_time().cloned();
        self.busy.prepare();
        let mut samples = Coverage::default();
        let read = table.for_each_sample(as_written, |sample| {
            samples.total += sample.busy.len() as u64;
            samples.used += sample.busy.iter().flatten().count() as u64;
            self.busy.sample(sample, &mut self.evidence);
        });
        self.record(&read, source, &Duplicates::default());
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
        TableAudit {
            name,
            schema,
            kind: Kind::Samples,
            rows: Coverage { used: read.given, total: read.rows },
            cut_short: read.cut.is_some(),
            columns: Vec::from_iter(binding.map(|binding| ColumnAudit {
                binding,
                coverage: Coverage { used: read.given, total: read.rows },
            })),
            unused: Vec::new(),
            arrivals: None,
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
        let peak = self.busy.peak();
        let machines = self.evidence.finish(peak, &mut self.ledger);
        let allocated = machines.capacity.and_then(|capacity| {
            let (held, span) = self.busy.held_over()?;
            let share = (held / (capacity.gpus * span.secs_f64())).min(1.0);
            Some(Allocated { share, span, jobs: self.jobs_with_time })
        });
        // Without jobs there is nothing to join to.
        if tables.iter().all(|table| table.kind != Kind::Jobs) {
            self.joins.clear();
        }
        for join in &mut self.joins {
            join.finish(&self.index, &mut self.ledger);
        }
        let gap = self.busy.gap(&mut self.ledger);
        Audit { tables, joins: self.joins, machines, allocated, gap, ledger: self.ledger }
    }
}

fn arrivals(table: &Table) -> Arrivals {
    let spans = [Field::Duration, Field::Wait, Field::Turnaround];
    match () {
        () if table.has(Field::Submit) => Arrivals::Submitted,
        () if table.has(Field::Start) || table.has(Field::Attempts) => Arrivals::Started,
        () if spans.iter().any(|field| table.has(*field)) => Arrivals::SpansOnly,
        () => Arrivals::Untimed,
    }
}

/// Which fields of a row hold something, a bit each.
fn filled(job: &Job) -> u64 {
    let features = &job.features;
    let some = [
        (Field::Id, !job.id.is_empty()),
        (Field::Alias, !job.alias.is_empty()),
        (Field::Submit, job.submit.is_some()),
        (Field::Start, job.start.is_some()),
        (Field::End, job.end.is_some()),
        (Field::Duration, job.duration.is_some()),
        (Field::Wait, job.wait.is_some()),
        (Field::Turnaround, job.turnaround.is_some()),
        (Field::Gpus, job.gpus.is_some()),
        (Field::GpuShare, job.gpus.is_some()),
        (Field::Instances, job.gpus.is_some()),
        (Field::Nodes, job.nodes.is_some()),
        (Field::GpuKind, !job.gpu_kind.is_empty()),
        (Field::Machine, !job.placements.is_empty()),
        (Field::User, !job.user.is_empty()),
        (Field::Queue, !job.queue.is_empty()),
        (Field::Model, !job.model.is_empty()),
        (Field::Batch, job.batch.is_some()),
        (Field::Steps, job.steps.is_some()),
        (Field::StepTime, job.step_time.is_some()),
        (Field::InputTime, job.stages[0].is_some()),
        (Field::ComputeTime, job.stages[1].is_some()),
        (Field::NetworkTime, job.stages[2].is_some()),
        (Field::GpuMemory, job.gpu_memory.is_some()),
        (Field::GpuTime, job.gpu_time.is_some()),
        (Field::Priority, job.priority.is_some()),
        (Field::Attempts, !job.placements.is_empty()),
        (Field::Status, job.status.is_some()),
        (Field::Utilisation, job.utilisation.is_some()),
        (Field::Memory, job.memory.is_some()),
        (Field::Part, !job.part.is_empty()),
        (Field::Devices, job.placements.iter().any(|placed| placed.gpus.is_some())),
        (Field::Class, features.class.is_some()),
        (Field::Medium, features.medium.is_some()),
        (Field::CNodes, features.cnodes.is_some()),
        (Field::Flops, features.flops.is_some()),
        (Field::MemoryAccess, features.memory_access.is_some()),
        (Field::Input, features.input.is_some()),
        (Field::Traffic, features.traffic.is_some()),
        (Field::TrafficCounts, features.traffic_counts.is_some()),
        (Field::DenseWeights, features.dense_weights.is_some()),
        (Field::EmbeddingWeights, features.embedding_weights.is_some()),
        (Field::EmbeddingTouched, features.embedding_touched.is_some()),
        (Field::Gradients, features.gradients.is_some()),
    ];
    some.into_iter().fold(0, |bits, (field, some)| bits | u64::from(some) << field.index())
}

const _: () = assert!(Field::COUNT <= 64, "a row's fields are bits of one word");
