//! What if the same nodes were connected like that.

use std::fmt;
use std::str::FromStr;

use foretrain_core::{InputError, Nanos, Result};

use super::{Topology, grid_nodes};
use crate::cluster::{Cluster, Fabric, Level};

/// One more switch on the way, where the cluster's own levels do not tell.
const HOP: Nanos = Nanos::from_nanos(500);
/// Most nodes on a switch, and switches in a group.
const MOST: u32 = 1024;
const NAMES: &str = "single-switch, fat-tree, rail-optimised, dragonfly or torus";

/// A fabric of a usual shape, written `fat-tree`, `rail-optimised,leaf=32,oversubscription=2`,
/// `dragonfly,nodes=8,switches=8` or `torus,dimensions=4x4x8`.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Every node on one switch.
    SingleSwitch,
    /// Three levels of switches, all NICs of a node on one leaf.
    FatTree {
        /// Nodes on a leaf; 16 unless given.
        leaf: u32,
        /// Of each level above the leaves; 1 unless given.
        oversubscription: f64,
    },
    /// NIC i of each node on leaf i, under spines.
    RailOptimised {
        /// Nodes on a leaf; 32 unless given.
        leaf: u32,
        /// Of the spines; 1 unless given.
        oversubscription: f64,
    },
    /// Groups of meshed switches, every two groups connected.
    Dragonfly {
        /// Nodes on a switch; 8 unless given.
        nodes: u32,
        /// Switches in a group; 8 unless given.
        switches: u32,
        /// Within and between groups; 1 unless given.
        oversubscription: f64,
    },
    /// A grid that closes on itself.
    Torus {
        /// Nodes along each dimension; a near-cube that holds the job if `None`.
        dimensions: Option<Vec<u32>>,
    },
}

impl Shape {
    /// Connects `nodes` nodes of `cluster` like this. The first switch takes what the cluster's
    /// first level takes; one more takes half of what its second level adds, else 0.5 us.
    ///
    /// # Errors
    /// If the levels or dimensions do not fit each other, or hold fewer nodes.
    pub fn fabric(&self, cluster: &Cluster, nodes: u32) -> Result<Fabric> {
        let own = &cluster.fabric.levels;
        let first = own.first().map_or(Nanos::ZERO, |level| level.latency);
        // A second level adds two switches: up and down again.
        let hop = own.get(1).map_or(HOP, |level| (level.latency - first).scale(0.5));
        let mut fabric = match self {
            Self::SingleSwitch => Fabric::single_switch(hop),
            Self::FatTree { leaf, oversubscription } => {
                Fabric::fat_tree(2 * leaf, [*oversubscription; 2], hop)
            }
            Self::RailOptimised { leaf, oversubscription } => {
                Fabric::rail_optimised(*leaf, *oversubscription, hop)
            }
            Self::Dragonfly { nodes, switches, oversubscription } => {
                Fabric::dragonfly(*nodes, *switches, [*oversubscription; 2], hop)
            }
            Self::Torus { dimensions: Some(dimensions) } => Fabric::torus(dimensions, hop),
            Self::Torus { dimensions: None } => Fabric::torus(&near_cube(nodes), hop),
        };
        for level in &mut fabric.levels {
            level.latency += first - hop;
        }
        fabric.topology.check(&fabric)?;
        let fits = match &fabric.topology {
            Topology::Torus { dimensions } => grid_nodes(dimensions),
            _ => fabric.levels.last().map_or(0, |level| u64::from(level.nodes)),
        };
        if fits < u64::from(nodes) {
            return Err(InputError::new(format!(
                "the topology `{self}` connects {fits} nodes, {nodes} are needed"
            ))
            .hint("give it larger switches or dimensions"));
        }
        Ok(fabric)
    }
}

