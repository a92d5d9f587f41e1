//! Alibaba, GPU-sharing cluster of 2023 (alibaba/clusterdata, cluster-trace-gpu-v2023). The pods
//! are the jobs; times are seconds since the trace's origin.

use super::{Kind, Schema, also, needed};
use crate::jobs::field::{Field, Unit};

/// Pods. `gpu_milli` is the part of each GPU, 1000 unless the pod shares one; more is a mistake. Lists that were drawn
/// for other numbers of GPUs have no times.
pub(super) static POD: Schema = Schema {
    name: "alibaba-2023-pod",
    about: "Alibaba 2023, openb_pod_list",
    kind: Kind::Jobs,
    columns: &[
        needed("name", Field::Id, Unit::ONE),
        needed("num_gpu", Field::Gpus, Unit::ONE),
        needed("gpu_milli", Field::GpuShare, Unit::MILLI),
        also("memory_mib", Field::Memory, Unit::MIB),
        also("gpu_spec", Field::GpuKind, Unit::ONE),
        also("qos", Field::Queue, Unit::ONE),
        also("pod_phase", Field::Status, Unit::ONE),
        also("creation_time", Field::Submit, Unit::SECONDS),
        also("deletion_time", Field::End, Unit::SECONDS),
        also("scheduled_time", Field::Start, Unit::SECONDS),
    ],
    headerless: None,
    complete: None,
};

/// Machines.
pub(super) static NODE: Schema = Schema {
    name: "alibaba-2023-node",
    about: "Alibaba 2023, openb_node_list",
    kind: Kind::Machines,
    columns: &[
        needed("sn", Field::Machine, Unit::ONE),
        needed("gpu", Field::Gpus, Unit::ONE),
        also("memory_mib", Field::Memory, Unit::MIB),
        also("model", Field::GpuKind, Unit::ONE),
    ],
    headerless: None,
    complete: None,
};
