//! Clusters: nodes of one type and the fabric between them.

use std::collections::BTreeMap;
use std::sync::Arc;

use foretrain_core::{Bandwidth, InputError, Nanos, Result};
use serde::Serialize;

use crate::collectives::Calibration;
use crate::node::Node;
use crate::source::Source;
use crate::topology::Topology;

/// One switching level, counted from the nodes outwards.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Level {
    /// For people: `leaf`, `spine`, `pod`.
    pub name: String,
    /// Nodes that meet at this level; [`Level::UNBOUNDED`] for all.
    pub nodes: u32,
    /// Bandwidth that enters the level from below over what it can carry between its parts, at least 1.
    pub oversubscription: f64,
    /// One-way time through this level and all below, small message.
    pub latency: Nanos,
}

impl Level {
    /// The group size of a level that reaches every node.
    pub const UNBOUNDED: u32 = u32::MAX;
}

/// What connects nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fabric {
    /// The catalogue's name, or that of the cluster if defined there.
    pub name: String,
    /// Nearest the nodes first, growing. Empty if the nodes have no NIC.
    pub levels: Vec<Level>,
    /// The i-th NIC of every node hangs off the same leaf switch, so equal local ranks meet at
    /// the first level.
    pub rail_optimised: bool,
    /// The switches reduce what passes them (InfiniBand SHARP), so an all-reduce crosses each link
    /// once.
    pub in_network_reduction: bool,
    /// How the switches of the levels are wired.
    pub topology: Topology,
}

/// Nodes of one type and their fabric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cluster {
    /// The catalogue's name; a node's name for "as many of those as asked".
    pub name: String,
    /// Other names that look it up.
    pub aliases: Vec<String>,
    /// One line for people.
    pub description: String,
    /// Its nodes, all alike.
    pub node: Node,
    /// How many there are; `None` for as many as asked.
    pub nodes: Option<u32>,
    /// Between the nodes.
    pub fabric: Fabric,
    /// What was measured of its collectives.
    #[serde(skip)]
    pub collectives: Option<Arc<Calibration>>,
    /// Where each figure comes from, by its key in the file.
    pub sources: BTreeMap<String, Source>,
}

impl Cluster {
    /// Devices in one node.
    pub fn devices_per_node(&self) -> u32 {
        self.node.devices
    }

    /// Devices in the whole cluster, if its size is known.
    pub fn devices(&self) -> Option<u64> {
        self.nodes.map(|nodes| u64::from(nodes) * u64::from(self.node.devices))
    }

    /// Wire rate of all NICs of a node together, one direction.
    pub fn node_bandwidth(&self) -> Bandwidth {
        self.node.nics_bandwidth()
    }

    /// Wire rate of a node's NICs shared evenly by its devices, one direction.
    pub fn nic_bandwidth_per_device(&self) -> Bandwidth {
        self.node_bandwidth() / f64::from(self.node.devices.max(1))
    }

    /// The nodes that `devices` devices fill, the last one perhaps in part.
    ///
    /// # Errors
    /// For zero devices, for more than the cluster has, and for more than one node of a type
    /// without NICs.
    pub fn nodes_for(&self, devices: u64) -> Result<u32> {
        if devices == 0 {
            return Err(InputError::new("a job needs at least one device, found 0"));
        }
        let nodes = devices.div_ceil(u64::from(self.node.devices.max(1)));
        self.check_nodes(nodes).map_err(|error| {
            let per_node = self.node.devices;
            error.hint(format!("{devices} devices fill {nodes} nodes of {per_node}"))
        })
    }

    /// The levels that traffic among `nodes` nodes packed side by side passes: none for one node.
    ///
    /// # Errors
    /// As [`nodes_for`](Self::nodes_for), and if the fabric's outermost level is too small.
    pub fn levels_for(&self, nodes: u32) -> Result<&[Level]> {
        self.check_nodes(u64::from(nodes))?;
        if nodes <= 1 {
            return Ok(&[]);
        }
        let levels = &self.fabric.levels;
        match levels.iter().position(|level| level.nodes >= nodes) {
            Some(last) => Ok(&levels[..=last]),
            None => Err(self.fabric_too_small(nodes)),
        }
    }

    /// One-way time between two of `nodes` nodes, small message: that of the outermost level
    /// they need; zero for one node.
    ///
    /// # Errors
    /// As [`levels_for`](Self::levels_for).
    pub fn latency_among(&self, nodes: u32) -> Result<Nanos> {
        Ok(self.levels_for(nodes)?.last().map_or(Nanos::ZERO, |level| level.latency))
    }