/// What a fabric is made of, for people: `fat tree: leaf of 16 nodes, 1.5 us; ...`.
pub fn describe(fabric: &Fabric) -> String {
    let wired = match &fabric.topology {
        Topology::Torus { dimensions } => format!("{} nodes", joined(dimensions)),
        _ if fabric.rail_optimised => "one leaf per NIC of a node".into(),
        _ => String::new(),
    };
    let levels = fabric.levels.iter().map(|level| {
        let nodes = match level.nodes {
            Level::UNBOUNDED => String::new(),
            nodes => format!(" of {nodes} nodes"),
        };
        let narrow = match level.oversubscription {
            ratio if ratio > 1.0 => format!(" at {ratio}:1"),
            _ => String::new(),
        };
        format!("{}{nodes}{narrow} {}", level.name, level.latency)
    });
    let parts: Vec<String> = [wired].into_iter().chain(levels).filter(|p| !p.is_empty()).collect();
    format!("{}: {}", fabric.name, parts.join(", "))
}

fn joined(dimensions: &[u32]) -> String {
    dimensions.iter().map(u32::to_string).collect::<Vec<_>>().join("x")
}

/// The smallest grid for so many nodes whose longest side is at most twice the shortest.
fn near_cube(nodes: u32) -> [u32; 3] {
    let nodes = u64::from(nodes.max(1));
    let least = |sides: u64| nodes.div_ceil(sides);
    let mut best: Option<(u64, u64, [u32; 3])> = None;
    let longest = (1..).find(|side: &u64| side.saturating_pow(3) >= nodes).unwrap_or(1);
    for a in 1..=longest {
        for b in a..=2 * a {
            let c = least(a * b).max(b);
            if c <= 2 * a {
                let found = (a * b * c, a + b + c, [a as u32, b as u32, c as u32]);
                best = Some(best.map_or(found, |known| known.min(found)));
            }
        }
    }
    best.map_or([longest as u32; 3], |(_, _, sides)| sides)
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SingleSwitch => f.write_str("single-switch"),
            Self::FatTree { leaf, oversubscription } => {
                write!(f, "fat-tree,leaf={leaf},oversubscription={oversubscription}")
            }
            Self::RailOptimised { leaf, oversubscription } => {
                write!(f, "rail-optimised,leaf={leaf},oversubscription={oversubscription}")
            }
            Self::Dragonfly { nodes, switches, oversubscription } => write!(
                f,
                "dragonfly,nodes={nodes},switches={switches},oversubscription={oversubscription}"
            ),
            Self::Torus { dimensions: None } => f.write_str("torus"),
            Self::Torus { dimensions: Some(sides) } => {
                write!(f, "torus,dimensions={}", joined(sides))
            }
        }
    }
}

