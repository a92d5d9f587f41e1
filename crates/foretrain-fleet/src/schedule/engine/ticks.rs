//! When policies are asked that are asked at intervals.

use foretrain_core::Nanos;

use super::super::policy::Rhythm;

/// The first multiple of the interval that is not before `from`.
pub(super) fn next_tick(rhythm: Rhythm, from: Nanos) -> Option<Nanos> {
    match rhythm {
        Rhythm::Events => None,
        Rhythm::Every(interval) => {
            let interval = interval.nanos().max(1);
            let number = from.nanos().div_euclid(interval)
                + i64::from(from.nanos().rem_euclid(interval) > 0);
            Some(Nanos::from_nanos(number.saturating_mul(interval)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_multiples_of_the_interval() {
        let every = Rhythm::Every(Nanos::from_millis(60_000));
        let at = |seconds: i64| next_tick(every, Nanos::from_millis(seconds * 1_000));
        assert_eq!(at(0), Some(Nanos::ZERO));
        assert_eq!(at(1), Some(Nanos::from_millis(60_000)));
        assert_eq!(at(60), Some(Nanos::from_millis(60_000)));
        assert_eq!(next_tick(Rhythm::Events, Nanos::ZERO), None);
    }
}
