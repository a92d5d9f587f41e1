//! Rates that the growth of forward and backward passes implies.

use foretrain_core::{Bandwidth, Nanos};

use super::answer::SegmentRate;
use super::normal::{Normal, Normalised};

/// For every point on several nodes whose passes were timed, against the largest of one node.
pub(super) fn rates(normal: &Normalised<'_>) -> Vec<SegmentRate> {
    let timed =
        |point: &&Normal<'_>| point.point.forward.is_some() || point.point.backward.is_some();
    let alone = normal.trusted().filter(|point| point.nodes == 1).filter(timed);
    let Some(alone) = alone.max_by_key(|point| point.gpus).filter(|_| normal.has_bytes()) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for point in normal.spread().filter(timed) {
        let volume = normal.synchronised(point.way, point.gpus, point.nodes, 1).per_node();
        let work = (point.work / f64::from(point.micro)) / (alone.work / f64::from(alone.micro));
        let parts = [
            ("forward", alone.point.forward, point.point.forward, volume.forward),
            ("backward", alone.point.backward, point.point.backward, volume.backward),
        ];
        for (part, before, after, bytes) in parts {
            let (Some(before), Some(after)) = (before, after) else { continue };
            let growth = after - before.scale(work);
            if growth > Nanos::ZERO && bytes > 0.0 {
                let rate = Bandwidth::from_bytes_per_sec(bytes / growth.secs_f64());
                found.push(SegmentRate { part, gpus: point.gpus, growth, node_bytes: bytes, rate });
            }
        }
    }
    found
}