    /// Rate at which every one of `nodes` nodes can send at once across the outermost level they
    /// need: [`node_bandwidth`](Self::node_bandwidth) over the product of the oversubscriptions.
    ///
    /// # Errors
    /// As [`levels_for`](Self::levels_for).
    pub fn node_bandwidth_among(&self, nodes: u32) -> Result<Bandwidth> {
        let oversubscription: f64 =
            self.levels_for(nodes)?.iter().map(|level| level.oversubscription).product();
        Ok(self.node_bandwidth() / oversubscription)
    }

    /// Where the figure with this key comes from: the cluster's own, else the node's.
    pub fn source(&self, figure: &str) -> Option<&Source> {
        self.sources.get(figure).or_else(|| self.node.source(figure))
    }

    fn check_nodes(&self, nodes: u64) -> Result<u32> {
        let name = &self.name;
        let Some(count) = u32::try_from(nodes).ok().filter(|count| *count > 0) else {
            return Err(InputError::new(format!("{name} cannot have {nodes} nodes")));
        };
        if count > 1 && self.node.nics == 0 {
            let node = &self.node.name;
            return Err(InputError::new(format!(
                "{node} has no NIC, so it cannot form a cluster of {count} nodes"
            ))
            .hint(format!(
                "define a node with `based_on = \"{node}\"` that sets nics, nic and nic_bandwidth"
            )));
        }
        if let Some(available) = self.nodes
            && count > available
        {
            return Err(InputError::new(format!(
                "{name} has {available} nodes, {count} are needed"
            ))
            .hint(format!("use the node type {} for as many nodes as you like", self.node.name)));
        }
        Ok(count)
    }

    fn fabric_too_small(&self, nodes: u32) -> InputError {
        let name = &self.name;
        let most = self.fabric.levels.last().map_or(1, |level| level.nodes);
        InputError::new(format!("the fabric of {name} connects {most} nodes, {nodes} are needed"))
            .hint("leave out `nodes` in the fabric's last level to let it reach every node")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalogue;

    #[test]
    fn devices_fill_nodes() {
        let cluster = Catalogue::builtin().cluster("dgx-a100").unwrap();
        assert_eq!(cluster.nodes_for(1).unwrap(), 1);
        assert_eq!(cluster.nodes_for(8).unwrap(), 1);
        assert_eq!(cluster.nodes_for(9).unwrap(), 2);
        assert_eq!(cluster.nodes_for(1024).unwrap(), 128);
        assert!(cluster.nodes_for(0).is_err());
        assert!(cluster.nodes_for(u64::MAX).is_err());
        assert_eq!(cluster.node_bandwidth().gb_per_sec(), 200.0);
        assert_eq!(cluster.nic_bandwidth_per_device().gb_per_sec(), 25.0);
    }

    #[test]
    fn levels_grow_with_the_job() {
        let mut cluster = Catalogue::builtin().cluster("dgx-a100").unwrap();
        let level = |name: &str, nodes, oversubscription, micros| Level {
            name: name.into(),
            nodes,
            oversubscription,
            latency: Nanos::from_micros(micros),
        };
        cluster.fabric.levels = vec![level("leaf", 4, 1.0, 2), level("spine", 64, 2.5, 3)];
        assert!(cluster.levels_for(1).unwrap().is_empty());
        assert_eq!(cluster.levels_for(4).unwrap().len(), 1);
        assert_eq!(cluster.levels_for(5).unwrap().len(), 2);
        assert_eq!(cluster.latency_among(1).unwrap(), Nanos::ZERO);
        assert_eq!(cluster.latency_among(64).unwrap(), Nanos::from_micros(3));
        assert_eq!(cluster.node_bandwidth_among(4).unwrap().gb_per_sec(), 200.0);
        assert_eq!(cluster.node_bandwidth_among(64).unwrap().gb_per_sec(), 80.0);
        let error = cluster.levels_for(65).unwrap_err();
        assert!(error.to_string().contains("connects 64 nodes, 65 are needed"), "{error}");
    }

    #[test]
    fn a_box_without_nics_stands_alone() {
        let cluster = Catalogue::builtin().cluster("pcie-8x-rtx3090").unwrap();
        assert_eq!(cluster.nodes_for(8).unwrap(), 1);
        let error = cluster.nodes_for(16).unwrap_err();
        assert!(error.message().contains("has no NIC"), "{error}");
        assert!(error.hints().iter().any(|hint| hint.contains("based_on")));
    }
}
