//! What the fields of one row say of each other.

use foretrain_core::Nanos;

use super::fault::{Fault, Faults};
use super::job::Job;

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
    durations(job, faults);
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

/// Holds a duration against start and end.
fn durations(job: &Job, faults: &mut Faults) {
    let (Some(start), Some(end), Some(duration)) = (job.start, job.end, job.duration) else {
        return;
    };
    let near = |a: Nanos, b: Nanos| {
        let off = (a - b).secs_f64().abs();
        off <= 2.0 || off <= 0.01 * a.secs_f64().max(b.secs_f64())
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
