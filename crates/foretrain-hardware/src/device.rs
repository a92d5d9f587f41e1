//! Devices: what one accelerator (or CPU socket) can do at most.

use std::collections::BTreeMap;

use foretrain_core::{Bandwidth, Bytes, DType, FlopRate};
use serde::{Deserialize, Serialize};

use crate::source::Source;

/// What a device is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// A graphics processor.
    #[default]
    Gpu,
    /// A matrix accelerator that is no GPU: TPU, Gaudi, Trainium.
    Accelerator,
    /// A CPU socket.
    Cpu,
}

/// One device and its limits. Every figure is a vendor's or driver's limit, not an achieved rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Device {
    /// The catalogue's name, `a100-sxm4-80gb`.
    pub name: String,
    /// What it is.
    pub kind: DeviceKind,
    /// Maker, lower case: `nvidia`, `amd`, `google`, `intel`, `aws`.
    pub vendor: String,
    /// Other names that look it up.
    pub aliases: Vec<String>,
    /// Names by which drivers and profilers report it.
    pub products: Vec<String>,
    /// Generation, lower case: `ampere`, `cdna3`, `tpu-v5p`.
    pub architecture: Option<String>,
    /// CUDA compute capability (major, minor).
    pub compute_capability: Option<(u32, u32)>,
    /// Streaming multiprocessors, compute units or cores.
    pub multiprocessors: Option<u32>,
    /// Memory that one process sees as this device's.
    pub memory: Bytes,
    /// Peak rate of that memory.
    pub memory_bandwidth: Bandwidth,
    /// Last-level cache on the device.
    pub l2_cache: Option<Bytes>,
    /// Highest clock, Hz.
    pub boost_clock_hz: Option<f64>,
    /// Design power, watts.
    pub tdp_watts: Option<f64>,
    /// Launches that may wait on the device before the host blocks.
    pub max_pending_launches: Option<u32>,
    /// Peak matrix rate by element type, **dense**, accumulating in 32 bits.
    pub peak: BTreeMap<DType, FlopRate>,
    /// Peak rate with structured (2:4) sparsity, where the vendor advertises one. Training does not reach it.
    pub peak_sparse: BTreeMap<DType, FlopRate>,
    /// Where each figure comes from, by its key in the file (`memory`, `peak.bf16`).
    pub sources: BTreeMap<String, Source>,
}

impl Device {
    /// Dense peak for `dtype`: its own figure, or that of the type the hardware runs it as.
    ///
    /// Without bf16 units bf16 runs at the f32 rate; TF32 without units is f32; f16 on a bf16-only
    /// accelerator runs as bf16; the two 8-bit float formats run alike. `None` if there is neither.
    pub fn peak(&self, dtype: DType) -> Option<FlopRate> {
        let stand_in = match dtype {
            DType::F16 => Some(DType::Bf16),
            DType::Tf32 | DType::Bf16 => Some(DType::F32),
            DType::F8E5m2 => Some(DType::F8E4m3),
            DType::F8E4m3 => Some(DType::F8E5m2),
            DType::U8 => Some(DType::I8),
            _ => None,
        };
        let own = self.peak.get(&dtype);
        own.or_else(|| stand_in.and_then(|dtype| self.peak.get(&dtype))).copied()
    }

    /// Dense peak for `dtype` if the device supports the type natively.
    pub fn native_peak(&self, dtype: DType) -> Option<FlopRate> {
        self.peak.get(&dtype).copied()
    }

    /// Arithmetic intensity (FLOP per byte) at which compute and memory take equally long.
    pub fn ridge(&self, dtype: DType) -> Option<f64> {
        Some(self.peak(dtype)?.get() / self.memory_bandwidth.get())
    }

    /// Where the figure with this key comes from, `memory_bandwidth` or `peak.bf16`.
    pub fn source(&self, figure: &str) -> Option<&Source> {
        self.sources.get(figure)
    }
}
