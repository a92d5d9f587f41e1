//! What misleads people who look at such figures, as far as it applies.

use super::answer::{PointAnswer, SegmentRate, Verdict};
use super::normal::Normalised;

/// Bursts at so many times the average mislead.
const BURSTY: f64 = 1.25;

pub(super) fn warnings(
    normal: &Normalised<'_>,
    verdict: Verdict,
    points: &[PointAnswer],
    segments: &[SegmentRate],
    answers_accumulation: bool,
) -> Vec<String> {
    let mut found = Vec::new();
    let waits = matches!(verdict, Verdict::CommunicationBound | Verdict::LatencyBound);
    if waits {
        found.push("a GPU utilisation near 100 % does not contradict this: the kernel of a collective spins on the GPU while it waits for the network, and counts as busy. Power draw or SM activity tell the difference.".into());
    }
    let bursts = utilisation(points, segments).filter(|(average, peak)| *peak > BURSTY * average);
    if let Some((average, peak)) = bursts.filter(|_| waits) {
        found.push(format!(
            "the average NIC rate over the step ({average:.1} Gbit/s) is below what the bursts reach ({peak:.1} Gbit/s): collectives use the wire in bursts and nothing overlaps the rest, so a low average does not clear the network"
        ));
    } else if waits {
        found.push("an average NIC utilisation below its limit does not clear the network: collectives come in bursts".into());
    }
    let micro: Vec<u32> = normal.points.iter().map(|point| point.micro).collect();
    let (least, most) = (micro.iter().min().copied(), micro.iter().max().copied());
    if let (Some(least), Some(most)) = (least, most)
        && (most > least || answers_accumulation)
    {
        let grew = if most > least {
            format!(" (here {:.0} x)", f64::from(most) / f64::from(least))
        } else {
            String::new()
        };
        found.push(format!(
            "more accumulation makes the global batch grow{grew}: fewer updates see the same data, and the learning rate may have to follow"
        ));
    }
    if !normal.same_batch {
        found.push("batches per GPU differ between points: steps are compared per unit of work, but larger batches also use a GPU better".into());
    }
    if least == most && points.iter().any(|point| point.efficiency > 1.05) {
        found.push("a point is more than 5 % better than proportional: check that batch, precision and data are the same".into());
    }
    found
}

/// Average rate over the step and rate in the bursts, Gbit/s, at the point where they differ most.
fn utilisation(points: &[PointAnswer], segments: &[SegmentRate]) -> Option<(f64, f64)> {
    let pairs = points.iter().filter_map(|point| {
        let bursts = segments.iter().filter(|segment| segment.gpus == point.gpus);
        let (bytes, seconds) = bursts.fold((0.0, 0.0), |(bytes, seconds), segment| {
            (bytes + segment.node_bytes, seconds + segment.growth.secs_f64())
        });
        let peak = if seconds > 0.0 { bytes / seconds } else { point.effective?.get() };
        Some((point.average?.get() * 8e-9, peak * 8e-9))
    });
    pairs.max_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)))
}
