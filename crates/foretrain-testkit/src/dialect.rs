//! The generations of the profiler's file format, as switches for the writer.

/// A generation of PyTorch's profiler output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// PyTorch 1.8: a bare array, integer microseconds, capitalised categories, string thread ids.
    Pytorch18,
    /// PyTorch 1.10 to 2.2: an object, integer microseconds, `distributedInfo`.
    Pytorch20,
    /// PyTorch 2.3: microseconds with nanosecond digits since the epoch, collective arguments.
    Pytorch23,
    /// PyTorch 2.4 and later: microseconds since `baseTimeNanoseconds`, `pg_config`.
    Pytorch24,
    /// ROCm as first traced: HIP calls under "cuda_runtime", stream handles as strings, RCCL names.
    RocmRoctracer,
    /// ROCm of late: the same under "hip_runtime".
    Rocm,
    /// CPU training over Gloo: no device at all.
    CpuGloo,
}

impl Dialect {
    /// Every dialect, oldest first.
    pub const ALL: [Self; 7] = [
        Self::Pytorch18,
        Self::Pytorch20,
        Self::Pytorch23,
        Self::Pytorch24,
        Self::RocmRoctracer,
        Self::Rocm,
        Self::CpuGloo,
    ];

    /// The name used in truth files and on command lines.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pytorch18 => "pytorch-1.8",
            Self::Pytorch20 => "pytorch-2.0",
            Self::Pytorch23 => "pytorch-2.3",
            Self::Pytorch24 => "pytorch-2.4",
            Self::RocmRoctracer => "rocm-roctracer",
            Self::Rocm => "rocm",
            Self::CpuGloo => "cpu-gloo",
        }
    }

    /// The dialect of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.as_str() == name)
    }

    /// Whether the job has a device.
    pub const fn has_device(self) -> bool {
        !matches!(self, Self::CpuGloo)
    }

    pub(crate) const fn layout(self) -> Layout {
        let modern = Layout {
            array: false,
            string_threads: false,
            capital: false,
            time: TimeStyle::Relative,
            external: ExternalStyle::Operator,
            comms: CommsStyle::Keyword,
            pg_config: true,
            vendor: Vendor::Cuda,
            runtime_cat: "cuda_runtime",
            flow: ("ac2g", "ac2g"),
            nccl: NcclNaming::DevKernel,
        };
        match self {
            Self::Pytorch18 => Layout {
                array: true,
                string_threads: true,
                capital: true,
                time: TimeStyle::IntMicros,
                comms: CommsStyle::None,
                pg_config: false,
                runtime_cat: "Runtime",
                flow: ("async", "launch"),
                nccl: NcclNaming::WorkElem,
                ..modern
            },
            Self::Pytorch20 => Layout {
                time: TimeStyle::IntMicros,
                external: ExternalStyle::Correlation,
                comms: CommsStyle::Positional,
                pg_config: false,
                nccl: NcclNaming::DevComm,
                ..modern
            },
            Self::Pytorch23 => Layout { time: TimeStyle::Absolute, pg_config: false, ..modern },
            Self::Pytorch24 => modern,
            Self::RocmRoctracer => Layout { vendor: Vendor::Hip, nccl: NcclNaming::Rccl, ..modern },
            Self::Rocm => Layout {
                vendor: Vendor::Hip,
                runtime_cat: "hip_runtime",
                nccl: NcclNaming::Rccl,
                ..modern
            },
            Self::CpuGloo => Layout { vendor: Vendor::None, ..modern },
        }
    }
}

/// How NCCL has called its all-reduce kernel over the years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NcclNaming {
    /// NCCL 2.8 to 2.10: `ncclKernel_..(ncclWorkElem)`.
    WorkElem,
    /// NCCL 2.14 to 2.18: `ncclKernel_..(ncclDevComm*, unsigned long, ncclWork*)`.
    DevComm,
    /// NCCL 2.19 on: `ncclDevKernel_AllReduce_Sum_f32_RING_LL(..)`.
    DevKernel,
    /// NCCL 2.23 on: the same with `ncclDevKernelArgsStorage<4096ul>`.
    DevKernelArgs,
    /// RCCL: one generic kernel that does not say which collective it runs.
    Rccl,
}

impl NcclNaming {
    /// The kernel of a float sum over a ring.
    pub const fn all_reduce_kernel(self) -> &'static str {
        match self {
            Self::WorkElem => "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
            Self::DevComm => {
                "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)"
            }
            Self::DevKernel => {
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"
            }
            Self::DevKernelArgs => {
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
            }
            Self::Rccl => "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeStyle {
    /// Whole microseconds since the epoch, both ends cut down.
    IntMicros,
    /// Microseconds since the epoch with three decimals.
    Absolute,
    /// The same since `baseTimeNanoseconds`.
    Relative,
}

/// What "External id" of device-side events means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExternalStyle {
    /// The enclosing operator's id.
    Operator,
    /// The correlation id once more (PyTorch 1.10 to 2.2).
    Correlation,
}

/// How `record_param_comms` says what was exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommsStyle {
    /// It does not exist yet.
    None,
    /// As the operator's inputs, by position, nested twice.
    Positional,
    /// By name, also on the kernels.
    Keyword,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vendor {
    Cuda,
    Hip,
    None,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) array: bool,
    pub(crate) string_threads: bool,
    pub(crate) capital: bool,
    pub(crate) time: TimeStyle,
    pub(crate) external: ExternalStyle,
    pub(crate) comms: CommsStyle,
    pub(crate) pg_config: bool,
    pub(crate) vendor: Vendor,
    pub(crate) runtime_cat: &'static str,
    /// Category and name of launch flows.
    pub(crate) flow: (&'static str, &'static str),
    pub(crate) nccl: NcclNaming,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_dialect() {
        for dialect in Dialect::ALL {
            assert_eq!(Dialect::parse(dialect.as_str()), Some(dialect));
        }
        assert_eq!(Dialect::parse("pytorch"), None);
    }
}
