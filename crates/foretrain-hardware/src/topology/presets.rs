//! Fabrics of usual shapes.

use foretrain_core::Nanos;

use super::Topology;
use crate::cluster::{Fabric, Level};

fn level(name: &str, nodes: u32, oversubscription: f64, latency: Nanos) -> Level {
    let oversubscription = oversubscription.max(1.0);
    Level { name: name.into(), nodes, oversubscription, latency }
}

impl Fabric {
    /// Every node on one switch.
    pub fn single_switch(latency: Nanos) -> Self {
        let levels = vec![level("switch", Level::UNBOUNDED, 1.0, latency)];
        Self {
            name: "single switch".into(),
            levels,
            rail_optimised: false,
            in_network_reduction: false,
            topology: Topology::FatTree,
        }
    }

    /// A fat tree of switches with `ports` ports for `ports^3 / 4` nodes of one NIC each, with
    /// the oversubscription of its leaves and of the switches above them; a switch takes `hop`.
    pub fn fat_tree(ports: u32, oversubscription: [f64; 2], hop: Nanos) -> Self {
        let half = (ports / 2).clamp(1, 1 << 10);
        let levels = vec![
            level("leaf", half, 1.0, hop),
            level("pod", half * half, oversubscription[0], hop.scale(3.0)),
            level("core", 2 * half * half * half, oversubscription[1], hop.scale(5.0)),
        ];
        Self {
            name: "fat tree".into(),
            levels,
            rail_optimised: false,
            in_network_reduction: false,
            topology: Topology::FatTree,
        }
    }

    /// Leaves of `unit` nodes, NIC i of each on leaf i, under spines.
    pub fn rail_optimised(unit: u32, oversubscription: f64, hop: Nanos) -> Self {
        let levels = vec![
            level("leaf", unit.max(1), 1.0, hop),
            level("spine", Level::UNBOUNDED, oversubscription, hop.scale(3.0)),
        ];
        Self {
            name: "rails".into(),
            levels,
            rail_optimised: true,
            in_network_reduction: false,
            topology: Topology::FatTree,
        }
    }

    /// Groups of `switches` meshed switches with `nodes` nodes each, and the oversubscription
    /// within and between groups.
    pub fn dragonfly(nodes: u32, switches: u32, oversubscription: [f64; 2], hop: Nanos) -> Self {
        let nodes = nodes.max(1);
        let levels = vec![
            level("switch", nodes, 1.0, hop),
            level(
                "group",
                nodes.saturating_mul(switches.max(2)),
                oversubscription[0],
                hop.scale(2.0),
            ),
            level("global", Level::UNBOUNDED, oversubscription[1], hop.scale(3.0)),
        ];
        Self {
            name: "dragonfly".into(),
            levels,
            rail_optimised: false,
            in_network_reduction: false,
            topology: Topology::Dragonfly,
        }
    }

    /// A torus of nodes, `hop` from one to the next.
    pub fn torus(dimensions: &[u32], hop: Nanos) -> Self {
        let across: u32 = dimensions.iter().map(|size| size / 2).sum();
        let levels =
            vec![level("across", Level::UNBOUNDED, 1.0, hop.scale(f64::from(across.max(1))))];
        let topology = Topology::Torus { dimensions: dimensions.to_vec() };
        Self {
            name: "torus".into(),
            levels,
            rail_optimised: false,
            in_network_reduction: false,
            topology,
        }
    }
}
