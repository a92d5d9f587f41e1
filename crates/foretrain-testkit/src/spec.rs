//! What to simulate: the knobs of a job.

use foretrain_core::{InputError, Result};

use crate::dialect::{Dialect, NcclNaming};

/// The network that is trained. All tensors are 32-bit floats.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// Linear layers with biases and ReLU between them; `widths[i]` features go into layer `i`.
    Mlp {
        /// Feature counts, input first; one more than there are layers.
        widths: Vec<u64>,
    },
    /// A pre-norm GPT: embedding, blocks of attention and a four times wider MLP, a head.
    Transformer {
        /// Blocks.
        layers: u32,
        /// Features per token.
        hidden: u64,
        /// Tokens per sequence; attention work grows with it.
        sequence: u64,
        /// Rows of the embedding and of the (untied) head; 0 leaves both out.
        vocabulary: u64,
    },
}

/// The host side of a rank.
#[derive(Clone, Debug, PartialEq)]
pub struct HostSpec {
    /// Time an operator takes before its launch call, in ns.
    pub dispatch_ns: i64,
    /// Time inside one launch call when the queue has room, in ns.
    pub launch_ns: i64,
    /// Time inside any other runtime call (event record, stream wait), in ns.
    pub call_ns: i64,
    /// Python time between two modules of the forward pass, in ns.
    pub python_gap_ns: i64,
    /// Time to hand over between the main and the autograd thread, in ns.
    pub handover_ns: i64,
    /// Time the data loader makes the main thread wait per step, in ns.
    pub loader_ns: i64,
    /// Launches that may be outstanding on a stream before a launch call blocks. CUDA's is 1024.
    pub queue_depth: usize,
}

/// The device of a rank. Without noise a kernel takes the larger of its compute time and its
/// memory time, and never less than the floor.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceSpec {
    /// Its name in `deviceProperties`.
    pub name: String,
    /// Its multiprocessors.
    pub multiprocessors: u32,
    /// Arithmetic rate, in units of 10^12 operations per second.
    pub tflops: f64,
    /// Memory rate, in GB/s (10^9).
    pub memory_gb_per_s: f64,
    /// Rate of host-to-device copies, in GB/s (10^9).
    pub copy_gb_per_s: f64,
    /// Shortest kernel, in ns.
    pub floor_ns: i64,
    /// From the return of a launch call to the earliest start of its kernel, in ns.
    pub launch_latency_ns: i64,
    /// When set, every compute kernel takes exactly this long (before noise and slow rank), in ns.
    pub fixed_kernel_ns: Option<i64>,
}

/// The network between ranks: a ring all-reduce over `n` ranks of `S` bytes takes
/// `2 (n-1) alpha + 2 (n-1)/n S / bandwidth`.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkSpec {
    /// Time per ring hop, in ns.
    pub alpha_ns: f64,
    /// Bandwidth when all ranks share a node, in GB/s (10^9).
    pub intra_gb_per_s: f64,
    /// Bandwidth when the ring leaves a node, in GB/s (10^9).
    pub inter_gb_per_s: f64,
}

/// Gradient synchronisation with PyTorch's `DistributedDataParallel`.
#[derive(Clone, Debug, PartialEq)]
pub struct DdpSpec {
    /// Whether gradients are reduced at all (never with a single rank).
    pub enabled: bool,
    /// A bucket closes once it holds at least this many bytes. PyTorch's default is 25 MiB.
    pub bucket_cap_bytes: u64,
    /// The same for the first bucket. PyTorch's is 1 MiB.
    pub first_bucket_bytes: u64,
    /// Whether all-reduces run beside the backward pass; else each one holds back the compute
    /// stream, which makes the step a plain sum.
    pub overlap: bool,
}

/// How a step ends on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// It does not wait for the device: the host runs ahead until the launch queue is full.
    None,
    /// `torch.cuda.synchronize()`.
    Device,
    /// `loss.item()`: a copy to the host and a stream synchronisation.
    LossItem,
}

/// A rank's clock: it shows the true time, plus the offset, plus the drift times the time since the
/// job started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClockSpec {
    /// Offset in ns.
    pub offset_ns: i64,
    /// Drift in parts per million.
    pub drift_ppm: f64,
}

