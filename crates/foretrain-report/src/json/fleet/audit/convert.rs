//! From an audit to its JSON.

use foretrain_core::diagnostics::Coverage;
use foretrain_fleet::audit::{
    Arrivals, Audit, CapacityFrom, Day, Gap, Join, Machines, Period, TableAudit,
};
use foretrain_fleet::jobs::Field;

use super::{
    FleetAllocatedReport, FleetAuditReport, FleetColumnReport, FleetDayReport, FleetFieldReport,
    FleetGapReport, FleetJoinPeriodReport, FleetJoinReport, FleetMachineGroupReport,
    FleetMachineReport, FleetMachinesReport, FleetPeriodReport, FleetTableReport,
    FleetUnexplainedReport,
};
use crate::json::common::{CoverageReport, finite};

impl FleetAuditReport {
    /// The report of an audit.
    pub fn new(audit: &Audit) -> Self {
        Self {
            schema: "foretrain/fleet-audit/1".into(),
            tables: audit.tables.iter().map(table).collect(),
            joins: audit.joins.iter().map(join).collect(),
            machines: machines(&audit.machines),
            allocated: audit.allocated.map(|allocated| FleetAllocatedReport {
                share: finite(allocated.share),
                span_ns: allocated.span.nanos(),
                jobs: covered("jobs", allocated.jobs),
                open_ended_jobs: allocated.open_ended,
            }),
            gap: audit.gap.as_ref().map(gap),
            ledger: (&audit.ledger).into(),
        }
    }
}

fn covered(what: &str, coverage: Coverage) -> CoverageReport {
    CoverageReport { what: what.into(), used: coverage.used, total: coverage.total }
}

fn table(table: &TableAudit) -> FleetTableReport {
    let arrivals = |arrivals| match arrivals {
        Arrivals::Submitted => "submitted",
        Arrivals::Started => "started",
        Arrivals::SpansOnly => "spans-only",
        Arrivals::Untimed => "untimed",
    };
    let columns = table.columns.iter().map(|column| {
        let from = column.binding.unit_from.name();
        FleetColumnReport {
            title: column.binding.title.clone(),
            field: column.binding.field.name().into(),
            unit: (!from.is_empty()).then(|| column.binding.unit.name.into()),
            unit_from: (!from.is_empty()).then(|| from.into()),
            usable: covered("rows", column.coverage),
        }
    });
    FleetTableReport {
        file: table.name.clone(),
        recognised_as: table.schema.name.into(),
        rows_are: table.kind.name().into(),
        rows: covered("rows", table.rows),
        cut_short: table.cut_short,
        columns: columns.collect(),
        unused_columns: table.unused.clone(),
        arrivals: table.arrivals.map(|known| arrivals(known).into()),
        submitted: covered("rows", table.submitted),
        run_times: covered("rows", table.run_times),
        periods: table.periods.iter().map(period).collect(),
        days: table.days.iter().map(day).collect(),
        undated: table.undated,
        repeated_ids: table.duplicates.ids,
        identical_rows: table.duplicates.rows,
        compared_rows: table.duplicates.compared,
        ids_elsewhere: table.duplicates.elsewhere,
        rows_elsewhere: table.duplicates.elsewhere_rows,
    }
}

fn usable(filled: &[(Field, u64)]) -> Vec<FleetFieldReport> {
    let fields = filled.iter();
    fields
        .map(|(field, rows)| FleetFieldReport { field: field.name().into(), rows: *rows })
        .collect()
}

fn period(period: &Period) -> FleetPeriodReport {
    FleetPeriodReport {
        first_day: period.first,
        last_day: period.last,
        days: period.days,
        rows: period.rows,
        usable: usable(&period.filled),
    }
}

fn day(day: &Day) -> FleetDayReport {
    FleetDayReport { day: day.day, rows: day.rows, usable: usable(&day.filled) }
}

fn join(join: &Join) -> FleetJoinReport {
    let periods = join.periods.iter().map(|period| FleetJoinPeriodReport {
        first_day: period.first,
        last_day: period.last,
        jobs: covered("jobs", period.jobs),
    });
    FleetJoinReport {
        file: join.parts.clone(),
        rows: covered("rows", join.rows),
        jobs: covered("jobs", join.jobs),
        jobs_without_id: join.unnamed,
        on_several_machines: join.on_several_machines,
        first_day: join.days.map(|(first, _)| first),
        last_day: join.days.map(|(_, last)| last),
        periods: periods.collect(),
    }
}

fn machines(machines: &Machines) -> FleetMachinesReport {
    let conflicting = machines.conflicts.iter().map(|conflict| FleetMachineReport {
        machine: conflict.machine.clone(),
        listed: conflict.listed,
        listed_else: conflict.listed_else,
        jobs: conflict.jobs,
        at_once: conflict.at_once,
        log: conflict.log,
        taken: conflict.taken,
    });
    let groups = machines.groups.iter().map(|group| FleetMachineGroupReport {
        machines: group.machines.clone(),
        job: group.job,
        have: group.have,
    });
    FleetMachinesReport {
        machines: machines.count,
        counted: machines.counted,
        listed: machines.listed,
        listed_counted: machines.listed_counted,
        listed_gpus: machines.listed_gpus,
        missing: machines.missing_count,
        missing_names: machines.missing.clone(),
        names_alike: machines.alike,
        conflicts: machines.conflict_count,
        conflicting: conflicting.collect(),
        held_beyond: machines.group_count,
        groups_held_beyond: groups.collect(),
        peak_gpus: finite(machines.peak),
        open_ended_jobs: machines.open_ended,
        capacity_gpus: machines.capacity.map(|capacity| finite(capacity.gpus)),
        capacity_from: machines.capacity.map(|capacity| match capacity.from {
            CapacityFrom::Machines => "machines".into(),
            CapacityFrom::PeakOfJobs => "peak-of-jobs".into(),
        }),
    }
}

fn gap(gap: &Gap) -> FleetGapReport {
    let machines = gap.machines.iter().map(|(machine, unexplained)| FleetUnexplainedReport {
        machine: machine.clone(),
        unexplained: finite(*unexplained),
    });
    FleetGapReport {
        job_table_incomplete: gap.incomplete(),
        unexplained_share: finite(gap.share()),
        unexplained: finite(gap.unexplained),
        busy: finite(gap.busy),
        compared: gap.compared,
        outside: gap.outside,
        mean_busy_gpus: finite(gap.mean_busy),
        mean_held_gpus: finite(gap.mean_held),
        open_ended_jobs: gap.open_ended,
        by_machine: gap.by_machine,
        clocks_differ: gap.clocks_differ,
        machines: machines.collect(),
    }
}
