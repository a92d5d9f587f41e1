//! Bandwidths that look impossible, and why they are not.

use foretrain_core::Bandwidth;
use foretrain_graph::CollectiveKind;
use foretrain_hardware::Cluster;

use super::answer::{Plateau, Setting};

/// Readings this far above a link's rate are worth a word.
const ABOVE: f64 = 1.02;

/// What to say of a predicted plateau.
pub(super) fn of_plateau(setting: &Setting, plateau: &Plateau, cluster: &Cluster) -> Vec<String> {
    explained(setting, plateau.bus_bandwidth, cluster).into_iter().collect()
}

/// What to say of a bus bandwidth that was measured.
pub(super) fn of_measurement(
    setting: &Setting,
    bus: Bandwidth,
    cluster: &Cluster,
) -> Option<String> {
    if let Some(text) = explained(setting, bus, cluster) {
        return Some(text);
    }
    let (rate, link) = narrowest(setting)?;
    let reduces = setting.kind == CollectiveKind::AllReduce;
    let way_out = if setting.nodes > 1 && reduces {
        "; switches that reduce (SHARP) can do that, else this is another machine"
    } else {
        "; is this another machine?"
    };
    (bus.get() > rate.get() * ABOVE).then(|| {
        let name = &cluster.name;
        format!("{bus} of bus bandwidth is more than the {rate} of {link} that {name} has{way_out}")
    })
}

/// Bus bandwidth counts what a ring would move. Where less is moved it may exceed the link's rate.
fn explained(setting: &Setting, bus: Bandwidth, cluster: &Cluster) -> Option<String> {
    if setting.kind != CollectiveKind::AllReduce {
        return None;
    }
    let (rate, link) = narrowest(setting)?;
    if bus.get() <= rate.get() * ABOVE {
        return None;
    }
    let ring = 2.0 * f64::from(setting.ranks - 1) / f64::from(setting.ranks);
    if setting.nodes == 2 {
        return (bus.get() <= rate.get() * ring * ABOVE).then(|| {
            format!(
                "{bus} of bus bandwidth over {rate} of {link} is no error: between two nodes a tree \
                 moves the size about once, and bus bandwidth counts the {ring:.2} times of a \
                 ring. With three nodes or more this gain is gone"
            )
        });
    }
    let node = &cluster.node.intra;
    let in_switch = setting.nodes == 1 && node.kind.is_nvlink() && node.generation >= Some(4);
    (in_switch && bus.get() <= rate.get() * ring * ABOVE).then(|| {
        format!(
            "{bus} of bus bandwidth over {rate} of {link} is no error: NVLink switches reduce, so a \
             rank moves the size once, and bus bandwidth counts the {ring:.2} times of a ring"
        )
    })
}

/// The link that a ring is held back by, for messages.
fn narrowest(setting: &Setting) -> Option<(Bandwidth, &'static str)> {
    let within = (setting.intra_bandwidth, "links in a node");
    let between = (setting.inter_bandwidth, "NICs");
    match (setting.ranks_per_node > 1, setting.nodes > 1) {
        (true, true) if within.0 < between.0 => Some(within),
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
        assert!(said(all_reduce, 2, 57.0).is_some_and(|text| text.contains("is no error")));
        assert!(said(all_reduce, 2, 120.0).is_some_and(|text| text.contains("another machine")));
        assert!(said(all_reduce, 3, 57.0).is_some_and(|text| text.contains("SHARP")));
        assert!(
            said(CollectiveKind::AllGather, 2, 57.0).is_some_and(|t| t.contains("is this another"))
        );
        assert_eq!(said(all_reduce, 3, 30.0), None);
    }
}
