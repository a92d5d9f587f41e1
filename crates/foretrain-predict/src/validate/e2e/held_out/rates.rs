//! What matrix units keep up under power, by what other sources than the scored one tell.

use std::collections::BTreeMap;

use foretrain_core::FlopRate;
use foretrain_cost::kernels::{Sustained, Width};
use foretrain_hardware::Device;

/// TFLOP/s per watt by generation and width. A generation that is not here keeps its shipped values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::validate::e2e) struct Rates {
    known: BTreeMap<String, BTreeMap<Width, f64>>,
}

impl Rates {
    /// What is shipped.
    pub(in crate::validate::e2e) fn shipped() -> Self {
        Self::default()
    }

    /// Nothing is known of a generation until widths of it are set.
    pub(super) fn forget(&mut self, generation: &str) {
        self.known.entry(generation.to_owned()).or_default().clear();
    }

    pub(super) fn set(&mut self, generation: &str, width: Width, per_watt: f64) {
        self.known.entry(generation.to_owned()).or_default().insert(width, per_watt);
    }

    pub(super) fn get(&self, generation: &str, width: Width) -> Option<f64> {
        self.known.get(generation)?.get(&width).copied()
    }

    /// Of a device; a width that no source tells of takes the next one's value times the ratio of
    /// their peaks, the wider one's first.
    pub(in crate::validate::e2e) fn of(&self, device: &Device) -> Sustained {
        let generation = device.architecture.as_deref().unwrap_or("");
        let Some(known) = self.known.get(generation) else { return Sustained::of(device) };
        let mut sustained = Sustained::UNLIMITED;
        for (at, width) in Width::ALL.into_iter().enumerate() {
            let own = known.get(&width).copied();
            let wider = Width::ALL[..at].iter().rev();
            let scaled = || {
                wider.chain(&Width::ALL[at + 1..]).find_map(|other| {
                    let peak = |width: Width| device.peak(width.dtype()).map(FlopRate::get);
                    Some(known.get(other)? * peak(width)? / peak(*other)?)
                })
            };
            if let Some(per_watt) = own.or_else(scaled) {
                sustained = sustained.with(width, per_watt);
            }
        }
        sustained
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretrain_hardware::Catalogue;

    #[test]
    fn a_width_that_nobody_tells_of_follows_the_peaks() {
        let device = Catalogue::builtin().device("h100-sxm5-80gb").unwrap();
        assert_eq!(Rates::shipped().of(device), Sustained::of(device));
        let mut rates = Rates::shipped();
        rates.forget("hopper");
        assert_eq!(rates.of(device), Sustained::UNLIMITED);
        rates.set("hopper", Width::Bits16, 0.8);
        let found = rates.of(device);
        assert!(
            (found.bits16 - 0.8).abs() < 1e-12 && (found.bits8 - 1.6).abs() < 1e-3,
            "{found:?}"
        );
        assert!(found.bits4.is_infinite());
        rates.set("hopper", Width::Bits8, 1.5);
        assert!((rates.of(device).bits8 - 1.5).abs() < 1e-12);
    }
}
