//! What the fields of one row say of each other.

use foretrain_core::Nanos;

use super::fault::{Fault, Faults};
use super::job::{Job, Status};

/// Longer than any run: ten years.
const DECADES: Nanos = Nanos::from_nanos(315_576_000_000_000_000);

/// Takes out of a row what cannot be, and counts it. `named` tells whether the table has a column of
/// ids.
pub(super) fn settle(job: &mut Job, named: bool, faults: &mut Faults) {
    let row = job.row;
    let times = |job: &Job| {
        let shown = |time: Option<Nanos>| {
            time.map_or("-".to_owned(), |time| format!("{} s", time.secs_f64()))
        };
        format!(
            "row {row}: submission {}, start {}, end {}",
            shown(job.submit),
            shown(job.start),
            shown(job.end)
        )
    };
    // A job that began at the origin was not submitted after it.
    if job.start == Some(Nanos::ZERO)
        && (job.submit > Some(Nanos::ZERO) || job.end.is_some_and(|end| end > DECADES))
    {
        faults.meet(Fault::StartUnknown, || times(job));
        job.start = None;
    }
    let began = job.start.or(job.submit);
    if let (Some(began), Some(end)) = (began, job.end) {
        if end < began {
            faults.meet(Fault::EndBeforeStart, || times(job));
            job.end = None;
        } else if end - began > DECADES {
            faults.meet(Fault::Decades, || times(job));
            job.end = None;
        }
    }
    if job.duration.is_some_and(|duration| duration > DECADES) {
        faults.meet(Fault::Decades, || format!("row {row}: duration"));
        job.duration = None;
    }
    if let (Some(submit), Some(start)) = (job.submit, job.start)
        && start < submit
    {
        faults.meet(Fault::StartBeforeSubmit, || times(job));
        job.submit = None;
    }
    unfinished(job, faults);
    durations(job, faults);
    others(job, faults);
    // A job on one machine has all its GPUs there.
    if let ([placed], Some(gpus)) = (job.placements.as_mut_slice(), job.gpus) {
        placed.gpus.get_or_insert(gpus.ceil() as u32);
    } else if let ([placed], None) = (job.placements.as_slice(), job.gpus) {
        job.gpus = placed.gpus.map(f64::from);
    }
    if named && job.id.is_empty() && job.alias.is_empty() {
        faults.meet(Fault::NoId, || format!("row {row}"));
    }
}

/// Whether two lengths of time are the same but for rounding.
fn near(a: Nanos, b: Nanos) -> bool {
    let off = (a - b).secs_f64().abs();
    off <= 2.0 || off <= 0.01 * a.secs_f64().max(b.secs_f64())
}

/// What a job took so far is not what it takes.
fn unfinished(job: &mut Job, faults: &mut Faults) {
    if !matches!(job.status, Some(Status::Running | Status::Waiting)) {
        return;
    }
    let row = job.row;
    if !job.is_unfinished() {
        faults.meet(Fault::UnfinishedEnd, || format!("row {row}"));
        return;
    }
    let duration = job.duration.take();
    let mut taken = duration.is_some();
    taken |= job.turnaround.take().is_some() | job.gpu_time.take().is_some();
    taken |= job.status == Some(Status::Waiting) && job.wait.take().is_some();
    if taken {
        faults.meet(Fault::Unfinished, || match duration {
            Some(duration) => format!("row {row}: duration {} s", duration.secs_f64()),
            None => format!("row {row}"),
        });
    }
}

/// Holds a wait, a turnaround and GPU-time against the times of the row.
fn others(job: &Job, faults: &mut Faults) {
    let mut hold = |fault: Fault, name: &str, said: Option<Nanos>, is: Option<Nanos>| {
        if let (Some(said), Some(is)) = (said, is)
            && !near(said, is)
        {
            faults.meet(fault, || {
                format!("row {}: {name} {} s, not {} s", job.row, said.secs_f64(), is.secs_f64())
            });
        }
    };
    let between = |from: Option<Nanos>, to: Option<Nanos>| Some(to? - from?);
    let waited = between(job.submit, job.start);
    hold(Fault::WaitConflict, "wait", job.wait, waited);
    let whole = between(job.submit, job.end);
    hold(Fault::TurnaroundConflict, "turnaround", job.turnaround, whole);
    let (Some(gpus), Some(said)) = (job.gpus, job.gpu_time) else { return };
    let held = |run: Nanos| Nanos::from_secs_f64(run.secs_f64() * gpus);
    // A duration that is not end - start has a finding of its own.
    if !job.duration.is_some_and(|duration| near(held(duration), said)) {
        hold(Fault::GpuTimeConflict, "GPU-time", Some(said), job.run_time().map(held));
    }
}

/// Holds a duration against start and end.
fn durations(job: &Job, faults: &mut Faults) {
    let (Some(end), Some(duration)) = (job.end, job.duration) else { return };
    let Some(start) = job.start else {
        if let Some(submit) = job.submit
            && duration > end - submit
            && !near(duration, end - submit)
        {
            faults.meet(Fault::DurationBeforeSubmit, || {
                let (duration, whole) = (duration.secs_f64(), (end - submit).secs_f64());
                format!("row {}: duration {duration} s, end - submission {whole} s", job.row)
            });
        }
        return;
    };
    let run = end - start;
    if near(run, duration) {
        return;
    }
    let powers = [1e-9, 1e-6, 1e-3, 1e3, 1e6, 1e9];
    let scaled = |power: f64| {
        let ratio = duration.secs_f64() / run.secs_f64();
        (ratio / power - 1.0).abs() < 0.02
    };
    let fault = match job.submit {
        Some(submit) if near(end - submit, duration) => Fault::DurationHoldsWait,
        _ if powers.into_iter().any(scaled) => Fault::DurationUnit,
        _ => Fault::DurationConflict,
    };
    faults.meet(fault, || {
        format!(
            "row {}: duration {} s, end - start {} s",
            job.row,
            duration.secs_f64(),
            run.secs_f64()
        )
    });
}
