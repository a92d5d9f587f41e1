//! Bandwidths that look impossible, and why they are not.

use foretrain_core::Bandwidth;
use foretrain_graph::CollectiveKind;
use foretrain_hardware::{Cluster, LinkKind};

use super::answer::{Plateau, Setting};

/// Readings this far above a link's rate are worth a word.
const ABOVE: f64 = 1.02;

/// What to say of a predicted plateau.
pub(super) fn of_plateau(setting: &Setting, plateau: &Plateau, cluster: &Cluster) -> Vec<String> {
    let excess = Excess::of(setting, plateau.bus_bandwidth, cluster);
    excess.and_then(|e| Some(format!("{} and is right: {}", e.what, e.why?))).into_iter().collect()
}

/// What to say of a bus bandwidth that was measured.
pub(super) fn of_measurement(
    setting: &Setting,
    bus: Bandwidth,
    cluster: &Cluster,
) -> Option<String> {
    let Excess { what, why } = Excess::of(setting, bus, cluster)?;
    let name = &cluster.name;
    Some(match why {
        Some(why) => format!("{what} and need not be an error: {why}"),
        None if setting.nodes > 1 && setting.kind == CollectiveKind::AllReduce => format!(
            "{what} of {name}; network switches that reduce (SHARP) can do that, else this is \
             another machine"
        ),
        None => format!("{what} of {name}; is this another machine?"),
    })
}

/// A bus bandwidth that no ring reaches. It counts what a ring would move, so where less is moved
/// it may exceed the links' rate.
struct Excess {
    what: String,
    why: Option<String>,
}

impl Excess {
    fn of(setting: &Setting, bus: Bandwidth, cluster: &Cluster) -> Option<Self> {
        let node = &cluster.node.intra;
        let switch_reduces = node.kind == LinkKind::Nvswitch && node.generation >= Some(4);
        let (rate, link) = narrowest(setting, switch_reduces)?;
        if bus.get() <= rate.get() * ABOVE {
            return None;
        }
        let ring = 2.0 * f64::from(setting.ranks - 1) / f64::from(setting.ranks);
        let possible = setting.kind == CollectiveKind::AllReduce
            && bus.get() <= rate.get() * ring * ABOVE
            && (setting.nodes == 2 || (setting.nodes == 1 && switch_reduces));
        let counts = format!("bus bandwidth counts the {ring:.2} times of a ring");
        let why = if setting.nodes == 2 {
            format!(
                "between two nodes a tree moves the size about once, and {counts}. With three nodes \
                 or more this gain is gone"
            )
        } else {
            format!("where NVLink switches reduce, a rank moves the size once, and {counts}")
        };
        Some(Self {
            what: format!("{bus} of bus bandwidth is above the {rate} of the {link}"),
            why: possible.then_some(why),
        })
    }
}

/// The link that holds a ring back, for messages. Where switches reduce, all links in a node carry
/// less than a ring's share, so between nodes only the NICs count.
fn narrowest(setting: &Setting, switch_reduces: bool) -> Option<(Bandwidth, &'static str)> {
    let within = (setting.intra_bandwidth, "links in a node");
    let between = (setting.inter_bandwidth, "NICs");
    match (setting.ranks_per_node > 1, setting.nodes > 1) {
        (true, true) if within.0 < between.0 && !switch_reduces => Some(within),
        (_, true) => Some(between),
        (true, false) => Some(within),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use foretrain_core::Nanos;
    use foretrain_hardware::Catalogue;

    use super::*;

    fn said(kind: CollectiveKind, nodes: u32, bus: f64) -> Option<String> {
        let cluster = Catalogue::builtin().cluster("aws-p4d").unwrap();
        let setting = Setting {
            kind,
            ranks: nodes * 8,
            nodes,
            ranks_per_node: 8,
            intra_bandwidth: Bandwidth::from_gb_per_sec(240.0),
            inter_bandwidth: Bandwidth::from_gb_per_sec(50.0),
            extra_latency: Nanos::ZERO,
        };
        of_measurement(&setting, Bandwidth::from_gb_per_sec(bus), &cluster)
    }

    #[test]
    fn two_nodes_may_exceed_their_nics_and_others_may_not() {
        let all_reduce = CollectiveKind::AllReduce;
        assert_eq!(said(all_reduce, 2, 49.0), None);
        assert!(
            said(all_reduce, 2, 57.0).is_some_and(|text| text.contains("need not be an error"))
        );
        assert!(said(all_reduce, 2, 120.0).is_some_and(|text| text.contains("another machine")));
        assert!(said(all_reduce, 3, 57.0).is_some_and(|text| text.contains("SHARP")));
        assert!(
            said(CollectiveKind::AllGather, 2, 57.0).is_some_and(|t| t.contains("is this another"))
        );
        assert_eq!(said(all_reduce, 3, 30.0), None);
    }
}
