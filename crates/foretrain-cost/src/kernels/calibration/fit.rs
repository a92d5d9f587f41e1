//! A factor and an offset per class, from measured products.

use foretrain_core::stats::{median, quantile};
use foretrain_core::{InputError, Nanos, Result};
use foretrain_hardware::Device;

use super::{Correction, KernelCalibration};
use crate::kernels::class::Class;
use crate::kernels::{KernelModel, Operation};

/// One measured kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelSample {
    /// What it did. Only matrix products are used.
    pub operation: Operation,
    /// How long it took.
    pub time: Nanos,
    /// Where it stands: `line 12`, a kernel's name.
    pub place: String,
}

/// A calibration and how well it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// What to keep.
    pub calibration: KernelCalibration,
    /// Median absolute error of the shipped curve on the samples, relative.
    pub error_before: f64,
    /// The same with the corrections, each sample corrected by a fit without its fifth.
    pub error_after: f64,
    /// Samples far off the corrected curve, farthest first.
    pub odd: Vec<Odd>,
    /// What was left out or is worth a second look: sentences without a stop.
    pub notes: Vec<String>,
}

/// A sample far off the curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Odd {
    /// Where it stands.
    pub place: String,
    /// Measured.
    pub measured: Nanos,
    /// By the corrected curve.
    pub expected: Nanos,
}

/// Fewer products of a class tell nothing reliable.
const FEWEST: usize = 5;
/// Kernels from here on tell the factor, shorter ones the offset.
const LONG: f64 = 20e-6;
/// Times beyond this many times the shipped ones are another unit or another device.
const POSSIBLE: std::ops::RangeInclusive<f64> = 0.25..=4.0;
/// Odd samples that are worth listing.
const MOST_ODD: usize = 10;
/// From so far on a sample is odd, relative, however wide the others spread.
const ODD: f64 = 0.25;

/// A sample of one class beside what the shipped curve says, seconds.
struct Pair<'a> {
    sample: &'a KernelSample,
    shipped: f64,
    measured: f64,
}

/// Corrections of `device`'s curves by samples.
///
/// # Errors
/// If there are too few products, or their times cannot be this device's.
pub fn fit(device: &Device, samples: &[KernelSample], source: &str) -> Result<Fitted> {
    let model = KernelModel::for_device(device);
    let (mut products, mut notes, mut odd) = (Vec::new(), Vec::new(), Vec::new());
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for class in Class::ALL {
        let pairs = pairs(&model, samples, class);
        if pairs.is_empty() {
            continue;
        }
        if pairs.len() < FEWEST {
            let (found, types) = (pairs.len(), class.types());
            notes.push(format!("{types}: {found} shapes are too few, {FEWEST} are needed"));
            continue;
        }
        let pairs = plausible(&model, pairs, class, &mut notes)?;
        let correction = correction(class, pairs.iter());
        for (at, pair) in pairs.iter().enumerate() {
            let others = pairs.iter().enumerate().filter(|(other, _)| other % 5 != at % 5);
            let blind = correction_of(others.map(|(_, pair)| pair));
            before.push(error(pair.shipped, pair));
            after.push(error(apply(blind, pair.shipped), pair));
            let expected = correction.apply(pair.shipped);
            if error(expected, pair) > ODD.max(3.0 * correction.spread) {
                odd.push((error(expected, pair), pair.sample, expected));
            }
        }
        products.push(correction);
    }
    if products.is_empty() {
        let found = samples.len();
        let why = format!("{found} kernels, but no {FEWEST} matrix products of one type");
        let hint = "measure at least five shapes, some of them longer than 20 us";
        return Err(InputError::new(why).hint(hint));
    }
    odd.sort_by(|a, b| b.0.total_cmp(&a.0));
    let odd = odd.into_iter().take(MOST_ODD).map(|(_, sample, expected)| Odd {
        place: sample.place.clone(),
        measured: sample.time,
        expected: Nanos::from_secs_f64(expected),
    });
    Ok(Fitted {
        odd: odd.collect(),
        calibration: KernelCalibration::new(&device.name, source, products),
        error_before: median(&before).unwrap_or(0.0),
        error_after: median(&after).unwrap_or(0.0),
        notes,
    })
}

