//! Event categories across profiler generations.

/// What an event is, whatever its producer called it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Category {
    /// A framework operator on a host thread ("cpu_op", "Operator").
    CpuOp,
    /// A user or framework annotation on a host thread ("user_annotation").
    UserAnnotation,
    /// The same annotation projected onto a device stream ("gpu_user_annotation").
    GpuAnnotation,
    /// A Python frame ("python_function").
    PythonFunction,
    /// A runtime or driver API call ("cuda_runtime", "cuda_driver", "hip_runtime", "Runtime").
    Runtime,
    /// A device kernel ("kernel", "Kernel").
    Kernel,
    /// A device copy ("gpu_memcpy", "Memcpy").
    Memcpy,
    /// A device fill ("gpu_memset", "Memset").
    Memset,
    /// A recorded synchronisation on a stream or host ("cuda_sync").
    DeviceSync,
    /// The profiler's own cost ("overhead", "cuda_profiler_range").
    Overhead,
    /// The profiler's window and other bookkeeping spans ("Trace", "Iteration").
    Span,
    /// Anything else; kept, never counted as work.
    Other,
}

impl Category {
    /// The category that a producer's `cat` string stands for. Case and the vendor's runtime name
    /// do not matter.
    pub fn parse(cat: &str) -> Self {
        let lower = cat.to_ascii_lowercase();
        match lower.as_str() {
            "cpu_op" | "operator" | "cpu_instant_event" => Self::CpuOp,
            "user_annotation" | "user annotation" => Self::UserAnnotation,
            "gpu_user_annotation" => Self::GpuAnnotation,
            "python_function" | "python function" => Self::PythonFunction,
            "kernel" | "gpu_kernel" | "mtia_ccp_events" | "concurrent_kernel" => Self::Kernel,
            "gpu_memcpy" | "memcpy" => Self::Memcpy,
            "gpu_memset" | "memset" => Self::Memset,
            "cuda_sync" | "hip_sync" | "xpu_sync" => Self::DeviceSync,
            "overhead" | "cuda_profiler_range" => Self::Overhead,
            "trace" | "iteration" => Self::Span,
            _ if lower.ends_with("_runtime") || lower.ends_with("_driver") => Self::Runtime,
            "runtime" | "driver" => Self::Runtime,
            _ => Self::Other,
        }
    }

    /// Whether events of this kind occupy a device stream.
    pub const fn is_device_work(self) -> bool {
        matches!(self, Self::Kernel | Self::Memcpy | Self::Memset)
    }

    /// Whether events of this kind occupy a host thread with work.
    pub const fn is_host_work(self) -> bool {
        matches!(self, Self::CpuOp | Self::UserAnnotation | Self::PythonFunction | Self::Runtime)
    }

    /// The word for tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CpuOp => "cpu_op",
            Self::UserAnnotation => "user_annotation",
            Self::GpuAnnotation => "gpu_user_annotation",
            Self::PythonFunction => "python_function",
            Self::Runtime => "runtime",
            Self::Kernel => "kernel",
            Self::Memcpy => "memcpy",
            Self::Memset => "memset",
            Self::DeviceSync => "device_sync",
            Self::Overhead => "overhead",
            Self::Span => "span",
            Self::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_generation_is_understood() {
        for (cat, want) in [
            ("Kernel", Category::Kernel),
            ("Operator", Category::CpuOp),
            ("hip_runtime", Category::Runtime),
            ("cuda_driver", Category::Runtime),
            ("privateuse1_runtime", Category::Runtime),
            ("gpu_memset", Category::Memset),
            ("ac2g", Category::Other),
        ] {
            assert_eq!(Category::parse(cat), want, "{cat}");
        }
    }
}
