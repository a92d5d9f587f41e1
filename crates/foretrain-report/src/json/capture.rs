//! What a rank's capture says, in the JSON of `inspect`.

use foretrain_core::{Bytes, Nanos};
use foretrain_trace::Capture;
use foretrain_trace::capture::{
    CapturedEnvironment, CapturedLayout, CapturedMemory, CapturedSteps, Moments,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::common::finite;

/// What `foretrain.capture` measured beside a trace.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CaptureReport {
    /// File.
    pub path: String,
    /// Stages that ran short; empty for a complete capture.
    pub missing: Vec<String>,
    /// Steps with nothing attached.
    pub unprofiled: CapturedStepsReport,
    /// Steps with hooks on the gradients.
    pub hooked: CapturedStepsReport,
    /// Steps in the trace.
    pub profiled: CapturedStepsReport,
    /// Median step under the profiler over that without, by the host's clock.
    pub profiler_factor: Option<f64>,
    /// Samples that a replica processes per step.
    pub replica_batch: Option<f64>,
    /// When the parts of a step end; `null` without hooked steps.
    pub moments: Option<MomentsReport>,
    /// Class of the model; empty if none was given.
    pub model: String,
    /// Number of its parameters.
    pub parameters: usize,
    /// Their bytes, shared ones once.
    pub parameter_bytes: u64,
    /// Bytes of the gradients of one replica.
    pub gradient_bytes: u64,
    /// Bytes of the model's buffers.
    pub buffer_bytes: u64,
    /// Bytes of the optimisers' state on this rank.
    pub optimizer_state_bytes: u64,
    /// How the model is spread over ranks.
    pub layout: CapturedLayoutReport,
    /// Peaks of memory.
    pub memory: CapturedMemoryReport,
    /// Where it was recorded.
    pub environment: CapturedEnvironmentReport,
    /// What the recorder could not do, and why.
    pub notes: Vec<String>,
}

/// Steps of one stage.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CapturedStepsReport {
    /// Number of steps.
    pub steps: usize,
    /// Whether the times are by the device's clock.
    pub on_device: bool,
    /// Median step time.
    pub median_ns: Option<i64>,
    /// Standard deviation over the median, from quantiles; `null` below ten steps.
    pub relative_spread: Option<f64>,
    /// Median wait for input.
    pub input_wait_ns: Option<i64>,
    /// The recorder's own time over that of the steps.
    pub recorder_share: Option<f64>,
}

/// Moments of a step, after its start.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MomentsReport {
    /// Whether these are times of the device.
    pub on_device: bool,
    /// The first forward pass begins.
    pub forward_start_ns: Option<i64>,
    /// The last forward pass ends.
    pub forward_end_ns: Option<i64>,
    /// The first gradient is ready.
    pub first_gradient_ns: Option<i64>,
    /// The last gradient is ready.
    pub last_gradient_ns: Option<i64>,
    /// The optimiser begins.
    pub optimizer_start_ns: Option<i64>,
    /// The optimiser ends.
    pub optimizer_end_ns: Option<i64>,
    /// Forward passes per step.
    pub forwards_per_step: Option<u32>,
    /// Those whose gradients are synchronised.
    pub synchronised_per_step: Option<u32>,
}

/// How a model is spread over ranks.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CapturedLayoutReport {
    /// `none`, `ddp`, `fsdp1` or `fsdp2`.
    pub kind: String,
    /// Bytes of DDP's buckets in the order of their launches, or of the units that FSDP gathers.
    pub bytes: Vec<u64>,
    /// The cap of DDP's buckets.
    pub bucket_cap_bytes: Option<u64>,
    /// Whether gradients live in DDP's buckets.
    pub gradient_as_bucket_view: Option<bool>,
    /// Whether DDP broadcasts buffers before every forward pass.
    pub broadcast_buffers: Option<bool>,
    /// DDP's communication hooks.
    pub hooks: Vec<String>,
}

/// Peaks of memory.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CapturedMemoryReport {
    /// Memory of the process on the host.
    pub resident_bytes: Option<u64>,
    /// Tensors on the device.
    pub allocated_bytes: Option<u64>,
    /// What the allocator took from the device.
    pub reserved_bytes: Option<u64>,
}

