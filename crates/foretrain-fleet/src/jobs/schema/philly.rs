//! Microsoft Philly, August to December 2017 (msr-fiddle/philly-traces). Times in the job log are
//! local without a zone; samples name PST or PDT.

use foretrain_core::Nanos;
use serde::Deserialize;

use super::{Kind, Schema, needed};
use crate::jobs::attempt::Attempt;
use crate::jobs::fault::Fault;
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
struct Logged {
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
/// last attempt that has any. What was not understood, or cannot be.
pub(in crate::jobs) fn read_attempts(cell: &[u8], job: &mut Job) -> Option<Fault> {
    let Ok(logged) = serde_json::from_slice::<Vec<Logged>>(cell) else {
        return Some(Fault::Unreadable);
    };
    let mut understood = true;
    let mut time = |text: &Option<String>| -> Option<Nanos> {
        let cell = value::given(text.as_deref()?.as_bytes())?;
        let read = instant::date(cell).map(|dated| dated.at);
        understood &= read.is_some();
        read
    };
    let placed = |detail: &Detail| Placement {
        machine: detail.ip.clone(),
        gpus: u32::try_from(detail.gpus.len()).ok(),
    };
    for one in &logged {
        job.attempts.push(Attempt {
            start: time(&one.start_time),
            end: time(&one.end_time),
            placements: one.detail.iter().map(placed).collect(),
        });
    }
    // A job whose last attempt has no end has not ended.
    job.start = job.attempts.iter().filter_map(|attempt| attempt.start).min();
    job.end = job.attempts.last().and_then(|last| last.end);
    if let Some(last) = job.attempts.iter().rev().find(|attempt| !attempt.placements.is_empty()) {
        job.placements.clone_from(&last.placements);
        job.gpus = last.gpus();
        job.nodes = u32::try_from(job.placements.len()).ok();
    }
    let before = job.attempts.len().saturating_sub(1);
    let endless = job.attempts[..before].iter().any(|a| a.start.is_some() && a.end.is_none());
    if job.attempts.len() == 1 {
        job.attempts.clear();
    }
    match (understood, endless) {
        (false, _) => Some(Fault::Unreadable),
        (true, true) => Some(Fault::AttemptEndUnknown),
        (true, false) => None,
    }
}
