//! Tiresias (SymbioticLab/Tiresias, `*_job.csv`): seconds.

use super::{Kind, Schema, also, needed};
use crate::jobs::field::{Field, Unit};

/// Jobs of the simulator.
pub(super) static JOB: Schema = Schema {
    name: "tiresias",
    about: "Tiresias, job files of the simulator",
    kind: Kind::Jobs,
    columns: &[
        needed("job_id", Field::Id, Unit::ONE),
        needed("num_gpu", Field::Gpus, Unit::ONE),
        needed("submit_time", Field::Submit, Unit::SECONDS),
        needed("model_name", Field::Model, Unit::ONE),
        needed("duration", Field::Duration, Unit::SECONDS),
        also("iterations", Field::Steps, Unit::ONE),
        also("start_time", Field::Start, Unit::SECONDS),
    ],
    headerless: None,
    complete: None,
};
