//! Finish-time fairness.
//!
//! A job's *rho* is the time it will have taken over the time it would have taken on its share of the
//! cluster (Themis, Mahajan et al., NSDI 2020). Time fractions that make the largest rho least are
//! found by bisection: for a bound on rho each job needs a fraction that follows at once.

use std::collections::BTreeMap;

use super::super::board::Board;
use super::super::job::JobId;

/// What is remembered of jobs between plans.
#[derive(Clone, Debug, Default)]
pub(super) struct Fairness {
    jobs: BTreeMap<JobId, Seen>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Seconds that the work done so far would have taken on an equal share.
    alone: f64,
    /// Work done and share at the last plan.
    done: f64,
    share: f64,
    /// Plans in which it got GPUs.
    rounds: u32,
}

/// Halvings of the bound on rho: beyond these fractions do not move.
const HALVINGS: u32 = 60;

impl Fairness {
    pub(super) fn forget(&mut self, id: JobId) {
        self.jobs.remove(&id);
    }

    pub(super) fn served(&mut self, jobs: &[JobId]) {
        for id in jobs {
            self.jobs.entry(*id).or_default().rounds += 1;
        }
    }

    /// Jobs with their ranks, the least first served: those that got the least of the fraction of time
    /// that is theirs.
    pub(super) fn ranks(&mut self, board: &Board<'_>, jobs: &[JobId]) -> Vec<(f64, JobId)> {
        let gpus = f64::from(board.cluster().gpus());
        let equal = (gpus / jobs.len().max(1) as f64).ceil();
        let now = board.now();
        // (seconds since submission, seconds still needed at full rate, seconds on an equal share, GPUs)
        let needs: Vec<(f64, f64, f64, f64)> = jobs
            .iter()
            .map(|&id| {
                let job = board.job(id);
                let size = f64::from(job.gpus.max(1));
                let done = board.progress(id).done_at(now);
                let seen = self.jobs.entry(id).or_default();
                let rate = job.work / job.expected.max(f64::MIN_POSITIVE);
                if seen.share > 0.0 && rate > 0.0 {
                    seen.alone += (done - seen.done).max(0.0) / rate / seen.share;
                }
                (seen.done, seen.share) = (done, (equal / size).min(1.0));
                let left = board.expected_left(id).max(1e-9);
                let age = (now - job.submit).clamp_positive().secs_f64();
                (age, left, seen.alone + left / seen.share, size)
            })
            .collect();
        let fractions = fractions(&needs, gpus);
        let rank = |(id, fraction): (&JobId, f64)| {
            let rounds = self.jobs.get(id).map_or(0, |seen| seen.rounds);
            // New jobs go before all others.
            let due = if rounds == 0 { fraction * 1e9 } else { fraction / f64::from(rounds) };
            (-due, *id)
        };
        jobs.iter().zip(fractions).map(rank).collect()
    }
}

/// Fractions of time, each at most 1, that fit on the GPUs and make the largest rho least.
fn fractions(needs: &[(f64, f64, f64, f64)], gpus: f64) -> Vec<f64> {
    let for_bound = |rho: f64| -> Option<Vec<f64>> {
        let fraction = |&(age, left, alone, _): &(f64, f64, f64, f64)| {
            let time = rho * alone - age;
            (time > 0.0).then(|| left / time).filter(|fraction| *fraction <= 1.0)
        };
        let all: Vec<f64> = needs.iter().map(fraction).collect::<Option<_>>()?;
        let used: f64 = all.iter().zip(needs).map(|(fraction, need)| fraction * need.3).sum();
        (used <= gpus).then_some(all)
    };
    let (mut low, mut high) = (0.0, 1.0);
    let mut best = None;
    for _ in 0..HALVINGS {
        best = for_bound(high);
        if best.is_some() {
            break;
        }
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        match for_bound(middle) {
            Some(fractions) => (best, high) = (Some(fractions), middle),
            None => low = middle,
        }
    }
    best.unwrap_or_else(|| vec![0.0; needs.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_jobs_get_equal_time() {
        // Two jobs that each want the whole cluster, and one that wants half of it.
        let needs = [(0.0, 10.0, 20.0, 8.0), (0.0, 10.0, 20.0, 8.0)];
        let each = fractions(&needs, 8.0);
        assert!(each.iter().all(|fraction| (fraction - 0.5).abs() < 1e-6), "{each:?}");
    }

    #[test]
    fn who_waited_longer_gets_more() {
        let needs = [(15.0, 10.0, 20.0, 8.0), (0.0, 10.0, 20.0, 8.0)];
        let [first, second] = fractions(&needs, 8.0)[..] else { unreachable!("two jobs") };
        assert!(first > second && first + second <= 1.0 + 1e-9, "{first} {second}");
    }
}
