//! Strong scaling: whether curves keep their peak.
//!
//! A curve has one point for each number of nodes and GPUs, the median over the ways to place these: the
//! best of many equal runs is the luckiest one.

use std::collections::{BTreeMap, BTreeSet};

use foretrain_core::stats::median;

/// Throughputs this close to the best are no worse; runs of one placement differ as much.
const AS_GOOD: f64 = 0.95;
/// Curves with fewer sizes have no shape.
const FEWEST_SIZES: usize = 3;

/// A placement of a job of fixed global batch and its throughput.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) nodes: u32,
    pub(super) gpus: u32,
    pub(super) measured: f64,
    /// `None` where the measured throughput was given.
    pub(super) predicted: Option<f64>,
}

/// Curves that were predicted to peak where they do, and all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Kept {
    kept: usize,
    all: usize,
    /// Sum over the curves of what the predicted peaks reach of the best measured throughput.
    reached: f64,
}

/// Curves by whether more GPUs end up slower than fewer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Peaks {
    falling: Kept,
    rising: Kept,
}

impl Peaks {
    pub(super) fn of<'a>(curves: impl IntoIterator<Item = &'a [Point]>) -> Self {
        let mut peaks = Self::default();
        for curve in curves {
            let Some(Peak { falls, reached }) = peak(curve) else { continue };
            let side = if falls { &mut peaks.falling } else { &mut peaks.rising };
            side.all += 1;
            side.kept += usize::from(reached >= AS_GOOD);
            side.reached += reached;
        }
        peaks
    }

    /// A sentence without a stop; `None` without curves.
    pub(super) fn sentence(self) -> Option<String> {
        let Self { falling, rising } = self;
        (falling.all + rising.all > 0).then(|| {
            let mut sentence = format!(
                "of {} strong-scaling curves (one global batch, three or more numbers of GPUs) that fall \
                 by more than 5 % after their peak, {} are predicted to peak at a number of nodes and \
                 GPUs whose measured throughput is within 5 % of the best",
                falling.all, falling.kept
            );
            if falling.all > 0 {
                let reached = 100.0 * falling.reached / falling.all as f64;
                sentence += &format!(" (all of them reach {reached:.0} % of it in the mean)");
            }
            sentence + &format!("; of {} others, {}", rising.all, rising.kept)
        })
    }
}

/// Medians over the placements of one number of nodes and GPUs.
struct Size {
    gpus: u32,
    measured: f64,
    expected: f64,
}

fn sizes(curve: &[Point]) -> Vec<Size> {
    let mut placements: BTreeMap<(u32, u32), Vec<&Point>> = BTreeMap::new();
    for point in curve {
        placements.entry((point.gpus, point.nodes)).or_default().push(point);
    }
    let size = |((gpus, _), points): ((u32, u32), Vec<&Point>)| {
        let of = |value: fn(&Point) -> f64| {
            median(&points.iter().map(|point| value(point)).collect::<Vec<f64>>())
        };
        let expected = of(|point| point.predicted.unwrap_or(point.measured))?;
        Some(Size { gpus, measured: of(|point| point.measured)?, expected })
    };
    placements.into_iter().filter_map(size).collect()
}

#[derive(Debug, PartialEq)]
struct Peak {
    /// Whether more GPUs than at the measured peak are slower.
    falls: bool,
    /// Measured throughput at the predicted peak over the best.
    reached: f64,
}

/// `None` for a curve that has no shape or of which nothing is predicted.
fn peak(curve: &[Point]) -> Option<Peak> {
    let sizes = sizes(curve);
    let best = sizes.iter().max_by(|a, b| a.measured.total_cmp(&b.measured))?;
    let chosen = sizes.iter().max_by(|a, b| a.expected.total_cmp(&b.expected))?;
    let enough = AS_GOOD * best.measured;
    let numbers: BTreeSet<u32> = sizes.iter().map(|size| size.gpus).collect();
    // With more GPUs, whatever the number of nodes.
    let is_enough =
        |gpus: u32| sizes.iter().any(|size| size.gpus == gpus && size.measured >= enough);
    let falls = numbers.range(best.gpus..).any(|&gpus| !is_enough(gpus));
    let asked = curve.iter().any(|point| point.predicted.is_some());
    let reached = chosen.measured / best.measured;
    (asked && numbers.len() >= FEWEST_SIZES).then_some(Peak { falls, reached })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(u32, f64, f64)]) -> Vec<Point> {
        let point = |&(gpus, measured, predicted): &(u32, f64, f64)| Point {
            nodes: gpus.div_ceil(8),
            gpus,
            measured,
            predicted: Some(predicted),
        };
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
        assert_eq!((peaks.falling.kept, peaks.falling.all), (2, 3));
        assert_eq!((peaks.rising.kept, peaks.rising.all), (0, 1));
        let sentence = peaks.sentence().expect("curves");
        // 100, 70 and 96 of 100.
        assert!(sentence.contains("of 3 strong-scaling curves"), "{sentence}");
        assert!(
            sentence.contains("reach 89 %") && sentence.ends_with("of 1 others, 0"),
            "{sentence}"
        );
    }

    #[test]
    fn a_poor_placement_of_a_larger_number_of_gpus_is_no_fall() {
        let mut points = curve(&[(4, 80.0, 80.0), (8, 100.0, 100.0), (16, 60.0, 60.0)]);
        points.push(Point { nodes: 4, gpus: 16, measured: 99.0, predicted: None });
        assert_eq!(peak(&points), Some(Peak { falls: false, reached: 1.0 }));
    }

    #[test]
    fn the_luckiest_of_equal_placements_is_no_peak() {
        let lucky = [(8, 90.0, 90.0), (8, 120.0, 90.0), (8, 88.0, 90.0)];
        let points = [&[(4, 80.0, 80.0)], &lucky[..], &[(16, 100.0, 100.0)]].concat();
        assert_eq!(peak(&curve(&points)), Some(Peak { falls: false, reached: 1.0 }));
    }

    #[test]
    fn no_curves_no_sentence() {
        assert_eq!(Peaks::of(std::iter::empty()).sentence(), None);
    }
}
