//! What profiler traces tell of a job.

use foretrain_core::{Bytes, Flops, InputError, Nanos, Result};

use super::Asked;
use super::figure::{Basis, Figure};
use super::graph::Read;
use super::operators::{Counted, Tables, count};
use super::row::{JobFeatures, Origin};
use super::weights::{self, Weights};
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
    let utilisation = utilisation(recording);
    Ok(row(read, &counted, utilisation, recordings.len(), recording, asked))
}

fn row(
    mut read: Read,
    counted: &Counted,
    utilisation: Figure<f64>,
    ranks: usize,
    recording: &Recording,
    asked: &Asked<'_>,
) -> JobFeatures {
    let mut notes = std::mem::take(&mut read.notes);
    let unknown = match recording.trace.meta.has_shapes || counted.tables.count > 0 {
        true => "their operators' shapes are not recorded",
        false => "shapes were not recorded (record_shapes=True)",
    };
    let flops = counted.compute.figure("matrix products, convolutions and attention", unknown);
    let memory = counted.memory.figure("memory-bound operators", unknown);
    if counted.attends && flops.value.is_some() {
        notes.push("attention is counted as if every query saw every key: the recording does not tell the mask".into());
    }
    if ranks > 1 {
        notes.push(format!(
            "rank {} has the median step of {ranks} and stands for all",
            recording.rank()
        ));
    }
    let cnodes = asked.cnodes(read.world_size);
    let class = asked.class(&cnodes, read.replica_size);
    let traffic = asked.traffic(&read, &class, &cnodes);
    let Weights { dense, embedding, touched } = match counted.tables {
        Tables { count: 0, .. } => Weights::without_tables(read.gradients, asked.optimiser),
        tables => weights::recorded(read.gradients, tables, asked.optimiser),
    };
    JobFeatures {
        id: asked.id.clone(),
        origin: Origin::Recording,
        model: asked.model.clone().unwrap_or_default(),
        class,
        cnodes,
        batch: asked.batch("the recording does not tell the batch: give --batch"),
        flops: flops.map(Flops::new),
        memory_access: memory.map(Bytes::from_f64),
        input: read.input,
        traffic,
        dense_weights: dense,
        embedding_weights: embedding,
        embedding_touched: touched,
        steps: asked.steps(),
        step_time: read.step_time,
        utilisation,
        gpu_memory: Figure::missing("the recording does not tell what is kept in memory"),
        notes,
    }
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
