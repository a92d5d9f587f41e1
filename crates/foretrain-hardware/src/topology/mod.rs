//! Explicit networks: every link of a cluster, the routes over them, and links that are slow or dead.
//!
//! A [`Fabric`] says how many nodes meet at which level; a [`Network`] is built from it for a
//! number of nodes, with each NIC, switch and cable. [`Topology`] says how the switches of a
//! fabric's levels are wired. [`Router`] finds the links from one NIC to another under a
//! [`Routing`]. What-ifs: a [`Degradation`] is `node=3,nic=1,rate=0.5` or `link=leaf2-spine0,down`, a
//! [`Shape`] connects the nodes anew.
//!
//! ```
//! use foretrain_hardware::Catalogue;
//! use foretrain_hardware::topology::{Degradation, Network, Nic, Router, Routing};
//!
//! # fn main() -> foretrain_core::Result<()> {
//! let cluster = Catalogue::builtin().cluster("dgx-a100")?;
//! let mut network = Network::new(&cluster, 64)?;
//! network.degrade(&"link=leaf0.3-spine3,down".parse::<Degradation>()?)?;
//!
//! // NIC 3 of node 0 to that of node 40, which is under another leaf switch.
//! let mut router = Router::new(&network, Routing::Deterministic);
//! let route = router.route(Nic { node: 0, nic: 3 }, Nic { node: 40, nic: 3 }, 0).expect("connected");
//! let names: Vec<String> = route.iter().map(|hop| network.link_name(hop.0)).collect();
//! assert_eq!(names[0], "node0.nic3 up");
//! assert_eq!(names.len(), 4);
//! assert!(!names.iter().any(|name| name.contains("leaf0.3-spine3 ")));
//! # Ok(())
//! # }
//! ```

mod clos;
mod degrade;
mod dragonfly;
mod network;
mod presets;
mod route;
mod shape;
mod torus;

use foretrain_core::{InputError, Result};
use serde::Serialize;

pub use degrade::{Condition, Degradation, Target};
pub use network::{Network, Nic};
pub use route::{Hop, Router, Routing};
pub use shape::{Shape, describe};

use crate::cluster::Fabric;

/// How the switches of a fabric's levels are wired.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// A fat tree: each switch of a level has a cable to every switch above it in its plane. One
    /// level is a single switch; with `rail_optimised` each NIC of a node has a leaf of its own.
    #[default]
    FatTree,
    /// Three levels, switch, group and global: the switches of a group are meshed, and every two
    /// groups have cables of their own.
    Dragonfly,
    /// A grid of nodes that closes on itself in every dimension; its NICs are a node's router.
    Torus {
        /// Nodes along each dimension, the fastest-running first.
        dimensions: Vec<u32>,
    },
}

impl Topology {
    /// Most dimensions of a torus.
    pub const MOST_DIMENSIONS: usize = 6;

    /// The word used in catalogue files.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::FatTree => "fat-tree",
            Self::Dragonfly => "dragonfly",
            Self::Torus { .. } => "torus",
        }
    }

    /// Checks that the levels of `fabric` can be wired like this.
    ///
    /// # Errors
    /// For a dragonfly without its three levels or with groups of a part of a switch, and for a
    /// torus without dimensions.
    pub(crate) fn check(&self, fabric: &Fabric) -> Result<()> {
        match self {
            Self::FatTree => Ok(()),
            Self::Dragonfly => match &fabric.levels[..] {
                [switch, group, _] if group.nodes.is_multiple_of(switch.nodes) => Ok(()),
                [switch, group, _] => Err(InputError::new(format!(
                    "a dragonfly group of {} nodes on switches of {}",
                    group.nodes, switch.nodes
                ))
                .hint("the nodes of a group are a multiple of those of a switch")),
                levels => Err(InputError::new(format!(
                    "a dragonfly has 3 levels (switch, group, global), found {}",
                    levels.len()
                ))),
            },
            Self::Torus { dimensions } => {
                let most = Self::MOST_DIMENSIONS;
                if dimensions.is_empty() || dimensions.len() > most || dimensions.contains(&0) {
                    return Err(InputError::new(format!(
                        "a torus has 1 to {most} dimensions of at least one node, found {dimensions:?}"
                    ))
                    .hint("add `dimensions = [4, 4, 8]`: nodes along each dimension"));
                }
                Ok(())
            }
        }
    }
}

/// Nodes of a torus.
pub(crate) fn grid_nodes(dimensions: &[u32]) -> u64 {
    dimensions.iter().fold(1, |product: u64, &size| product.saturating_mul(u64::from(size)))
}
