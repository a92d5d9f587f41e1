//! How far a calibration reaches, and how the interval widens beyond.

use foretrain_core::Bytes;
use foretrain_cost::calibrate::{Report, Trust};
use foretrain_cost::{CollectiveCall, collective_time};
use foretrain_hardware::Cluster;

use super::super::setting::fabric_of;

/// Where a calibration may be trusted, and the interval there and beyond.
#[derive(Clone, Debug, PartialEq)]
pub struct Reach {
    /// The range.
    pub trust: Trust,
    /// Inside first, then outside in growing numbers of ranks and sizes.
    pub widths: Vec<Width>,
}

/// An 80 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Width {
    /// Ranks.
    pub ranks: u32,
    /// Size.
    pub bytes: Bytes,
    /// Half of it, relative to the value.
    pub half: f64,
}

/// Times the largest size: four doublings.
const LARGER: u64 = 16;
/// Times the ranks that are trusted: two doublings.
const MORE: u32 = 4;

pub(super) fn reach(calibrated: &Cluster, report: &Report) -> Vec<Reach> {
    let reach = report.trust.iter().map(|trust| {
        let (most, largest) = (trust.ranks.1, trust.sizes.1);
        let nodes = report.residuals.iter().find(|row| {
            row.kind == trust.kind && row.ranks == most && (row.nodes > 1) == trust.many_nodes
        });
        let nodes = nodes.map_or(1, |row| row.nodes);
        let width = |times: u32, bytes: Bytes| {
            let ranks = most.checked_mul(times)?;
            let fabric = fabric_of(calibrated, ranks, nodes.checked_mul(times)?).ok()?;
            let call = CollectiveCall::new(trust.kind, bytes);
            let half = collective_time(&call, &fabric).time.relative_half_width();
            Some(Width { ranks, bytes, half })
        };
        let until = trust.ranks_until / most.max(1);
        let further =
            if trust.many_nodes { vec![until, until.saturating_mul(MORE)] } else { vec![] };
        let more = further.into_iter().map(|times| width(times, largest));
        let larger = width(1, Bytes::new(largest.get().saturating_mul(LARGER)));
        let widths = [width(1, largest)].into_iter().chain(more).chain([larger]).flatten();
        Reach { trust: trust.clone(), widths: widths.collect() }
    });
    reach.collect()
}
