//! Noise and stragglers.

use crate::error::SimError;
use crate::options::option;

/// Random variation of the work of tasks. The default has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Jitter {
    /// Seed of all draws; the same seed gives the same run.
    pub seed: u64,
    /// Relative standard deviation of the work of every node.
    pub spread: f64,
    /// Scales the `work_spread` attribute of nodes that have one, in place of `spread`; 0 leaves
    /// the attribute out.
    pub recorded_spread: f64,
    /// Classes that are slower throughout: index of the class and factor on its work.
    pub slow_classes: Vec<(usize, f64)>,
    /// Ranks that are slow for a step now and then.
    pub stragglers: Option<Stragglers>,
}

/// Ranks that are slow for a step now and then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stragglers {
    /// Chance of each rank in each step, 0 to 1.
    pub probability: f64,
    /// Factor on the work of a rank in such a step.
    pub factor: f64,
}

impl Jitter {
    pub(crate) fn check(&self) -> Result<(), SimError> {
        let natural = |name: &str, value: f64| {
            if value.is_finite() && value >= 0.0 {
                Ok(())
            } else {
                Err(option(name, value, "a finite number of 0 or more"))
            }
        };
        natural("jitter spread", self.spread)?;
        natural("recorded spread", self.recorded_spread)?;
        for (class, factor) in &self.slow_classes {
            natural(&format!("slow-down of class {class}"), *factor)?;
        }
        if let Some(stragglers) = self.stragglers {
            natural("straggler factor", stragglers.factor)?;
            if !(0.0..=1.0).contains(&stragglers.probability) {
                return Err(option("straggler probability", stragglers.probability, "0 to 1"));
            }
        }
        Ok(())
    }
}
