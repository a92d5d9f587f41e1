//! What step times at several batch sizes tell of a model.

use foretrain_core::Nanos;

use super::JobLoad;

/// The loads of one model on one device at several batch sizes, from its step times alone.
///
/// Between the two largest batches a step grows by the device time of the samples that are more;
/// the samples of a batch at that rate are the device's work, and the rest of a step is launching
/// and input. One batch size tells nothing of that: such a job counts as always busy.
pub fn loads_of_family(steps: &[(f64, Nanos)]) -> Vec<JobLoad> {
    let mut sorted: Vec<(f64, Nanos)> = steps.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let launch = steps.iter().map(|&(_, step)| step).min().unwrap_or(Nanos::ZERO);
    let per_sample = match sorted.as_slice() {
        [.., (fewer, shorter), (more, longer)] if more > fewer && *fewer >= 0.0 => {
            let rate = (*longer - *shorter).nanos() as f64 / (more - fewer);
            // Never more than the whole step.
            Some(rate.min(longer.nanos() as f64 / more)).filter(|rate| *rate > 0.0)
        }
        _ => None,
    };
    let load = |&(batch, step): &(f64, Nanos)| {
        let whole = step.nanos().max(1) as f64;
        let busy = per_sample.map_or(1.0, |rate| (rate * batch / whole).min(1.0));
        JobLoad { step, busy, launch }
    };
    steps.iter().map(load).collect()
}
