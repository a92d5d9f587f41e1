//! The time of an operation on one device.

use foretrain_core::{Bandwidth, DType, FlopRate, Nanos};
use foretrain_hardware::Device;
use serde::Serialize;

use super::operation::Operation;

/// What a kernel's time rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// A curve fitted on this device's kernels of this class and type.
    Fitted,
    /// The curve of another device, type or class, carried over by the ratio of the limits.
    Borrowed,
    /// Limits of the hardware alone.
    Limits,
}

/// An operation's time on a device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct KernelTime {
    /// Time on the device, without what the host needs to launch it.
    pub time: Nanos,
    /// No kernel can be faster: work over peak rate, bytes over bandwidth.
    pub bound: Nanos,
    /// Half of an 80 % interval over the time.
    pub relative_spread: f64,
    /// What it rests on.
    pub basis: Basis,
}

/// Kernel times of one device.
#[derive(Clone, Debug)]
pub struct KernelModel {
    device: Device,
}

impl KernelModel {
    /// The curves shipped for `device`, or those of its nearest relative.
    pub fn for_device(device: &Device) -> Self {
        Self { device: device.clone() }
    }

    /// The device they are of.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// No kernel can be faster.
    pub fn bound(&self, operation: &Operation) -> Nanos {
        let dtype = operation.dtype().unwrap_or(DType::F32);
        let rate = self.device.peak(dtype).map_or(0.0, FlopRate::get);
        let compute = if rate > 0.0 { operation.flops().get() / rate } else { 0.0 };
        let bandwidth = Bandwidth::get(self.device.memory_bandwidth);
        let memory = if bandwidth > 0.0 { operation.bytes().as_f64() / bandwidth } else { 0.0 };
        Nanos::from_secs_f64(compute.max(memory))
    }

    /// The operation's time alone on the device.
    pub fn time(&self, operation: &Operation) -> KernelTime {
        let bound = self.bound(operation);
        KernelTime { time: bound, bound, relative_spread: 0.5, basis: Basis::Limits }
    }
}
