//! What `foretrain.capture` measured of a training beside its trace.
//!
//! A trace shows a few steps under the profiler. The recorder that wrote it also timed steps
//! without one and took down what no trace holds: parameters, buckets, memory, surroundings.

use foretrain_core::estimate::Z80;
use foretrain_core::stats::quantile;
use foretrain_core::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Steps below which quantiles say little of their spread.
const FEWEST_FOR_SPREAD: usize = 10;

/// One rank's capture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Capture {
    /// File it was read from.
    pub path: String,
    /// Global rank.
    pub rank: u32,
    /// Ranks in the job.
    pub world_size: u32,
    /// Stages that ran short, in the recorder's words; empty for a complete capture.
    pub missing: Vec<String>,
    /// Steps with nothing attached.
    pub unprofiled: CapturedSteps,
    /// Steps with hooks on the gradients.
    pub hooked: CapturedSteps,
    /// Steps in the trace.
    pub profiled: CapturedSteps,
    /// Samples that one replica processes per step.
    pub replica_batch: Option<f64>,
    /// The model's class, empty if no model was given.
    pub model: String,
    /// In the model's order.
    pub parameters: Vec<CapturedParameter>,
    /// All buffers of the model together.
    pub buffers: Bytes,
    /// State of the optimisers on this rank.
    pub optimizer_state: Bytes,
    /// When the parts of a step end, after its start.
    pub moments: Option<Moments>,
    /// How the model is spread over ranks.
    pub layout: CapturedLayout,
    /// The most memory that was in use.
    pub memory: CapturedMemory,
    /// Where it was recorded.
    pub environment: CapturedEnvironment,
    /// What the recorder could not do, and why.
    pub notes: Vec<String>,
}

/// Steps of one stage of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturedSteps {
    /// By the host's clock.
    pub wall: Vec<Nanos>,
    /// By the device's clock; empty where the host computes.
    pub device: Vec<Nanos>,
    /// Waits for input, of steps for which they are known.
    pub input_wait: Vec<Nanos>,
    /// The recorder's own time in each.
    pub recorder: Vec<Nanos>,
}

/// A parameter of the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturedParameter {
    /// Name in the model.
    pub name: String,
    /// Size of the whole parameter, of which this rank may hold a part.
    pub bytes: Bytes,
    /// Whether it is trained.
    pub is_trained: bool,
    /// When its gradient was ready, after the step's start.
    pub ready: Option<Nanos>,
}

/// When parts of a step end, after its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moments {
    /// Whether these are times of the device; otherwise of the host.
    pub on_device: bool,
    /// The first forward pass begins.
    pub forward_start: Option<Nanos>,
    /// The last forward pass ends.
    pub forward_end: Option<Nanos>,
    /// The last gradient is ready.
    pub backward_end: Option<Nanos>,
    /// The optimiser begins.
    pub optimizer_start: Option<Nanos>,
    /// The optimiser ends.
    pub optimizer_end: Option<Nanos>,
    /// Forward passes per step.
    pub forwards: Option<u32>,
    /// Those whose gradients are synchronised.
    pub synchronised: Option<u32>,
}

/// How a model is spread over ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CapturedLayout {
    /// Not at all, or not by means that the recorder knows.
    #[default]
    None,
    /// PyTorch's DistributedDataParallel.
    Ddp(CapturedDdp),
    /// Fully sharded: units of parameters that are gathered together.
    Sharded {
        /// `fsdp1` or `fsdp2`.
        kind: String,
        /// Bytes of each unit.
        units: Vec<Bytes>,
    },
}

/// Settings and buckets of DDP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturedDdp {
    /// A bucket closes once it has reached this.
    pub bucket_cap: Bytes,
    /// Whether the cap is PyTorch's own, where the first bucket is smaller.
    pub cap_is_default: bool,
    /// Bytes of each bucket in the order of their launches.
    pub buckets: Vec<Bytes>,
    /// Whether gradients live in the buckets, so that nothing is copied.
    pub gradient_as_bucket_view: bool,
    /// Whether buffers are broadcast before every forward pass.
    pub broadcast_buffers: bool,
    /// Names of communication hooks.
    pub hooks: Vec<String>,
}

/// Peaks of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturedMemory {
    /// Memory of the process on the host.
    pub resident: Option<Bytes>,
    /// Tensors on the device.
    pub allocated: Option<Bytes>,
    /// What the allocator took from the device.
    pub reserved: Option<Bytes>,
}

/// Where a capture was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CapturedEnvironment {
    /// `cuda`, `cpu` and the like.
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
    /// Backend of the default process group, empty without one.
    pub backend: String,
}

impl CapturedSteps {
    /// The times that tell how long steps take: the device's, where it has any.
    pub fn times(&self) -> &[Nanos] {
        if self.device.is_empty() { &self.wall } else { &self.device }
    }

    /// Median step time.
    pub fn median(&self) -> Option<Nanos> {
        at(self.times(), 0.5)
    }

