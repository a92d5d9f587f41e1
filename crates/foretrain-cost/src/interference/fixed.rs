//! Fixed factors.

use foretrain_core::{InputError, Result};

use super::{Activity, DeviceLimits, SlowdownModel};

/// One factor for computation beside communication that moves data, and one for communication
/// beside computation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fixed {
    compute: f64,
    communication: f64,
}

/// More than this is a slip of the hand.
const MOST: f64 = 100.0;

impl Default for Fixed {
    /// 1.3 on both sides, the default of Galvatron.
    fn default() -> Self {
        Self { compute: 1.3, communication: 1.3 }
    }
}

impl Fixed {
    /// The two factors.
    ///
    /// # Errors
    /// If one is not between 1 and 100.
    pub fn new(compute: f64, communication: f64) -> Result<Self> {
        for factor in [compute, communication] {
            if !(1.0..=MOST).contains(&factor) {
                return Err(InputError::new(format!(
                    "{factor} is no slow-down: expected a factor from 1 to {MOST}, as in 1.3"
                )));
            }
        }
        Ok(Self { compute, communication })
    }
}

impl SlowdownModel for Fixed {
    fn slowdowns(&self, _: &DeviceLimits, running: &[Activity], slowdowns: &mut [f64]) {
        let moving = |activity: &Activity| match activity {
            Activity::Transfer(load) => load.moving(),
            Activity::Kernel(_) => 0.0,
        };
        let computes = running.iter().any(|activity| matches!(activity, Activity::Kernel(_)));
        let most_moving = running.iter().map(moving).fold(0.0, f64::max);
        for (activity, slowdown) in running.iter().zip(slowdowns) {
            match activity {
                Activity::Kernel(_) => *slowdown = 1.0 + (self.compute - 1.0) * most_moving,
                Activity::Transfer(_) if computes => {
                    *slowdown = 1.0 + (self.communication - 1.0) * moving(activity);
                }
                Activity::Transfer(_) => {}
            }
        }
    }
}
