//! Muri (Rivendile/Muri): traces in milliseconds, results in seconds.

use super::{Kind, Schema, also, needed};
use crate::jobs::field::{Field, Unit};

/// Jobs of a trace.
pub(super) static JOB: Schema = Schema {
    name: "muri",
    about: "Muri, trace-data",
    kind: Kind::Jobs,
    columns: &[
        needed("job_id", Field::Id, Unit::ONE),
        needed("num_gpu", Field::Gpus, Unit::ONE),
        needed("submit_time", Field::Submit, Unit::MILLIS),
        needed("iterations", Field::Steps, Unit::ONE),
        needed("model_name", Field::Model, Unit::ONE),
        needed("batch_size", Field::Batch, Unit::ONE),
        needed("duration", Field::Duration, Unit::MILLIS),
        needed("iteration_time", Field::StepTime, Unit::MILLIS),
        also("resource_time_0", Field::InputTime, Unit::MILLIS),
        also("resource_time_1", Field::ComputeTime, Unit::MILLIS),
        also("resource_time_2", Field::NetworkTime, Unit::MILLIS),
    ],
    headerless: None,
    complete: None,
};

/// What a policy made of the jobs. `duration` is what the job takes alone; it is no run time here,
/// as policies stop jobs and go on with them.
pub(super) static RESULT: Schema = Schema {
    name: "muri-result",
    about: "Muri, job.csv of a policy",
    kind: Kind::Jobs,
    columns: &[
        needed("job_id", Field::Id, Unit::ONE),
        needed("num_gpu", Field::Gpus, Unit::ONE),
        needed("submit_time", Field::Submit, Unit::SECONDS),
        needed("start_time", Field::Start, Unit::SECONDS),
        needed("end_time", Field::End, Unit::SECONDS),
        needed("JCT", Field::Turnaround, Unit::SECONDS),
        needed("pending_time", Field::Wait, Unit::SECONDS),
    ],
    headerless: None,
    complete: None,
};