/// Where a capture was made.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CapturedEnvironmentReport {
    /// `cuda`, `cpu` and the like; empty if not known.
    pub device_type: String,
    /// The device in use; empty for the processor.
    pub device: String,
    /// The processor.
    pub cpu: String,
    /// Logical cores that the process may run on.
    pub usable_cores: Option<u32>,
    /// Cores' worth of time that the process may use.
    pub quota_cores: Option<f64>,
    /// Threads that PyTorch computes with on the processor.
    pub threads: Option<u32>,
    /// PyTorch's version.
    pub torch: String,
    /// Backend of the default process group.
    pub backend: String,
}

impl From<&Capture> for CaptureReport {
    fn from(capture: &Capture) -> Self {
        let ready = capture.gradients_ready();
        Self {
            path: capture.path.clone(),
            missing: capture.missing.clone(),
            unprofiled: (&capture.unprofiled).into(),
            hooked: (&capture.hooked).into(),
            profiled: (&capture.profiled).into(),
            profiler_factor: capture.profiler_factor().map(finite),
            replica_batch: capture.replica_batch.map(finite),
            moments: capture.moments.as_ref().map(|moments| MomentsReport::new(moments, ready)),
            model: capture.model.clone(),
            parameters: capture.parameters.len(),
            parameter_bytes: capture.parameter_bytes().get(),
            gradient_bytes: capture.gradient_bytes().get(),
            buffer_bytes: capture.buffers.get(),
            optimizer_state_bytes: capture.optimizer_state.get(),
            layout: (&capture.layout).into(),
            memory: (&capture.memory).into(),
            environment: (&capture.environment).into(),
            notes: capture.notes.clone(),
        }
    }
}

impl From<&CapturedSteps> for CapturedStepsReport {
    fn from(steps: &CapturedSteps) -> Self {
        Self {
            steps: steps.times().len(),
            on_device: !steps.device.is_empty(),
            median_ns: steps.median().map(Nanos::nanos),
            relative_spread: steps.spread().map(finite),
            input_wait_ns: steps.median_input_wait().map(Nanos::nanos),
            recorder_share: steps.recorder_share().map(finite),
        }
    }
}

impl MomentsReport {
    fn new(moments: &Moments, ready: Option<(Nanos, Nanos)>) -> Self {
        let ns = |time: Option<Nanos>| time.map(Nanos::nanos);
        Self {
            on_device: moments.on_device,
            forward_start_ns: ns(moments.forward_start),
            forward_end_ns: ns(moments.forward_end),
            first_gradient_ns: ns(ready.map(|(first, _)| first)),
            last_gradient_ns: ns(ready.map(|(_, last)| last)),
            optimizer_start_ns: ns(moments.optimizer_start),
            optimizer_end_ns: ns(moments.optimizer_end),
            forwards_per_step: moments.forwards,
            synchronised_per_step: moments.synchronised,
        }
    }
}

impl From<&CapturedLayout> for CapturedLayoutReport {
    fn from(layout: &CapturedLayout) -> Self {
        let sizes = |sizes: &[Bytes]| sizes.iter().map(|size| size.get()).collect();
        let none = Self {
            kind: "none".into(),
            bytes: Vec::new(),
            bucket_cap_bytes: None,
            gradient_as_bucket_view: None,
            broadcast_buffers: None,
            hooks: Vec::new(),
        };
        match layout {
            CapturedLayout::None => none,
            CapturedLayout::Sharded { kind, units } => {
                Self { kind: kind.clone(), bytes: sizes(units), ..none }
            }
            CapturedLayout::Ddp(ddp) => Self {
                kind: "ddp".into(),
                bytes: sizes(&ddp.buckets),
                bucket_cap_bytes: Some(ddp.bucket_cap.get()),
                gradient_as_bucket_view: Some(ddp.gradient_as_bucket_view),
                broadcast_buffers: Some(ddp.broadcast_buffers),
                hooks: ddp.hooks.clone(),
            },
        }
    }
}

impl From<&CapturedMemory> for CapturedMemoryReport {
    fn from(memory: &CapturedMemory) -> Self {
        Self {
            resident_bytes: memory.resident.map(Bytes::get),
            allocated_bytes: memory.allocated.map(Bytes::get),
            reserved_bytes: memory.reserved.map(Bytes::get),
        }
    }
}

impl From<&CapturedEnvironment> for CapturedEnvironmentReport {
    fn from(told: &CapturedEnvironment) -> Self {
        Self {
            device_type: told.device_type.clone(),
            device: told.device.clone(),
            cpu: told.cpu.clone(),
            usable_cores: told.usable_cores,
            quota_cores: told.quota_cores.map(finite),
            threads: told.threads,
            torch: told.torch.clone(),
            backend: told.backend.clone(),
        }
    }
}
