//! An estimate: step time, throughput, memory, energy and cost of one layout.

use foretrain_core::{Bytes, Estimate, Evidence, EvidenceKind, InputError, Nanos, Result};
use foretrain_hardware::Cluster;
use foretrain_workload::model::{Model, Sample};
use serde::Serialize;

use crate::check::{check_layout, check_training};
use crate::layout::Layout;
use crate::memory::{Fit, StageMemory};
use crate::step::{Job, Step};
use crate::training::Training;

/// What one layout gives.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// The layout.
    pub layout: Layout,
    /// Devices.
    pub devices: u64,
    /// The step, by parts.
    pub step: Step,
    /// Step time with its 80 % interval.
    pub time: Estimate<Nanos>,
    /// Tokens (or samples, for models without a sequence) of a step.
    pub tokens: f64,
    /// Whether these are samples.
    pub in_samples: bool,
    /// Model FLOPs of a step: three times those of a forward pass over the global batch, twice
    /// where adapters are trained beside frozen weights. Attention
    /// counts the pairs of tokens that the mask lets see each other; recomputation counts nothing.
    pub model_flops: f64,
    /// Model FLOPs over step time, devices and the dense peak of the passes' type; `None` without a
    /// peak.
    pub mfu: Option<f64>,
    /// Memory of every stage.
    pub memory: Vec<StageMemory>,
    /// Power, energy and money.
    pub cost: Cost,
    /// What the numbers rest on.
    pub evidence: Vec<Evidence>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// Power, energy and money of one step.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Watts of all nodes; `None` where the catalogue has no figure.
    pub watts: Option<f64>,
    /// Joules of a step.
    pub joules_per_step: Option<f64>,
    /// US dollars per hour of all nodes.
    pub dollars_per_hour: Option<f64>,
    /// US dollars of a step.
    pub dollars_per_step: Option<f64>,
}

impl Answer {
    /// Tokens per second.
    pub fn tokens_per_second(&self) -> f64 {
        self.tokens / self.time.value.secs_f64().max(1e-12)
    }
    /// How the worst stage fits.
    pub fn fit(&self) -> Fit {
        self.memory.iter().map(StageMemory::fits).max().unwrap_or(Fit::Yes)
    }
    /// The stage that needs most.
    pub fn fullest(&self) -> Option<&StageMemory> {
        self.memory.iter().max_by_key(|stage| stage.used.value)
    }
    /// Most likely use of the fullest device.
    pub fn peak_memory(&self) -> Bytes {
        self.fullest().map_or(Bytes::ZERO, |stage| stage.used.value)
    }
}

/// Share of a device's design power that training draws on average, where the node has no figure of
/// its own: between 0.6 and 0.9 in public measurements.
const POWER_SHARE: f64 = 0.75;
/// What hosts, NICs and fans draw beside the devices, over the devices' power.
const NODE_OVERHEAD: f64 = 1.35;

/// A step beyond this is a slip; far below where times overflow.
const LONGEST_STEP: Nanos = Nanos::from_millis(365 * 24 * 3600 * 1000);

/// Tokens of a sample (1 for a fixed input).
pub fn tokens_per_sample(model: &Model, training: &Training) -> f64 {
    match model.sample {
        Sample::Tokens { .. } => training.sequence as f64,
        Sample::Pair { .. } => (training.sequence + training.target) as f64,
        Sample::Fixed => 1.0,
    }
}

/// Model FLOPs of a step, as [`Answer::model_flops`] defines them.
pub fn model_flops(model: &Model, training: &Training) -> f64 {
    let Training { sequence, target, .. } = *training;
    let sample = match model.sample {
        Sample::Tokens { longest, .. } => Sample::Tokens { default: sequence, longest },
        Sample::Pair { .. } => Sample::Pair { source: sequence, target },
        Sample::Fixed => Sample::Fixed,
    };
    let forward: f64 = model
        .blocks
        .iter()
        .map(|block| f64::from(block.repeat) * block.layer.forward(&sample, None).get())
        .sum();
    // Frozen weights have no gradients.
    let passes = if training.lora.is_some() { 2.0 } else { 3.0 };
    passes * forward * training.global_batch as f64
}