fn pairs<'a>(model: &KernelModel, samples: &'a [KernelSample], class: Class) -> Vec<Pair<'a>> {
    let of_class = samples.iter().filter(|sample| match sample.operation {
        Operation::Gemm(gemm) => Class::of(gemm.dtype, model.device()).0 == class,
        _ => false,
    });
    let timed = of_class.filter(|sample| sample.time > Nanos::ZERO);
    timed
        .map(|sample| Pair {
            sample,
            shipped: model.time(&sample.operation).time.secs_f64(),
            measured: sample.time.secs_f64(),
        })
        .collect()
}

/// Without samples that are faster than the device can be.
///
/// # Errors
/// If those are most, or all are far from what the device takes.
fn plausible<'a>(
    model: &KernelModel,
    pairs: Vec<Pair<'a>>,
    class: Class,
    notes: &mut Vec<String>,
) -> Result<Vec<Pair<'a>>> {
    let (name, types) = (&model.device().name, class.types());
    let all = pairs.len();
    let is_possible =
        |pair: &Pair<'_>| pair.measured >= 0.8 * model.bound(&pair.sample.operation).secs_f64();
    let kept: Vec<Pair<'a>> = pairs.into_iter().filter(is_possible).collect();
    let hint = "name the device that was measured with --device, and check the unit of the times";
    if kept.len() < FEWEST || 2 * kept.len() < all {
        let lost = all - kept.len();
        let why = format!("{types}: {lost} of {all} products are faster than {name} can be");
        return Err(InputError::new(why).hint(hint));
    }
    if kept.len() < all {
        let lost = all - kept.len();
        notes.push(format!("{types}: {lost} products are faster than {name} can be; left out"));
    }
    let ratios: Vec<f64> = kept.iter().map(|pair| pair.measured / pair.shipped).collect();
    let usual = median(&ratios).unwrap_or(1.0);
    if !POSSIBLE.contains(&usual) {
        let why = format!(
            "{types}: the times are {usual:.3} times what {name} takes by all that is known"
        );
        return Err(InputError::new(why).hint(hint));
    }
    Ok(kept)
}

fn correction<'a, 'b: 'a>(
    class: Class,
    pairs: impl Iterator<Item = &'a Pair<'b>> + Clone,
) -> Correction {
    let line = correction_of(pairs.clone());
    let errors: Vec<f64> = pairs.clone().map(|p| error(apply(line, p.shipped), p)).collect();
    Correction {
        of: class,
        factor: line.0,
        offset_us: line.1 * 1e6,
        spread: quantile(&errors, 0.8).unwrap_or(0.0).max(0.02),
        rows: u32::try_from(errors.len()).unwrap_or(u32::MAX),
    }
}

/// Factor and offset in seconds: medians, so that a few odd rows do not matter.
fn correction_of<'a, 'b: 'a>(pairs: impl Iterator<Item = &'a Pair<'b>> + Clone) -> (f64, f64) {
    let (mut factor, mut offset) = (1.0, 0.0);
    // The offset belongs to long kernels too, a little; it settles at once.
    for _ in 0..3 {
        let of = |is_wanted: &dyn Fn(&Pair<'_>) -> bool| -> Vec<f64> {
            let wanted = pairs.clone().filter(|&pair| is_wanted(pair));
            wanted.map(|pair| (pair.measured - offset) / pair.shipped).collect()
        };
        let long = of(&|pair| pair.measured >= LONG);
        let ratios = if long.len() >= 3 { long } else { of(&|_| true) };
        factor = median(&ratios).unwrap_or(1.0).max(0.01);
        let short = pairs.clone().filter(|pair| pair.measured < LONG);
        let rests: Vec<f64> = short.map(|pair| pair.measured - factor * pair.shipped).collect();
        if rests.len() < 3 || ratios.len() == pairs.clone().count() {
            break;
        }
        offset = median(&rests).unwrap_or(0.0).clamp(-1e-3, 1e-3);
    }
    (factor, offset)
}

fn apply((factor, offset): (f64, f64), seconds: f64) -> f64 {
    factor * seconds + offset
}

fn error(expected: f64, pair: &Pair<'_>) -> f64 {
    (expected / pair.measured - 1.0).abs()
}
