//! Points that differ in accumulation: `k` micro-steps of `c` and one synchronisation of `s`.

use super::answer::AccumulationAnswer;
use super::exposed::Size;
use super::normal::{Normal, Normalised};

/// `c` and `s` in micro-steps of the smallest point, at one size.
pub(super) struct Line<'a, 'b> {
    pub(super) points: Vec<&'b Normal<'a>>,
    pub(super) micro_step: f64,
    pub(super) sync: f64,
    pub(super) misfit: f64,
}

/// The largest size with points of two accumulations or more that synchronise once per step. The
/// cost of work is `c + s/k`: a line in `1/k`, by least squares of relative errors.
pub(super) fn line<'a, 'b>(normal: &'b Normalised<'a>) -> Option<Line<'a, 'b>> {
    let once = |point: &&Normal<'_>| {
        point.way.synchronises_once() && !normal.series.known.synchronises_each
    };
    let mut best: Option<Line<'a, 'b>> = None;
    for like in &normal.points {
        let points: Vec<&Normal<'a>> = normal
            .points
            .iter()
            .filter(|p| (p.gpus, p.nodes, p.way) == (like.gpus, like.nodes, like.way))
            .filter(once)
            .collect();
        let larger = best.as_ref().is_none_or(|line| line.points[0].gpus < like.gpus);
        if larger && let Some(line) = fit(points) {
            best = Some(line);
        }
    }
    best
}

fn fit<'a, 'b>(points: Vec<&'b Normal<'a>>) -> Option<Line<'a, 'b>> {
    let different = points.windows(2).any(|pair| pair[0].micro != pair[1].micro);
    if !different {
        return None;
    }
    // Cost per unit of work; a micro-batch is work / micro units.
    let rows = || {
        points.iter().map(|p| {
            let x = 1.0 / p.work;
            (1.0 / p.cost, x / p.cost)
        })
    };
    let (mut aa, mut ab, mut bb, mut ay, mut by) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (a, b) in rows() {
        aa += a * a;
        ab += a * b;
        bb += b * b;
        ay += a;
        by += b;
    }
    let determinant = aa * bb - ab * ab;
    if determinant <= 1e-12 * aa * bb {
        return None;
    }
    let micro_step = (ay * bb - by * ab) / determinant;
    let sync = (by * aa - ay * ab) / determinant;
    if !(micro_step > 0.0 && sync > 0.0) {
        return None;
    }
    let off = rows().map(|(a, b)| (micro_step * a + sync * b - 1.0).abs());
    let misfit = off.fold(0.0, f64::max);
    Some(Line { points, micro_step, sync, misfit })
}

impl Line<'_, '_> {
    pub(super) fn size(&self) -> Size {
        self.points[0].into()
    }

    /// Micro-batches for a share of the ceiling.
    fn knee(&self, share: f64) -> u32 {
        // k c / (k c + s) = share.
        let k = share / (1.0 - share) * self.sync / self.micro_step;
        k.ceil().clamp(1.0, 1e9) as u32
    }

    pub(super) fn answer(&self, normal: &Normalised<'_>) -> AccumulationAnswer {
        let gpus = self.points[0].gpus;
        AccumulationAnswer {
            gpus,
            measured: self.points.iter().map(|point| point.micro).collect(),
            ceiling: normal.throughput(gpus, self.micro_step),
            sync_micro_steps: self.sync / self.micro_step,
            sync: normal.seconds(self.sync),
            misfit: if self.points.len() > 2 { self.misfit } else { 0.0 },
            knee_80: self.knee(0.8),
            knee_90: self.knee(0.9),
        }
    }
}
