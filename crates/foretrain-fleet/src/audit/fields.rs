//! Which fields of a row can be used, and what that says of a table.

use crate::jobs::{Field, Job};

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

/// By the rows that have a value of a field: a column without any tells nothing.
pub(super) fn arrivals(rows: impl Fn(Field) -> u64) -> Arrivals {
    let spans = [Field::Duration, Field::Wait, Field::Turnaround];
    match () {
        () if rows(Field::Submit) > 0 => Arrivals::Submitted,
        () if rows(Field::Start) > 0 => Arrivals::Started,
        () if spans.iter().any(|field| rows(*field) > 0) => Arrivals::SpansOnly,
        () => Arrivals::Untimed,
    }
}

/// Which fields of a row hold something, a bit each.
pub(super) fn filled(job: &Job) -> u64 {
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