    /// Standard deviation over the median, from quantiles, so that single long steps do not count.
    pub fn spread(&self) -> Option<f64> {
        let times = self.times();
        if times.len() < FEWEST_FOR_SPREAD {
            return None;
        }
        let (low, middle, high) = (at(times, 0.1)?, at(times, 0.5)?, at(times, 0.9)?);
        if middle <= Nanos::ZERO {
            return None;
        }
        Some((high - low).nanos() as f64 / (2.0 * Z80) / middle.nanos() as f64)
    }

    /// Median wait for input.
    pub fn median_input_wait(&self) -> Option<Nanos> {
        at(&self.input_wait, 0.5)
    }

    /// The recorder's own time over that of the steps.
    pub fn recorder_share(&self) -> Option<f64> {
        let total = |times: &[Nanos]| times.iter().map(|t| t.nanos() as f64).sum::<f64>();
        let steps = total(&self.wall);
        (steps > 0.0 && !self.recorder.is_empty()).then(|| total(&self.recorder) / steps)
    }
}

impl Capture {
    /// What the profiler makes of a step: the median with it over that without.
    pub fn profiler_factor(&self) -> Option<f64> {
        // The profiler is off the device's clock, so both are the host's.
        let (with, without) = (at(&self.profiled.wall, 0.5)?, at(&self.unprofiled.wall, 0.5)?);
        (without > Nanos::ZERO).then(|| with.nanos() as f64 / without.nanos() as f64)
    }

    /// Bytes of all parameters, each once.
    pub fn parameter_bytes(&self) -> Bytes {
        self.parameters.iter().map(|parameter| parameter.bytes).sum()
    }

    /// Bytes of the gradients that a replica has: those of trained parameters.
    pub fn gradient_bytes(&self) -> Bytes {
        self.parameters.iter().filter(|p| p.is_trained).map(|p| p.bytes).sum()
    }

    /// When the first and the last gradient are ready.
    pub fn gradients_ready(&self) -> Option<(Nanos, Nanos)> {
        let ready = || self.parameters.iter().filter_map(|parameter| parameter.ready);
        ready().min().zip(ready().max())
    }

    /// Whether it was recorded on processors alone.
    pub fn is_of_cpu(&self) -> bool {
        self.environment.device_type == "cpu"
    }
}

fn at(times: &[Nanos], q: f64) -> Option<Nanos> {
    let values: Vec<f64> = times.iter().map(|time| time.nanos() as f64).collect();
    quantile(&values, q).map(|value| Nanos::from_nanos(value.round() as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(times: impl IntoIterator<Item = i64>) -> CapturedSteps {
        let wall = times.into_iter().map(Nanos::from_nanos).collect();
        CapturedSteps { wall, ..CapturedSteps::default() }
    }

    #[test]
    fn the_device_s_times_count_where_there_are_any() {
        let mut some = steps([10, 30, 20]);
        assert_eq!(some.median(), Some(Nanos::from_nanos(20)));
        some.device = vec![Nanos::from_nanos(7)];
        assert_eq!(some.median(), Some(Nanos::from_nanos(7)));
        assert_eq!(steps([]).median(), None);
    }

    #[test]
    fn spread_is_a_deviation_and_overlooks_single_long_steps() {
        // Percentiles of a normal distribution of mean 1000 and deviation 10.
        let normal = |i: i64| {
            1000 + (10.0 * foretrain_core::stats::normal_quantile((i as f64 + 0.5) / 100.0)) as i64
        };
        let spread = steps((0..100).map(normal)).spread().unwrap();
        assert!((spread - 0.01).abs() < 0.001, "{spread}");
        let longer = steps((0..100).map(|i| if i == 50 { 90_000 } else { normal(i) }));
        assert!((longer.spread().unwrap() - 0.01).abs() < 0.001);
        assert_eq!(steps([5; 9]).spread(), None);
        assert_eq!(steps([0; 20]).spread(), None);
    }

    #[test]
    fn gradients_are_those_of_trained_parameters() {
        let parameter = |bytes, is_trained, ready| CapturedParameter {
            name: "w".into(),
            bytes: Bytes::new(bytes),
            is_trained,
            ready: Option::map(ready, Nanos::from_nanos),
        };
        let capture = Capture {
            parameters: vec![
                parameter(100, true, Some(9)),
                parameter(10, false, None),
                parameter(1, true, Some(4)),
            ],
            ..Capture::default()
        };
        assert_eq!(capture.gradient_bytes(), Bytes::new(101));
        assert_eq!(capture.parameter_bytes(), Bytes::new(111));
        let (first, last) = (Nanos::from_nanos(4), Nanos::from_nanos(9));
        assert_eq!(capture.gradients_ready(), Some((first, last)));
    }

    #[test]
    fn the_profiler_s_cost_is_told_by_one_clock() {
        let mut capture = Capture { unprofiled: steps([10, 10]), ..Capture::default() };
        assert_eq!(capture.profiler_factor(), None);
        capture.profiled = steps([15]);
        capture.unprofiled.device = vec![Nanos::from_nanos(1)];
        assert_eq!(capture.profiler_factor(), Some(1.5));
        capture.unprofiled.recorder = vec![Nanos::from_nanos(1); 2];
        assert_eq!(capture.unprofiled.recorder_share(), Some(0.1));
    }
}
