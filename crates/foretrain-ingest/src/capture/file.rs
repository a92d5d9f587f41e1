//! The capture file as it is written, and what of it is kept.

use std::collections::BTreeMap;

use foretrain_core::{InputError, Result};
use foretrain_trace::Capture;
use foretrain_trace::capture::{
    CapturedDdp, CapturedEnvironment, CapturedLayout, CapturedMemory, CapturedParameter,
    CapturedSteps, Moments,
};
use serde::Deserialize;

use super::numbers::{Positive, Size, Time};

#[derive(Deserialize)]
pub(super) struct File {
    foretrain_capture: u64,
    rank: u32,
    world_size: u32,
    #[serde(default)]
    missing: Vec<String>,
    #[serde(default)]
    steps: Stages,
    replica_batch: Option<ReplicaBatch>,
    gradients: Option<Gradients>,
    model: Option<Model>,
    #[serde(default)]
    optimizers: Vec<Optimizer>,
    #[serde(default)]
    parallel: Parallel,
    #[serde(default)]
    memory: Memory,
    #[serde(default)]
    environment: Environment,
    #[serde(default)]
    notes: Vec<Note>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Stages {
    unprofiled: Steps,
    hooked: Steps,
    profiled: Steps,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Steps {
    wall_ns: Vec<Time>,
    device_ns: Vec<Time>,
    input_wait_ns: Vec<Time>,
    recorder_ns: Vec<Time>,
}

#[derive(Deserialize)]
struct ReplicaBatch {
    samples: Positive,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Gradients {
    clock: String,
    forward_start_ns: Option<Time>,
    forward_end_ns: Option<Time>,
    backward_end_ns: Option<Time>,
    optimizer_start_ns: Option<Time>,
    optimizer_end_ns: Option<Time>,
    ready_ns: Vec<Option<Time>>,
    forwards_per_step: Option<u32>,
    synchronised_per_step: Option<u32>,
}

#[derive(Deserialize)]
struct Model {
    #[serde(default)]
    class: String,
    parameters: Vec<Parameter>,
    #[serde(default)]
    buffers: Buffers,
}

#[derive(Deserialize)]
struct Parameter {
    name: String,
    bytes: Size,
    requires_grad: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Buffers {
    bytes: Size,
}

#[derive(Deserialize)]
struct Optimizer {
    #[serde(default)]
    state_bytes: BTreeMap<String, Size>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Parallel {
    kind: String,
    ddp: Option<Ddp>,
    units: Vec<Sized>,
}

#[derive(Deserialize)]
struct Ddp {
    bucket_cap_bytes: Size,
    bucket_cap_is_default: bool,
    #[serde(default)]
    buckets: Vec<Sized>,
    gradient_as_bucket_view: bool,
    broadcast_buffers: bool,
    #[serde(default)]
    communication_hooks: Vec<String>,
}

#[derive(Deserialize)]
struct Sized {
    bytes: Size,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Memory {
    resident_peak_bytes: Option<Size>,
    allocated_peak_bytes: Option<Size>,
    reserved_peak_bytes: Option<Size>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Environment {
    machine: Machine,
    versions: BTreeMap<String, String>,
    devices: Devices,
    threads: Threads,
    distributed: Distributed,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Machine {
    cpu: String,
    usable_cores: Option<u32>,
    quota_cores: Option<Positive>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Devices {
    r#type: String,
    names: Vec<String>,
    used: usize,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Threads {
    intra_op: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Distributed {
    backend: String,
}

#[derive(Deserialize)]
struct Note {
    about: String,
    message: String,
}

impl File {
    pub(super) fn version(&self) -> u64 {
        self.foretrain_capture
    }

    /// What is kept of it.
    pub(super) fn capture(self) -> Result<Capture> {
        if self.rank >= self.world_size {
            let message = format!("rank {} of {}", self.rank, self.world_size);
            return Err(InputError::new(message).at("rank").hint("ranks count from 0"));
        }
        let model = self.model.unwrap_or_else(|| Model {
            class: String::new(),
            parameters: Vec::new(),
            buffers: Buffers::default(),
        });
        let gradients = self.gradients;
        let ready = gradients.as_ref().map_or(&[][..], |told| &told.ready_ns);
        if !ready.is_empty() && ready.len() != model.parameters.len() {
            return Err(InputError::new(format!(
                "{} times for {} parameters",
                ready.len(),
                model.parameters.len()
            ))
            .at("gradients.ready_ns")
            .hint("there is one for each parameter of the model, or null"));
        }
        let parameters =
            model.parameters.into_iter().enumerate().map(|(index, parameter)| CapturedParameter {
                name: parameter.name,
                bytes: parameter.bytes.0,
                is_trained: parameter.requires_grad,
                ready: ready.get(index).and_then(|time| time.as_ref()).map(|time| time.0),
            });
        let parameters = parameters.collect();
        let states = self.optimizers.iter().flat_map(|optimizer| optimizer.state_bytes.values());
        Ok(Capture {
            path: String::new(),
            rank: self.rank,
            world_size: self.world_size,
            missing: self.missing,
            unprofiled: self.steps.unprofiled.into(),
            hooked: self.steps.hooked.into(),
            profiled: self.steps.profiled.into(),
            replica_batch: self.replica_batch.map(|batch| batch.samples.0),
            model: model.class,
            parameters,
            buffers: model.buffers.bytes.0,
            optimizer_state: states.map(|size| size.0).sum(),
            moments: gradients.map(Into::into),
            layout: self.parallel.into(),
            memory: CapturedMemory {
                resident: self.memory.resident_peak_bytes.map(|size| size.0),
                allocated: self.memory.allocated_peak_bytes.map(|size| size.0),
                reserved: self.memory.reserved_peak_bytes.map(|size| size.0),
            },
            environment: self.environment.into(),
            notes: self.notes.into_iter().map(|n| format!("{}: {}", n.about, n.message)).collect(),
        })
    }
}

impl From<Steps> for CapturedSteps {
    fn from(steps: Steps) -> Self {
        let times = |times: Vec<Time>| times.into_iter().map(|time| time.0).collect();
        Self {
            wall: times(steps.wall_ns),
            device: times(steps.device_ns),
            input_wait: times(steps.input_wait_ns),
            recorder: times(steps.recorder_ns),
        }
    }
}

impl From<Gradients> for Moments {
    fn from(told: Gradients) -> Self {
        let time = |time: Option<Time>| time.map(|time| time.0);
        Self {
            on_device: told.clock == "device",
            forward_start: time(told.forward_start_ns),
            forward_end: time(told.forward_end_ns),
            backward_end: time(told.backward_end_ns),
            optimizer_start: time(told.optimizer_start_ns),
            optimizer_end: time(told.optimizer_end_ns),
            forwards: told.forwards_per_step,
            synchronised: told.synchronised_per_step,
        }
    }
}

impl From<Parallel> for CapturedLayout {
    fn from(parallel: Parallel) -> Self {
        let sizes = |sized: Vec<Sized>| sized.into_iter().map(|one| one.bytes.0).collect();
        match parallel.ddp {
            // Sharded within and replicated without: the inner layout decides what is communicated.
            _ if !parallel.units.is_empty() => {
                Self::Sharded { kind: parallel.kind, units: sizes(parallel.units) }
            }
            Some(ddp) => Self::Ddp(CapturedDdp {
                bucket_cap: ddp.bucket_cap_bytes.0,
                cap_is_default: ddp.bucket_cap_is_default,
                buckets: sizes(ddp.buckets),
                gradient_as_bucket_view: ddp.gradient_as_bucket_view,
                broadcast_buffers: ddp.broadcast_buffers,
                hooks: ddp.communication_hooks,
            }),
            None => Self::None,
        }
    }
}

impl From<Environment> for CapturedEnvironment {
    fn from(mut told: Environment) -> Self {
        let used = told.devices.used;
        Self {
            device: told.devices.names.into_iter().nth(used).unwrap_or_default(),
            device_type: told.devices.r#type,
            cpu: told.machine.cpu,
            usable_cores: told.machine.usable_cores,
            quota_cores: told.machine.quota_cores.map(|cores| cores.0),
            threads: told.threads.intra_op,
            torch: told.versions.remove("torch").unwrap_or_default(),
            backend: told.distributed.backend,
        }
    }
}
