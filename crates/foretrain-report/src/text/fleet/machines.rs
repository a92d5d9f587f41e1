//! Machines and their GPUs on the page of `fleet audit`.

use foretrain_core::words::{counted, of_number};
use foretrain_fleet::audit::{Audit, CapacityFrom, Machines};

use super::audit::SHOWN;
use super::{amount, amount_of, of};
use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::{name, percent};

pub(super) fn of_machines(audit: &Audit, sheet: &mut Sheet) {
    let Machines { capacity, .. } = audit.machines;
    let machines = &audit.machines;
    let Some(capacity) = capacity else { return };
    sheet.heading("Capacity");
    let from = match capacity.from {
        CapacityFrom::Machines => format!(
            "of {}, each with the most that a list, jobs or a log says",
            known(machines.counted, machines.count)
        ),
        CapacityFrom::PeakOfJobs => {
            "the most that jobs held at once; the fleet may have more, so utilisation may be lower"
                .into()
        }
    };
    sheet.field("GPUs", &format!("{} ({from})", amount(capacity.gpus)));
    if machines.listed > 0 {
        let listed = known(machines.listed_counted, machines.listed);
        sheet.field("the list", &format!("{} of {listed}", counted(machines.listed_gpus, "GPU")));
    }
    let least = match machines.open_ended {
        0 => String::new(),
        1 => ", at least: the end of 1 job is not known".to_owned(),
        open => format!(", at least: the ends of {open} jobs are not known"),
    };
    let peak = amount_of(machines.peak, "GPU");
    sheet.field("peak", &format!("{peak} held at once by jobs{least}"));
    if let Some(allocated) = audit.allocated {
        let text = format!(
            "{} of the GPU-time over {}, by {} {}",
            percent(allocated.share),
            match allocated.span.secs_f64() / 3600.0 {
                hours if hours < 48.0 => amount_of(hours, "hour"),
                hours => amount_of(hours / 24.0, "day"),
            },
            of(allocated.jobs),
            of_number(allocated.jobs.total, "job", "jobs")
        );
        let open = match allocated.open_ended {
            0 => String::new(),
            open => format!("; {} without an end not in it", counted(open, "job")),
        };
        let text = format!("{text}{open}");
        sheet.field("held", &text);
    }
    conflicts(machines, sheet);
}

fn conflicts(machines: &Machines, sheet: &mut Sheet) {
    if !machines.missing.is_empty() {
        let names: Vec<String> =
            machines.missing.iter().take(SHOWN).map(|machine| name(machine, 40)).collect();
        let text =
            format!("{} of {}: {}", machines.missing_count, machines.count, names.join(", "));
        sheet.field("not listed", &text);
    }
    if machines.alike > 0 {
        let text = format!(
            "{} {} from another only in case or domain, and {} counted beside it",
            counted(machines.alike, "name"),
            of_number(machines.alike, "differs", "differ"),
            of_number(machines.alike, "is", "are")
        );
        sheet.field("alike", &text);
    }
    if machines.conflicts.is_empty() && machines.groups.is_empty() {
        return;
    }
    sheet.heading("Machines whose GPUs are counted differently");
    let mut table = Table::new(&[
        ("Machine", Side::Left),
        ("List", Side::Right),
        ("One job", Side::Right),
        ("At once", Side::Right),
        ("Log", Side::Right),
        ("Taken", Side::Right),
    ]);
    let count = |said: Option<u32>| said.map_or_else(|| "-".into(), |gpus| gpus.to_string());
    for conflict in machines.conflicts.iter().take(SHOWN) {
        let listed = match conflict.listed_else {
            Some(other) => format!("{other} and {}", count(conflict.listed)),
            None => count(conflict.listed),
        };
        table.row(vec![
            name(&conflict.machine, 48),
            listed,
            count(conflict.jobs),
            count(conflict.at_once),
            count(conflict.log),
            conflict.taken.to_string(),
        ]);
    }
    // Of several machines together.
    for group in machines.groups.iter().take(SHOWN) {
        table.row(vec![
            name(&group.named(), 48),
            group.have.to_string(),
            group.job.to_string(),
            "-".into(),
            "-".into(),
            group.job.to_string(),
        ]);
    }
    sheet.table(table);
    let all = machines.conflict_count + machines.group_count;
    let listed = machines.conflicts.len().min(SHOWN) + machines.groups.len().min(SHOWN);
    let hidden = all.saturating_sub(listed as u64);
    if hidden > 0 {
        sheet.line(&counted(hidden, "more machine"));
    }
}

/// `3 machines`, or of how many of them a count is known.
fn known(used: u64, total: u64) -> String {
    if used == total {
        return counted(total, "machine");
    }
    let unknown = total - used;
    let counts = of_number(unknown, "count", "counts");
    format!("{used} of {}; {counts} of {unknown} not known", counted(total, "machine"))
}