/// A rank whose kernels take longer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowRank {
    /// Which rank.
    pub rank: u32,
    /// Factor on all its kernel times.
    pub factor: f64,
}

/// A training job and how its profile is written. Start from a preset and change fields.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSpec {
    /// Seed of all noise; the same spec gives the same bytes.
    pub seed: u64,
    /// Which profiler generation writes the traces.
    pub dialect: Dialect,
    /// NCCL kernel names other than the dialect's usual ones.
    pub nccl: Option<NcclNaming>,
    /// The network.
    pub model: Model,
    /// Rows of every matrix product on a rank: its batch size times its sequence length.
    pub rows: u64,
    /// Data-parallel ranks.
    pub ranks: u32,
    /// Ranks per node; decides the bandwidth.
    pub ranks_per_node: u32,
    /// Steps in the trace.
    pub steps: u32,
    /// Steps before the trace begins. Their late kernels appear without launches.
    pub warmup_steps: u32,
    /// Number of the first traced step's mark.
    pub first_step: u32,
    /// Whether `ProfilerStep#k` marks are written.
    pub step_marks: bool,
    /// Whether user marks `## forward ##` and the like are written.
    pub phase_marks: bool,
    /// Whether Python frames are written.
    pub with_stack: bool,
    /// Whether operators carry shapes.
    pub record_shapes: bool,
    /// Host times.
    pub host: HostSpec,
    /// Device rates.
    pub device: DeviceSpec,
    /// Network rates.
    pub network: NetworkSpec,
    /// Gradient buckets.
    pub ddp: DdpSpec,
    /// End of a step.
    pub sync: Sync,
    /// Relative standard deviation of every compute kernel and host time.
    pub noise: f64,
    /// Relative standard deviation of every collective's transfer time.
    pub network_noise: f64,
    /// A slow rank, if any.
    pub slow_rank: Option<SlowRank>,
    /// Clocks by rank; ranks without one show true time.
    pub clocks: Vec<ClockSpec>,
    /// True time at which the job starts, in ns since the Unix epoch.
    pub epoch_ns: i64,
}

impl JobSpec {
    /// Two ranks, a four-block transformer, three steps with `loss.item()`: small and complete.
    pub fn tiny_ddp() -> Self {
        Self {
            seed: 1,
            dialect: Dialect::Pytorch24,
            nccl: None,
            model: Model::Transformer { layers: 4, hidden: 512, sequence: 128, vocabulary: 8_000 },
            rows: 4_096,
            ranks: 2,
            ranks_per_node: 8,
            steps: 3,
            warmup_steps: 0,
            first_step: 10,
            step_marks: true,
            phase_marks: false,
            with_stack: false,
            record_shapes: true,
            host: HostSpec {
                dispatch_ns: 6_000,
                launch_ns: 4_000,
                call_ns: 900,
                python_gap_ns: 9_000,
                handover_ns: 25_000,
                loader_ns: 120_000,
                queue_depth: 1_024,
            },
            device: DeviceSpec {
                name: "NVIDIA A100-SXM4-40GB".to_owned(),
                multiprocessors: 108,
                tflops: 60.0,
                memory_gb_per_s: 1_400.0,
                copy_gb_per_s: 22.0,
                floor_ns: 1_800,
                launch_latency_ns: 2_500,
                fixed_kernel_ns: None,
            },
            network: NetworkSpec { alpha_ns: 6_000.0, intra_gb_per_s: 60.0, inter_gb_per_s: 20.0 },
            ddp: DdpSpec {
                enabled: true,
                bucket_cap_bytes: 25 << 20,
                first_bucket_bytes: 1 << 20,
                overlap: true,
            },
            sync: Sync::LossItem,
            noise: 0.02,
            network_noise: 0.02,
            slow_rank: None,
            clocks: Vec::new(),
            epoch_ns: 1_718_000_000_000_000_000,
        }
    }

    /// Large matrix products on four ranks: the device is always behind the host.
    pub fn gpu_bound() -> Self {
        let model = Model::Transformer { layers: 8, hidden: 2_048, sequence: 512, vocabulary: 0 };
        Self { model, rows: 8_192, ranks: 4, steps: 4, sync: Sync::Device, ..Self::tiny_ddp() }
    }

