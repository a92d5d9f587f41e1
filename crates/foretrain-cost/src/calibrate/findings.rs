//! What does not belong to the trend.

use foretrain_core::stats::median;
use foretrain_core::{Bandwidth, Bytes, Nanos};
use foretrain_graph::CollectiveKind;
use serde::Serialize;

use super::Observation;
use super::sweeps::{Group, above_line};

/// Something odd in the measurements, and whether it is kept out of the fit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "finding", rename_all = "kebab-case")]
pub enum Finding {
    /// One size far from its neighbours. Kept out.
    Outlier {
        /// Which collective.
        kind: CollectiveKind,
        /// Ranks.
        ranks: u32,
        /// Size.
        bytes: Bytes,
        /// What was measured.
        measured: Nanos,
        /// What model and neighbours expect.
        expected: Nanos,
        /// Rows of the observations.
        #[serde(skip)]
        rows: Vec<usize>,
    },
    /// A number of ranks whose every large size is off what the others agree on. Kept out.
    OddCount {
        /// Which collective.
        kind: CollectiveKind,
        /// Ranks.
        ranks: u32,
        /// Nodes.
        nodes: u32,
        /// Typical measured over expected time.
        ratio: f64,
        /// Rows of the observations.
        #[serde(skip)]
        rows: Vec<usize>,
    },
    /// The bus bandwidth falls where the size grows: a switch of algorithm or protocol, most often.
    Cliff {
        /// Which collective.
        kind: CollectiveKind,
        /// Ranks.
        ranks: u32,
        /// Last size before.
        from: Bytes,
        /// First size after.
        to: Bytes,
        /// Bus bandwidth before.
        before: Bandwidth,
        /// Bus bandwidth after.
        after: Bandwidth,
    },
    /// All-reduce on two nodes beats what the NICs allow a ring: the tree only swaps two sums.
    TwoNodeTree {
        /// Ranks.
        ranks: u32,
        /// Size.
        bytes: Bytes,
        /// Measured bus bandwidth.
        bus: Bandwidth,
        /// A node's NICs.
        nics: Bandwidth,
    },
    /// The bus bandwidth of the largest messages falls from one number of nodes to the next.
    Drop {
        /// Which collective.
        kind: CollectiveKind,
        /// Size.
        bytes: Bytes,
        /// Fewer and more nodes.
        nodes: (u32, u32),
        /// Their ranks.
        ranks: (u32, u32),
        /// Bus bandwidth on the fewer.
        before: Bandwidth,
        /// Bus bandwidth on the more.
        after: Bandwidth,
    },
}

impl Finding {
    /// Rows that are kept out of the fit.
    pub(super) fn excluded(&self) -> &[usize] {
        match self {
            Self::Outlier { rows, .. } | Self::OddCount { rows, .. } => rows,
            Self::Cliff { .. } | Self::TwoNodeTree { .. } | Self::Drop { .. } => &[],
        }
    }

    /// Whether it says that this group is an odd one.
    pub(super) fn is_odd(&self, group: &Group) -> bool {
        matches!(self, Self::OddCount { kind, ranks, nodes, .. }
            if (*kind, *ranks, *nodes) == (group.kind, group.ranks, group.nodes))
    }
}

/// Everything odd, in the order of the groups.
pub(super) fn find(groups: &[Group], observations: &[Observation]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        if let Some(odd) = odd_count(groups, at) {
            found.push(odd);
            continue;
        }
        let outliers = outliers(group, observations);
        let out = |size: Bytes| {
            outliers.iter().any(|o| matches!(o, Finding::Outlier { bytes, .. } if *bytes == size))
        };
        found.extend(cliffs(group, observations, &out));
        found.extend(two_node_tree(group, observations));
        found.extend(outliers);
    }
    let usual: Vec<&Group> =
        groups.iter().filter(|group| !found.iter().any(|odd| odd.is_odd(group))).collect();
    let drops = usual.windows(2).filter_map(|pair| drop(pair[0], pair[1], observations));
    found.extend(drops.collect::<Vec<_>>());
    found
}

/// Time a size must be off its neighbours', at least; relative.
const OUTLIER: f64 = 0.25;

/// Sizes whose deviation is far from those of the two sizes on either side, and whose time is off
/// the line between its neighbours: where only the model changes its way, nothing is wrong with the
/// measurement.
fn outliers(group: &Group, observations: &[Observation]) -> Vec<Finding> {
    let curve = group.curve(&|_| true);
    let times = group.times(observations);
    let mut found = Vec::new();
    for (at, &(size, log)) in curve.iter().enumerate() {
        let near: Vec<f64> = (at.saturating_sub(2)..curve.len().min(at + 3))
            .filter(|&other| other != at)
            .map(|other| curve[other].1)
            .collect();
        // At an end there are neighbours on one side only; a trend would pass for an outlier.
        let (Some(middle), true) = (median(&near), near.len() >= 2) else { continue };
        let scatter = near.iter().map(|other| (other - middle).abs()).fold(0.0, f64::max);
        let off = log - middle;
        let least = (1.0 + OUTLIER).ln();
        let off_line = off_line(&times, at) * off.signum();
        if off.abs() <= least.max(2.0 * scatter) || off_line <= least {
            continue;
        }
        let rows: Vec<usize> = group
            .rows
            .iter()
            .copied()
            .filter(|&row| observations[row].call.bytes == size)
            .collect();
        let measured = observations[rows[0]].time();
        let expected = measured.scale((-off).exp());
        let (kind, ranks) = (group.kind, group.ranks);
        found.push(Finding::Outlier { kind, ranks, bytes: size, measured, expected, rows });
    }
    found
}

