//! What messages say about a clock: none arrives before it is sent.

use foretrain_core::Nanos;

/// Bounds on how far a clock is ahead of the reference clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bounds {
    /// Messages that contributed.
    pub(super) messages: usize,
    least: Option<Nanos>,
    most: Option<Nanos>,
}

impl Bounds {
    /// A message left at `sent` by the clock and had arrived at `arrived` by the reference clock.
    pub(super) fn sent(&mut self, sent: Nanos, arrived: Nanos) {
        self.messages += 1;
        let bound = sent - arrived;
        self.least = Some(self.least.map_or(bound, |least| least.max(bound)));
    }

    /// A message left at `sent` by the reference clock and had arrived at `arrived` by the clock.
    pub(super) fn received(&mut self, arrived: Nanos, sent: Nanos) {
        self.messages += 1;
        let bound = arrived - sent;
        self.most = Some(self.most.map_or(bound, |most| most.min(bound)));
    }

    /// How far the clock is ahead, and how far that may be off to either side: `recorded` if the
    /// bounds allow it, else the middle between them. `None` without messages.
    pub(super) fn settle(&self, recorded: Nanos) -> Option<(Nanos, Nanos)> {
        let (ahead, free) = match (self.least, self.most) {
            (Some(least), Some(most)) => {
                let free = (most - least).clamp_positive().scale(0.5);
                let fits = least <= recorded && recorded <= most;
                (if fits { recorded } else { least + (most - least).scale(0.5) }, free)
            }
            (Some(bound), None) => (recorded.max(bound), (recorded - bound).clamp_positive()),
            (None, Some(bound)) => (recorded.min(bound), (bound - recorded).clamp_positive()),
            (None, None) => return None,
        };
        Some((ahead, free))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(time: i64) -> Nanos {
        Nanos::from_micros(time)
    }

    /// A clock 500 us ahead; messages take 40 us to it and 60 us from it.
    fn both_ways() -> Bounds {
        let mut bounds = Bounds::default();
        bounds.received(micros(640), micros(100));
        bounds.received(micros(990), micros(400));
        bounds.sent(micros(700), micros(260));
        bounds.sent(micros(900), micros(480));
        bounds
    }

    #[test]
    fn the_fastest_message_of_each_direction_bounds_a_clock() {
        assert_eq!(both_ways().settle(micros(0)), Some((micros(490), micros(50))));
    }

    #[test]
    fn a_recorded_clock_that_breaks_no_bound_is_kept() {
        assert_eq!(both_ways().settle(micros(500)), Some((micros(500), micros(50))));
    }

    #[test]
    fn one_direction_bounds_one_side() {
        let mut bounds = Bounds::default();
        assert_eq!(bounds.settle(micros(0)), None);
        bounds.sent(micros(700), micros(260));
        assert_eq!(bounds.settle(micros(0)).map(|(ahead, _)| ahead), Some(micros(440)));
        assert_eq!(bounds.settle(micros(500)), Some((micros(500), micros(60))));
    }
}