    /// Tiny kernels and slow dispatch on two ranks: the device waits for the host.
    pub fn host_bound() -> Self {
        let mut spec = Self::tiny_ddp();
        spec.model = Model::Transformer { layers: 8, hidden: 256, sequence: 64, vocabulary: 0 };
        spec.rows = 256;
        spec.steps = 4;
        spec.host.dispatch_ns = 22_000;
        spec.host.python_gap_ns = 40_000;
        spec
    }

    /// GPU-bound, never synchronised: the host runs several steps ahead until the launch queue
    /// fills.
    pub fn run_ahead() -> Self {
        Self { sync: Sync::None, steps: 8, ..Self::gpu_bound() }
    }

    /// The same job traced by another profiler generation, on a device that goes with it.
    #[must_use]
    pub fn with_dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        if matches!(dialect, Dialect::Rocm | Dialect::RocmRoctracer) {
            self.device.name = "AMD Instinct MI250X".to_owned();
            self.device.multiprocessors = 104;
        }
        self
    }

    /// The bandwidth of the gradient ring, in GB/s.
    pub fn ring_gb_per_s(&self) -> f64 {
        if self.ranks > self.ranks_per_node {
            self.network.inter_gb_per_s
        } else {
            self.network.intra_gb_per_s
        }
    }

    /// Time of a ring all-reduce of that many bytes, without noise, in ns.
    pub fn all_reduce_ns(&self, bytes: u64) -> i64 {
        let hops = f64::from(2 * (self.ranks.saturating_sub(1)));
        let per_rank = hops / f64::from(self.ranks.max(1)) * bytes as f64;
        (hops * self.network.alpha_ns + per_rank / self.ring_gb_per_s()).round() as i64
    }

    /// Whether this job exchanges gradients.
    pub fn reduces(&self) -> bool {
        self.ddp.enabled && self.ranks > 1
    }

    /// The clock of a rank.
    pub fn clock(&self, rank: u32) -> ClockSpec {
        self.clocks.get(rank as usize).copied().unwrap_or_default()
    }

    /// Checks every knob.
    ///
    /// # Errors
    /// Names the first field that is out of range, and the range.
    pub fn check(&self) -> Result<()> {
        self.check_counts()?;
        self.check_model()?;
        self.check_rates()?;
        self.check_times()
    }

    fn check_counts(&self) -> Result<()> {
        within("ranks", u64::from(self.ranks), 1, 4_096)?;
        within("ranks_per_node", u64::from(self.ranks_per_node), 1, 4_096)?;
        within("steps", u64::from(self.steps), 1, 1_000_000)?;
        within("warmup_steps", u64::from(self.warmup_steps), 0, 10_000)?;
        within("first_step", u64::from(self.first_step), 0, 1_000_000_000)?;
        within("rows", self.rows, 1, 1 << 24)?;
        within("device.multiprocessors", u64::from(self.device.multiprocessors), 1, 65_536)?;
        within("host.queue_depth", self.host.queue_depth as u64, 1, 1 << 20)?;
        within("ddp.bucket_cap_bytes", self.ddp.bucket_cap_bytes, 1, 1 << 50)?;
        within("ddp.first_bucket_bytes", self.ddp.first_bucket_bytes, 1, 1 << 50)
    }

    fn check_model(&self) -> Result<()> {
        match &self.model {
            Model::Mlp { widths } => {
                within("model.widths (count)", widths.len() as u64, 2, 10_000)?;
                widths.iter().try_for_each(|&width| within("model.widths", width, 1, 1 << 16))
            }
            Model::Transformer { layers, hidden, sequence, vocabulary } => {
                within("model.layers", u64::from(*layers), 1, 10_000)?;
                within("model.hidden", *hidden, 1, 1 << 16)?;
                within("model.sequence", *sequence, 1, 1 << 18)?;
                within("model.vocabulary", *vocabulary, 0, 1 << 22)
            }
        }
    }

    fn check_rates(&self) -> Result<()> {
        for (field, value, low, high) in [
            ("device.tflops", self.device.tflops, 1e-3, 1e6),
            ("device.memory_gb_per_s", self.device.memory_gb_per_s, 1e-3, 1e6),
            ("device.copy_gb_per_s", self.device.copy_gb_per_s, 1e-3, 1e6),
            ("network.alpha_ns", self.network.alpha_ns, 0.0, 1e9),
            ("network.intra_gb_per_s", self.network.intra_gb_per_s, 1e-3, 1e6),
            ("network.inter_gb_per_s", self.network.inter_gb_per_s, 1e-3, 1e6),
            ("noise", self.noise, 0.0, 0.3),
            ("network_noise", self.network_noise, 0.0, 0.3),
            ("slow_rank.factor", self.slow_rank.map_or(1.0, |slow| slow.factor), 0.01, 100.0),
        ] {
            within_f64(field, value, low, high)?;
        }
        self.clocks
            .iter()
            .try_for_each(|clock| within_f64("clocks.drift_ppm", clock.drift_ppm, -1e4, 1e4))
    }

    fn check_times(&self) -> Result<()> {
        const HOUR: i64 = 3_600_000_000_000;
        for (field, value) in [
            ("host.dispatch_ns", self.host.dispatch_ns),
            ("host.launch_ns", self.host.launch_ns),
            ("host.call_ns", self.host.call_ns),
            ("host.python_gap_ns", self.host.python_gap_ns),
            ("host.handover_ns", self.host.handover_ns),
            ("host.loader_ns", self.host.loader_ns),
            ("device.floor_ns", self.device.floor_ns),
            ("device.launch_latency_ns", self.device.launch_latency_ns),
            ("device.fixed_kernel_ns", self.device.fixed_kernel_ns.unwrap_or(0)),
        ] {
            within_i64(field, value, 0, HOUR)?;
        }
        within_i64("epoch_ns", self.epoch_ns, 1_000_000_000_000_000, 4_000_000_000_000_000_000)?;
        let day = 24 * HOUR;
        self.clocks
            .iter()
            .try_for_each(|clock| within_i64("clocks.offset_ns", clock.offset_ns, -day, day))
    }
}