/// How far a logarithm of time lies above the line through its neighbours; infinitely at an end,
/// where there is none. `times` are by log2 of size.
fn off_line(times: &[(f64, f64)], at: usize) -> f64 {
    let (Some(before), Some(after)) = (at.checked_sub(1).map(|at| times[at]), times.get(at + 1))
    else {
        return f64::INFINITY;
    };
    above_line(before, times[at], *after)
}

/// Off by more than this, a number of ranks is odd; relative.
const ODD: f64 = 0.3;
/// From here on transfers count more than latency.
const LARGE: Bytes = Bytes::from_mib(1);

/// Whether the large sizes of a group are off what the other numbers of ranks agree on.
fn odd_count(groups: &[Group], at: usize) -> Option<Finding> {
    let group = &groups[at];
    let typical = |group: &Group| {
        let large: Vec<f64> = group
            .sizes
            .iter()
            .zip(&group.logs)
            .filter(|(size, _)| **size >= LARGE)
            .map(|(_, log)| *log)
            .collect();
        median(&large)
    };
    let alike = |other: &Group| other.kind == group.kind && (other.nodes > 1) == (group.nodes > 1);
    let others = groups.iter().enumerate().filter(|(index, other)| *index != at && alike(other));
    let others: Vec<f64> = others.filter_map(|(_, other)| typical(other)).collect();
    let (own, middle) = (typical(group)?, median(&others)?);
    let agree = others.iter().all(|other| (other - middle).abs() < (1.0 + ODD / 2.0).ln());
    let odd = group.nodes > 1 && others.len() >= 2 && agree;
    let (kind, ranks, nodes) = (group.kind, group.ranks, group.nodes);
    (odd && (own - middle).abs() > (1.0 + ODD).ln()).then(|| Finding::OddCount {
        kind,
        ranks,
        nodes,
        ratio: (own - middle).exp(),
        rows: group.rows.clone(),
    })
}

/// Share of the bus bandwidth that is lost at a cliff, at least.
const CLIFF: f64 = 0.15;
/// Share that is lost from one number of nodes to the next: of a ring 2(n-1)/n grows by less.
const DROP: f64 = 0.2;

fn cliffs(
    group: &Group,
    observations: &[Observation],
    is_out: &dyn Fn(Bytes) -> bool,
) -> Vec<Finding> {
    // The best row of each size that is no outlier.
    let mut curve: Vec<(Bytes, f64)> = Vec::new();
    for &row in &group.rows {
        let (size, bus) = (observations[row].call.bytes, observations[row].bus_gb_per_sec());
        match curve.last_mut() {
            _ if is_out(size) => {}
            Some((last, best)) if *last == size => *best = best.max(bus),
            _ => curve.push((size, bus)),
        }
    }
    let pairs = curve.windows(2).filter(|pair| pair[1].1 < pair[0].1 * (1.0 - CLIFF));
    pairs
        .map(|pair| Finding::Cliff {
            kind: group.kind,
            ranks: group.ranks,
            from: pair[0].0,
            to: pair[1].0,
            before: Bandwidth::from_gb_per_sec(pair[0].1),
            after: Bandwidth::from_gb_per_sec(pair[1].1),
        })
        .collect()
}

/// What the largest size that both have loses from several nodes to more.
fn drop(fewer: &Group, more: &Group, observations: &[Observation]) -> Option<Finding> {
    if fewer.kind != more.kind || fewer.nodes < 2 || fewer.nodes >= more.nodes {
        return None;
    }
    let bytes = *fewer.sizes.iter().rev().find(|size| more.sizes.contains(size))?;
    let rate = |group: &Group| {
        let rows = group.rows.iter().zip(&group.sizes).filter(|(_, size)| **size == bytes);
        rows.map(|(&row, _)| observations[row].bus_gb_per_sec()).fold(0.0, f64::max)
    };
    let (before, after) = (rate(fewer), rate(more));
    (bytes >= LARGE && after < before * (1.0 - DROP)).then(|| Finding::Drop {
        kind: fewer.kind,
        bytes,
        nodes: (fewer.nodes, more.nodes),
        ranks: (fewer.ranks, more.ranks),
        before: Bandwidth::from_gb_per_sec(before),
        after: Bandwidth::from_gb_per_sec(after),
    })
}

/// The largest size at which two nodes beat their NICs.
fn two_node_tree(group: &Group, observations: &[Observation]) -> Option<Finding> {
    if group.kind != CollectiveKind::AllReduce || group.nodes != 2 {
        return None;
    }
    group.rows.iter().rev().map(|&row| &observations[row]).find_map(|row| {
        let (bus, nics) = (row.bus_gb_per_sec(), row.fabric.inter.bandwidth);
        (bus > nics.gb_per_sec()).then(|| Finding::TwoNodeTree {
            ranks: group.ranks,
            bytes: row.call.bytes,
            bus: Bandwidth::from_gb_per_sec(bus),
            nics,
        })
    })
}
