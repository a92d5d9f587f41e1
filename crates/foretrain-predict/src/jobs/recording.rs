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
/// If no rank holds a step.
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
    take_counted(&mut read, &counted, recording);
    if recordings.len() > 1 {
        read.notes.push(format!(
            "rank {} has the median step of {} and stands for all",
            recording.rank(),
            recordings.len()
        ));
    }
    Ok(asked.row(Origin::Recording, read))
}

/// Operators with their shapes tell more than the graph's nodes.
fn take_counted(read: &mut Read, counted: &Counted, recording: &Recording) {
    let unknown = match recording.trace.meta.has_shapes || counted.tables.count > 0 {
        true => "their operators' shapes are not recorded",
        false => "shapes were not recorded (record_shapes=True)",
    };
    let flops = counted.compute.figure("matrix products, convolutions and attention", unknown);
    if counted.attends && flops.value.is_some() {
        read.notes.push("attention is counted as if every query saw every key: the recording does not tell the mask".into());
    }
    read.flops = flops.map(Flops::new);
    read.memory_access =
        counted.memory.figure("memory-bound operators", unknown).map(Bytes::from_f64);
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
