//! GPUs in use over time.

use foretrain_core::Nanos;

/// Shorter overlaps of jobs on a machine are how much clocks and logs differ.
const BLINK: f64 = 60.0;

/// GPUs in use over time: sorted times, and how many from each on.
#[derive(Debug, Default)]
pub(super) struct Steps {
    changes: Vec<(Nanos, f64)>,
}

impl Steps {
    pub(super) fn add(&mut self, start: Nanos, end: Nanos, gpus: f64) {
        self.changes.push((start, gpus));
        self.changes.push((end, -gpus));
    }

    /// Turns changes into levels.
    pub(super) fn settle(&mut self) {
        // At equal times GPUs are freed first.
        self.changes.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut level = 0.0;
        for (_, gpus) in &mut self.changes {
            level += *gpus;
            *gpus = level;
        }
    }

    pub(super) fn at(&self, time: Nanos) -> f64 {
        let after = self.changes.partition_point(|(change, _)| *change <= time);
        after.checked_sub(1).map_or(0.0, |index| self.changes[index].1.max(0.0))
    }

    /// The most at once in both together.
    pub(super) fn peak_with(&self, other: &Self) -> f64 {
        let (mut one, mut two) = (self.changes.iter().peekable(), other.changes.iter().peekable());
        let (mut levels, mut most) = ((0.0, 0.0), 0.0_f64);
        loop {
            let times = [one.peek(), two.peek()].into_iter().flatten().map(|(time, _)| *time);
            let Some(time) = times.min() else { return rounded(most) };
            // Within one time GPUs are freed first, so its last level is the most of it.
            while let Some((_, level)) = one.next_if(|(at, _)| *at == time) {
                levels.0 = *level;
            }
            while let Some((_, level)) = two.next_if(|(at, _)| *at == time) {
                levels.1 = *level;
            }
            most = most.max(levels.0 + levels.1);
        }
    }

    /// The most at once for longer than clocks differ: a minute, or a hundredth of all the time.
    pub(super) fn lasting_peak(&self) -> f64 {
        let ends = |time: &&Nanos| **time < Nanos::MAX;
        let mut times = self.changes.iter().map(|(time, _)| time).filter(ends);
        let first = times.next().copied().unwrap_or(Nanos::ZERO);
        let last = times.next_back().copied().unwrap_or(first);
        let blink = ((last - first).secs_f64() / 100.0).min(BLINK);
        let next = self.changes.iter().skip(1).map(|(time, _)| *time).chain([Nanos::MAX]);
        let lasting = self
            .changes
            .iter()
            .zip(next)
            .filter(|((from, _), to)| to.saturating_sub(*from).secs_f64() >= blink);
        rounded(lasting.map(|((_, level), _)| *level).fold(0.0, f64::max))
    }
}

/// Fractions that come and go leave traces in the last digits.
fn rounded(gpus: f64) -> f64 {
    (gpus * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(jobs: &[(i64, i64, f64)]) -> Steps {
        let mut steps = Steps::default();
        for (start, end, gpus) in jobs {
            let at = |seconds: i64| Nanos::from_millis(seconds * 1_000);
            steps.add(at(*start), at(*end), *gpus);
        }
        steps.settle();
        steps
    }

    #[test]
    fn peaks_add_up_where_they_meet() {
        let one = steps(&[(0, 10, 3.0), (10, 20, 4.0), (5, 10, 0.1)]);
        assert_eq!(one.peak_with(&Steps::default()), 4.0);
        assert_eq!(one.peak_with(&steps(&[(8, 12, 8.0)])), 12.0);
        assert_eq!(one.peak_with(&steps(&[(20, 30, 8.0)])), 8.0);
    }

    #[test]
    fn overlaps_of_clocks_are_no_peak() {
        let jobs = [(0, 3_605, 8.0), (3_600, 7_200, 8.0)];
        assert_eq!(steps(&jobs).lasting_peak(), 8.0);
        assert_eq!(steps(&jobs).peak_with(&Steps::default()), 16.0);
        assert_eq!(steps(&[(0, 3_600, 3.0), (0, 3_600, 3.0)]).lasting_peak(), 6.0);
        assert_eq!(steps(&[(0, 3, 3.0), (1, 4, 3.0)]).lasting_peak(), 6.0);
    }
}
