//! Shanghai AI Laboratory, Acme, 2023 (InternLM/AcmeTrace, `trace_seren.csv`, `trace_kalos.csv`).

use super::{Kind, Schema, also, needed};
use crate::jobs::field::{Field, Unit};

/// Jobs. In Kalos the duration counts from the submission, which the rows themselves show.
pub(super) static JOB: Schema = Schema {
    name: "acme",
    about: "Shanghai AI Laboratory Acme 2023, job_trace",
    kind: Kind::Jobs,
    columns: &[
        needed("job_id", Field::Id, Unit::ONE),
        needed("user", Field::User, Unit::ONE),
        needed("node_num", Field::Nodes, Unit::ONE),
        needed("gpu_num", Field::Gpus, Unit::ONE),
        needed("type", Field::Model, Unit::ONE),
        needed("state", Field::Status, Unit::ONE),
        needed("submit_time", Field::Submit, Unit::SECONDS),
        also("start_time", Field::Start, Unit::SECONDS),
        also("end_time", Field::End, Unit::SECONDS),
        also("mem_per_pod_GB", Field::Memory, Unit::GB),
        needed("duration", Field::Duration, Unit::SECONDS),
        needed("queue", Field::Wait, Unit::SECONDS),
    ],
    headerless: None,
    complete: None,
};
