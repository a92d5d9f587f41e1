//! SenseTime Helios, April to September 2020 (S-Lab-System-Group/HeliosData, `cluster_log.csv`).

use super::{Kind, Schema, also, needed};
use crate::jobs::field::{Field, Unit};

/// Jobs. `duration` and `queue` are seconds, the second being the wait.
pub(super) static JOB: Schema = Schema {
    name: "helios",
    about: "SenseTime Helios 2020, cluster_log.csv",
    kind: Kind::Jobs,
    columns: &[
        needed("job_id", Field::Id, Unit::ONE),
        needed("user", Field::User, Unit::ONE),
        needed("vc", Field::Queue, Unit::ONE),
        also("jobname", Field::Model, Unit::ONE),
        needed("gpu_num", Field::Gpus, Unit::ONE),
        needed("node_num", Field::Nodes, Unit::ONE),
        needed("state", Field::Status, Unit::ONE),
        needed("submit_time", Field::Submit, Unit::SECONDS),
        also("start_time", Field::Start, Unit::SECONDS),
        also("end_time", Field::End, Unit::SECONDS),
        needed("duration", Field::Duration, Unit::SECONDS),
        needed("queue", Field::Wait, Unit::SECONDS),
    ],
    headerless: None,
    complete: None,
};
