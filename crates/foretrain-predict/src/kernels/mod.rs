//! A user's own kernel times, from sweeps and recordings, and the corrections they give.

mod recorded;
mod sweep;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use foretrain_core::{InputError, Result};
use foretrain_cost::kernels::{FittedKernels, KernelSample, fit_kernels};
use foretrain_hardware::Device;

pub use recorded::of_recording;
pub use sweep::read_sweep;

/// Measured kernels of one source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelSamples {
    /// Matrix products.
    pub samples: Vec<KernelSample>,
    /// The device, as the source names it, if it does.
    pub device: Option<String>,
    /// Rows or kernels left out, by reason.
    pub left_out: BTreeMap<String, LeftOut>,
}

/// What was left out for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Rows or kernels.
    pub count: usize,
    /// Where the first of them stands.
    pub first: String,
}

/// Corrections and what they were made from.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelsAnswer {
    /// The corrections.
    pub fitted: FittedKernels,
    /// Samples used or not.
    pub samples: usize,
    /// Rows or kernels left out, by reason.
    pub left_out: BTreeMap<String, LeftOut>,
}

impl KernelSamples {
    fn leave_out(&mut self, why: &str, place: impl FnOnce() -> String) {
        match self.left_out.get_mut(why) {
            Some(met) => met.count += 1,
            None => {
                self.left_out.insert(why.into(), LeftOut { count: 1, first: place() });
            }
        }
    }
}

/// Corrections of `device`'s kernel curves. `source` names what was measured, in a few words.
///
/// # Errors
/// If there are too few products, or their times cannot be this device's.
pub fn calibrate_kernels(
    device: &Device,
    samples: &KernelSamples,
    source: &str,
) -> Result<KernelsAnswer> {
    let fitted = fit_kernels(device, &samples.samples, source).map_err(|error| {
        let reasons = samples.left_out.iter();
        reasons.fold(error, |error, (why, met)| {
            error.hint(format!("{} were left out, the first at {}: {why}", met.count, met.first))
        })
    })?;
    Ok(KernelsAnswer { fitted, samples: samples.samples.len(), left_out: samples.left_out.clone() })
}

fn no_products(what: &str) -> InputError {
    InputError::new(format!("no matrix product with a time was found in {what}"))
}
