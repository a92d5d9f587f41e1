//! Alibaba PAI, July and August 2020 (alibaba/clusterdata, cluster-trace-gpu-v2020). The files have
//! no header; their titles are in files of their own.

use csv::ByteRecord;

use super::{Headerless, Kind, Schema, also, needed, numeric};
use crate::jobs::field::{Field, Unit};

/// Whether a column of the first row holds a word of the trace for how a job or instance ended.
fn has_status(row: &ByteRecord, column: usize) -> bool {
    const WORDS: [&[u8]; 5] = [b"Running", b"Terminated", b"Failed", b"Waiting", b"Interrupted"];
    row.get(column).is_some_and(|cell| WORDS.contains(&cell))
}

/// Jobs. `start_time` is when the job was submitted; what it asked for is in its tasks.
pub(super) static JOB: Schema = Schema {
    name: "alibaba-2020-job",
    about: "Alibaba PAI 2020, pai_job_table",
    kind: Kind::Jobs,
    columns: &[
        needed("job_name", Field::Id, Unit::ONE),
        needed("inst_id", Field::Alias, Unit::ONE),
        needed("user", Field::User, Unit::ONE),
        needed("status", Field::Status, Unit::ONE),
        needed("start_time", Field::Submit, Unit::SECONDS),
        needed("end_time", Field::End, Unit::SECONDS),
    ],
    headerless: Some(Headerless {
        file: Some("pai_job_table"),
        titles: &["job_name", "inst_id", "user", "status", "start_time", "end_time"],
        tells: |row| has_status(row, 3) && numeric(row, 4) && numeric(row, 5),
    }),
    complete: None,
};

/// Tasks: the roles of a job, each with so many equal instances. `plan_gpu` is in hundredths of a
/// GPU per instance.
pub(super) static TASK: Schema = Schema {
    name: "alibaba-2020-task",
    about: "Alibaba PAI 2020, pai_task_table",
    kind: Kind::Parts,
    columns: &[
        needed("job_name", Field::Id, Unit::ONE),
        needed("task_name", Field::Part, Unit::ONE),
        needed("inst_num", Field::Instances, Unit::ONE),
        also("status", Field::Status, Unit::ONE),
        also("start_time", Field::Start, Unit::SECONDS),
        also("end_time", Field::End, Unit::SECONDS),
        needed("plan_gpu", Field::Gpus, Unit::PERCENT),
        also("gpu_type", Field::GpuKind, Unit::ONE),
    ],
    headerless: Some(Headerless {
        file: Some("pai_task_table"),
        titles: &[
            "job_name",
            "task_name",
            "inst_num",
            "status",
            "start_time",
            "end_time",
            "plan_cpu",
            "plan_mem",
            "plan_gpu",
            "gpu_type",
        ],
        tells: |row| has_status(row, 3) && [2, 4, 5, 6, 7, 8].iter().all(|&c| numeric(row, c)),
    }),
    complete: None,
};

/// Instances, each on one machine.
pub(super) static INSTANCE: Schema = Schema {
    name: "alibaba-2020-instance",
    about: "Alibaba PAI 2020, pai_instance_table",
    kind: Kind::Parts,
    columns: &[
        needed("job_name", Field::Id, Unit::ONE),
        also("task_name", Field::Part, Unit::ONE),
        needed("inst_name", Field::Part, Unit::ONE),
        needed("inst_id", Field::Alias, Unit::ONE),
        needed("status", Field::Status, Unit::ONE),
        needed("start_time", Field::Start, Unit::SECONDS),
        needed("end_time", Field::End, Unit::SECONDS),
        needed("machine", Field::Machine, Unit::ONE),
    ],
    headerless: Some(Headerless {
        file: Some("pai_instance_table"),
        titles: &[
            "job_name",
            "task_name",
            "inst_name",
            "worker_name",
            "inst_id",
            "status",
            "start_time",
            "end_time",
            "machine",
        ],
        tells: |row| has_status(row, 5) && numeric(row, 6) && numeric(row, 7),
    }),
    complete: None,
};

/// What instances used on average over their lives.
pub(super) static SENSOR: Schema = Schema {
    name: "alibaba-2020-sensor",
    about: "Alibaba PAI 2020, pai_sensor_table",
    kind: Kind::Parts,
    columns: &[
        needed("job_name", Field::Id, Unit::ONE),
        also("task_name", Field::Part, Unit::ONE),
        also("inst_id", Field::Alias, Unit::ONE),
        also("machine", Field::Machine, Unit::ONE),
        needed("gpu_name", Field::Devices, Unit::ONE),
        needed("gpu_wrk_util", Field::Utilisation, Unit::PERCENT),
        needed("avg_gpu_wrk_mem", Field::GpuMemory, Unit::GB),
    ],
    headerless: Some(Headerless {
        file: Some("pai_sensor_table"),
        titles: &[
            "job_name",
            "task_name",
            "worker_name",
            "inst_id",
            "machine",
            "gpu_name",
            "cpu_usage",
            "gpu_wrk_util",
            "avg_mem",
            "max_mem",
            "avg_gpu_wrk_mem",
            "max_gpu_wrk_mem",
            "read",
            "write",
            "read_count",
            "write_count",
        ],
        tells: |row| (6..16).all(|column| numeric(row, column)) && !numeric(row, 4),
    }),
    complete: None,
};

/// What some instances are for.
pub(super) static GROUP: Schema = Schema {
    name: "alibaba-2020-group",
    about: "Alibaba PAI 2020, pai_group_tag_table",
    kind: Kind::Parts,
    columns: &[
        needed("inst_id", Field::Alias, Unit::ONE),
        also("user", Field::User, Unit::ONE),
        needed("gpu_type_spec", Field::GpuKind, Unit::ONE),
        needed("group", Field::Queue, Unit::ONE),
        needed("workload", Field::Model, Unit::ONE),
    ],
    // Five columns of text tell nothing; the file has to be named.
    headerless: Some(Headerless {
        file: Some("pai_group_tag_table"),
        titles: &["inst_id", "user", "gpu_type_spec", "group", "workload"],
        tells: |_| false,
    }),
    complete: None,
};

/// Machines.
pub(super) static MACHINE: Schema = Schema {
    name: "alibaba-2020-machine",
    about: "Alibaba PAI 2020, pai_machine_spec",
    kind: Kind::Machines,
    columns: &[
        needed("machine", Field::Machine, Unit::ONE),
        also("gpu_type", Field::GpuKind, Unit::ONE),
        needed("cap_gpu", Field::Gpus, Unit::ONE),
    ],
    headerless: Some(Headerless {
        file: Some("pai_machine_spec"),
        titles: &["machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu"],
        tells: |row| !numeric(row, 0) && (2..5).all(|column| numeric(row, column)),
    }),
    complete: None,
};
