//! Microsoft ITP, March and April 2021 (microsoft/elasticflow-traces, raw and ElasticFlow forms).

use super::{Kind, Schema, also, needed};
use crate::jobs::field::{Field, Unit};

/// Jobs of one cluster. There is no start, so no wait; model, batch and steps of the ElasticFlow
/// form were drawn at random.
pub(super) static JOB: Schema = Schema {
    name: "itp",
    about: "Microsoft ITP 2021, elasticflow-traces",
    kind: Kind::Jobs,
    columns: &[
        needed("job_id", Field::Id, Unit::ONE),
        needed("submission_time", Field::Submit, Unit::SECONDS),
        needed("duration", Field::Duration, Unit::SECONDS),
        needed("num_gpu", Field::Gpus, Unit::ONE),
        also("num_iteration", Field::Steps, Unit::ONE),
        also("model_name", Field::Model, Unit::ONE),
        also("batch_size", Field::Batch, Unit::ONE),
    ],
    headerless: None,
    complete: None,
};
