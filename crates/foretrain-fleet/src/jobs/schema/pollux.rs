//! Pollux (petuum/adaptdl, `workload-*.csv`): seconds; how long a job takes is up to the scheduler.

use super::{Kind, Schema, needed};
use crate::jobs::field::{Field, Unit};

/// Jobs of a workload.
pub(super) static JOB: Schema = Schema {
    name: "pollux",
    about: "Pollux, workloads",
    kind: Kind::Jobs,
    columns: &[
        needed("name", Field::Id, Unit::ONE),
        needed("time", Field::Submit, Unit::SECONDS),
        needed("application", Field::Model, Unit::ONE),
        needed("num_replicas", Field::Gpus, Unit::ONE),
        needed("batch_size", Field::Batch, Unit::ONE),
    ],
    headerless: None,
    complete: None,
};
