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

/// From the runs of language models in `docs/validation.md`: per generation the value at which the
/// median run comes out right. A run is always scored with the value that the other sources give.
const SHIPPED: [(&str, Sustained); 5] = [
    ("ampere", Sustained { bits16: 0.58, bits8: f64::INFINITY, bits4: f64::INFINITY }),
    ("hopper", Sustained { bits16: 0.87, bits8: 1.70, bits4: f64::INFINITY }),
    ("blackwell", Sustained { bits16: 1.07, bits8: 2.20, bits4: 4.40 }),
    // The largest products of kernels_gemm_max_achievable that run for milliseconds (MI325X, MI355X).
    ("cdna3", Sustained { bits16: 0.78, bits8: 1.30, bits4: f64::INFINITY }),
    ("cdna4", Sustained { bits16: 1.12, bits8: 1.90, bits4: 3.80 }),
];

impl Sustained {
    /// Nothing held back.
    pub const UNLIMITED: Self =
        Self { bits16: f64::INFINITY, bits8: f64::INFINITY, bits4: f64::INFINITY };

    /// Of `device`'s generation; unlimited where nothing is known.
    pub fn of(device: &Device) -> Self {
        let generation = device.architecture.as_deref().unwrap_or("");
        let found = SHIPPED.iter().find(|(name, _)| *name == generation);
        found.map_or(Self::UNLIMITED, |(_, sustained)| *sustained)
    }

    /// The most that `device` keeps up with factors of this type.
    pub fn rate(&self, device: &Device, dtype: DType) -> Option<FlopRate> {
        let per_watt = match dtype.bits() {
            16 => self.bits16,
            8 => self.bits8,
            4 => self.bits4,
            _ => return None,
        };
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
        // 0.87 TFLOP/s per watt of 700 W.
        let expected = product.flops().get() / 609e12;
        assert!((sustained.secs_f64() / expected - 1.0).abs() < 1e-3);
        assert_eq!(Sustained::UNLIMITED.least(device, &product), Nanos::ZERO);
        let single = Operation::Gemm(Gemm::new(64, 64, 64, DType::F32));
        assert_eq!(Sustained::of(device).least(device, &single), Nanos::ZERO);
    }
}
