//! Strong scaling: whether curves keep their peak.

use std::collections::BTreeMap;

/// Throughputs this close to the best are no worse; runs of one placement differ as much.
const AS_GOOD: f64 = 0.95;
/// Curves with fewer sizes have no shape.
const FEWEST_SIZES: usize = 3;

/// A size of a job of fixed global batch. Higher is better.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) gpus: u32,
    pub(super) measured: f64,
    /// `None` where the measured throughput was given.
    pub(super) predicted: Option<f64>,
}

/// Curves that were predicted to peak where they do, and all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    kept: usize,
    all: usize,
}

/// Curves by whether more GPUs end up slower than fewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Peaks {
    falling: Kept,
    rising: Kept,
}

impl Peaks {
    pub(super) fn of<'a>(curves: impl IntoIterator<Item = &'a [Point]>) -> Self {
        let mut peaks = Self::default();
        for curve in curves {
            let Some((falls, kept)) = peak(curve) else { continue };
            let side = if falls { &mut peaks.falling } else { &mut peaks.rising };
            side.all += 1;
            side.kept += usize::from(kept);
        }
        peaks
    }

    /// A sentence without a stop; `None` without curves.
    pub(super) fn sentence(self) -> Option<String> {
        let Self { falling, rising } = self;
        (falling.all + rising.all > 0).then(|| {
            format!(
                "of {} strong-scaling curves (one global batch, three or more numbers of GPUs) that fall \
                 by more than 5 % after their peak, {} are predicted to peak at a placement within 5 % \
                 of the best measured throughput; of {} others, {}",
                falling.all, falling.kept, rising.all, rising.kept
            )
        })
    }
}

impl Point {
    fn expected(&self) -> f64 {
        self.predicted.unwrap_or(self.measured)
    }
}

/// Whether a curve falls after its peak, and whether its predicted peak is as good as the measured one.
/// `None` if it has no shape or nothing of it is predicted.
fn peak(curve: &[Point]) -> Option<(bool, bool)> {
    let by_measured = |a: &&Point, b: &&Point| a.measured.total_cmp(&b.measured);
    let by_predicted = |a: &&Point, b: &&Point| a.expected().total_cmp(&b.expected());
    let best = curve.iter().max_by(by_measured)?;
    let chosen = curve.iter().max_by(by_predicted)?;
    // The best placement of each size.
    let mut sizes: BTreeMap<u32, f64> = BTreeMap::new();
    for point in curve {
        let size = sizes.entry(point.gpus).or_insert(0.0);
        *size = size.max(point.measured);
    }
    let enough = AS_GOOD * best.measured;
    let falls = sizes.range(best.gpus..).any(|(_, &most)| most < enough);
    let asked = curve.iter().any(|point| point.predicted.is_some());
    (asked && sizes.len() >= FEWEST_SIZES).then_some((falls, chosen.measured >= enough))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(u32, f64, f64)]) -> Vec<Point> {
        let point =
            |&(gpus, measured, predicted)| Point { gpus, measured, predicted: Some(predicted) };
        points.iter().map(point).collect()
    }

    #[test]
    fn peaks_are_kept_missed_or_as_good() {
        let kept = curve(&[(4, 80.0, 80.0), (8, 100.0, 110.0), (16, 70.0, 90.0)]);
        let missed = curve(&[(4, 80.0, 80.0), (8, 100.0, 110.0), (16, 70.0, 120.0)]);
        let as_good = curve(&[(4, 96.0, 96.0), (8, 100.0, 90.0), (16, 70.0, 80.0)]);
        let rising = curve(&[(4, 80.0, 80.0), (8, 100.0, 110.0), (16, 130.0, 90.0)]);
        let short = curve(&[(4, 80.0, 80.0), (8, 70.0, 60.0)]);
        let mut given = curve(&[(1, 30.0, 30.0), (2, 50.0, 50.0), (4, 40.0, 40.0)]);
        given.iter_mut().for_each(|point| point.predicted = None);
        let curves = [kept, missed, as_good, rising, short, given];
        let peaks = Peaks::of(curves.iter().map(Vec::as_slice));
        assert_eq!(peaks.falling, Kept { kept: 2, all: 3 });
        assert_eq!(peaks.rising, Kept { kept: 0, all: 1 });
        assert!(peaks.sentence().expect("curves").contains("of 3 strong-scaling curves"));
    }

    #[test]
    fn a_poor_placement_of_a_larger_size_is_no_fall() {
        let points = [(4, 80.0, 80.0), (8, 100.0, 100.0), (16, 60.0, 60.0), (16, 99.0, 99.0)];
        assert_eq!(peak(&curve(&points)), Some((false, true)));
    }

    #[test]
    fn no_curves_no_sentence() {
        assert_eq!(Peaks::of(std::iter::empty()).sentence(), None);
    }
}
