//! Step times and their pattern: a mean alone hides warm-up and slow modes.

use foretrain_core::{Nanos, stats};

use crate::recording::Recording;

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepTime {
    /// Its mark's name.
    pub name: String,
    /// Step time.
    pub time: Nanos,
    /// Do not compare: part of its data was rejected.
    pub incomplete: bool,
}

/// How step times vary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepPattern {
    /// Too few steps to tell.
    Unknown,
    /// One mode.
    Steady,
    /// Two modes that are far apart.
    Bimodal {
        /// Median of the fast steps.
        fast: Nanos,
        /// Median of the slow steps.
        slow: Nanos,
        /// Slow steps.
        slow_count: usize,
        /// Distance between slow steps, if regular.
        period: Option<usize>,
    },
}

/// All step times of a rank.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTimes {
    /// How boundaries are known.
    pub source: String,
    /// Steps in order.
    pub steps: Vec<StepTime>,
    /// Leading steps left out of the statistics, as clearly slower than what follows.
    pub warm_up: usize,
    /// Median of the others.
    pub median: Option<Nanos>,
    /// Fastest and slowest of the others.
    pub range: Option<(Nanos, Nanos)>,
    /// How the others vary.
    pub pattern: StepPattern,
    /// The complete step nearest the median.
    pub representative: Option<usize>,
}

/// Leading steps this much above the slowest later one's usual time are warm-up.
const WARM_UP_FACTOR: f64 = 1.25;
/// Modes at least this far apart are two.
const MODE_FACTOR: f64 = 1.5;

impl StepTimes {
    pub(super) fn of(recording: &Recording) -> Self {
        let steps = recording.steps.steps.iter().map(|step| StepTime {
            name: step.name.clone(),
            time: step.duration(),
            incomplete: step.incomplete,
        });
        Self::new(recording.steps.source.describe(), steps.collect())
    }

    /// Statistics of step times in order, from a trace or from a log.
    pub fn new(source: String, steps: Vec<StepTime>) -> Self {
        let complete = steps.iter().any(|step| !step.incomplete);
        let usable: Vec<usize> =
            (0..steps.len()).filter(|&i| !(complete && steps[i].incomplete)).collect();
        let times: Vec<f64> = usable.iter().map(|&i| steps[i].time.nanos() as f64).collect();
        let warm_up = warm_up(&times);
        let steady = &times[warm_up..];
        let median = stats::median(steady);
        let nearest = median.and_then(|median| {
            usable[warm_up..]
                .iter()
                .copied()
                .min_by_key(|&i| (steps[i].time - Nanos::from_nanos_f64(median)).nanos().abs())
        });
        let at = |q| stats::quantile(steady, q).map(Nanos::from_nanos_f64);
        Self {
            source,
            warm_up,
            median: median.map(Nanos::from_nanos_f64),
            range: at(0.0).zip(at(1.0)),
            pattern: pattern(steady),
            representative: nearest,
            steps,
        }
    }
}

/// Leading steps slower than every later step.
fn warm_up(times: &[f64]) -> usize {
    let mut count = 0;
    while times.len() >= count + 3 {
        let slowest_later = times[count + 1..].iter().copied().fold(0.0, f64::max);
        if times[count] <= WARM_UP_FACTOR * slowest_later {
            break;
        }
        count += 1;
    }
    count
}

fn pattern(times: &[f64]) -> StepPattern {
    if times.len() < 3 {
        return StepPattern::Unknown;
    }
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ratio = |i: usize| sorted[i] / sorted[i - 1].max(1.0);
    let Some(split) = (1..sorted.len()).max_by(|&a, &b| ratio(a).total_cmp(&ratio(b))) else {
        return StepPattern::Unknown;
    };
    if ratio(split) < MODE_FACTOR {
        return StepPattern::Steady;
    }
    let median = |part: &[f64]| stats::median(part).map_or(Nanos::ZERO, Nanos::from_nanos_f64);
    let slow: Vec<usize> = (0..times.len()).filter(|&i| times[i] >= sorted[split]).collect();
    let gaps: Vec<usize> = slow.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let regular = gaps.len() >= 2 && gaps.iter().all(|gap| *gap == gaps[0]);
    StepPattern::Bimodal {
        fast: median(&sorted[..split]),
        slow: median(&sorted[split..]),
        slow_count: slow.len(),
        period: regular.then(|| gaps[0]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_up_and_a_period_of_two_are_seen() {
        let log = [1466.0, 67.0, 48.0, 4.5, 44.0, 4.8, 44.0, 3.8, 46.0, 3.7];
        let steps = log.iter().map(|&seconds| StepTime {
            name: String::new(),
            time: Nanos::from_secs_f64(seconds),
            incomplete: false,
        });
        let found = StepTimes::new("log".into(), steps.collect());
        assert_eq!(found.warm_up, 2);
        let StepPattern::Bimodal { fast, slow, slow_count, period } = found.pattern else {
            panic!("two modes expected: {found:?}");
        };
        assert_eq!(fast, Nanos::from_millis(4_150));
        assert_eq!(slow, Nanos::from_millis(45_000));
        assert_eq!((slow_count, period), (4, Some(2)));
    }
}
