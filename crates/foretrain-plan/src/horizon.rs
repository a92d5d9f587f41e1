//! What it takes to finish a number of tokens.

use foretrain_core::Estimate;
use serde::Serialize;

use crate::estimate::Answer;

/// Time, money and energy to finish.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Horizon {
    /// Tokens (or samples, for models without a sequence) to finish.
    pub tokens: f64,
    /// Steps, the last one perhaps in part.
    pub steps: f64,
    /// Seconds without interruptions, with the interval of the step time.
    pub seconds: Estimate<f64>,
    /// US dollars, where the price is known.
    pub dollars: Option<f64>,
    /// Energy of all nodes, where their power is known.
    pub joules: Option<f64>,
}

impl Answer {
    /// What it takes to finish `tokens`; `None` if a step has none.
    pub fn horizon(&self, tokens: f64) -> Option<Horizon> {
        let steps = (tokens / self.tokens).ceil();
        if !steps.is_finite() || steps < 0.0 {
            return None;
        }
        let of = |per_step: Option<f64>| per_step.map(|one| one * steps);
        Some(Horizon {
            tokens,
            steps,
            seconds: Estimate {
                value: self.time.value.secs_f64() * steps,
                low: self.time.low.secs_f64() * steps,
                high: self.time.high.secs_f64() * steps,
            },
            dollars: of(self.cost.dollars_per_step),
            joules: of(self.cost.joules_per_step),
        })
    }
}

/// Whether a run ends in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum InTime {
    /// Even at the upper end of the interval.
    Yes,
    /// In the middle of the interval, but not at its upper end.
    Likely,
    /// No.
    No,
}

impl Horizon {
    /// Whether it ends within so many seconds.
    pub fn within(&self, seconds: f64) -> InTime {
        if self.seconds.high <= seconds {
            InTime::Yes
        } else if self.seconds.value <= seconds {
            InTime::Likely
        } else {
            InTime::No
        }
    }
}