impl Job<'_> {
    /// Everything about one layout.
    ///
    /// # Errors
    /// If the layout does not go with the model, the batch or the cluster. That it does not fit into
    /// memory is no error.
    pub fn answer(&self, layout: &Layout) -> Result<Answer> {
        let cluster = self.machine.cluster();
        check_training(self.training, self.model, cluster)?;
        check_layout(layout, self.model, self.training, cluster)?;
        let laid = self.lay(layout)?;
        let step = laid.step()?;
        if step.time > LONGEST_STEP {
            return Err(InputError::new("such a step would take more than a year")
                .hint("check the batch: it counts the samples of one step"));
        }
        let memory = laid.memory()?;
        let time = step.estimate();
        let model_flops = model_flops(self.model, self.training);
        let devices = layout.devices();
        let peak = cluster.node.device.peak(self.training.precision.compute);
        let seconds = time.value.secs_f64();
        let mfu = peak
            .filter(|peak| peak.get() > 0.0 && seconds > 0.0)
            .map(|peak| model_flops / (seconds * devices as f64 * peak.get()));
        let tokens =
            tokens_per_sample(self.model, self.training) * self.training.global_batch as f64;
        let mut notes = Vec::new();
        notes.extend(self.model.assumptions.iter().cloned());
        notes.extend(cautions(layout, &step));
        Ok(Answer {
            layout: layout.clone(),
            devices,
            cost: cost(cluster, devices, time.value),
            evidence: self.evidence(),
            step,
            time,
            tokens,
            in_samples: matches!(self.model.sample, Sample::Fixed),
            model_flops,
            mfu,
            memory,
            notes,
        })
    }

    fn evidence(&self) -> Vec<Evidence> {
        let mut evidence = self.machine.evidence();
        evidence.push(Evidence::new(
            EvidenceKind::Assumed,
            "pace of the host",
            format!(
                "{}: {:.0} us per launch forward, {:.0} us backward",
                self.software.name,
                self.software.host_forward.micros_f64(),
                self.software.host_backward.micros_f64()
            ),
            0.35,
        ));
        evidence
    }
}

/// What measurements warn of.
fn cautions(layout: &Layout, step: &Step) -> Vec<String> {
    use crate::layout::Recompute;
    use crate::times::Part;
    let mut notes = Vec::new();
    if layout.pipeline > 1
        && layout.schedule.splits_backward()
        && layout.recompute != Recompute::None
    {
        notes.push(
            "Splitting the backward pass beside recomputation has been measured at a tenth of 1F1B's \
             throughput (512 GPUs, interleaved zero bubble): frameworks form activations again for \
             each half, or lose their memory savings. Measure this pair before you rely on it."
                .to_owned(),
        );
    }
    let launch = step.parts[Part::Launch].nanos() as f64 / step.time.nanos().max(1) as f64;
    if launch > 0.2 {
        notes.push(format!(
            "{:.0} % of the step waits for the host to launch kernels: the host's pace decides, and it \
             is an assumption. CUDA graphs, compilation or a larger micro-batch would help.",
            launch * 100.0
        ));
    }
    notes
}

pub(crate) fn cost(cluster: &Cluster, devices: u64, step: Nanos) -> Cost {
    let node = &cluster.node;
    let per_node = u64::from(node.devices.max(1));
    let nodes = devices.div_ceil(per_node) as f64;
    let of_devices = node
        .device
        .tdp_watts
        .map(|watts| watts * POWER_SHARE * NODE_OVERHEAD * f64::from(node.devices));
    // A node's own figure is its highest draw.
    let watts = node.power_watts.map(|watts| watts * POWER_SHARE).or(of_devices);
    let watts = watts.map(|watts| watts * nodes);
    let dollars_per_hour = node.dollars_per_hour(devices);
    Cost {
        watts,
        joules_per_step: watts.map(|watts| watts * step.secs_f64()),
        dollars_per_hour,
        dollars_per_step: dollars_per_hour.map(|dollars| dollars * step.secs_f64() / 3600.0),
    }
}
