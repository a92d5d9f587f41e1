//! Traces of several sources brought to one form, in seconds. Job ids repeat from trace to trace.

use super::{Kind, Schema, needed};
use crate::jobs::field::{Field, Unit};
use crate::jobs::job::Job;

/// A job is only told from others by its trace and its id.
fn qualify(job: &mut Job) {
    if !job.id.is_empty() && !job.queue.is_empty() {
        job.id = format!("{}/{}", job.queue, job.id);
    }
}

/// Jobs of many traces.
pub(super) static JOB: Schema = Schema {
    name: "unified",
    about: "jobs of several traces in one table",
    kind: Kind::Jobs,
    columns: &[
        needed("trace", Field::Queue, Unit::ONE),
        needed("job_id", Field::Id, Unit::ONE),
        needed("submit_s", Field::Submit, Unit::SECONDS),
        needed("duration_s", Field::Duration, Unit::SECONDS),
        needed("num_gpu", Field::Gpus, Unit::ONE),
        needed("model", Field::Model, Unit::ONE),
        needed("batch", Field::Batch, Unit::ONE),
        needed("user", Field::User, Unit::ONE),
    ],
    headerless: None,
    complete: Some(qualify),
};
