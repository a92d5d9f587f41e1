//! Fat trees: any number of levels, with or without rails.

use super::network::{Plan, Wiring};

/// Names of the switches of each level.
const NAMES: [&str; 8] = ["leaf", "spine", "core", "top", "top5-", "top6-", "top7-", "top8-"];

/// Switches of one level: `groups` times `planes`.
struct Tier {
    first: u32,
    groups: u32,
    planes: u32,
    /// Cables or NICs from below at each.
    down: f64,
    /// Rate of each of those.
    rate: f64,
    /// Nodes of a group.
    nodes: u32,
}

impl Tier {
    fn switch(&self, group: u32, plane: u32) -> u32 {
        self.first + group * self.planes + plane
    }
}

/// Every switch has as many cables upwards as from below over the oversubscription, one to each
/// switch above it. `None` if that takes too many.
pub(super) fn wire(plan: &Plan<'_>) -> Option<Wiring> {
    let fabric = &plan.cluster.fabric;
    let rails = if fabric.rail_optimised { plan.nics } else { 1 };
    let needed = plan.cluster.levels_for(plan.nodes).ok()?.len();
    // Rails meet above their leaves, however few the nodes.
    let needed = needed.max(if rails > 1 { 2 } else { 1 });
    let levels = &fabric.levels[..needed.min(fabric.levels.len())];
    let mut wiring = Wiring::default();
    let within = levels[0].nodes.min(plan.nodes);
    let mut below = Tier {
        first: 0,
        groups: plan.nodes.div_ceil(within),
        planes: rails,
        down: f64::from(within) * f64::from(plan.nics / rails),
        rate: plan.nic.get(),
        nodes: within,
    };
    name(&mut wiring, 0, &below);
    for node in 0..plan.nodes {
        for nic in 0..plan.nics {
            wiring.leaf.push(below.switch(node / within, nic % rails));
        }
    }
    for (at, level) in levels.iter().enumerate().skip(1) {
        let ways = (below.down / level.oversubscription).round().max(1.0);
        let nodes = level.nodes.min(plan.nodes);
        let cables = f64::from(below.groups) * f64::from(below.planes) * ways;
        if wiring.cables.len() as f64 + cables > plan.cables as f64 {
            return None;
        }
        let ways = ways as u32;
        let beneath = nodes.div_ceil(below.nodes);
        // All rails meet above the leaves; further up each plane keeps to itself.
        let (meeting, planes) =
            if at == 1 { (below.planes, ways) } else { (1, below.planes * ways) };
        let tier = Tier {
            first: wiring.switches.len() as u32,
            groups: below.groups.div_ceil(beneath),
            planes,
            down: f64::from(beneath) * f64::from(meeting),
            rate: below.rate * below.down / level.oversubscription / f64::from(ways),
            nodes,
        };
        name(&mut wiring, at, &tier);
        let rate = foretrain_core::Bandwidth::from_bytes_per_sec(tier.rate);
        for group in 0..below.groups {
            for plane in 0..below.planes {
                for way in 0..ways {
                    let above = if at == 1 { way } else { plane * ways + way };
                    let to = tier.switch(group / beneath, above);
                    wiring.cable(below.switch(group, plane), to, rate);
                }
            }
        }
        below = tier;
    }
    Some(wiring)
}

/// `leaf4`, `leaf4.1` with rails, `spine7` or `spine0.7` where there are several groups of them.
fn name(wiring: &mut Wiring, level: usize, tier: &Tier) {
    let what = NAMES[level.min(NAMES.len() - 1)];
    for group in 0..tier.groups {
        for plane in 0..tier.planes {
            wiring.switch(match (tier.groups, tier.planes) {
                (1, _) if level > 0 => format!("{what}{plane}"),
                (_, 1) => format!("{what}{group}"),
                _ => format!("{what}{group}.{plane}"),
            });
        }
    }
}
