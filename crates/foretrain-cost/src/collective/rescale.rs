//! Carrying a measured collective to other machines.

use foretrain_core::{Estimate, Evidence, EvidenceKind, Nanos};
use serde::Serialize;

use super::fabric::Fabric;
use super::time::{CollectiveCall, collective_time};

/// A measured time on another fabric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rescaled {
    /// The time there.
    pub time: Estimate<Nanos>,
    /// New over old, by the model.
    pub ratio: f64,
    /// What the time rests on.
    pub evidence: Evidence,
}

/// Relative spread of a time that was measured on the same fabric, when it is measured again.
const REPEATED: f64 = 0.03;
/// Relative spread of any carried time: the model's errors on both sides cancel only in part.
const SPREAD: f64 = 0.1;
/// What each doubling or halving adds.
const SPREAD_PER_LOG2: f64 = 0.06;

/// `measured` is the transfer time (without waiting for late ranks) of `call` on `from`; how long
/// does it take on `to`?
///
/// The answer is the measurement times the ratio of the two modelled times, so what the model
/// has wrong on both sides alike cancels. On the same fabric it is the measurement itself. Where there
/// is nothing to carry (`from` has one rank, or no time was measured) it is the modelled time.
pub fn rescale(measured: Nanos, call: &CollectiveCall, from: &Fabric, to: &Fabric) -> Rescaled {
    let measured = measured.clamp_positive();
    if from == to && measured > Nanos::ZERO {
        let source = "measured on this fabric";
        let evidence = Evidence::new(EvidenceKind::Measured, "collective time", source, REPEATED);
        let time = Estimate::with_relative_spread(measured, REPEATED);
        return Rescaled { time, ratio: 1.0, evidence };
    }
    let target = collective_time(call, to);
    let old = collective_time(call, from).time.value.nanos() as f64;
    if to.ranks > 1 && (old <= 0.0 || measured == Nanos::ZERO) {
        return modelled(target);
    }
    let ratio = if old > 0.0 { target.time.value.nanos() as f64 / old } else { 0.0 };
    let spread = if ratio > 0.0 { SPREAD + SPREAD_PER_LOG2 * ratio.log2().abs() } else { 0.0 };
    let source = format!(
        "measured on {} ranks of {} nodes, times the modelled ratio {ratio:.3}",
        from.ranks, from.nodes
    );
    Rescaled {
        time: Estimate::with_relative_spread(measured.scale(ratio), spread),
        ratio,
        evidence: Evidence::new(EvidenceKind::Inferred, "collective time", source, spread),
    }
}

fn modelled(target: super::CollectiveTime) -> Rescaled {
    let source = "the model alone: nothing was measured that could be carried over";
    let spread = target.evidence.first().map_or(0.0, |e| e.relative_spread);
    let evidence = Evidence::new(EvidenceKind::Assumed, "collective time", source, spread);
    Rescaled { time: target.time, ratio: 1.0, evidence }
}
