//! From values to pixels, and where the ticks stand.

/// A range of values over a range of pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    /// First and last value (of a size its binary logarithm).
    values: (f64, f64),
    /// Where they stand.
    pixels: (f64, f64),
}

impl Axis {
    /// An axis from `values` to `pixels`; a range without extent is widened.
    pub(super) fn new(values: (f64, f64), pixels: (f64, f64)) -> Self {
        let (low, high) = values;
        let values = if high > low { values } else { (low - 1.0, low + 1.0) };
        Self { values, pixels }
    }

    /// The pixel of a value; the nearest end for one beyond the range.
    pub(super) fn pixel(&self, value: f64) -> f64 {
        let (low, high) = self.values;
        let share = ((value - low) / (high - low)).clamp(0.0, 1.0);
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }

    /// Whole values in the range, at most `most`, in steps of a whole number.
    pub(super) fn whole_ticks(&self, most: usize) -> Vec<i32> {
        let (low, high) = (self.values.0.ceil() as i32, self.values.1.floor() as i32);
        let step = (high - low).max(0) as usize / most.max(1) + 1;
        (low..=high).step_by(step).collect()
    }
}

/// Ticks from zero to at least `most`, in steps of 1, 2 or 5 times a power of ten.
pub(super) fn round_ticks(most: f64, count: f64) -> Vec<f64> {
    if !(most > 0.0 && most.is_finite()) {
        return vec![0.0, 1.0];
    }
    let rough = most / count;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power);
    let step = step.into_iter().find(|step| *step >= rough * 0.999).unwrap_or(10.0 * power);
    let last = (most / step * 0.999).ceil() as u32;
    (0..=last).map(|tick| f64::from(tick) * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_range() {
        assert_eq!(round_ticks(93.0, 5.0), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(round_ticks(450.0, 5.0), [0.0, 100.0, 200.0, 300.0, 400.0, 500.0]);
        assert_eq!(round_ticks(0.0, 5.0), [0.0, 1.0]);
        let axis = Axis::new((10.0, 33.0), (0.0, 230.0));
        assert_eq!(axis.whole_ticks(12), [10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32]);
        assert_eq!((axis.pixel(10.0), axis.pixel(33.0), axis.pixel(99.0)), (0.0, 230.0, 230.0));
        let single = Axis::new((20.0, 20.0), (0.0, 100.0));
        assert_eq!(single.pixel(20.0), 50.0);
        assert_eq!(single.whole_ticks(12), [19, 20, 21]);
    }
}
