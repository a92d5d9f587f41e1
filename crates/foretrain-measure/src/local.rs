//! Work of one process on its own memory.

use std::collections::BTreeMap;

use foretrain_core::Result;
use foretrain_cost::primitives::{Operation, Scheme};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::clock::Clock;
use crate::codec::{Compressor, compressor};
use crate::pool::Pool;
use crate::sample::{Patience, repeat};

/// The share of elements that schemes which choose are measured with.
pub(crate) const KEPT: f64 = 0.01;

/// Operations that need no peer.
pub(crate) fn operations() -> impl Iterator<Item = Operation> {
    use Operation::{OneWay, Receive, Send};
    Operation::all().filter(|operation| !matches!(operation, Send | Receive | OneWay))
}

/// Buffers to work on.
pub(crate) struct Local {
    gradients: Pool<f32>,
    sums: Pool<f32>,
    compressors: BTreeMap<Scheme, Box<dyn Compressor>>,
}

impl Local {
    /// For buffers of up to `largest` bytes.
    pub(crate) fn new(largest: usize) -> Self {
        let pattern = gradient_like();
        let compressors = Scheme::ALL.into_iter().map(|scheme| (scheme, compressor(scheme, KEPT)));
        Self {
            gradients: Pool::new(largest, &pattern),
            sums: Pool::new(largest, &pattern),
            compressors: compressors.collect(),
        }
    }

    /// Times in ns of an operation on buffers of `elements`; none of one that needs a peer.
    pub(crate) fn times(
        &mut self,
        operation: Operation,
        elements: usize,
        clock: &Clock,
        patience: Patience,
    ) -> Result<Vec<f64>> {
        let (gradients, sums) = (&mut self.gradients, &mut self.sums);
        match operation {
            Operation::Copy => repeat(clock, patience, || {
                sums.next(elements).copy_from_slice(gradients.next(elements));
            }),
            Operation::Aggregate => repeat(clock, patience, || {
                for (sum, value) in sums.next(elements).iter_mut().zip(gradients.next(elements)) {
                    *sum += *value;
                }
            }),
            Operation::Encode(scheme) => match self.compressors.get_mut(&scheme) {
                Some(one) => repeat(clock, patience, || one.encode(gradients.next(elements))),
                None => Ok(Vec::new()),
            },
            Operation::Decode(scheme) => match self.compressors.get_mut(&scheme) {
                Some(one) => {
                    one.encode(gradients.next(elements));
                    repeat(clock, patience, || one.decode(sums.next(elements)))
                }
                None => Ok(Vec::new()),
            },
            Operation::Send | Operation::Receive | Operation::OneWay => Ok(Vec::new()),
        }
    }
}

/// Values that are spread as those of a gradient: most of them small, of either sign.
fn gradient_like() -> Vec<f32> {
    const VALUES: usize = 1 << 18;
    let mut random = Pcg64Mcg::seed_from_u64(0);
    let mut value = || (0..6).map(|_| random.random_range(-1e-2_f32..1e-2)).product::<f32>().cbrt();
    (0..VALUES).map(|_| value()).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_operation_takes_time_and_larger_buffers_more() {
        let clock = Clock::new().unwrap();
        let mut local = Local::new(1 << 22);
        for operation in operations() {
            let mut median = |elements| {
                let patience = Patience::of(Duration::from_millis(2));
                let times = local.times(operation, elements, &clock, patience).unwrap();
                foretrain_core::stats::median(&times).unwrap()
            };
            let (small, large) = (median(1 << 10), median(1 << 20));
            assert!(small > 0.0 && large > 10.0 * small, "{operation:?}: {small} ns, {large} ns");
        }
    }

    #[test]
    fn gradients_are_small_and_of_either_sign() {
        let values = gradient_like();
        let positive = values.iter().filter(|value| **value > 0.0).count();
        assert!((0.45..0.55).contains(&(positive as f64 / values.len() as f64)));
        assert!(values.iter().all(|value| value.abs() < 1e-3 && value.is_finite()));
    }
}
