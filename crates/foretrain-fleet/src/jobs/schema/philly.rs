//! Microsoft Philly, August to December 2017 (msr-fiddle/philly-traces). Times in the job log are
//! local without a zone; samples name PST or PDT.

use foretrain_core::Nanos;
use serde::Deserialize;

use super::{Kind, Schema, needed};
use crate::jobs::field::{Field, Unit};
use crate::jobs::instant;
use crate::jobs::job::{Job, Placement};
use crate::jobs::value;

/// Jobs: JSON, with every attempt to run one.
pub(super) static JOB: Schema = Schema {
    name: "philly",
    about: "Microsoft Philly 2017, cluster_job_log",
    kind: Kind::Jobs,
    columns: &[
        needed("jobid", Field::Id, Unit::ONE),
        needed("attempts", Field::Attempts, Unit::ONE),
        needed("submitted_time", Field::Submit, Unit::SECONDS),
        needed("status", Field::Status, Unit::ONE),
        needed("vc", Field::Queue, Unit::ONE),
        needed("user", Field::User, Unit::ONE),
    ],
    headerless: None,
    complete: None,
};

/// Machines.
pub(super) static MACHINE: Schema = Schema {
    name: "philly-machine",
    about: "Microsoft Philly 2017, cluster_machine_list",
    kind: Kind::Machines,
    columns: &[
        needed("machineId", Field::Machine, Unit::ONE),
        needed("number of GPUs", Field::Gpus, Unit::ONE),
        needed("single GPU mem", Field::GpuKind, Unit::ONE),
    ],
    headerless: None,
    complete: None,
};

/// Samples of all GPUs of a machine, every minute; columns are read as samples are.
pub(super) static GPU_UTIL: Schema = Schema {
    name: "philly-gpu-util",
    about: "Microsoft Philly 2017, cluster_gpu_util",
    kind: Kind::Samples,
    columns: &[
        needed("time", Field::Submit, Unit::SECONDS),
        needed("machineId", Field::Machine, Unit::ONE),
        needed("gpu0_util", Field::Utilisation, Unit::PERCENT),
    ],
    headerless: None,
    complete: None,
};

/// The short form that came with Pollux.
pub(super) static SUMMARY: Schema = Schema {
    name: "philly-summary",
    about: "Microsoft Philly 2017, short form of Pollux",
    kind: Kind::Jobs,
    columns: &[
        needed("timestamp", Field::Submit, Unit::SECONDS),
        needed("duration", Field::Duration, Unit::SECONDS),
        needed("num_gpus", Field::Gpus, Unit::ONE),
        needed("gpu_time", Field::GpuTime, Unit::SECONDS),
        needed("cluster", Field::Queue, Unit::ONE),
    ],
    headerless: None,
    complete: None,
};

#[derive(Deserialize)]
struct Attempt {
    start_time: Option<String>,
    end_time: Option<String>,
    #[serde(default)]
    detail: Vec<Detail>,
}

#[derive(Deserialize)]
struct Detail {
    ip: String,
    #[serde(default)]
    gpus: Vec<String>,
}

/// Reads a job's attempts: it runs from the first start to the last end, on the machines of its
/// last attempt that has any. Whether all was understood.
pub(in crate::jobs) fn read_attempts(cell: &[u8], job: &mut Job) -> bool {
    let Ok(attempts) = serde_json::from_slice::<Vec<Attempt>>(cell) else { return false };
    let mut understood = true;
    let mut time = |text: &Option<String>| -> Option<Nanos> {
        let cell = value::given(text.as_deref()?.as_bytes())?;
        let read = instant::date(cell).map(|dated| dated.at);
        understood &= read.is_some();
        read
    };
    for attempt in &attempts {
        let (start, end) = (time(&attempt.start_time), time(&attempt.end_time));
        job.start = match (job.start, start) {
            (Some(known), Some(new)) => Some(known.min(new)),
            (known, new) => known.or(new),
        };
        // A job whose last attempt has no end has not ended.
        job.end = end;
        if attempt.detail.is_empty() {
            continue;
        }
        job.placements.clear();
        for detail in &attempt.detail {
            let gpus = u32::try_from(detail.gpus.len()).ok();
            job.placements.push(Placement { machine: detail.ip.clone(), gpus });
        }
    }
    if !job.placements.is_empty() {
        let gpus = job.placements.iter().filter_map(|placed| placed.gpus).map(f64::from).sum();
        job.gpus = Some(gpus);
        job.nodes = u32::try_from(job.placements.len()).ok();
    }
    understood
}
