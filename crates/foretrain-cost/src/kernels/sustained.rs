//! What matrix units keep up under power for seconds, against the short bursts that curves are
//! fitted to.
//!
//! Benchmarks of single kernels finish before a device's power control reacts. In training the clock
//! settles where the device draws its design power, so a device's sustained rate follows its power:
//! so many FLOPs per joule, by generation and width of the factors.

use foretrain_core::{DType, FlopRate, Nanos};
use foretrain_hardware::Device;
use serde::{Deserialize, Serialize};

use super::operation::Operation;

/// FLOPs per joule of one generation's matrix units, in TFLOP/s per watt of design power.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sustained {
    /// 16-bit factors.
    pub bits16: f64,
    /// 8-bit factors.
    pub bits8: f64,
    /// 4-bit factors.
    pub bits4: f64,
}

/// Width of a matrix unit's factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Width {
    /// fp16 and bf16.
    Bits16,
    /// fp8 and int8.
    Bits8,
    /// fp4.
    Bits4,
}

impl Width {
    /// All of them, the widest first.
    pub const ALL: [Self; 3] = [Self::Bits16, Self::Bits8, Self::Bits4];

    /// Of a type's numbers; `None` for those that are not held back.
    pub fn of(dtype: DType) -> Option<Self> {
        Self::ALL.into_iter().find(|width| width.bits() == dtype.bits())
    }

    /// Bits of a number.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Bits16 => 16,
            Self::Bits8 => 8,
            Self::Bits4 => 4,
        }
    }

    /// The type whose peak rate is that of this width.
    pub const fn dtype(self) -> DType {
        match self {
            Self::Bits16 => DType::Bf16,
            Self::Bits8 => DType::F8E4m3,
            Self::Bits4 => DType::F4,
        }
    }
}

/// NVIDIA's from runs of language models: of each source the value at which its median run comes out
/// right, and of those the upper quartile: power is a ceiling that some libraries stay below. A run is
/// always scored with what the other sources give, and `foretrain validate --set e2e` prints both. No
/// run tells of 4 bits: twice the rate of 8, as the peaks.
const SHIPPED: [(&str, Sustained); 5] = [
    ("ampere", Sustained { bits16: 0.577, bits8: f64::INFINITY, bits4: f64::INFINITY }),
    ("hopper", Sustained { bits16: 0.855, bits8: 1.75, bits4: f64::INFINITY }),
    ("blackwell", Sustained { bits16: 0.96, bits8: 2.30, bits4: 4.60 }),
    // The largest products of kernels_gemm_max_achievable that run for milliseconds (MI325X, MI355X).
    ("cdna3", Sustained { bits16: 0.78, bits8: 1.30, bits4: f64::INFINITY }),
    ("cdna4", Sustained { bits16: 1.12, bits8: 1.90, bits4: 3.80 }),
];

impl Sustained {
    /// Nothing held back.
    pub const UNLIMITED: Self =
        Self { bits16: f64::INFINITY, bits8: f64::INFINITY, bits4: f64::INFINITY };

    /// Generations whose values come from runs of whole models.
    pub const FROM_RUNS: [&'static str; 3] = ["ampere", "hopper", "blackwell"];

    /// Of a generation, by its name in the catalogue.
    pub fn shipped(generation: &str) -> Option<Self> {
        SHIPPED.iter().find(|(name, _)| *name == generation).map(|(_, sustained)| *sustained)
    }

    /// Of `device`'s generation; unlimited where nothing is known.
    pub fn of(device: &Device) -> Self {
        let generation = device.architecture.as_deref().unwrap_or("");
        Self::shipped(generation).unwrap_or(Self::UNLIMITED)
    }

    /// TFLOP/s per watt with factors of this width.
    pub const fn at(&self, width: Width) -> f64 {
        match width {
            Width::Bits16 => self.bits16,
            Width::Bits8 => self.bits8,
            Width::Bits4 => self.bits4,
        }
    }

    /// The same with another value for one width.
    #[must_use]
    pub const fn with(mut self, width: Width, per_watt: f64) -> Self {
        match width {
            Width::Bits16 => self.bits16 = per_watt,
            Width::Bits8 => self.bits8 = per_watt,
            Width::Bits4 => self.bits4 = per_watt,
        }
        self
    }

    /// The most that `device` keeps up with factors of this type.
    pub fn rate(&self, device: &Device, dtype: DType) -> Option<FlopRate> {
        let per_watt = self.at(Width::of(dtype)?);
        let watts = device.tdp_watts.filter(|watts| *watts > 0.0)?;
        per_watt.is_finite().then(|| FlopRate::from_tflops(per_watt * watts))
    }

    /// An operation takes at least this long under power.
    pub fn least(&self, device: &Device, operation: &Operation) -> Nanos {
        let rate = operation.dtype().and_then(|dtype| self.rate(device, dtype));
        match rate {
            Some(rate) if rate.get() > 0.0 => {
                Nanos::from_secs_f64(operation.flops().get() / rate.get())
            }
            _ => Nanos::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{Gemm, KernelModel};
    use foretrain_hardware::Catalogue;

    #[test]
    fn large_products_are_held_to_what_power_allows() {
        let device = Catalogue::builtin().device("h100-sxm5-80gb").unwrap();
        let product = Operation::Gemm(Gemm::new(16_384, 16_384, 16_384, DType::Bf16));
        let burst = KernelModel::for_device(device).time(&product).time;
        let sustained = Sustained::of(device).least(device, &product);
        assert!(sustained > burst, "{sustained} after {burst}");
        let fixed = Sustained::UNLIMITED.with(Width::Bits16, 0.5).least(device, &product);
        // 0.5 TFLOP/s per watt of 700 W.
        let expected = product.flops().get() / 350e12;
        assert!((fixed.secs_f64() / expected - 1.0).abs() < 1e-3);
        assert_eq!(Sustained::UNLIMITED.least(device, &product), Nanos::ZERO);
        assert_eq!(Width::of(DType::F8E5m2), Some(Width::Bits8));
        assert_eq!(Width::of(DType::F32), None);
        let single = Operation::Gemm(Gemm::new(64, 64, 64, DType::F32));
        assert_eq!(Sustained::of(device).least(device, &single), Nanos::ZERO);
    }
}
