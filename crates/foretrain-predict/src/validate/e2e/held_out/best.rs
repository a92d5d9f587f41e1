//! The value of a constant at which a source's own runs come out right.

use foretrain_cost::kernels::{Sustained, Width};
use foretrain_hardware::Device;
use foretrain_plan::times::{Factors, Part};
use foretrain_workload::model::OpKind;
use rayon::prelude::*;

use super::rates::Rates;
use super::{Case, Source};

/// Runs that would spend less of their time than this on 16-bit products say nothing of their rate.
/// Attention is not counted: its rate is a matter of its kernels.
const LEAST_SHARE: f64 = 0.6;
/// Runs of a source that are asked, spread evenly over all of them.
const ASKED: usize = 48;
/// Halvings of the range: from a tenth of the peak to the peak, to a thousandth.
const HALVINGS: usize = 10;

impl Source {
    /// The value at which the median error of the source's dense runs is zero; `None` where there are
    /// no such runs, or where they are predicted too slow with nothing held back.
    pub(super) fn best(&self, generation: &str, width: Width, rates: &Rates) -> Option<f64> {
        let of_kind = |case: &&Case| {
            let device = &case.cluster.node.device;
            device.architecture.as_deref() == Some(generation)
                && Width::of(case.training.precision.compute) == Some(width)
                && is_dense(case)
        };
        let cases: Vec<&Case> = self.steps.iter().filter(of_kind).collect();
        let every = cases.len().div_ceil(ASKED).max(1);
        let asked: Vec<&Case> = cases.into_iter().step_by(every).collect();
        let mut each: Vec<f64> =
            asked.into_par_iter().filter_map(|case| best_of(case, width, rates)).collect();
        each.sort_by(f64::total_cmp);
        let middle = each.len().checked_sub(1)? / 2;
        Some(each[middle]).filter(|value| value.is_finite())
    }
}

/// Experts' products are too small to tell.
fn is_dense(case: &Case) -> bool {
    let experts = |kind: &OpKind| matches!(kind, OpKind::Experts(_));
    !case.model.layers().any(|layer| layer.ops.iter().any(|op| experts(&op.kind)))
}

/// The value at which one run comes out right. Median errors fall with the value, so the median of
/// these is where the median error is zero.
fn best_of(case: &Case, width: Width, rates: &Rates) -> Option<f64> {
    let device = &case.cluster.node.device;
    let most = peak_per_watt(device, width)?;
    let sustained = rates.of(device);
    let (time, share) = step(case, sustained.with(width, f64::INFINITY))?;
    if share < least_share(width) {
        return None;
    }
    if time >= case.measured {
        return Some(f64::INFINITY);
    }
    let (mut low, mut high) = (0.1 * most, most);
    for _ in 0..HALVINGS {
        let middle = (low * high).sqrt();
        let (time, _) = step(case, sustained.with(width, middle))?;
        *(if time >= case.measured { &mut low } else { &mut high }) = middle;
    }
    Some((low * high).sqrt())
}

/// Narrower products take less of the same work's time.
fn least_share(width: Width) -> f64 {
    let products = LEAST_SHARE * f64::from(width.bits()) / f64::from(Width::Bits16.bits());
    products / (products + 1.0 - LEAST_SHARE)
}

/// A step's time, and the share of it that is products.
fn step(case: &Case, sustained: Sustained) -> Option<(f64, f64)> {
    let step = case.step(sustained, Factors::default()).ok()?;
    let products = [Part::Gemm, Part::Recompute];
    let products: f64 = products.into_iter().map(|part| step.parts[part].secs_f64()).sum();
    let time = step.time.secs_f64();
    Some((time, products / time))
}

/// TFLOP/s per watt at the peak, which nothing keeps up.
fn peak_per_watt(device: &Device, width: Width) -> Option<f64> {
    let watts = device.tdp_watts.filter(|watts| *watts > 0.0)?;
    Some(device.peak(width.dtype())?.get() / 1e12 / watts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_products_need_a_smaller_share() {
        assert!((least_share(Width::Bits16) - 0.6).abs() < 1e-12);
        assert!((least_share(Width::Bits8) - 3.0 / 7.0).abs() < 1e-12);
    }
}
