//! What profiler traces tell of a job.

use foretrain_core::{Bytes, Flops, InputError, Nanos, Result};

use super::Asked;
use super::figure::{Basis, Figure};
use super::graph::Read;
use super::operators::{Counted, count};
use super::row::{JobFeatures, Origin};
use crate::inspect::{DeviceActivity, StepTime, StepTimes, activity};
use crate::recording::Recording;

/// The row of one job, recorded on these ranks. The rank with the median step stands for all.
///
/// # Errors
/// If no rank holds a step, or the class asked for does not have so many cNodes.
pub fn of_recordings(recordings: &[Recording], asked: &Asked<'_>) -> Result<JobFeatures> {
    let mut usable: Vec<(Nanos, &Recording, StepTimes)> = recordings
        .iter()
        .filter(|recording| !recording.graphs.is_empty())
        .map(|recording| {
            let times = step_times(recording);
            (times.median.unwrap_or_default(), recording, times)
        })
        .collect();
    usable.sort_by_key(|(time, recording, _)| (*time, recording.rank()));
    let middle = usable.len().saturating_sub(1) / 2;
    let Some((_, recording, times)) = usable.into_iter().nth(middle) else {
        let path = recordings.first().map_or("", |first| first.trace.meta.path.as_str());
        return Err(InputError::new("the trace holds no step, so there are no features of one")
            .in_file(path)
            .hint("record at least one whole training step"));
    };
    let graph = recording.steady().or_else(|| recording.graphs.first().cloned());
    let Some(graph) = graph else {
        return Err(InputError::new("the trace holds no step").in_file(&recording.trace.meta.path));
    };
    let mut read = Read::of(&graph);
    read.world_size = read.world_size.max(recording.world_size());
    let step = times.representative.and_then(|at| recording.steps.steps.get(at));
    let counted = step.map(|step| count(recording, step)).unwrap_or_default();
    let steps = recording.steps.steps.len();
    read.step_time = match times.median {
        Some(median) => {
            let how = format!("median of the recorded steps: {}", steps - times.warm_up);
            Figure::new(median, Basis::Measured, how)
        }
        None => Figure::missing("no whole step was recorded"),
    };
    read.utilisation = utilisation(recording);
    if let Some(time) = read.step_time.value.filter(|time| is_behind(*time, counted.device_time)) {
        let how = format!(
            "device work of one step; the host is ahead of it, so boundaries {time} apart do not time it"
        );
        read.step_time = Figure::new(counted.device_time, Basis::Inferred, how);
    }
    take_counted(&mut read, &counted, recording);
    if recordings.len() > 1 {
        read.notes.push(format!(
            "rank {} has the median step of {} and stands for all",
            recording.rank(),
            recordings.len()
        ));
    }
    asked.row(Origin::Recording, read)
}

/// Whether the device takes clearly longer for what a step launches than the step itself. No steady
/// run can: its host would be ever further ahead.
fn is_behind(step: Nanos, device: Nanos) -> bool {
    device.nanos() as f64 > 1.25 * step.nanos() as f64
}

/// More than the memory of any device moves in a second, several times over.
const MOST_BYTES_PER_SECOND: f64 = 32e12;
/// More than any device computes.
const MOST_FLOPS: f64 = 5e16;

/// What no device could do in the time that the step keeps it busy was counted wrongly.
fn possible(figure: Figure<f64>, busy: Option<f64>, most: f64, unit: &str) -> Figure<f64> {
    let rate = figure.value.zip(busy).map(|(amount, seconds)| amount / seconds);
    match rate.filter(|rate| *rate > most) {
        Some(rate) => Figure::missing(format!(
            "by recorded shapes {:.0} {unit} while the device is busy, which no device reaches: shapes of some operators do not tell their work",
            rate / 1e12
        )),
        None => figure,
    }
}

/// Operators with their shapes tell more than the graph's nodes.
fn take_counted(read: &mut Read, counted: &Counted, recording: &Recording) {
    let unknown = match recording.trace.meta.has_shapes || counted.tables.count > 0 {
        true => "their operators' shapes are not recorded",
        false => "shapes were not recorded (record_shapes=True)",
    };
    let busy = read.step_time.value.map(|time| time.nanos() as f64 / 1e9);
    let busy = busy.map(|time| time * read.utilisation.value.unwrap_or(1.0));
    let busy = busy.filter(|seconds| *seconds > 0.0);
    let flops = counted.compute.figure("matrix products, convolutions and attention", unknown);
    let flops = possible(flops, busy, MOST_FLOPS, "TFLOPS");
    if counted.attends && flops.value.is_some() {
        read.notes.push("attention is counted as if every query saw every key: the recording does not tell the mask".into());
    }
    read.flops = flops.map(Flops::new);
    // Bytes need both.
    let unknown = match recording.trace.meta.has_shapes {
        true => "their operators' shapes or number formats are not recorded",
        false => unknown,
    };
    let moved = counted.memory.figure("memory-bound operators", unknown);
    read.memory_access = possible(moved, busy, MOST_BYTES_PER_SECOND, "TB/s").map(Bytes::from_f64);
    read.tables = counted.tables;
}

fn step_times(recording: &Recording) -> StepTimes {
    let steps = recording.steps.steps.iter().map(|step| StepTime {
        name: step.name.clone(),
        time: step.duration(),
        incomplete: step.incomplete,
    });
    StepTimes::new(recording.steps.source.describe(), steps.collect())
}

fn utilisation(recording: &Recording) -> Figure<f64> {
    let steps = &recording.steps.steps;
    let span = (
        steps.first().map_or(Nanos::ZERO, |step| step.start),
        steps.last().map_or(Nanos::ZERO, |step| step.end),
    );
    match activity(recording, span) {
        DeviceActivity::Measured(found) => {
            Figure::new(found.busy_share(), Basis::Measured, "device busy, over the recorded steps")
        }
        DeviceActivity::NoDevice => Figure::missing("no device was recorded"),
        DeviceActivity::NotMeasurable => {
            Figure::missing("kernels of captured graphs were not recorded")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_device_could_do_is_no_figure() {
        let counted = |amount| Figure::new(amount, Basis::Counted, "");
        let of = |amount, busy| possible(counted(amount), busy, MOST_BYTES_PER_SECOND, "TB/s");
        assert_eq!(of(1e10, Some(0.01)).value, Some(1e10));
        assert_eq!(of(1e12, Some(0.01)).value, None);
        assert_eq!(of(1e12, None).value, Some(1e12), "of unknown time");
    }

    #[test]
    fn a_step_that_lasts_less_than_its_work_is_not_timed_by_its_boundaries() {
        let of = |device| is_behind(Nanos::from_micros(745), Nanos::from_micros(device));
        assert!(of(13_000) && !of(745) && !of(800) && !of(0));
    }
}