fn within(field: &str, value: u64, low: u64, high: u64) -> Result<()> {
    if (low..=high).contains(&value) { Ok(()) } else { Err(outside(field, value, low, high)) }
}

fn within_i64(field: &str, value: i64, low: i64, high: i64) -> Result<()> {
    if (low..=high).contains(&value) { Ok(()) } else { Err(outside(field, value, low, high)) }
}

fn within_f64(field: &str, value: f64, low: f64, high: f64) -> Result<()> {
    if (low..=high).contains(&value) { Ok(()) } else { Err(outside(field, value, low, high)) }
}

fn outside<T: std::fmt::Display>(field: &str, value: T, low: T, high: T) -> InputError {
    InputError::new(format!("expected a value from {low} to {high}, found {value}")).at(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_valid() {
        for spec in
            [JobSpec::tiny_ddp(), JobSpec::gpu_bound(), JobSpec::host_bound(), JobSpec::run_ahead()]
        {
            spec.check().unwrap();
        }
    }

    #[test]
    fn a_bad_knob_is_named() {
        let spec = JobSpec { noise: f64::NAN, ..JobSpec::tiny_ddp() };
        assert_eq!(spec.check().unwrap_err().place(), Some("noise"));
        let spec = JobSpec { ranks: 0, ..JobSpec::tiny_ddp() };
        let error = spec.check().unwrap_err().to_string();
        assert_eq!(error, "expected a value from 1 to 4096, found 0 (at ranks)");
    }

    #[test]
    fn the_ring_model_is_the_stated_formula() {
        let mut spec = JobSpec::tiny_ddp();
        spec.ranks = 4;
        // 6 hops of 6 us, then 1.5 * 60 MB at 60 GB/s = 1.5 ms.
        assert_eq!(spec.all_reduce_ns(60_000_000), 36_000 + 1_500_000);
        spec.ranks_per_node = 2;
        assert_eq!(spec.all_reduce_ns(60_000_000), 36_000 + 4_500_000);
    }
}