impl FromStr for Shape {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |what: String| InputError::new(format!("{what} in the topology `{text}`"));
        let mut parts = text.split(',').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let known: &[&str] = match name {
            "single-switch" => &[],
            "fat-tree" | "rail-optimised" => &["leaf", "oversubscription"],
            "dragonfly" => &["nodes", "switches", "oversubscription"],
            "torus" => &["dimensions"],
            _ => return Err(wrong(format!("`{name}` is not known")).hint(format!("write {NAMES}"))),
        };
        let mut given: Vec<(&str, &str)> = Vec::new();
        for part in parts {
            let pair = part.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
            let Some((key, value)) = pair.filter(|(key, _)| known.contains(key)) else {
                return Err(wrong(format!("`{part}` is not understood")).hint(match known {
                    [] => format!("a {name} has no parameters"),
                    _ => format!("a {name} has: {}", known.join(", ")),
                }));
            };
            if given.iter().any(|(other, _)| *other == key) {
                return Err(wrong(format!("`{key}` stands twice")));
            }
            given.push((key, value));
        }
        let value =
            |key: &str| given.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
        let count = |key: &str, usual: u32| match value(key).map(str::parse::<u32>) {
            None => Ok(usual),
            Some(Ok(count)) if (2..=MOST).contains(&count) => Ok(count),
            Some(_) => Err(wrong(format!("expected {key} from 2 to {MOST}"))),
        };
        let oversubscription = || match value("oversubscription").map(str::parse::<f64>) {
            None => Ok(1.0),
            Some(Ok(ratio)) if (1.0..=1000.0).contains(&ratio) => Ok(ratio),
            Some(_) => Err(wrong("expected an oversubscription from 1 to 1000".into())),
        };
        Ok(match name {
            "fat-tree" => {
                Self::FatTree { leaf: count("leaf", 16)?, oversubscription: oversubscription()? }
            }
            "rail-optimised" => Self::RailOptimised {
                leaf: count("leaf", 32)?,
                oversubscription: oversubscription()?,
            },
            "dragonfly" => Self::Dragonfly {
                nodes: count("nodes", 8)?,
                switches: count("switches", 8)?,
                oversubscription: oversubscription()?,
            },
            "torus" => {
                let sides = |text: &str| {
                    let sides: Option<Vec<u32>> =
                        text.split('x').map(|side| side.trim().parse().ok()).collect();
                    let fits = |sides: &Vec<u32>| {
                        sides.len() <= Topology::MOST_DIMENSIONS
                            && sides.iter().all(|side| (1..=65_536).contains(side))
                    };
                    sides.filter(fits).ok_or_else(|| {
                        wrong(format!("dimensions `{text}`")).hint(format!(
                            "write up to {} numbers of nodes, as in 4x4x8",
                            Topology::MOST_DIMENSIONS
                        ))
                    })
                };
                Self::Torus { dimensions: value("dimensions").map(sides).transpose()? }
            }
            _ => Self::SingleSwitch,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalogue;
    use crate::topology::Network;

    const ALL: [&str; 7] = [
        "single-switch",
        "fat-tree",
        "fat-tree,leaf=2,oversubscription=2.5",
        "rail-optimised,leaf=4",
        "dragonfly",
        "torus",
        "torus,dimensions=4x3",
    ];

    #[test]
    fn what_is_written_can_be_read_again() {
        for text in ALL {
            let shape: Shape = text.parse().unwrap();
            assert_eq!(shape.to_string().parse::<Shape>().unwrap(), shape, "{text}");
            assert!(shape.to_string().starts_with(text.split(',').next().unwrap()));
        }
    }

    #[test]
    fn every_shape_connects_nodes_and_keeps_the_first_hop() {
        let mut cluster = Catalogue::builtin().cluster("dgx-a100").unwrap();
        let first = cluster.fabric.levels[0].latency;
        for text in ALL {
            let shape: Shape = text.parse().unwrap();
            let fabric = shape.fabric(&cluster, 12).unwrap();
            if !text.starts_with("torus") {
                assert_eq!(fabric.levels[0].latency, first, "{text}");
            }
            let apart = fabric.levels.windows(2).all(|pair| pair[0].latency < pair[1].latency);
            assert!(apart, "{text}: {:?}", fabric.levels);
            assert!(describe(&fabric).starts_with(&fabric.name));
            cluster.fabric = fabric;
            Network::new(&cluster, 12).unwrap();
        }
    }

    #[test]
    fn near_cubes_hold_all_nodes_and_little_more() {
        assert_eq!(near_cube(128), [4, 4, 8]);
        assert_eq!(near_cube(64), [4, 4, 4]);
        assert_eq!(near_cube(32), [2, 4, 4]);
        for nodes in 1..3000 {
            let [a, b, c] = near_cube(nodes);
            assert!(a <= b && b <= c && c <= 2 * a, "{nodes}: {a} {b} {c}");
            let (held, nodes) = (f64::from(a * b * c), f64::from(nodes));
            assert!(held >= nodes && held <= 1.7 * nodes + 1.0, "{nodes}: {a} {b} {c}");
        }
    }

    #[test]
    fn slips_are_named() {
        let slip = |text: &str| {
            let error = text.parse::<Shape>().unwrap_err();
            format!("{error} {}", error.hints().join(" "))
        };
        assert!(slip("hypercube").contains("write single-switch, fat-tree"));
        assert!(slip("torus,leaf=4").contains("a torus has: dimensions"));
        assert!(slip("single-switch,leaf=4").contains("has no parameters"));
        assert!(slip("fat-tree,leaf=1").contains("from 2 to 1024"));
        assert!(slip("fat-tree,leaf=4,leaf=4").contains("stands twice"));
        assert!(slip("dragonfly,oversubscription=nan").contains("from 1 to 1000"));
        assert!(slip("torus,dimensions=4x0").contains("as in 4x4x8"));
        let cluster = Catalogue::builtin().cluster("dgx-a100").unwrap();
        let small: Shape = "torus,dimensions=2x2".parse().unwrap();
        let error = small.fabric(&cluster, 5).unwrap_err();
        assert!(error.message().contains("connects 4 nodes, 5 are needed"), "{error}");
    }
}
