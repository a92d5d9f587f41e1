//! Types that share a curve.

use foretrain_core::{DType, FlopRate};
use foretrain_hardware::Device;
use serde::{Deserialize, Serialize};

/// Types that the same units multiply in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Class {
    /// bf16, f16 and TF32: matrix units at full precision of the sums.
    Half,
    /// Eight bits.
    F8,
    /// Four bits.
    F4,
    /// f32 on units for vectors.
    F32,
}

impl Class {
    pub(super) const ALL: [Self; 4] = [Self::Half, Self::F8, Self::F4, Self::F32];

    /// As files name it.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Half => "half",
            Self::F8 => "f8",
            Self::F4 => "f4",
            Self::F32 => "f32",
        }
    }

    /// The types in it, for people.
    pub(super) const fn types(self) -> &'static str {
        match self {
            Self::Half => "f16, bf16",
            Self::F8 => "fp8",
            Self::F4 => "fp4",
            Self::F32 => "f32",
        }
    }

    /// The class of `dtype` on `device`, and whether its curves are of this very type.
    ///
    /// A type without units of its own runs in the class of the one whose units it uses.
    pub(super) fn of(dtype: DType, device: &Device) -> (Self, bool) {
        let native = device.native_peak(dtype).is_some();
        match dtype {
            DType::F16 => (Self::Half, true),
            DType::Bf16 if native => (Self::Half, true),
            DType::Tf32 if native => (Self::Half, false),
            DType::F8E4m3 | DType::F8E5m2 => (Self::F8, true),
            DType::I8 | DType::U8 => (Self::F8, false),
            DType::F4 => (Self::F4, true),
            DType::F32 => (Self::F32, true),
            _ => (Self::F32, false),
        }
    }

    /// Peak rate of the class on `device`, zero if the catalogue has none.
    pub(super) fn peak(self, device: &Device) -> f64 {
        let dtype = match self {
            Self::Half => DType::F16,
            Self::F8 => DType::F8E4m3,
            Self::F4 => DType::F4,
            Self::F32 => DType::F32,
        };
        device.peak(dtype).map_or(0.0, FlopRate::get)
    }
}
