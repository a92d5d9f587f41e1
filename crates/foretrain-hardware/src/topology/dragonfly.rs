//! Dragonflies: meshed groups of switches, and cables between every two groups.

use super::network::{Plan, Wiring};

/// Wires switches so that without oversubscription all NICs can send to all others at once.
///
/// A switch with the rate `R` of its NICs spreads it over the `a` switches of its group, and what
/// arrives from elsewhere is spread the same way: `2 R / a` per cable. Two of `g` groups share
/// `a R / (g - 1)`, over as many cables as let every switch have one. `None` if that takes too many.
pub(super) fn wire(plan: &Plan<'_>) -> Option<Wiring> {
    let [switch, group, global] = &plan.cluster.fabric.levels[..] else { return None };
    let per_switch = switch.nodes.min(plan.nodes);
    let per_group = group.nodes.min(plan.nodes.next_multiple_of(per_switch)).max(per_switch);
    let (switches, groups) = (per_group / per_switch, plan.nodes.div_ceil(per_group));
    let peers = groups - 1;
    let ways = if peers == 0 { 0 } else { switches.div_ceil(peers) };
    let mesh = u64::from(groups) * u64::from(switches) * u64::from(switches - 1) / 2;
    let trunks = u64::from(groups) * u64::from(peers) / 2 * u64::from(ways);
    if mesh.saturating_add(trunks) > plan.cables {
        return None;
    }
    let mut wiring = Wiring::default();
    for group in 0..groups {
        for switch in 0..switches {
            wiring.switch(format!("group{group}.switch{switch}"));
        }
    }
    for node in 0..plan.nodes {
        for _ in 0..plan.nics {
            wiring.leaf.push(node / per_switch);
        }
    }
    let rate = plan.nic * f64::from(per_switch) * f64::from(plan.nics);
    let local = rate * 2.0 / f64::from(switches) / group.oversubscription;
    for first in (0..groups).map(|group| group * switches) {
        for a in 0..switches {
            for b in a + 1..switches {
                wiring.cable(first + a, first + b, local);
            }
        }
    }
    let narrowed = group.oversubscription * global.oversubscription;
    let trunk = rate * f64::from(switches) / f64::from((peers * ways).max(1)) / narrowed;
    // The ports of a group are numbered way by way, each from the next group on round the ring
    // of groups, and stand at its switches in that order.
    let at = |group: u32, way: u32, offset: u32| {
        let port = u64::from(way) * u64::from(peers) + u64::from(offset - 1);
        let place = port * u64::from(switches) / (u64::from(peers) * u64::from(ways));
        group * switches + place as u32
    };
    for a in 0..groups {
        for b in a + 1..groups {
            for way in 0..ways {
                wiring.cable(at(a, way, b - a), at(b, way, groups - (b - a)), trunk);
            }
        }
    }
    Some(wiring)
}
